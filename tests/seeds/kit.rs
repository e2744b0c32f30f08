//! Models, tools and transformers that note what they are asked.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{ScriptedAnswer, brief, calls, config, failure, model, spec, text, tool};
use turnwheel::config::Model;
use turnwheel::error::ErrorKind;
use turnwheel::event::CompactionReport;
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;
use turnwheel::stream::ModelRequest;
use turnwheel::tool::{AgentTool, AgentToolResult, ToolOutcome};

/// Notes, in order.
pub(crate) type Notes = Rc<RefCell<Vec<String>>>;

pub(crate) fn note(notes: &Notes, line: impl Into<String>) {
    notes.borrow_mut().push(line.into());
}

pub(crate) fn two_calls() -> ScriptedAnswer {
    calls(&[("a", "t", "{\"n\":1}"), ("b", "t", "{\"n\":2}")])
}

/// A model that records its requests.
pub(crate) fn noting(notes: &Notes, given: Vec<ScriptedAnswer>) -> Model {
    let (notes, given) = (notes.clone(), RefCell::new(std::collections::VecDeque::from(given)));
    model("m", move |request: ModelRequest, _| {
        let asked: Vec<String> = request.messages.iter().cloned().map(|m| brief(&m.into())).collect();
        note(&notes, asked.join(" | "));
        let answer = given.borrow_mut().pop_front().unwrap_or_else(|| text("done"));
        futures::StreamExt::boxed_local(futures::stream::iter(answer))
    })
}

/// A transformer that drops all but the newest message once the model has said that it is too long.
pub(crate) fn shortens(notes: &Notes) -> impl Fn(&[AgentMessage], bool) -> Result<Transform, String> + use<> {
    let notes = notes.clone();
    move |messages, overflow| {
        note(&notes, format!("transform, overflow {overflow}"));
        if !overflow {
            return Ok(Transform::Unchanged);
        }
        let messages = messages[messages.len() - 1..].to_vec();
        Ok(Transform::Replace { messages, report: Some(CompactionReport::default()) })
    }
}

pub(crate) fn noting_tool(name: &'static str, notes: &Notes) -> Rc<dyn AgentTool> {
    let notes = notes.clone();
    tool(spec(name), move |context| {
        note(&notes, format!("run {} with {}", context.call_id, context.arguments.as_str()));
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    })
}

/// What a model that refuses the conversation once was asked, and how the run ended.
pub(crate) fn refused_once(
    history: &[&str],
    transform: impl Fn(&[AgentMessage]) -> Transform + 'static,
) -> (Vec<String>, rig::host::Stage) {
    let (notes, clock) = (Notes::default(), Clock::default());
    let given = vec![failure(ErrorKind::ContextOverflow), text("here")];
    let mut config = config(&clock, noting(&notes, given), Vec::new());
    config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
        Ok(if overflow { transform(messages) } else { Transform::Unchanged })
    }));
    let history = history.iter().map(|text| AgentMessage::user(*text)).collect();
    let mut stage = rig::host::Stage::over(clock, config, history);
    stage.prompt("go").finish().check();
    let asked = notes.borrow().clone();
    (asked, stage)
}
