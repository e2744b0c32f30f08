//! The calls of one answer: policies for the whole batch, what was decided, lookup and schema.

use crate::data::json::{Map, RawJson};
use crate::host::config::{SteeringTime, ToolExecutionPolicy};
use crate::host::isolate::guard;
use crate::host::tool::{AgentToolResult, ToolSpec};
use crate::rules::approval::{ApprovalGate, DecisionSource, ToolDecision};
use crate::rules::policy::{DispatchCall, DispatchVerdict};
use crate::rules::stream::CallFault;
use crate::words::event::AgentEvent;
use crate::words::message::{MessageStopReason, ToolResultCause};

use super::batch::{Batch, BatchCall, CallStatus, Ending, new_batch};
use super::phase::{Phase, StoredAnswer};
use super::step::Step;

/// What the policies decided about one call.
pub(super) enum Cleared {
    Yes(RawJson),
    /// It does not run, for this reason: they skip it, or gave it arguments that no tool may have.
    No(ToolResultCause, String),
    Stop(String),
}

impl Step<'_> {
    pub(super) fn begin_batch(&mut self, answer: StoredAnswer) {
        let mut batch = Box::new(new_batch(answer));
        let calls = batch.blocks(&|_| true);
        self.emit(AgentEvent::ToolCallsProposed { calls });
        self.answer_filtered(&mut batch);
        self.open_batch(batch);
    }

    /// Calls about which nobody is asked get their results. Then the policies see the others.
    pub(super) fn open_batch(&mut self, mut batch: Box<Batch>) {
        self.answer_faults(&mut batch);
        self.answer_output_calls(&mut batch);
        if self.rules.pre_dispatch.is_empty() {
            return self.clear_batch(batch);
        }
        batch.is_unseen = true;
        self.flush(Phase::Dispatching(batch));
    }

    pub(super) fn clear_batch(&mut self, mut batch: Box<Batch>) {
        batch.is_unseen = false;
        match self.clear_by_policies(&mut batch) {
            Err(reason) => self.stop_batch(&mut batch, &reason),
            Ok(()) => self.open_table(&mut batch),
        }
        self.advance(batch);
    }

    /// Calls that were cut off or are not valid JSON get their result at once; nobody is asked about them.
    pub(super) fn answer_faults(&mut self, batch: &mut Batch) {
        // Where no limit cut the answer off, the server announced the call and did not send all of it.
        let is_length = batch.answer.message.stop_reason == MessageStopReason::Length;
        let detail = if is_length { "" } else { "the server did not send all of it" };
        for (id, fault) in &std::mem::take(&mut batch.answer.faults) {
            let Some(place) = batch.place_of(id).filter(|place| batch.is_open(*place)) else { continue };
            match fault {
                CallFault::Cut => self.settle(batch, place, ToolResultCause::Incomplete, detail),
                CallFault::Malformed(error) => {
                    let given = batch.answer.own_arguments.get(id).map(|raw| raw.to_value());
                    let given = given.as_ref().and_then(|v| v.as_str()).unwrap_or_default();
                    let detail = ["the arguments are no JSON (", error, "): ", given].concat();
                    self.close_open_question(batch, place);
                    self.settle(batch, place, ToolResultCause::InvalidArguments, &detail);
                }
                CallFault::NotAnObject => {
                    let own = batch.answer.own_arguments.get(id).cloned();
                    if let (Some(own), Some(call)) = (own, batch.calls.get_mut(place)) {
                        call.arguments = own;
                    }
                }
            }
        }
    }

    /// First pass: the policies see every call before any of them is asked for or run.
    pub(super) fn clear_by_policies(&mut self, batch: &mut Batch) -> Result<(), String> {
        if self.rules.pre_dispatch.is_empty() {
            return Ok(());
        }
        let state = self.state.session.snapshot();
        batch.state = state.clone();
        let (mut refused, mut stopped) = (Vec::new(), None);
        for place in 0..batch.calls.len() {
            match self.clear_call(batch, place, &state) {
                None => {}
                Some(Cleared::Yes(arguments)) => {
                    if let Some(call) = batch.calls.get_mut(place) {
                        call.arguments = arguments;
                    }
                }
                Some(Cleared::No(cause, text)) => refused.push((place, cause, text)),
                // The others are still shown: whoever counts or audits calls sees all of them.
                Some(Cleared::Stop(reason)) => drop(stopped.get_or_insert(reason)),
            }
        }
        if let Some(reason) = stopped {
            return Err(reason);
        }
        for (place, cause, text) in &refused {
            self.close_open_question(batch, *place);
            self.settle(batch, *place, *cause, text);
        }
        Ok(())
    }

    pub(super) fn clear_call(&mut self, batch: &mut Batch, place: usize, state: &Map) -> Option<Cleared> {
        let call = batch.calls.get(place).filter(|call| !call.status.is_done())?;
        let context = &self.state.context;
        let mut seen = DispatchCall {
            run_id: &context.run_id,
            session_id: &context.session_id,
            turn_index: self.state.tally.turn_index,
            metadata: context.metadata.as_ref(),
            call_id: &call.block.call_id,
            tool_name: &call.block.tool_name,
            arguments: call.arguments.clone(),
            state,
        };
        let mut injected = Vec::new();
        for policy in &self.rules.pre_dispatch {
            let before = seen.arguments.clone();
            match guard(|| policy.evaluate(&mut seen)) {
                Ok(DispatchVerdict::Continue) => {}
                Err(_) => seen.arguments = before,
                Ok(DispatchVerdict::Inject(mut messages)) => injected.append(&mut messages),
                Ok(DispatchVerdict::Skip(text)) => return Some(Cleared::No(ToolResultCause::Skipped, text)),
                Ok(DispatchVerdict::Stop(reason)) => return Some(Cleared::Stop(reason)),
            }
        }
        let arguments = seen.arguments;
        // Those of the model and of a person have been read so.
        let read = if arguments.is_same(&call.arguments) { Ok(arguments) } else { arguments.as_arguments() };
        batch.injected.append(&mut injected);
        Some(match read {
            Ok(arguments) => Cleared::Yes(arguments),
            Err(why) => Cleared::No(ToolResultCause::InvalidArguments, why),
        })
    }

    /// A policy stopped the batch: every call without a result gets one that says so.
    pub(super) fn stop_batch(&mut self, batch: &mut Batch, reason: &str) {
        batch.ending = Ending::PolicyStop;
        self.settle_all(batch, ToolResultCause::PolicyStop, reason);
    }

    /// Takes the batch out of the state, if there is one. The caller must put it back or call `advance`
    /// with it.
    pub(super) fn take_batch(&mut self) -> Option<Box<Batch>> {
        match std::mem::take(&mut self.state.phase) {
            Phase::Dispatching(batch) => Some(batch),
            phase => {
                self.state.phase = phase;
                None
            }
        }
    }

    /// Advances the batch as far as possible without outside answers, and ends it when nothing is left.
    pub(super) fn advance(&mut self, mut batch: Box<Batch>) {
        self.clear_decided(&mut batch);
        self.plan(&mut batch);
        if self.steering_time() >= Some(SteeringTime::Immediate) {
            self.steer_if_any(&mut batch);
        }
        self.launch(&mut batch);
        let is_asked = batch.running > 0 || self.state.approvals.is_waiting_for_user();
        if is_asked && batch.running == batch.elsewhere {
            // Steering that arrived before the question does not wait for a person either.
            self.steer_if_any(&mut batch);
        }
        if self.is_over(&batch) {
            self.end_batch(*batch);
        } else {
            self.state.phase = Phase::Dispatching(batch);
        }
    }

    /// A batch waits for its poll to know how it ends, but not once that is known.
    pub(super) fn is_over(&self, batch: &Batch) -> bool {
        let is_ending_known = !matches!(batch.ending, Ending::Normal) || !self.is_polled(batch);
        let has_all_results = batch.committed == batch.calls.len();
        has_all_results && batch.running == 0 && batch.has_called_hooks() && is_ending_known
    }

    /// Looks up and checks the calls that the gate lets through.
    fn clear_decided(&mut self, batch: &mut Batch) {
        // No decision can arrive during this loop. If all calls are decided, the gate need not examine all
        // of them for each one.
        let gate = if self.state.approvals.all_decided() { ApprovalGate::Prefix } else { self.gate() };
        while self.may_hand_out(batch)
            && let Some((call, decision, by)) = self.state.approvals.hand_out(gate)
        {
            let Some(place) = batch.place_of(&call.call_id) else { continue };
            self.carry_out(batch, place, decision, by == DecisionSource::Rule);
            if self.is_in_order() && !batch.is_open(place) {
                self.completed(batch);
            }
        }
    }

    /// Handles one call after the other; even a rejection waits until the calls before it are finished.
    fn may_hand_out(&self, batch: &Batch) -> bool {
        let is_idle = batch.running == 0
            && batch.cleared.is_empty()
            && batch.groups.is_empty()
            && batch.ready.is_empty()
            && batch.has_called_hooks()
            && !self.is_polled(batch);
        !self.is_in_order() || is_idle
    }

    pub(super) fn gate(&self) -> ApprovalGate {
        match self.rules.tool_execution {
            // Their order is determined from the calls that are left once all are decided.
            ToolExecutionPolicy::Priority | ToolExecutionPolicy::Custom(_) => ApprovalGate::Batch,
            _ => self.rules.gate,
        }
    }

    /// Handles one call after the other, whether it runs or not.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.rules.tool_execution, ToolExecutionPolicy::Sequential)
            && self.gate() == ApprovalGate::Prefix
    }

    /// Whether calls are looked up only when it is their turn, because groups are formed from all allowed
    /// calls.
    pub(super) fn is_grouped(&self) -> bool {
        !matches!(self.rules.tool_execution, ToolExecutionPolicy::Concurrent) && !self.is_in_order()
    }

    pub(super) fn carry_out(
        &mut self,
        batch: &mut Batch,
        place: usize,
        decision: ToolDecision,
        by_rule: bool,
    ) {
        if !batch.is_open(place) {
            return;
        }
        match decision {
            ToolDecision::Accept | ToolDecision::AcceptWith(_) => {
                if self.is_grouped() || self.check(batch, place) {
                    if let Some(call) = batch.calls.get_mut(place) {
                        call.status = CallStatus::Ready;
                    }
                    batch.cleared.push(place);
                }
            }
            ToolDecision::Reject { .. } if by_rule => self.settle(batch, place, ToolResultCause::Denied, ""),
            ToolDecision::Reject { reason } => {
                let reason = reason.unwrap_or_default();
                self.settle(batch, place, ToolResultCause::Rejected, &reason);
            }
            ToolDecision::Result { content, details, is_error } => {
                let result = AgentToolResult { content, details, is_error, transfer: None };
                self.resolve(batch, place, result, None);
            }
        }
    }

    /// Lookup, then schema. A call that fails gets its result here.
    pub(super) fn check(&mut self, batch: &mut Batch, place: usize) -> bool {
        let Some(call) = batch.calls.get_mut(place) else { return false };
        let Some((tool, _)) = self.spec(&call.block.tool_name) else {
            self.settle_unknown(batch, place);
            return false;
        };
        call.tool = tool;
        let fits = batch.calls.get(place).map_or(Ok(()), |call| self.fits(tool, call));
        if let Err(text) = &fits {
            self.settle(batch, place, ToolResultCause::InvalidArguments, text);
        }
        fits.is_ok()
    }

    /// Checks whether the arguments fit a tool; if not, returns why.
    fn fits(&self, tool: usize, call: &BatchCall) -> Result<(), String> {
        if !call.arguments.is_object() {
            return Err(["the arguments must be an object, got ", call.arguments.kind()].concat());
        }
        match (&self.rules.validator, self.rules.tools.get(tool)) {
            (Some(check), Some(spec)) => guard(|| check(spec, &call.effective(), &self.state.about())),
            _ => Ok(()),
        }
    }

    fn settle_unknown(&mut self, batch: &mut Batch, place: usize) {
        let known = known_tools(&self.rules.tools);
        self.settle(batch, place, ToolResultCause::UnknownTool, &known);
    }

    pub(super) fn spec(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        self.rules.tools.iter().enumerate().find(|(_, spec)| &*spec.schema.name == name)
    }
}

fn known_tools(tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return "there are no tools".to_owned();
    }
    let mut text = String::from("known tools: ");
    for (at, spec) in tools.iter().enumerate() {
        text.push_str(if at > 0 { ", `" } else { "`" });
        text.push_str(&spec.schema.name);
        text.push_str("`");
    }
    text
}
