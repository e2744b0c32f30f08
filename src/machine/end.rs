//! How a run ends: by itself, or in the middle of any phase.

use std::rc::Rc;

use crate::data::table::Table;
use crate::host::ports::HookCall;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::{AgentEvent, DecisionSource, RunStopReason};
use crate::words::message::{AgentMessage, AssistantMessage, ContentBlock, MessageStopReason, Usage};

use super::batch::Ending;
use super::output::Effect;
use super::phase::{AfterPoll, AttemptStage, Inference, Phase, StoredAnswer};
use super::step::Step;

impl Step<'_> {
    pub(super) fn end_run(&mut self, reason: RunStopReason, error: Option<ErrorInfo>) {
        match &error {
            Some(info) if reason == RunStopReason::Error && self.rules.hooks.on_error => {
                let effect = self.start(Effect::Hook(HookCall::OnError { error: info.clone() }));
                self.state.phase = Phase::Closing { effect, reason, error };
            }
            _ => self.close(reason, error),
        }
    }

    pub(super) fn close(&mut self, stop_reason: RunStopReason, error: Option<ErrorInfo>) {
        self.cancel_aside();
        self.state.phase = Phase::Ended { reason: stop_reason, error: error.clone() };
        let event = AgentEvent::AgentEnd {
            messages: self.state.appended.messages.clone(),
            stop_reason,
            usage: self.state.tally.usage,
            own_usage: self.state.own_usage(),
            turns: self.state.tally.turns,
            error,
            at: self.now,
        };
        self.emit(event);
    }

    /// Cancels the effects that no phase waits for: the time limit of the run, and polls.
    pub(super) fn cancel_aside(&mut self) {
        let timer = self.state.timing.limit.take();
        self.cancel_some(timer);
        for (poll, _) in std::mem::take(&mut self.state.queues.polls).iter() {
            self.cancel(*poll);
        }
    }

    pub(super) fn abort(&mut self, reason: &Rc<str>) {
        if let Phase::Idle = self.state.phase {
            self.state.queues.abort.get_or_insert_with(|| reason.clone());
            return;
        }
        self.interrupt_run(ErrorInfo::new(ErrorKind::Aborted, reason.as_ref()));
    }

    /// Ends the run in any phase. The error says whether it was aborted or exceeded its time limit.
    pub(super) fn interrupt_run(&mut self, error: ErrorInfo) {
        match std::mem::take(&mut self.state.phase) {
            Phase::Idle => {}
            ended @ Phase::Ended { .. } => self.state.phase = ended,
            Phase::Choosing { effect, .. }
            | Phase::Preparing { effect, .. }
            | Phase::Compacting { effect } => {
                self.cancel(effect);
                self.stop_message(error);
            }
            Phase::Questioned(question) => {
                self.resolved(&question, false, DecisionSource::Abort);
                self.stop_message(error);
            }
            Phase::Inferring(inference) => self.interrupt_inference(*inference, error),
            Phase::Dispatching(batch) => self.interrupt_batch(batch, error),
            Phase::Flushing { then } => match *then {
                // The turn has ended already. Nobody waits until the listeners have received that, nor for error hooks.
                Phase::Dispatching(batch) if matches!(batch.ending, Ending::Stopped(_)) => {
                    self.finish_batch(*batch);
                    self.interrupt_run(error);
                }
                Phase::Dispatching(batch) => self.interrupt_batch(batch, error),
                _ => self.stop_message(error),
            },
            Phase::Polling { effect, then, .. }
                if then == AfterPoll::Turn || !self.state.queues.pending.is_empty() =>
            {
                // The turn that was due is emitted in full, so that a listener sees where the run was
                // stopped.
                self.cancel(effect);
                self.open_turn();
                self.stop_message(error);
            }
            Phase::Polling { effect, .. } => {
                self.cancel(effect);
                let reason = stop_reason_of(&error);
                self.end_run(reason, Some(error));
            }
            Phase::Closing { effect, reason, error } => {
                self.cancel(effect);
                self.close(reason, error);
            }
        }
    }

    fn interrupt_inference(&mut self, inference: Inference, error: ErrorInfo) {
        let mut inference = inference;
        match std::mem::take(&mut inference.stage) {
            AttemptStage::BeforeHook(effect) => {
                self.cancel(effect);
                self.tell_unawaited(&inference, None, &error);
                self.stop_message(error);
            }
            AttemptStage::BackingOff(effect, _) => {
                self.cancel(effect);
                self.stop_message(error);
            }
            AttemptStage::Cut(cut) => {
                let usage = self.estimated(inference.model, &cut.usage, false, &|| cut.content.clone());
                self.cut_message_with(cut.content, usage, cut_reason(&error), error);
            }
            AttemptStage::FailedHook(effect, failed) => {
                self.cancel(effect);
                self.cut_stream(failed.streaming, cut_reason(&error), error);
            }
            AttemptStage::Streaming(mut streaming) => {
                self.account(inference.model, &mut streaming, Some(&error));
                self.cancel(streaming.effect);
                self.cancel_some(streaming.watchdog);
                self.tell_unawaited(&inference, Some(&streaming.assembler), &error);
                self.cut_stream(streaming, cut_reason(&error), error);
            }
            AttemptStage::AfterHook(effect, answer) => {
                self.cancel(effect);
                self.interrupt_answer(answer, error);
            }
        }
    }

    fn stop_message(&mut self, error: ErrorInfo) {
        self.cut_message(cut_reason(&error), error);
    }

    /// Ends the turn with an answer that never came.
    pub(super) fn cut_message(&mut self, stop_reason: MessageStopReason, error: ErrorInfo) {
        let shown = std::mem::take(&mut self.state.turn.shown);
        let usage = shown.usage;
        self.cut_message_with(shown.partial(), usage, stop_reason, error);
    }

    /// Ends the turn with what has arrived of its answer.
    pub(super) fn cut_message_with(
        &mut self,
        content: Vec<ContentBlock>,
        usage: Usage,
        stop_reason: MessageStopReason,
        error: ErrorInfo,
    ) {
        if !self.state.turn.message_open {
            self.emit(AgentEvent::MessageStart { at: self.now });
        }
        let mut message = self.message(self.state.turn.model, content, &usage, stop_reason);
        message.error = Some(error.clone());
        let answer = self.store_cut(Rc::new(message));
        self.interrupt_answer(answer, error);
    }

    /// Stores an answer that was cut off, and tells the listeners.
    pub(super) fn store_cut(&mut self, message: Rc<AssistantMessage>) -> StoredAnswer {
        self.count(&message.usage);
        self.state.turn.message_open = false;
        self.emit(AgentEvent::MessageEnd { message: message.clone(), at: self.now });
        let place = self.state.history.messages().len();
        self.append(AgentMessage::Assistant(message.clone()));
        StoredAnswer { message, place, faults: Vec::new(), own_arguments: Table::new() }
    }
}

fn cut_reason(error: &ErrorInfo) -> MessageStopReason {
    if error.code == ErrorKind::Aborted { MessageStopReason::Aborted } else { MessageStopReason::Error }
}

pub(super) fn stop_reason_of(error: &ErrorInfo) -> RunStopReason {
    if error.code == ErrorKind::Aborted { RunStopReason::Aborted } else { RunStopReason::Error }
}
