//! The messages that are posted to an agent, and their receipts.

use futures::channel::oneshot;

use crate::host::config::SteeringTime;
use crate::machine::{AgentCommand, Letter, Receipt};
use crate::words::message::AgentMessage;

use super::checkpoint::Resume;
use super::{Agent, Shared};

/// Is called with what became of a message.
pub(super) type Settle = dyn FnOnce(Receipt);

impl Agent {
    /// Posts a command as it is. Decisions have methods of their own, which say whether they are about anything.
    pub fn post(&self, command: AgentCommand) {
        self.0.inbox.borrow().post(command);
    }

    /// Posts a message that interrupts the run, when the rules say. Between runs, it waits for the next one.
    pub fn steer(&self, message: AgentMessage) -> oneshot::Receiver<Receipt> {
        let (settle, receipt) = receipt();
        self.post_steering(message, None, settle);
        receipt
    }

    /// Like [`Agent::steer`], but this message says itself when it interrupts.
    pub fn steer_when(&self, message: AgentMessage, when: SteeringTime) -> oneshot::Receiver<Receipt> {
        let (settle, receipt) = receipt();
        self.post_steering(message, Some(when), settle);
        receipt
    }

    /// Posts a message that is read when the run would otherwise end.
    pub fn follow_up(&self, message: AgentMessage) -> oneshot::Receiver<Receipt> {
        let (settle, receipt) = receipt();
        self.post_follow_up(message, settle);
        receipt
    }

    /// Like [`Agent::steer`] or [`Agent::steer_when`], but calls `settle` once it is known what became of the message.
    pub fn post_steering(&self, message: AgentMessage, when: Option<SteeringTime>, settle: Box<Settle>) {
        let letter = Letter { when, ..self.letter(message, settle) };
        self.0.inbox.borrow().post(AgentCommand::Steer(letter));
    }

    /// Like [`Agent::follow_up`], but calls `settle` once it is known what became of the message.
    pub fn post_follow_up(&self, message: AgentMessage, settle: Box<Settle>) {
        let letter = self.letter(message, settle);
        self.0.inbox.borrow().post(AgentCommand::FollowUp(letter));
    }

    fn letter(&self, message: AgentMessage, settle: Box<Settle>) -> Letter {
        let receipt = self.0.number();
        self.0.receipts.borrow_mut().insert(receipt, settle);
        Letter::new(message, receipt)
    }

    /// Whether posted messages wait for the next run.
    pub fn has_waiting(&self) -> bool {
        let published = self.0.published.borrow();
        let published = published.borrow();
        let left = !published.steering.is_empty() || !published.follow_up.is_empty();
        left || self.0.inbox.borrow().has_messages()
    }

    /// Empties both queues.
    pub fn clear_queues(&self) {
        let inbox = self.0.inbox.borrow().clone();
        if self.is_running() {
            return inbox.post(AgentCommand::ClearQueues);
        }
        let published = self.published();
        let steering = std::mem::take(&mut published.borrow_mut().steering);
        let follow_up = std::mem::take(&mut published.borrow_mut().follow_up);
        steering.iter().chain(&follow_up).for_each(|letter| self.0.settle(letter.receipt, Receipt::Cleared));
        if let Some(Resume::Run(state, _)) = &mut *self.0.resume.borrow_mut() {
            state.clear_queues();
        }
        for command in inbox.take_all() {
            match command {
                AgentCommand::Steer(letter) | AgentCommand::FollowUp(letter) => {
                    self.0.settle(letter.receipt, Receipt::Cleared);
                }
                other => inbox.post(other),
            }
        }
    }
}

impl Shared {
    pub(super) fn settle(&self, id: u64, receipt: Receipt) {
        let settle = self.receipts.borrow_mut().remove(&id);
        if let Some(settle) = settle {
            settle(receipt);
        }
    }
}

/// A receipt, and the function that settles it.
pub(super) fn receipt() -> (Box<Settle>, oneshot::Receiver<Receipt>) {
    let (sender, receiver) = oneshot::channel();
    let settle = Box::new(move |receipt| {
        let _ = sender.send(receipt);
    });
    (settle, receiver)
}
