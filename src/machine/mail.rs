//! Commands and letters of the host.

use crate::host::config::SteeringTime;
use crate::rules::answer::Answer;
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, ContentBlock, UserMessage};

use super::input::{AgentCommand, Letter, Queue};
use super::output::{Output, Receipt};
use super::phase::Phase;
use super::step::Step;

impl Step<'_> {
    pub(super) fn command(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Steer(letter) => self.receive_steering(vec![letter]),
            AgentCommand::FollowUp(letter) if !has_content(&letter.message) => self.clear_letter(&letter),
            AgentCommand::FollowUp(letter) => {
                self.state.queues.follow_up.push(letter);
                self.finish_poll_early(Queue::FollowUp);
            }
            AgentCommand::Resolve(answers) => self.answer_questions(answers),
            AgentCommand::Refuse { id, call_id, reason } => {
                self.emit(AgentEvent::CommandRefused { id, call_id, reason });
            }
            AgentCommand::ResolveTool { call_id, decision } => {
                self.resolve_by_command(vec![(call_id, decision)])
            }
            AgentCommand::ResolveTools(decisions) => self.resolve_by_command(decisions),
            AgentCommand::SwitchModel => {}
            AgentCommand::ClearQueues => {
                let mut cleared = std::mem::take(&mut self.state.queues.steering);
                cleared.append(&mut self.state.queues.follow_up);
                cleared.iter().for_each(|letter| self.clear_letter(letter));
            }
            AgentCommand::Cancel(reason) => self.abort(&reason),
        }
    }

    pub(super) fn receive_steering(&mut self, letters: Vec<Letter>) {
        let before = self.state.queues.steering.len();
        for letter in letters {
            if has_content(&letter.message) {
                self.state.queues.steering.push(letter);
            } else {
                self.clear_letter(&letter);
            }
        }
        if self.state.queues.steering.len() > before {
            self.handle_steering();
        }
    }

    /// A decision that only a command could bring will never come.
    pub(super) fn leave_nobody_waiting(&mut self) {
        self.cancel_asks();
        if let Phase::Questioned(_) = self.state.phase {
            return self.answer_budget(Answer::Cancel);
        }
        if self.state.approvals.is_waiting_for_user() {
            self.abort(&"nobody is left to decide about the calls".into());
        }
    }

    fn clear_letter(&mut self, letter: &Letter) {
        if letter.receipt > 0 {
            self.out.push(Output::Receipt(letter.receipt, Receipt::Cleared));
        }
    }

    /// Steering takes effect at once if no tool is running that could finish first.
    fn handle_steering(&mut self) {
        match &self.state.phase {
            Phase::Dispatching(batch) => {
                if batch.waits_for_people() || self.steering_time() >= Some(SteeringTime::Immediate) {
                    self.steer_batch();
                }
            }
            Phase::Inferring(_) if self.is_steered_now() => self.steer_answer(),
            _ => self.finish_poll_early(Queue::Steering),
        }
    }

    /// When the waiting steering messages act: when the one does that may wait least.
    pub(super) fn steering_time(&self) -> Option<SteeringTime> {
        let usual = self.rules.steering.when;
        self.state.queues.steering.iter().map(|letter| letter.when.unwrap_or(usual)).max()
    }

    /// Whether a message waits that not even an answer may delay.
    pub(super) fn is_steered_now(&self) -> bool {
        self.steering_time() == Some(SteeringTime::Now)
    }
}

/// Empty texts do not count as messages.
pub(crate) fn has_content(message: &AgentMessage) -> bool {
    let AgentMessage::User(user) = message else { return true };
    let UserMessage { content, .. } = user.as_ref();
    content.iter().any(|block| !matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty()))
}
