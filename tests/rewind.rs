//! The history is taken back between two runs; what else the agent has stays.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::cell::RefCell;
use std::rc::Rc;

use futures::executor::block_on;
use futures::stream::{self, StreamExt};
use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::error::ErrorKind;
use turnwheel::event::AgentEvent;
use turnwheel::ports::AgentRunContext;
use turnwheel::scripted::{self, Clock};
use turnwheel::stream::ModelRequest;
use turnwheel::tool::{ApprovalNeed, ToolSpec, tool};

fn who() -> AgentRunContext {
    AgentRunContext::new("r", "s")
}

/// A model that says how many messages it was shown, and asks for `pay` when it is told to.
fn counting() -> AgentLoopConfig {
    let answer = |request: ModelRequest, _: CancelToken| {
        let is_told = format!("{:?}", request.messages.last()).contains("pay");
        let shown = scripted::text(&format!("shown {}", request.messages.len()));
        stream::iter(if is_told { scripted::calls([("c1", "pay", "{}")]) } else { shown }).boxed_local()
    };
    let model = Model::new("own", "m", Rc::new(answer));
    let mut config = AgentLoopConfig::new(model, Rc::new(Clock::default()));
    let spec = ToolSpec {
        requires_approval: ApprovalNeed::Always,
        ..ToolSpec::parse("pay", "", "{\"type\":\"object\"}").unwrap()
    };
    config.set_tools(vec![tool(spec, async |_| "paid")]).unwrap();
    config
}

fn prompt(agent: &Agent, text: &str) -> String {
    let run = agent.prompt(vec![text.into()], who(), CancelToken::new()).unwrap();
    block_on(run.finish()).text
}

#[test]
fn what_was_cut_can_be_gone_back_to() {
    let agent = Agent::new(counting(), Vec::new());
    let heard = Rc::new(RefCell::new(Vec::new()));
    let told = heard.clone();
    agent.subscribe(move |event| {
        if let AgentEvent::HistoryRewound { length, cut, added } = event {
            told.borrow_mut().push((*length, *cut, *added));
        }
    });
    assert_eq!((prompt(&agent, "one"), prompt(&agent, "two")), ("shown 1".into(), "shown 3".into()));
    let two = agent.rewind(2, Vec::new()).unwrap();
    assert_eq!((agent.messages().len(), two.len()), (2, 2));
    assert_eq!(prompt(&agent, "another two"), "shown 3");
    let other = agent.rewind(2, two.clone()).unwrap();
    assert_eq!(agent.messages()[2..], two);
    assert_eq!(prompt(&agent, "three"), "shown 5");
    assert_eq!(other.len(), 2);
    assert_eq!(*heard.borrow(), [(2, 2, 0), (2, 2, 2)]);
    assert_eq!(agent.rewind(7, Vec::new()).unwrap_err().info().code, ErrorKind::Misuse);
}

#[test]
fn a_run_in_progress_refuses_it_and_one_of_a_checkpoint_is_given_up() {
    let agent = Agent::new(counting(), Vec::new());
    prompt(&agent, "one");
    let mut run = agent.prompt(vec!["pay".into()], who(), CancelToken::new()).unwrap();
    let envelope = block_on(async {
        while !matches!(run.next().await, Some(AgentEvent::ToolApprovalRequested { .. })) {}
        drop(agent.follow_up("later".into()));
        run.checkpoint()
    });
    assert_eq!(agent.rewind(2, Vec::new()).unwrap_err().info().code, ErrorKind::Misuse);
    let again = Agent::restore(counting(), &envelope).unwrap();
    assert_eq!(again.pending_questions().len(), 1);
    assert_eq!(again.rewind(2, Vec::new()).unwrap().len(), 2);
    assert!(again.pending_questions().is_empty() && again.resumable().is_none());
    // What waited in a queue waits still.
    assert_eq!(prompt(&again, "two"), "shown 5");
}
