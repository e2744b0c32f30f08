//! Calls from a checkpoint. Whoever wrote it may have had other rules, or may be anybody. So nothing starts on its word:
//! the policies and the rules of this run see every call that has no result, and whatever they would ask about is asked,
//! whatever was decided before. A question that is still open, and still shows what would run, stays the same question.

use crate::data::json::RawJson;
use crate::rules::approval::{
    ApprovalEntry, ApprovalState, DecisionSource, ToolApprovalAction, ToolDecision,
};
use crate::rules::stream::CallFault;
use crate::words::message::ToolResultCause;

use super::batch::{Batch, BatchCall, CallStatus, Ending, new_batch};
use super::children::last_words;
use super::input::Queue;
use super::output::Effect;
use super::step::Step;

/// What becomes of a call from a checkpoint.
enum Recheck {
    /// It has its result.
    Done,
    /// It keeps its place among the calls that may run.
    Queued,
    /// It goes back into the table.
    Table(ApprovalState),
    /// The question about it stays open.
    Open,
    /// Its result still comes from elsewhere, and the question for it stays the same.
    Elsewhere,
    /// It is asked about anew.
    Ask,
}

impl Step<'_> {
    pub(super) fn resume_batch(&mut self, mut batch: Box<Batch>) {
        if self.is_over(&batch) {
            return self.end_batch(*batch);
        }
        if batch.is_unseen {
            return self.reopen(batch);
        }
        self.answer_filtered(&mut batch);
        self.interrupt_unrepeatable(&mut batch);
        let shown: Vec<RawJson> = batch.calls.iter().map(|call| call.arguments.clone()).collect();
        match self.recheck_by_policies(&mut batch) {
            Err(reason) => self.stop_batch(&mut batch, &reason),
            Ok(()) => self.recheck_by_rules(&mut batch, &shown),
        }
        if batch.poll.take().is_some() {
            let poll = self.start(Effect::Poll(Queue::Steering));
            self.state.queues.polls.insert(poll, Queue::Steering);
            batch.poll = Some(poll);
        }
        self.call_after_hooks(&mut batch);
        self.advance(batch);
    }

    /// Nothing was decided about the calls, whatever the checkpoint says.
    fn reopen(&mut self, batch: Box<Batch>) {
        let mut fresh = new_batch(batch.answer);
        for (call, known) in fresh.calls.iter_mut().zip(batch.calls) {
            if known.status.is_done() {
                *call = known;
            }
        }
        fresh.committed = batch.committed;
        fresh.hooks_called = batch.committed;
        fresh.is_answer = batch.is_answer;
        self.answer_filtered(&mut fresh);
        self.open_batch(Box::new(fresh));
    }

    /// A call that was running gets its result, unless its tool may run twice and its batch is not about to end. Then it is
    /// the first to start again. So is a call of a sub-agent: it goes on from the checkpoint inside this one, and if there is
    /// none, the agent had not begun.
    fn interrupt_unrepeatable(&mut self, batch: &mut Batch) {
        let mut again = Vec::new();
        for place in 0..batch.calls.len() {
            let Some(call) = batch.calls.get_mut(place) else { continue };
            let tool = self.rules.tools.iter().position(|spec| *spec.schema.name == *call.block.tool_name);
            call.tool = tool.unwrap_or(call.tool);
            if let CallStatus::BeforeHook(_) | CallStatus::Running(..) | CallStatus::Elsewhere(_) =
                call.status
            {
                // Whether a question for its result stays open is found out below; until then nothing waits for it.
                let is_elsewhere = !call.asks.is_empty();
                call.status = CallStatus::Ready;
                call.announced = true;
                let spec = tool.and_then(|tool| self.rules.tools.get(tool));
                let child = self.state.children.get(&call.block.call_id);
                let goes_on = is_elsewhere || spec.is_some_and(|spec| spec.idempotent || spec.is_sub_agent);
                if matches!(batch.ending, Ending::Normal) && goes_on {
                    again.push(place);
                } else {
                    let said = child.map(last_words).filter(|said| !said.is_empty());
                    let detail = said.map_or_else(String::new, |said| ["; it had said: ", &said].concat());
                    self.settle(batch, place, ToolResultCause::Interrupted, &detail);
                }
            }
        }
        again.extend(batch.ready.drain(..));
        batch.ready = again.into();
        if let Ending::Interrupted = batch.ending {
            // They were about to start when the user spoke, and nothing starts after that.
            batch.ready.clear();
            self.settle_all(batch, ToolResultCause::Steering, "");
        }
    }

    /// The policies see every call again, with the arguments that the model or a person gave it. What they add to the
    /// conversation they have added before.
    fn recheck_by_policies(&mut self, batch: &mut Batch) -> Result<(), String> {
        for call in batch.calls.iter_mut().filter(|call| !call.status.is_done()) {
            let own = batch.answer.own_arguments.get(&call.block.call_id).unwrap_or(&call.block.arguments);
            match call.given.as_ref().unwrap_or(own).as_arguments() {
                Ok(arguments) => call.arguments = arguments,
                Err(why) => batch.answer.faults.push((call.block.call_id.clone(), CallFault::Malformed(why))),
            }
        }
        self.answer_faults(batch);
        let injected = std::mem::take(&mut batch.injected);
        let cleared = self.clear_by_policies(batch);
        batch.injected = injected;
        cleared
    }

    pub(super) fn close_open_question(&mut self, batch: &Batch, place: usize) {
        let call = batch.calls.get(place);
        let entry = call.and_then(|call| self.state.approvals.entry(&call.block.call_id));
        if entry.is_some_and(ApprovalEntry::is_pending) {
            self.close_question(batch, place, false, DecisionSource::Rule);
        }
    }

    fn recheck_by_rules(&mut self, batch: &mut Batch, shown: &[RawJson]) {
        let mut found = Vec::with_capacity(batch.calls.len());
        for (place, shown) in shown.iter().enumerate() {
            found.push(batch.calls.get(place).map_or(Recheck::Done, |call| self.recheck(call, shown)));
        }
        let asks_anew = found.iter().any(|found| matches!(found, Recheck::Ask));
        let mut entries = Vec::new();
        for (place, found) in found.iter_mut().enumerate() {
            if !matches!(found, Recheck::Elsewhere) {
                let asks = batch.calls.get_mut(place).map(|call| std::mem::take(&mut call.asks));
                asks.into_iter().for_each(|asks| self.close_asks(asks));
            }
            if asks_anew && matches!(found, Recheck::Queued) {
                // The gate says which of them may start before the others are decided.
                let by = DecisionSource::Rule;
                *found = Recheck::Table(ApprovalState::Ready { decision: ToolDecision::Accept, by });
            }
            let state = match found {
                Recheck::Done | Recheck::Queued | Recheck::Elsewhere => continue,
                Recheck::Table(state) => state.clone(),
                Recheck::Open | Recheck::Ask => ApprovalState::Pending,
            };
            if !matches!(found, Recheck::Open) {
                self.close_open_question(batch, place);
            }
            let Some(call) = batch.calls.get_mut(place) else { continue };
            // Nothing runs for it here.
            call.status = CallStatus::Waiting;
            entries.push(ApprovalEntry { call: call.effective().into_owned(), state });
        }
        self.state.approvals.refill(entries);
        let is_queued = |place: &usize| matches!(found.get(*place), Some(Recheck::Queued));
        batch.cleared.retain(is_queued);
        batch.ready.retain(is_queued);
        batch.groups.iter_mut().for_each(|group| group.retain(is_queued));
        for (place, found) in found.iter().enumerate() {
            self.act_on(batch, place, found);
        }
    }

    /// What the rules of this run make of a call, in view of what the checkpoint says of it.
    fn recheck(&self, call: &BatchCall, shown: &RawJson) -> Recheck {
        if call.status.is_done() {
            return Recheck::Done;
        }
        let action = self.ruling(&call.effective()).0;
        let entry = self.state.approvals.entry(&call.block.call_id).map(|entry| &entry.state);
        let is_same = call.arguments == *shown;
        match (action, entry) {
            (ToolApprovalAction::Deny, _) => Recheck::Table(ApprovalState::ruled(ToolApprovalAction::Deny)),
            (_, Some(ApprovalState::Pending)) if is_same && call.question.is_some() => Recheck::Open,
            (_, Some(ApprovalState::Pending)) => Recheck::Ask,
            // Whoever said no, it is safe to believe.
            (_, Some(ready @ ApprovalState::Ready { decision: ToolDecision::Reject { .. }, .. })) => {
                Recheck::Table(ready.clone())
            }
            (ToolApprovalAction::Ask, _) => Recheck::Ask,
            (_, Some(ready @ ApprovalState::Ready { .. })) => Recheck::Table(ready.clone()),
            _ if is_same && self.is_elsewhere(call) => Recheck::Elsewhere,
            _ => Recheck::Queued,
        }
    }

    /// Whether the result of a call is still expected from elsewhere.
    fn is_elsewhere(&self, call: &BatchCall) -> bool {
        !call.asks.is_empty() && self.rules.tools.get(call.tool).is_some_and(|spec| spec.is_external)
    }

    fn act_on(&mut self, batch: &mut Batch, place: usize, found: &Recheck) {
        match found {
            Recheck::Done | Recheck::Table(_) => {}
            // The tool may be a different version now, and what it makes of the arguments is not in a
            // checkpoint. It is looked up again here, unless that happens anyway when its turn comes.
            Recheck::Queued if self.is_grouped() => {}
            Recheck::Queued => drop(self.check(batch, place)),
            Recheck::Elsewhere => {
                if self.check(batch, place) {
                    batch.running += 1;
                    self.begin_elsewhere(batch, place);
                }
            }
            Recheck::Open | Recheck::Ask => {
                let Some(call) = batch.calls.get(place) else { return };
                let need = self.requires_approval(&call.effective());
                if matches!(found, Recheck::Ask) {
                    self.request_approval(batch, place, need);
                } else if self.rules.has_approver {
                    // Whoever was asked before, there is an approver now.
                    self.ask_approver(batch, place, need);
                }
            }
        }
    }
}
