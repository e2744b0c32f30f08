//! Models that note what they are asked, and answers of a few words.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::host::{ScriptedAnswer, brief, failure, model, text};
use turnwheel::config::Model;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::message::{MessageStopReason, Usage};
use turnwheel::retry::RetryConfig;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};

pub(crate) type Notes = Rc<RefCell<Vec<String>>>;

/// Turns jitter off, because the tests assert the length of waits.
pub(crate) fn patient(config: &mut turnwheel::config::AgentLoopConfig) {
    config.rules.retry = Rc::new(RetryConfig { jitter: false, ..RetryConfig::default() });
}

pub(crate) fn with_error(error: ErrorInfo) -> ScriptedAnswer {
    vec![E::Error(error)]
}

/// The beginning of an answer.
pub(crate) fn half(delta: &str) -> ScriptedAnswer {
    let mut answer = text(delta);
    answer.truncate(3);
    answer
}

pub(crate) fn stopping(delta: &str, stop_reason: MessageStopReason) -> ScriptedAnswer {
    let mut answer = text(delta);
    answer.truncate(4);
    answer.push(E::Done { stop_reason, usage: None });
    answer
}

/// A model that records its requests, and the key of each.
pub(crate) fn noting(id: &str, notes: &Notes, given: Vec<ScriptedAnswer>) -> Model {
    let (notes, given, name) = (notes.clone(), RefCell::new(VecDeque::from(given)), id.to_owned());
    model(id, move |request: ModelRequest, _| {
        let asked: Vec<String> = request.messages.iter().cloned().map(|m| brief(&m.into())).collect();
        let key = request.api_key.map(|key| format!(" with {key}")).unwrap_or_default();
        notes.borrow_mut().push(format!("{name}{key}: {}", asked.join(" | ")));
        stream::iter(given.borrow_mut().pop_front().unwrap_or_else(|| text("done"))).boxed_local()
    })
}

/// A text, and then the error that the conversation is too long.
pub(crate) fn refused_in_the_middle() -> ScriptedAnswer {
    let mut answer = half("hal");
    answer.insert(1, E::Usage(Usage { input: 10, output: 1, ..Usage::default() }));
    answer.extend(failure(ErrorKind::ContextOverflow));
    answer
}

pub(crate) fn crash<T>() -> T {
    std::panic::resume_unwind(Box::new("crash".to_owned()))
}
