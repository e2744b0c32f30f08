//! What a tool reports while it runs.

use std::rc::Rc;

use crate::data::json::{RawJson, Value};

use crate::rules::answer::Answer;

use super::ask::{Answers, Ask, Asking};
use super::child::{ChildEvent, ChildRun};

/// What a tool reports while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Any JSON: becomes a `tool_execution_update` event.
    Update(RawJson),
    /// An event of an agent that runs inside the tool: becomes a `subagent_event`.
    Event(ChildEvent),
    /// A question: becomes a `question_asked` event.
    Ask(Asking),
}

/// Reports the progress of one call. At most 128 updates wait; beyond that, the two oldest are joined.
#[derive(Clone, Default)]
pub struct Updates(Rc<UpdateQueue>);

#[derive(Default)]
struct UpdateQueue {
    waiting: std::cell::RefCell<std::collections::VecDeque<Update>>,
    waker: std::cell::RefCell<Option<std::task::Waker>>,
    closed: std::cell::Cell<bool>,
    /// The run of an agent inside the call.
    child: std::cell::RefCell<Option<Rc<dyn ChildRun>>>,
    answers: Answers,
    /// Shared by the calls of a run: something was shown.
    has_progress: Rc<std::cell::Cell<bool>>,
}

enum Update {
    Text(String),
    Json(RawJson),
    Event(ChildEvent),
    Ask(Asking),
}

const UPDATES_WAITING: usize = 128;

/// Bytes up to which texts are joined.
const LONGEST_UPDATE: usize = 1 << 20;

impl Updates {
    /// `has_progress` is set whenever something was shown.
    pub(crate) fn with_flag(has_progress: Rc<std::cell::Cell<bool>>) -> Self {
        Updates(Rc::new(UpdateQueue { has_progress, ..UpdateQueue::default() }))
    }

    /// Reports a text.
    pub fn text(&self, text: &str) {
        self.push(Update::Text(text.to_owned()));
    }

    /// Reports any JSON. After the call has ended, this does nothing.
    pub fn send(&self, update: RawJson) {
        let text = update.as_str().starts_with("\"").then(|| update.to_value());
        self.push(match text {
            Some(Value::String(text)) => Update::Text(text),
            _ => Update::Json(update),
        });
    }

    /// Reports an event of an agent that runs inside the tool. Events are never joined: whoever reports many must let the
    /// loop emit them in between.
    pub fn event(&self, event: ChildEvent) {
        self.push(Update::Event(event));
    }

    /// Asks a person: see [`ToolContext::ask`](super::ToolContext::ask).
    pub fn ask(&self, ask: Ask) -> impl Future<Output = Answer> + use<> {
        let number = self.post_ask(ask);
        let answers = self.0.answers.clone();
        std::future::poll_fn(move |cx| answers.poll(number, cx))
    }

    /// Asks a person, for a host that gives the answer to the tool itself.
    pub fn post_ask(&self, ask: Ask) -> u64 {
        let number = self.0.answers.next_number();
        self.push(Update::Ask(Asking { number, ask }));
        number
    }

    /// Gives the answer to a question to the tool.
    pub(crate) fn answer(&self, number: u64, answer: Answer) {
        self.0.answers.give(number, answer);
    }

    /// Makes the run of an agent inside this call known: it is in the checkpoints of the run around it, its questions are
    /// answered there, and it ends before the call does.
    pub fn attach(&self, child: Rc<dyn ChildRun>) {
        if !self.0.closed.get() {
            *self.0.child.borrow_mut() = Some(child);
        }
    }

    pub(crate) fn child(&self) -> Option<Rc<dyn ChildRun>> {
        self.0.child.borrow().clone()
    }

    fn push(&self, update: Update) {
        if self.0.closed.get() {
            return;
        }
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.push_back(update);
        if waiting.len() > UPDATES_WAITING {
            join_oldest(&mut waiting);
        }
        drop(waiting);
        self.0.has_progress.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn take(&self) -> Option<Progress> {
        let update = self.0.waiting.borrow_mut().pop_front()?;
        Some(match update {
            Update::Text(text) => Progress::Update(RawJson::string(&text)),
            Update::Json(update) => Progress::Update(update),
            Update::Event(event) => Progress::Event(event),
            Update::Ask(asking) => Progress::Ask(asking),
        })
    }

    pub(crate) fn wake_by(&self, waker: &std::task::Waker) {
        *self.0.waker.borrow_mut() = Some(waker.clone());
    }

    pub(crate) fn close(&self) {
        self.0.closed.set(true);
        self.0.answers.close();
        // They refer to each other.
        self.0.child.take();
    }
}

/// Joins the two oldest updates: two texts become one if that is not too long, of anything else the later one is kept.
fn join_oldest(waiting: &mut std::collections::VecDeque<Update>) {
    let (Some(first), Some(second)) = (waiting.pop_front(), waiting.pop_front()) else { return };
    match (first, second) {
        (Update::Text(mut first), Update::Text(second)) if first.len() + second.len() <= LONGEST_UPDATE => {
            first.push_str(&second);
            waiting.push_front(Update::Text(first));
        }
        (first @ (Update::Event(_) | Update::Ask(_)), second)
        | (first, second @ (Update::Event(_) | Update::Ask(_))) => {
            waiting.push_front(second);
            waiting.push_front(first);
        }
        (_, second) => waiting.push_front(second),
    }
}
