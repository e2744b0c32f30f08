//! For tests and examples: a model with scripted answers, and a clock that never makes anyone wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt};

use crate::host::cancel::CancelToken;
use crate::host::config::Model;
use crate::host::ports::Timer;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

/// What a model says in one call, event by event.
pub type ScriptedAnswer = Vec<AssistantMessageEvent>;

/// A model whose n-th call returns the n-th answer. Calls beyond the last answer fail.
///
/// ```
/// use turnwheel::scripted;
///
/// let model = scripted::model([scripted::text("hello"), scripted::text("again")]);
/// assert_eq!(&*model.id, "scripted");
/// ```
pub fn model(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Model {
    let answers: RefCell<VecDeque<ScriptedAnswer>> = RefCell::new(answers.into_iter().collect());
    let ask = move |_: ModelRequest, _: CancelToken| {
        let answer = answers.borrow_mut().pop_front();
        let answer = answer.unwrap_or_else(|| failure(ErrorKind::Unknown, "the script is at its end"));
        stream::iter(answer).boxed_local()
    };
    Model::new("scripted", "scripted", Rc::new(ask))
}

/// An answer with one text.
pub fn text(text: &str) -> ScriptedAnswer {
    use AssistantMessageEvent as E;
    vec![
        E::Start,
        E::TextStart { index: 0 },
        E::TextDelta { index: 0, delta: text.to_owned() },
        E::TextEnd { index: 0, signature: None },
        E::Done { stop_reason: MessageStopReason::Stop, usage: None },
    ]
}

/// An answer that calls tools, given as id, name and arguments.
pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> ScriptedAnswer {
    use AssistantMessageEvent as E;
    let mut answer = vec![E::Start];
    for (index, (call_id, tool_name, arguments)) in (0..).zip(calls) {
        let (call_id, tool_name) = (call_id.to_owned(), tool_name.to_owned());
        answer.push(E::ToolCallStart { index, call_id, tool_name });
        answer.push(E::ToolCallDelta { index, delta: arguments.to_owned() });
        answer.push(E::ToolCallEnd { index, metadata: None });
    }
    answer.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: None });
    answer
}

/// An answer that fails.
pub fn failure(kind: ErrorKind, text: &str) -> ScriptedAnswer {
    vec![AssistantMessageEvent::Error(ErrorInfo::new(kind, text))]
}

/// A clock for [`AgentLoopConfig::new`](crate::host::config::AgentLoopConfig::new).
pub fn clock() -> Rc<dyn Timer> {
    Rc::new(Clock::default())
}

/// A clock on which every wait ends at once: it moves its time forward instead.
#[derive(Debug, Default)]
pub struct Clock(Cell<u64>);

impl Timer for Clock {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        self.0.set(self.0.get() + ms);
        Box::pin(std::future::ready(()))
    }
}
