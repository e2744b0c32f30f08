//! What stands around the execution of tools and models.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::cell::RefCell;
use std::rc::Rc;

use futures::executor::block_on;
use futures::stream::StreamExt;
use rig::clock::Clock;
use rig::host::{answers, calls, config, quick, text};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::cancel::CancelToken;
use turnwheel::ports::{AgentRunContext, ModelAttempt, NextModel, NextTool};
use turnwheel::tool::{AgentTool, ToolContext};

#[test]
fn layers_stand_around_tools_and_models_of_sub_agents_too() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (tools, models) = (seen.clone(), seen.clone());
    let clock = Clock::default();
    let inner =
        config(&clock, answers(vec![calls(&[("k", "quick", "{}")]), text("inner")]), vec![quick("quick")]);
    let child: Rc<dyn AgentTool> = Rc::new(SubAgent::new("clerk", "", move || inner.clone()));
    let outer = vec![calls(&[("c", "clerk", r#"{"prompt":"x"}"#)]), text("done")];
    let mut config = config(&clock, answers(outer), vec![child]);
    config.ports.layers.tool = Some(Rc::new(move |call: ToolContext, next: NextTool| {
        let (tools, name) = (tools.clone(), format!("{} in {}", call.tool_name, call.run_id));
        tools.borrow_mut().push(format!("{name} begins"));
        async move {
            let outcome = next(call).await;
            tools.borrow_mut().push(format!("{name} ends"));
            outcome
        }
    }));
    config.ports.layers.model = Some(Rc::new(move |attempt: ModelAttempt, next: NextModel| {
        let name = format!("{} {}", attempt.context.run_id, attempt.attempt);
        models.borrow_mut().push(name);
        next(attempt.request, attempt.cancel).boxed_local()
    }));
    let agent = Agent::new(config, Vec::new());
    let who = AgentRunContext::new("r", "s");
    let result = block_on(agent.prompt(vec!["Go.".into()], who, CancelToken::new()).unwrap().finish());
    assert_eq!(result.text, "done");
    let wanted = [
        "r 1",
        "clerk in r begins",
        "r/c 1",
        "quick in r/c begins",
        "quick in r/c ends",
        "r/c 1",
        "clerk in r ends",
        "r 1",
    ];
    assert_eq!(*seen.borrow(), wanted);
}
