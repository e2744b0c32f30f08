//! What reaches a run from outside: commands in its inbox, and the abort.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use crate::data::json::ToJson;
use crate::data::list::ListWriter;
use crate::host::cancel::CancelToken;
use crate::machine::{AgentCommand, Letter, has_content};

/// The inbox of a run, which accepts commands from anywhere. Clones share the same inbox.
#[derive(Clone, Default)]
pub struct Inbox(Rc<InboxState>);

#[derive(Default)]
struct InboxState {
    mail: RefCell<VecDeque<AgentCommand>>,
    /// Whether there is any mail. Checked far more often than mail arrives.
    has_mail: Cell<bool>,
    /// How many commands were waiting when the run was aborted.
    before_abort: Cell<usize>,
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
        // Closed again, it must not wake a run that would close it once more.
        if !self.0.closed.replace(true) {
            self.wake();
        }
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

    /// Notes that the run is aborted: what waits now was posted before.
    fn note_abort(&self) {
        self.0.before_abort.set(self.0.mail.borrow().len());
    }

    /// Takes the decisions that were posted before the run was aborted.
    #[cold]
    pub(super) fn take_decisions_before_abort(&self) -> Vec<AgentCommand> {
        let mut mail = self.0.mail.borrow_mut();
        let mut decisions = Vec::new();
        let mut others = VecDeque::new();
        let before = self.0.before_abort.take();
        for (at, command) in mail.drain(..).enumerate() {
            if at < before && command.is_decision() {
                decisions.push(command);
            } else {
                others.push_back(command);
            }
        }
        *mail = others;
        self.0.has_mail.set(!mail.is_empty());
        decisions
    }

    /// Drops the decisions: they were about a run that is over.
    pub(crate) fn drop_decisions(&self) {
        let mut mail = self.0.mail.borrow_mut();
        mail.retain(|command| !command.is_decision());
        self.0.has_mail.set(!mail.is_empty());
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

/// The abort of a run, which is read once, like a letter.
pub(super) struct AbortWatch {
    token: CancelToken,
    is_read: bool,
    /// Wakes the run.
    _watcher: Rc<dyn Fn()>,
}

impl AbortWatch {
    pub(super) fn new(token: CancelToken, inbox: Inbox) -> Self {
        let watcher: Rc<dyn Fn()> = Rc::new(move || {
            inbox.note_abort();
            inbox.wake();
        });
        token.watch(&watcher);
        AbortWatch { token, is_read: false, _watcher: watcher }
    }

    /// Whether the run was aborted and does not know it yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_read && self.token.is_cancelled()
    }

    /// Returns the reason of an abort that the run does not know yet.
    pub(super) fn waiting(&self) -> Option<Rc<str>> {
        self.token.reason().filter(|_| !self.is_read)
    }

    /// Returns the same reason, once.
    pub(super) fn take(&mut self) -> Option<Rc<str>> {
        if !self.is_waiting() {
            return None;
        }
        self.is_read = true;
        Some(self.token.reason().unwrap_or_else(|| "the run was aborted".into()))
    }
}
