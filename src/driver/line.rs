//! What a run and its owner share, and what the owner receives.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use crate::data::json::{RawJson, ToJson};
use crate::data::list::ListWriter;
use crate::host::cancel::CancelToken;
use crate::host::config::AgentLoopConfig;
use crate::machine::{AgentCommand, History, Letter, Receipt, has_content};
use crate::rules::approval::PendingCalls;
use crate::rules::event::{AgentEvent, RunStopReason};
use crate::words::error::AgentError;
use crate::words::message::{AgentMessage, Usage};

/// The inbox of a run, which accepts commands from anywhere. Clones share the same inbox.
#[derive(Clone, Default)]
pub struct Inbox(Rc<InboxState>);

#[derive(Default)]
struct InboxState {
    mail: RefCell<VecDeque<AgentCommand>>,
    /// Whether there is any mail. Checked far more often than mail arrives.
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

    /// Declares that nothing more will be posted. A run that waits for a decision which only a command
    /// could bring is then stopped.
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

    /// Takes the next command, if it is of this kind.
    #[inline(never)]
    pub(super) fn take_if(&self, is: fn(&AgentCommand) -> bool) -> Option<AgentCommand> {
        let mut mail = self.0.mail.borrow_mut();
        let command = mail.pop_front_if(|command| is(command));
        self.0.has_mail.set(!mail.is_empty());
        command
    }

    /// Writes the commands that are waiting.
    pub(crate) fn write_mail(&self, mail: &mut ListWriter<'_>) {
        self.0.mail.borrow().iter().for_each(|command| command.write_json(mail.item()));
    }

    /// Returns the letter, and the steering messages directly after it.
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
            AgentCommand::Steer(letter) | AgentCommand::FollowUp(letter) => has_content(&letter.message),
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

/// What may be read of a run at any time, even inside a callback.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// The history.
    pub messages: Vec<AgentMessage>,
    /// Increases whenever the history changes in any way other than by appending.
    pub epoch: u64,
    /// The usage of the run so far.
    pub usage: Usage,
    /// The calls that wait for a decision.
    pub pending_approvals: PendingCalls,
    /// What is left in the queues; set when the run is over.
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// What the machine knows about the messages; set when the run is over.
    pub(crate) known: Option<Box<History>>,
    /// Whether the run is over.
    pub ended: bool,
}

/// What a run and its owner share.
#[derive(Clone)]
pub(crate) struct Handover {
    pub(crate) config: Rc<RefCell<Rc<AgentLoopConfig>>>,
    pub(crate) inbox: Inbox,
    /// The usage of the earlier runs.
    pub(crate) used: Rc<Cell<Usage>>,
    pub(crate) cancel: CancelToken,
    pub(crate) published: Rc<RefCell<Published>>,
    pub(crate) listener: Rc<dyn Fn(&AgentEvent)>,
    pub(crate) receipts: Rc<dyn Fn(u64, Receipt)>,
    /// Called once, when the run is over and its end has been emitted, or when it is dropped.
    pub(crate) ended: Rc<dyn Fn()>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct AgentLoopResult {
    /// The id of the run.
    pub run_id: Rc<str>,
    /// Every message appended since the start.
    pub messages: Vec<AgentMessage>,
    /// The text of the last answer, or the JSON of a structured one.
    pub text: String,
    /// The structured answer, if one was requested and given.
    pub output: Option<RawJson>,
    /// The usage of the run.
    pub usage: Usage,
    /// The number of turns that called the model.
    pub turns: u32,
    /// Why the run ended.
    pub stop_reason: RunStopReason,
    /// The error, if the stop reason is error or aborted.
    pub error: Option<AgentError>,
}

/// What [`AgentStream::poll_output`](super::AgentStream::poll_output) returns.
#[allow(clippy::large_enum_variant, reason = "handed on at once, never kept; a box would cost one per event")]
pub enum Next {
    /// Emit an event to the listeners.
    Event(AgentEvent),
    /// Everything emitted so far must reach the listeners before the run can continue.
    Barrier,
    /// The offered calls start as soon as their announcements have been emitted. Comes only to callers that
    /// asked for it.
    Offer,
    /// The run is over.
    End,
}
