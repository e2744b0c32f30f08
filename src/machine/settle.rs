//! How calls get their results, and how a batch ends.

use std::rc::Rc;

use crate::host::isolate::guard;
use crate::host::ports::HookCall;
use crate::host::tool::AgentToolResult;
use crate::rules::approval::{ApprovalEntry, DecisionSource};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::{AgentEvent, RunStopReason, TurnEndReason};
use crate::words::message::{
    AgentMessage, AssistantMessage, MessageStopReason, ToolCallBlock, ToolResultCause, ToolResultMessage,
};

use super::batch::{Batch, BatchCall, CallStatus, Ending, new_batch, with_arguments};
use super::end::stop_reason_of;
use super::input::Queue;
use super::output::{Effect, EffectId};
use super::phase::{AfterPoll, Phase, StoredAnswer};
use super::step::Step;
use super::structured::Miss;
use super::texts::default_text;

impl Step<'_> {
    /// Gives every call without a result one that says why. Running tools are cancelled.
    pub(super) fn settle_all(&mut self, batch: &mut Batch, cause: ToolResultCause, detail: &str) {
        self.settle_all_unless(batch, cause, detail, |_| false);
    }

    pub(super) fn settle_all_unless(
        &mut self,
        batch: &mut Batch,
        cause: ToolResultCause,
        detail: &str,
        is_spared: impl Fn(CallStatus) -> bool,
    ) {
        batch.cleared.clear();
        for place in 0..batch.calls.len() {
            let Some(call) = batch.calls.get(place) else { continue };
            if call.status.is_done() || is_spared(call.status) {
                continue;
            }
            if self.state.approvals.entry(&call.block.call_id).is_some_and(ApprovalEntry::is_pending) {
                self.close_question(batch, place, false, DecisionSource::Abort);
            }
            self.settle(batch, place, cause, detail);
        }
        self.state.approvals.close();
    }

    /// Gives a call a result written by the engine.
    pub(super) fn settle(&mut self, batch: &mut Batch, place: usize, cause: ToolResultCause, detail: &str) {
        let Some(call) = batch.calls.get(place) else { return };
        let text = self.text_of(cause, &call.effective(), detail);
        let mut result = AgentToolResult::error(text);
        self.limit_error(batch, place, &mut result);
        self.resolve(batch, place, result, Some(cause));
    }

    /// The calls of an answer that was filtered or refused do not run, whatever else the provider, a policy or a
    /// checkpoint says of them. Nothing of the batch is in progress yet.
    pub(super) fn answer_filtered(&mut self, batch: &mut Batch) {
        if !batch.answer.message.stop_reason.forbids_calls() {
            return;
        }
        for call in batch.calls.iter_mut().filter(|call| !call.status.is_done()) {
            // What a checkpoint says was running does not run now.
            call.status = CallStatus::Waiting;
        }
        self.settle_all(batch, ToolResultCause::Filtered, "");
    }

    fn text_of(&self, cause: ToolResultCause, call: &ToolCallBlock, detail: &str) -> String {
        let own = self.rules.result_texts.as_ref();
        let own = own
            .and_then(|texts| guard(|| Ok(texts(cause, call, detail, &self.state.about()))).ok().flatten());
        own.unwrap_or_else(|| default_text(cause, call, detail))
    }

    /// Settles a call: its effects are dropped, its result is added to the history in the order of the
    /// calls, and the listeners are told.
    pub(super) fn resolve(
        &mut self,
        batch: &mut Batch,
        place: usize,
        result: AgentToolResult,
        cause: Option<ToolResultCause>,
    ) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let status = std::mem::replace(&mut call.status, CallStatus::Done);
        if status.is_done() {
            return;
        }
        let result = Rc::new(ToolResultMessage {
            call_id: call.block.call_id.clone(),
            tool_name: call.block.tool_name.clone(),
            content: result.content,
            details: result.details,
            is_error: result.is_error,
            cause,
            timestamp: self.now,
            foreign: None,
        });
        call.result = Some(result.clone());
        let asks = std::mem::take(&mut call.asks);
        match status {
            CallStatus::Asked(effect) => self.drop_effect(batch, effect),
            CallStatus::BeforeHook(effect) => {
                batch.running -= 1;
                self.drop_effect(batch, effect);
            }
            CallStatus::Running(effect, timer) => {
                batch.running -= 1;
                self.drop_effect(batch, effect);
                timer.into_iter().for_each(|timer| self.drop_effect(batch, timer));
            }
            CallStatus::Elsewhere(timer) => {
                batch.running -= 1;
                batch.elsewhere -= 1;
                timer.into_iter().for_each(|timer| self.drop_effect(batch, timer));
            }
            CallStatus::Waiting | CallStatus::Ready | CallStatus::Done => {}
        }
        self.commit(batch);
        self.close_waiting_child(batch, place);
        if !asks.is_empty() {
            self.close_asks(asks);
        }
        self.emit(AgentEvent::ToolExecutionEnd { result, at: self.now });
        self.call_after_hooks(batch);
    }

    fn drop_effect(&mut self, batch: &mut Batch, effect: EffectId) {
        batch.effects.remove(&effect);
        self.cancel(effect);
    }

    fn commit(&mut self, batch: &mut Batch) {
        while let Some(result) = batch.calls.get(batch.committed).and_then(|call| call.result.clone()) {
            batch.committed += 1;
            self.append(AgentMessage::ToolResult(result));
        }
    }

    /// Calls the hooks for the results in the history, one after the other.
    pub(super) fn call_after_hooks(&mut self, batch: &mut Batch) {
        while batch.after_hook.is_none() && batch.hooks_called < batch.committed {
            let call = batch.calls.get(batch.hooks_called);
            batch.hooks_called += 1;
            let Some(call) = call.filter(|c| c.executed && self.rules.hooks.after_tool_execution) else {
                continue;
            };
            let is_told = |cause| matches!(cause, ToolResultCause::Threw | ToolResultCause::Timeout);
            let result = call.result.clone().filter(|result| result.cause.is_none_or(is_told));
            let Some(result) = result else { continue };
            let call = with_arguments(&call.block, &call.arguments);
            batch.after_hook = Some(self.start(Effect::Hook(HookCall::AfterToolExecution { call, result })));
        }
    }

    pub(super) fn end_batch(&mut self, mut batch: Batch) {
        self.state.approvals.close();
        // Those that are cancelled have something to tell still.
        let known = |call: &mut BatchCall| Some((call.block.call_id.clone(), call.child.take()?));
        if !batch.calls.is_empty() {
            self.state.ended_children = batch.calls.iter_mut().filter_map(known).collect();
        }
        if self.rules.post_turn.is_empty() {
            return self.finish_batch(batch);
        }
        if let Ending::Stopped(_) = batch.ending {
            // Nothing starts after an abort, though the run ends only when the policies have seen this turn.
            self.cancel_aside();
        }
        self.flush(Phase::Dispatching(Box::new(batch)));
    }

    /// The answer has no calls. While the listeners receive it, it is a batch without any.
    pub(super) fn end_text(&mut self, answer: StoredAnswer) {
        if self.rules.post_turn.is_empty() {
            self.finish_text_turn(&answer.message, answer.place);
        } else {
            self.flush(Phase::Dispatching(Box::new(new_batch(answer))));
        }
    }

    pub(super) fn finish_batch(&mut self, mut batch: Batch) {
        if batch.calls.is_empty() && matches!(batch.ending, Ending::Normal) {
            return self.finish_text_turn(&batch.answer.message, batch.answer.place);
        }
        if batch.is_answer && self.state.structured.output.is_none() && matches!(batch.ending, Ending::Normal)
        {
            // Its result tells the model what is wrong with it.
            if let Err(error) = self.reject_output(&Miss::Unfitting("see the tool's result".to_owned())) {
                batch.ending = Ending::Stopped(*error);
            }
        }
        let reason = match &batch.ending {
            Ending::Normal | Ending::PolicyStop => TurnEndReason::ToolsExecuted,
            Ending::Interrupted => TurnEndReason::SteeringInterrupt,
            Ending::Transfer(_) => TurnEndReason::Transfer,
            Ending::Stopped(error) if error.code == ErrorKind::Aborted => TurnEndReason::Aborted,
            Ending::Stopped(_) => TurnEndReason::Error,
        };
        if let (Ending::Stopped(error), TurnEndReason::Aborted) = (&batch.ending, reason) {
            batch.answer.message = self.mark_aborted(&batch.answer, error);
        }
        let results = batch.results();
        let (decided, message) = self.post_turn(&batch.answer.message, batch.answer.place, &results);
        if let Ending::Transfer(transfer) = &batch.ending {
            let (to, reason) = (transfer.to.clone(), transfer.reason.clone());
            self.emit(AgentEvent::TransferInitiated { to, reason });
        }
        self.end_turn(Some(message), results, reason);
        match batch.ending {
            Ending::PolicyStop => self.end_run(RunStopReason::PolicyStop, None),
            Ending::Transfer(_) => self.end_run(RunStopReason::Transfer, None),
            Ending::Stopped(error) => self.end_run(stop_reason_of(&error), Some(error)),
            Ending::Normal | Ending::Interrupted if decided.stop => {
                self.end_run(RunStopReason::PolicyStop, None);
            }
            Ending::Normal | Ending::Interrupted => {
                self.inject(batch.injected);
                self.inject(decided.injected);
                if self.state.spending.is_wrapping_up {
                    return self.end_run(RunStopReason::Budget, None);
                }
                // The answer was requested as a call, so it may end the run just as a text would.
                let is_answer = batch.is_answer && self.state.structured.output.is_some();
                let then = if is_answer { AfterPoll::TurnIfPending } else { AfterPoll::Turn };
                // A host that has steered may have posted more.
                let queue =
                    if reason == TurnEndReason::SteeringInterrupt { Queue::Posted } else { Queue::Steering };
                self.poll(queue, then);
            }
        }
    }

    /// The message of a stopped batch says that it was stopped, in the history and in `turn_end`.
    fn mark_aborted(&mut self, answer: &StoredAnswer, error: &ErrorInfo) -> Rc<AssistantMessage> {
        if answer.message.stop_reason == MessageStopReason::Aborted {
            return answer.message.clone();
        }
        let mut message = answer.message.as_ref().clone();
        message.stop_reason = MessageStopReason::Aborted;
        message.error = Some(error.clone());
        let message = Rc::new(message);
        self.amend(answer.place, &message);
        message
    }

    /// The run was aborted or exceeded its time limit, or a hook or a fatal tool failed.
    pub(super) fn interrupt_batch(&mut self, mut batch: Box<Batch>, error: ErrorInfo) {
        batch.ending = Ending::Stopped(error);
        self.settle_all(&mut batch, ToolResultCause::Aborted, "");
        let hook = batch.after_hook.take();
        self.cancel_some(hook);
        self.end_batch(*batch);
    }

    /// The run ends with an answer, or while hooks are called for it, so the calls of the answer never start.
    pub(super) fn interrupt_answer(&mut self, answer: StoredAnswer, error: ErrorInfo) {
        self.interrupt_batch(Box::new(new_batch(answer)), error);
    }
}
