//! A run and its turns: how they begin, what enters the history, how they end.

use std::rc::Rc;

use crate::data::json::{ToJson, Value};
use crate::data::text;
use crate::words::event::{AgentEvent, RunStopReason, TurnEndReason};
use crate::words::message::{AgentMessage, AssistantMessage, MessageStopReason, ToolResultMessage};

use super::input::{Letter, Queue};
use super::output::{Effect, Output, Receipt};
use super::phase::{AfterPoll, Phase};
use super::state::Turn;
use super::step::Step;
use super::structured::Answered;

/// The maximum number of consecutive answers that may ask for another call without a new message.
const MAX_PAUSES: u32 = 5;

impl Step<'_> {
    pub(super) fn begin(&mut self, prompts: Vec<AgentMessage>) {
        if !matches!(self.state.phase, Phase::Idle) {
            return;
        }
        let now = self.now;
        self.state.queues.pending.clear();
        for message in prompts {
            self.state.queues.pending.push(Letter::new(message.stamped(now), 0));
        }
        self.open_run();
    }

    pub(super) fn continue_run(&mut self) {
        if !matches!(self.state.phase, Phase::Idle) {
            return;
        }
        // After an assistant message there is nothing to answer except what is in the queues, so both are
        // drained.
        if let Some(AgentMessage::Assistant(_)) = self.state.history.messages().last() {
            let mut waiting = std::mem::take(&mut self.state.queues.steering);
            waiting.append(&mut self.state.queues.follow_up);
            self.state.queues.pending = waiting;
        }
        self.open_run();
    }

    fn open_run(&mut self) {
        self.emit(AgentEvent::AgentStart { at: self.now });
        self.state.timing.began = self.now;
        self.begin_spending();
        if let Some(ms) = self.rules.timeouts.total {
            self.state.timing.limit = Some(self.start(Effect::Sleep { ms }));
        }
        if self.rules.steering.before_first_call {
            self.poll(Queue::Steering, AfterPoll::Turn);
        } else {
            self.begin_turn();
        }
        if let Some(reason) = self.state.queues.abort.take() {
            self.abort(&reason);
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.open_turn();
        self.choose(Phase::Preparing { effect: 0, overflow: false });
    }

    pub(super) fn open_turn(&mut self) {
        self.state.turn = Turn { open: true, fresh_from: Some(self.state.appended.seen), ..Turn::default() };
        self.emit(AgentEvent::TurnStart { turn_index: self.state.tally.turn_index, at: self.now });
        self.append_pending();
    }

    /// Moves the messages waiting for this turn into the history.
    pub(super) fn append_pending(&mut self) {
        for letter in std::mem::take(&mut self.state.queues.pending) {
            let turn_index = self.state.tally.turn_index;
            self.state.tally.pauses = 0;
            self.append_in_view(letter.message);
            if letter.receipt > 0 {
                self.out.push(Output::Receipt(letter.receipt, Receipt::Delivered { turn_index }));
            }
        }
    }

    /// Appends a message that is also in this turn's request, whatever view of the history that shows.
    pub(super) fn append_in_view(&mut self, message: AgentMessage) {
        let message = self.entering(message);
        if let Some(view) = &mut self.state.turn.view {
            view.push(message.clone());
        }
        self.append(message);
    }

    pub(super) fn append(&mut self, message: AgentMessage) {
        let message = self.entering(message);
        self.state.appended.messages.push(message.clone());
        self.state.history.push(message);
    }

    /// A message as it enters the history: with the time, and a user's with a name.
    fn entering(&self, message: AgentMessage) -> AgentMessage {
        match message.stamped(self.now) {
            AgentMessage::User(mut user) if user.id.is_none() && self.state.names_messages => {
                let number = text::number(self.state.appended.messages.len());
                Rc::make_mut(&mut user).id = self.named(&["m", &number].concat());
                AgentMessage::User(user)
            }
            message => message,
        }
    }

    /// The name of a message of this run.
    pub(super) fn named(&self, place: &str) -> Option<String> {
        self.state.names_messages.then(|| [&self.state.context.run_id, "/", place].concat())
    }

    /// The answer has no calls.
    pub(super) fn finish_text_turn(&mut self, message: &Rc<AssistantMessage>, place: usize) {
        let rejected = match self.check_text(message) {
            Answered::AsItIs => None,
            Answered::Fits(output) => {
                self.state.structured.output = Some(output);
                None
            }
            Answered::Misses(why) => Some(self.reject_output(&why)),
        };
        let paused = message.stop_reason == MessageStopReason::Pause && self.state.tally.pauses < MAX_PAUSES;
        self.state.tally.pauses = if paused { self.state.tally.pauses + 1 } else { 0 };
        let (decided, message) = self.post_turn(message, place, &[]);
        if let Some(Err(error)) = rejected {
            self.end_turn(Some(message), Vec::new(), TurnEndReason::Error);
            return self.end_run(RunStopReason::Error, Some(*error));
        }
        self.end_turn(Some(message), Vec::new(), TurnEndReason::Complete);
        if decided.stop {
            return self.end_run(RunStopReason::PolicyStop, None);
        }
        if let Some(Ok(message)) = rejected {
            self.inject(vec![message]);
        }
        self.inject(decided.injected);
        if self.state.spending.is_wrapping_up {
            return self.end_run(RunStopReason::Budget, None);
        }
        let then = if paused { AfterPoll::Turn } else { AfterPoll::TurnIfPending };
        self.poll(Queue::Steering, then);
    }

    pub(super) fn end_turn(
        &mut self,
        message: Option<Rc<AssistantMessage>>,
        tool_results: Vec<Rc<ToolResultMessage>>,
        reason: TurnEndReason,
    ) {
        self.flush_state();
        self.state.turn.open = false;
        self.state.appended.seen = self.state.appended.messages.len();
        let turn_index = self.state.tally.turn_index;
        self.state.tally.turn_index += 1;
        self.state.context.turn_index = self.state.tally.turn_index;
        self.emit(AgentEvent::TurnEnd { turn_index, message, tool_results, reason, at: self.now });
    }

    fn flush_state(&mut self) {
        let changes = self.state.session.take_changes();
        if !changes.is_empty() {
            self.emit(AgentEvent::StateChanged { changes: Value::Object(changes).to_raw() });
        }
    }

    pub(super) fn inject(&mut self, messages: Vec<AgentMessage>) {
        for message in messages {
            self.state.queues.pending.push(Letter::new(message, 0));
        }
    }
}
