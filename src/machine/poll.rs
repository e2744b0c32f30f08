//! Between turns: the queues are polled.

use crate::host::config::QueueMode;
use crate::words::event::RunStopReason;
use crate::words::message::AgentMessage;

use super::input::{Letter, Queue};
use super::mail::has_content;
use super::output::Effect;
use super::phase::{AfterPoll, Phase};
use super::step::Step;

impl Step<'_> {
    /// Always an effect, even without a provider, so that anything listeners do in response to `turn_end`
    /// is known before the run ends.
    pub(super) fn poll(&mut self, queue: Queue, then: AfterPoll) {
        let effect = self.start(Effect::Poll(queue));
        self.state.phase = Phase::Polling { effect, queue, then };
    }

    /// The poll was answered, or messages that arrived in the meantime make its answer unnecessary.
    /// Steering comes first.
    pub(super) fn polled(&mut self, queue: Queue, then: AfterPoll) {
        let mut taken = self.take_steering();
        if taken.is_empty() && queue == Queue::FollowUp {
            taken = take(&mut self.state.queues.follow_up, self.rules.follow_up);
        }
        self.state.queues.pending.append(&mut taken);
        if then == AfterPoll::Turn || !self.state.queues.pending.is_empty() {
            return self.begin_turn();
        }
        if queue == Queue::FollowUp {
            return self.end_run(RunStopReason::Completed, None);
        }
        let mut policies = self.rules.post_loop.iter();
        let decided = self.decide(policies.len(), &mut |context| Some(policies.next()?.evaluate(context)));
        if decided.stop {
            return self.end_run(RunStopReason::PolicyStop, None);
        }
        if decided.injected.is_empty() {
            return self.poll(Queue::FollowUp, AfterPoll::TurnIfPending);
        }
        self.inject(decided.injected);
        self.begin_turn();
    }

    pub(super) fn take_steering(&mut self) -> Vec<Letter> {
        take(&mut self.state.queues.steering, self.rules.steering.delivery)
    }

    /// Handles the answer of a poll that nothing waits for: its messages are mail like any other.
    pub(super) fn polled_alongside(&mut self, queue: Queue, messages: Vec<AgentMessage>) {
        let has_received = self.receive(queue, messages);
        if let Phase::Dispatching(_) = self.state.phase {
            self.steer_batch();
        } else if has_received {
            self.finish_poll_early(queue);
        }
    }

    /// Returns whether there was any.
    pub(super) fn receive(&mut self, queue: Queue, messages: Vec<AgentMessage>) -> bool {
        let queue = match queue {
            Queue::FollowUp => &mut self.state.queues.follow_up,
            _ => &mut self.state.queues.steering,
        };
        let before = queue.len();
        for message in messages.into_iter().filter(has_content) {
            queue.push(Letter::new(message, 0));
        }
        queue.len() > before
    }

    /// What a poll was waiting for has arrived in another way, so nothing waits for its answer any more.
    pub(super) fn finish_poll_early(&mut self, arrived: Queue) {
        if let Phase::Polling { effect, queue, then } = self.state.phase
            && (arrived == Queue::Steering || queue == arrived)
        {
            self.state.queues.polls.insert(effect, queue);
            self.polled(queue, then);
        }
    }
}

pub(super) fn take(queue: &mut Vec<Letter>, delivery: QueueMode) -> Vec<Letter> {
    match delivery {
        QueueMode::All => std::mem::take(queue),
        QueueMode::OneAtATime if queue.is_empty() => Vec::new(),
        QueueMode::OneAtATime => vec![queue.remove(0)],
    }
}
