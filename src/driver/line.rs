//! What a run and its owner share, and what the owner gets.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use crate::cancel::CancelToken;
use crate::config::AgentLoopConfig;
use crate::error::AgentError;
use crate::event::{AgentEvent, RunStopReason};
use crate::json::{RawJson, ToJson};
use crate::list::ListWriter;
use crate::machine::{AgentCommand, History, Letter, Receipt, is_something};
use crate::message::{AgentMessage, ToolCallBlock, Usage};

/// Mail to a run, from anywhere. Cloning it shares the box.
#[derive(Clone, Default)]
pub struct Inbox(Rc<InboxState>);

#[derive(Default)]
struct InboxState {
    mail: RefCell<VecDeque<AgentCommand>>,
    /// Whether there is any: asked far more often than there is.
    has_mail: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    closed: Cell<bool>,
}

impl Inbox {
    /// Posts a command and wakes the run.
    pub fn post(&self, command: AgentCommand) {
        self.0.mail.borrow_mut().push_back(command);
        self.0.has_mail.set(true);
        self.wake();
    }

    /// Nobody will post anything any more: a run that waits for a decision which only a command could bring is stopped.
    pub fn close(&self) {
        self.0.closed.set(true);
        self.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.closed.get()
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.0.has_mail.get()
    }

    pub(super) fn take(&self) -> Option<AgentCommand> {
        if self.is_empty() { None } else { self.take_if(|_| true) }
    }

    /// Takes the next command, if it is of a kind.
    #[inline(never)]
    pub(super) fn take_if(&self, is: fn(&AgentCommand) -> bool) -> Option<AgentCommand> {
        let mut mail = self.0.mail.borrow_mut();
        let command = mail.pop_front_if(|command| is(command));
        self.0.has_mail.set(!mail.is_empty());
        command
    }

    /// Writes down what waits in the box.
    pub(crate) fn write_mail(&self, mail: &mut ListWriter<'_>) {
        self.0.mail.borrow().iter().for_each(|command| command.write_json(mail.item()));
    }

    /// The letter and the steering that came right behind it.
    pub(super) fn with_steering_after(&self, letter: Letter) -> Vec<Letter> {
        let mut letters = vec![letter];
        let is_steering = |command: &AgentCommand| matches!(command, AgentCommand::Steer(_));
        while let Some(AgentCommand::Steer(letter)) = self.take_if(is_steering) {
            letters.push(letter);
        }
        letters
    }

    pub(crate) fn take_all(&self) -> VecDeque<AgentCommand> {
        self.0.has_mail.set(false);
        self.0.mail.take()
    }

    pub(crate) fn has_messages(&self) -> bool {
        let mail = self.0.mail.borrow();
        mail.iter().any(|command| match command {
            AgentCommand::Steer(letter) | AgentCommand::FollowUp(letter) => is_something(&letter.message),
            _ => false,
        })
    }

    pub(super) fn wake_by(&self, waker: &Waker) {
        let mut kept = self.0.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }
}

/// What anybody may read of a run at any time, also from inside a callback.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// The history.
    pub messages: Vec<AgentMessage>,
    /// Grows whenever the history changes by anything but an append.
    pub epoch: u64,
    /// What the run used so far.
    pub usage: Usage,
    /// The calls that wait for somebody's decision.
    pub pending_approvals: Vec<ToolCallBlock>,
    /// What is left in the queues; set when the run is over.
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// What the machine knows of the messages; set when the run is over.
    pub(crate) known: Option<Box<History>>,
    /// Whether the run is over.
    pub ended: bool,
}

/// What a run and its owner share.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) config: Rc<RefCell<Rc<AgentLoopConfig>>>,
    pub(crate) inbox: Inbox,
    /// What the runs before this one used.
    pub(crate) used: Rc<Cell<Usage>>,
    pub(crate) cancel: CancelToken,
    pub(crate) published: Rc<RefCell<Published>>,
    pub(crate) listener: Rc<dyn Fn(&AgentEvent)>,
    pub(crate) receipts: Rc<dyn Fn(u64, Receipt)>,
    /// Called once when the run is over and its end was told, or when it is dropped.
    pub(crate) ended: Rc<dyn Fn()>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct AgentLoopResult {
    /// The run.
    pub run_id: Rc<str>,
    /// Everything appended since the start.
    pub messages: Vec<AgentMessage>,
    /// The text of the last answer; the JSON of a structured one.
    pub text: String,
    /// The structured answer, where one was asked for and given.
    pub output: Option<RawJson>,
    /// Everything it used.
    pub usage: Usage,
    /// Turns that called the model.
    pub turns: u32,
    /// Why it ended.
    pub stop_reason: RunStopReason,
    /// With stop reason error or aborted: why.
    pub error: Option<AgentError>,
}

/// What [`AgentStream::poll_output`](super::AgentStream::poll_output) gives.
#[allow(clippy::large_enum_variant, reason = "handed on at once, never kept; a box would cost one per event")]
pub enum Next {
    /// Tell the listeners.
    Event(AgentEvent),
    /// What was told so far must reach the listeners before the run can go on.
    Barrier,
    /// The calls that are offered begin as soon as their announcements are told. Comes only to who asked for it.
    Offer,
    /// The run is over.
    End,
}
