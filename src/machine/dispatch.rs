//! The calls of one answer: policies for the whole batch, lookup and schema, execution. Approval is in
//! `asking`; how calls get their results is in `settle`.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::data::id_map::IdMap;
use crate::data::json::{Map, RawJson};
use crate::data::table::Table;
use crate::data::text;
use crate::host::config::{InFlight, SteeringTime, ToolExecutionPolicy};
use crate::host::isolate::guard;
use crate::host::ports::HookCall;
use crate::host::tool::{AgentToolResult, Progress, ToolOutcome, ToolSpec, Transfer};
use crate::rules::approval::{ApprovalGate, DecisionSource, ToolDecision};
use crate::rules::event::AgentEvent;
use crate::rules::policy::{DispatchCall, DispatchVerdict};
use crate::rules::stream::CallFault;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{ContentBlock, ToolCallBlock, ToolResultCause, ToolResultMessage};

use super::infer::with_arguments;
use super::state::{Answer, Batch, Call, CallStatus, Ending, Phase};
use super::{Effect, EffectId, Queue, Reply, Step};

/// What the policies decided about one call.
pub(super) enum Cleared {
    Yes(RawJson),
    Skip(String),
    Stop(String),
}

impl Step<'_> {
    #[inline(never)]
    pub(super) fn begin_batch(&mut self, answer: Answer) {
        let mut batch = Box::new(new_batch(answer));
        let calls = batch.blocks(&|_| true);
        self.emit(AgentEvent::ToolCallsProposed { calls });
        self.answer_faults(&mut batch);
        self.answer_output_calls(&mut batch);
        match self.clear_by_policies(&mut batch) {
            Err(reason) => self.stop_batch(&mut batch, &reason),
            Ok(()) => self.open_table(&mut batch),
        }
        self.advance(batch);
    }

    /// Calls that were cut off or are not valid JSON get their result at once; nobody is asked about them.
    fn answer_faults(&mut self, batch: &mut Batch) {
        for (id, fault) in &std::mem::take(&mut batch.answer.faults) {
            let Some(place) = batch.place_of(id) else { continue };
            match fault {
                CallFault::Cut => self.settle(batch, place, ToolResultCause::Incomplete, ""),
                CallFault::Malformed(error) => {
                    let given = batch.answer.own_arguments.get(id).map(|raw| raw.to_value());
                    let given = given.as_ref().and_then(|v| v.as_str()).unwrap_or_default();
                    let detail = ["the arguments are no JSON (", error, "): ", given].concat();
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
    fn clear_by_policies(&mut self, batch: &mut Batch) -> Result<(), String> {
        if self.rules.pre_dispatch.is_empty() {
            return Ok(());
        }
        let state = self.state.session.snapshot();
        batch.state = state.clone();
        let mut skipped = Vec::new();
        for place in 0..batch.calls.len() {
            match self.clear_call(batch, place, &state) {
                None => {}
                Some(Cleared::Yes(arguments)) => {
                    if let Some(call) = batch.calls.get_mut(place) {
                        call.arguments = arguments;
                    }
                }
                Some(Cleared::Skip(text)) => skipped.push((place, text)),
                Some(Cleared::Stop(reason)) => return Err(reason),
            }
        }
        for (place, text) in &skipped {
            self.settle(batch, *place, ToolResultCause::Skipped, text);
        }
        Ok(())
    }

    pub(super) fn clear_call(&mut self, batch: &mut Batch, place: usize, state: &Map) -> Option<Cleared> {
        let call = batch.calls.get(place).filter(|call| !call.status.is_done())?;
        let mut seen = DispatchCall {
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
                Ok(DispatchVerdict::Skip(text)) => return Some(Cleared::Skip(text)),
                Ok(DispatchVerdict::Stop(reason)) => return Some(Cleared::Stop(reason)),
            }
        }
        let arguments = seen.arguments;
        batch.injected.append(&mut injected);
        Some(Cleared::Yes(arguments))
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
        if self.rules.steering.when == SteeringTime::Immediate {
            self.steer_if_any(&mut batch);
        }
        self.launch(&mut batch);
        if batch.running == 0 && self.state.table.is_waiting_for_user() {
            // Steering that arrived before the question does not wait for a person either.
            self.steer_if_any(&mut batch);
        }
        if self.is_over(&batch) {
            self.end_batch(*batch);
        } else {
            self.state.phase = Phase::Dispatching(batch);
        }
    }

    pub(super) fn gate(&self) -> ApprovalGate {
        match self.rules.tool_execution {
            // Their order is determined from the calls that are left once all are decided.
            ToolExecutionPolicy::Priority | ToolExecutionPolicy::Custom(_) => ApprovalGate::Batch,
            _ => self.rules.gate,
        }
    }

    /// Looks up and checks the calls that the gate lets through.
    fn clear_decided(&mut self, batch: &mut Batch) {
        // No decision can arrive during this loop. If all calls are decided, the gate need not examine all
        // of them for each one.
        let gate = if self.state.table.all_decided() { ApprovalGate::Prefix } else { self.gate() };
        while self.may_hand_out(batch)
            && let Some((call, decision, by)) = self.state.table.hand_out(gate)
        {
            let Some(place) = batch.place_of(&call.call_id) else { continue };
            self.carry_out(batch, place, decision, by == DecisionSource::Rule);
            if self.is_in_order() && !batch.is_open(place) {
                self.completed(batch);
            }
        }
    }

    /// Handles one call after the other, whether it runs or not.
    fn is_in_order(&self) -> bool {
        matches!(self.rules.tool_execution, ToolExecutionPolicy::Sequential)
            && self.gate() == ApprovalGate::Prefix
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

    /// Whether calls are looked up only when it is their turn, because groups are formed from all allowed
    /// calls.
    pub(super) fn is_grouped(&self) -> bool {
        !matches!(self.rules.tool_execution, ToolExecutionPolicy::Concurrent) && !self.is_in_order()
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
    fn fits(&self, tool: usize, call: &Call) -> Result<(), String> {
        if !call.arguments.is_object() {
            let got = call.arguments.to_value().kind();
            return Err(["the arguments must be an object, got ", got].concat());
        }
        match (&self.rules.validator, self.rules.tools.get(tool)) {
            (Some(check), Some(spec)) => guard(|| check(spec, &call.effective())),
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

    /// Forms groups from the calls that may run.
    #[inline(never)]
    fn plan(&mut self, batch: &mut Batch) {
        if batch.cleared.is_empty() || (self.gate() == ApprovalGate::Batch && !self.state.table.is_complete())
        {
            return;
        }
        let cleared = std::mem::take(&mut batch.cleared);
        match &self.rules.tool_execution {
            ToolExecutionPolicy::Concurrent => cleared.iter().for_each(|place| batch.ready.push_back(*place)),
            ToolExecutionPolicy::Sequential => {
                cleared.iter().for_each(|place| batch.groups.push_back(vec![*place]));
            }
            ToolExecutionPolicy::Priority => self.group_by_priority(batch, &cleared),
            ToolExecutionPolicy::Custom(partition) => {
                let mut blocks = Vec::with_capacity(cleared.len());
                for call in cleared.iter().filter_map(|place| batch.calls.get(*place)) {
                    blocks.push(with_arguments(&call.block, &call.arguments));
                }
                let groups =
                    guard(|| partition(&blocks)).and_then(|groups| checked_partition(&groups, &cleared));
                match groups {
                    Ok(groups) => groups.into_iter().for_each(|group| batch.groups.push_back(group)),
                    Err(why) => {
                        let text = ["custom tool execution strategy returned an invalid partition: ", &why];
                        let text = text.concat();
                        for place in &cleared {
                            self.settle(batch, *place, ToolResultCause::Skipped, &text);
                        }
                    }
                }
            }
        }
    }

    fn group_by_priority(&self, batch: &mut Batch, cleared: &[usize]) {
        let mut groups: Table<std::cmp::Reverse<i32>, Vec<usize>> = Table::new();
        for place in cleared {
            let tool = batch.calls.get(*place).and_then(|call| self.spec(&call.block.tool_name));
            let priority = std::cmp::Reverse(tool.map_or(0, |(_, spec)| spec.priority));
            match groups.get_mut(&priority) {
                Some(group) => group.push(*place),
                None => drop(groups.insert(priority, vec![*place])),
            }
        }
        groups.into_iter().for_each(|(_, group)| batch.groups.push_back(group));
    }

    /// Starts what may start. A group starts when the one before it is finished and the hooks for it have
    /// run.
    fn launch(&mut self, batch: &mut Batch) {
        // Nothing starts before it is known whether a steering message has arrived.
        if self.is_polled(batch) || !matches!(batch.ending, Ending::Normal) {
            return;
        }
        loop {
            let has_room = self.rules.max_concurrent_tools.is_none_or(|limit| batch.running < limit.max(1));
            match batch.ready.front().copied().filter(|_| has_room) {
                Some(place) => {
                    batch.ready.pop_front();
                    self.launch_call(batch, place);
                }
                None if batch.ready.is_empty() && batch.running == 0 && batch.has_called_hooks() => {
                    let Some(group) = batch.groups.pop_front() else { return };
                    batch.ready = group.into();
                }
                None => return,
            }
        }
    }

    fn launch_call(&mut self, batch: &mut Batch, place: usize) {
        let is_ready = batch.calls.get(place).is_some_and(|call| call.status.is_ready());
        if is_ready && self.is_grouped() && !self.check(batch, place) {
            return;
        }
        let Some(call) = batch.calls.get(place).filter(|call| call.status.is_ready()) else {
            return;
        };
        batch.running += 1;
        let announce = AgentEvent::ToolExecutionStart {
            call_id: call.block.call_id.clone(),
            tool_name: call.block.tool_name.clone(),
            arguments: call.arguments.clone(),
        };
        if self.rules.hooks.before_tool_execution {
            let call = with_arguments(&call.block, &call.arguments);
            let hook = Effect::Hook(HookCall::BeforeToolExecution { call });
            let effect = self.start_announced(hook, Some(announce));
            batch.effects.insert(effect, place);
            if let Some(call) = batch.calls.get_mut(place) {
                call.status = CallStatus::BeforeHook(effect);
            }
        } else {
            self.execute(batch, place, Some(announce));
        }
    }

    pub(super) fn execute(&mut self, batch: &mut Batch, place: usize, announce: Option<AgentEvent>) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let limit = self.rules.tools.get(call.tool).and_then(|spec| spec.timeout_ms);
        let effect = Effect::Execute {
            tool: call.tool,
            call_id: call.block.call_id.as_str().into(),
            arguments: call.arguments.clone(),
        };
        call.executed = true;
        let effect = self.start_announced(effect, announce);
        batch.effects.insert(effect, place);
        let timer = limit.or(self.rules.timeouts.tool).map(|ms| self.start(Effect::Sleep { ms }));
        if let Some(timer) = timer {
            batch.effects.insert(timer, place);
        }
        if let Some(call) = batch.calls.get_mut(place) {
            call.status = CallStatus::Running(effect, timer);
        }
    }

    #[inline(never)]
    pub(super) fn reply_to_batch(&mut self, mut batch: Box<Batch>, id: EffectId, reply: Reply) {
        if batch.after_hook == Some(id) {
            batch.after_hook = None;
            if let Reply::Hook(Err(error)) = reply {
                return self.interrupt_batch(batch, error);
            }
            self.call_after_hooks(&mut batch);
        } else if let Some(place) = batch.effects.get(&id).copied() {
            match self.reply_to_call(&mut batch, place, id, reply) {
                Ok(()) => {}
                Err(error) => return self.interrupt_batch(batch, *error),
            }
        }
        self.advance(batch);
    }

    fn reply_to_call(
        &mut self,
        batch: &mut Batch,
        place: usize,
        id: EffectId,
        reply: Reply,
    ) -> Result<(), Box<ErrorInfo>> {
        let Some(call) = batch.calls.get(place) else { return Ok(()) };
        let status = call.status;
        let (running, timer) = match status {
            CallStatus::Running(effect, timer) => (Some(effect), timer),
            _ => (None, None),
        };
        match reply {
            Reply::Approved(decision) if matches!(status, CallStatus::Asked(effect) if effect == id) => {
                let decision = decision.unwrap_or_else(|text| ToolDecision::Reject {
                    reason: Some(["the approver failed: ", &text].concat()),
                });
                let call_id = call.block.call_id.clone();
                if self.state.table.resolve(&call_id, decision, DecisionSource::Callback).is_ok() {
                    self.apply_decision(batch, place, DecisionSource::Callback);
                }
            }
            Reply::Hook(result) if matches!(status, CallStatus::BeforeHook(effect) if effect == id) => {
                batch.effects.remove(&id);
                result.map_err(Box::new)?;
                self.execute(batch, place, None);
            }
            Reply::Progress(progress) if running == Some(id) => {
                let (call_id, tool_name) = (call.block.call_id.clone(), call.block.tool_name.clone());
                self.emit(match progress {
                    Progress::Update(update) => {
                        AgentEvent::ToolExecutionUpdate { call_id, tool_name, update }
                    }
                    Progress::Event(event) => AgentEvent::SubagentEvent { call_id, event },
                });
            }
            Reply::Executed(outcome) if running == Some(id) => self.executed(batch, place, outcome)?,
            Reply::Slept if timer == Some(id) => {
                let limit = self.rules.tools.get(call.tool).and_then(|spec| spec.timeout_ms);
                let limit = text::number(limit.or(self.rules.timeouts.tool).unwrap_or(0));
                self.settle(batch, place, ToolResultCause::Timeout, &limit);
                self.completed(batch);
            }
            other => drop(other),
        }
        Ok(())
    }

    fn executed(
        &mut self,
        batch: &mut Batch,
        place: usize,
        outcome: ToolOutcome,
    ) -> Result<(), Box<ErrorInfo>> {
        match outcome {
            ToolOutcome::Completed(result) => self.answered_by_tool(batch, place, result),
            ToolOutcome::Invalid(text) => self.settle(batch, place, ToolResultCause::InvalidArguments, &text),
            ToolOutcome::Cancelled => {
                batch.ending =
                    Ending::Stopped(ErrorInfo::new(ErrorKind::Aborted, "a tool cancelled the run"));
                self.settle_all(batch, ToolResultCause::Aborted, "");
            }
            ToolOutcome::Failed(text) => {
                let call = batch.calls.get(place);
                let fatal =
                    call.and_then(|call| self.rules.tools.get(call.tool)).is_some_and(|spec| spec.fatal);
                self.settle(batch, place, ToolResultCause::Threw, &text);
                if fatal {
                    let name = batch.calls.get(place).map_or("", |call| call.block.tool_name.as_str());
                    let text = ["tool `", name, "` failed: ", &text].concat();
                    return Err(Box::new(ErrorInfo::new(ErrorKind::Tool, text).in_phase("tool")));
                }
            }
        }
        self.completed(batch);
        Ok(())
    }

    /// Cuts the texts of a tool's result to the length that the tool allows.
    pub(super) fn limit_result(&self, batch: &Batch, place: usize, result: &mut AgentToolResult) {
        let spec = batch.calls.get(place).and_then(|call| self.rules.tools.get(call.tool));
        if let Some(limit) = spec.and_then(|spec| spec.max_result_bytes) {
            truncate_texts(result, limit);
        }
    }

    fn answered_by_tool(&mut self, batch: &mut Batch, place: usize, mut result: AgentToolResult) {
        let Some(transfer) = result.transfer.take() else {
            self.limit_result(batch, place, &mut result);
            return self.resolve(batch, place, result, None);
        };
        if let Err(text) = self.may_transfer(&transfer) {
            return self.resolve(batch, place, AgentToolResult::error(text), None);
        }
        if result.content.is_empty() {
            let text = ["Transfer to ", &transfer.to, " initiated."].concat();
            result.content.push(ContentBlock::text(text));
        }
        self.resolve(batch, place, result, None);
        batch.ending = Ending::Transfer(transfer);
        self.settle_all(batch, ToolResultCause::Transfer, "");
    }

    fn may_transfer(&self, transfer: &Transfer) -> Result<(), String> {
        let chain = &self.rules.transfer_chain;
        if chain.contains(&transfer.to) || *transfer.to == *self.rules.agent_name {
            return Err(["transfer refused: `", &transfer.to, "` already had this conversation"].concat());
        }
        let depth = chain.len() + usize::from(!self.rules.agent_name.is_empty());
        if depth >= self.rules.max_transfer_depth {
            return Err("transfer refused: the chain of agents is too long".to_owned());
        }
        Ok(())
    }

    /// A tool has finished, so steering is polled while the other tools keep running; no tool starts in the
    /// meantime. Always an effect, even without a provider: what the tool itself has posted is known before
    /// another tool starts, and other replies that are ready count.
    fn completed(&mut self, batch: &mut Batch) {
        if !matches!(batch.ending, Ending::Normal) {
            return;
        }
        if self.is_polled(batch) {
            return self.steer_if_any(batch);
        }
        let queue = if self.state.steering.is_empty() { Queue::Steering } else { Queue::Posted };
        let poll = self.start(Effect::Poll(queue));
        self.state.polls.insert(poll, queue);
        batch.poll = Some(poll);
    }

    fn is_polled(&self, batch: &Batch) -> bool {
        batch.poll.is_some_and(|poll| self.state.polls.contains_key(&poll))
    }

    /// A batch waits for its poll to know how it ends, but not once that is known.
    fn is_over(&self, batch: &Batch) -> bool {
        let is_ending_known = !matches!(batch.ending, Ending::Normal) || !self.is_polled(batch);
        let has_all_results = batch.committed == batch.calls.len();
        has_all_results && batch.running == 0 && batch.has_called_hooks() && is_ending_known
    }

    fn steer_if_any(&mut self, batch: &mut Batch) {
        if matches!(batch.ending, Ending::Normal) && !self.state.steering.is_empty() {
            self.steer(batch);
        }
    }

    /// Handles steering that must not wait for a tool.
    pub(super) fn steer_batch(&mut self) {
        if let Some(mut batch) = self.take_batch() {
            self.steer_if_any(&mut batch);
            self.advance(batch);
        }
    }

    fn steer(&mut self, batch: &mut Batch) {
        batch.ending = Ending::Interrupted;
        let finish = self.rules.steering.in_flight == InFlight::Finish;
        self.settle_all_unless(batch, ToolResultCause::Steering, "", |status| {
            finish && matches!(status, CallStatus::Running(..) | CallStatus::BeforeHook(_))
        });
    }
}

impl Batch {
    pub(super) fn has_called_hooks(&self) -> bool {
        self.after_hook.is_none() && self.hooks_called == self.committed
    }

    /// Returns the calls as their tools receive them.
    #[inline(never)]
    pub(super) fn blocks(&self, which: &dyn Fn(&Call) -> bool) -> Vec<ToolCallBlock> {
        let mut blocks = Vec::with_capacity(self.calls.len());
        for call in self.calls.iter().filter(|call| which(call)) {
            blocks.push(with_arguments(&call.block, &call.arguments));
        }
        blocks
    }

    #[inline(never)]
    pub(super) fn results(&self) -> Vec<Rc<ToolResultMessage>> {
        let mut results = Vec::with_capacity(self.calls.len());
        for result in self.calls.iter().filter_map(|call| call.result.as_ref()) {
            results.push(result.clone());
        }
        results
    }

    /// Whether the call has no result yet.
    pub(super) fn place_of(&self, call_id: &str) -> Option<usize> {
        usize::try_from(*self.places.get(call_id)?).ok()
    }

    pub(super) fn is_open(&self, place: usize) -> bool {
        self.calls.get(place).is_some_and(|call| !call.status.is_done())
    }
}

pub(super) fn new_batch(answer: Answer) -> Batch {
    let mut calls: Vec<Call> = Vec::new();
    let mut places = IdMap::default();
    for (block, place) in answer.message.tool_calls().zip(0..) {
        places.insert(block.call_id.clone(), place);
        calls.push(Call {
            block: block.clone(),
            arguments: block.arguments.clone(),
            status: CallStatus::Waiting,
            result: None,
            asked: false,
            executed: false,
            tool: 0,
        });
    }
    Batch {
        answer,
        calls,
        places,
        effects: Table::new(),
        poll: None,
        cleared: Vec::new(),
        groups: VecDeque::new(),
        ready: VecDeque::new(),
        running: 0,
        committed: 0,
        hooks_called: 0,
        after_hook: None,
        injected: Vec::new(),
        state: Map::new(),
        is_answer: false,
        ending: Ending::Normal,
    }
}

/// Converts indices into the cleared calls to places, and refuses anything that is not a partition.
fn checked_partition(groups: &[Vec<usize>], cleared: &[usize]) -> Result<Vec<Vec<usize>>, String> {
    let wrong = |index: usize, why: &str| Err(["index ", &text::number(index), why].concat());
    let mut left: Vec<Option<usize>> = cleared.iter().copied().map(Some).collect();
    let mut placed = Vec::with_capacity(groups.len());
    for group in groups {
        let mut places = Vec::with_capacity(group.len());
        for index in group {
            match left.get_mut(*index).map(Option::take) {
                Some(Some(place)) => places.push(place),
                Some(None) => return wrong(*index, " stands twice"),
                None => return wrong(*index, " is out of range"),
            }
        }
        placed.push(places);
    }
    match left.iter().position(Option::is_some) {
        Some(missing) => wrong(missing, " is missing"),
        None => Ok(placed),
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

/// Cuts the texts of a result at a character boundary, and adds a note.
fn truncate_texts(result: &mut AgentToolResult, limit: u64) {
    let mut left = usize::try_from(limit).unwrap_or(usize::MAX);
    for block in &mut result.content {
        let ContentBlock::Text(block) = block else { continue };
        if block.text.len() <= left {
            left -= block.text.len();
            continue;
        }
        let whole = block.text.len();
        while !block.text.is_char_boundary(left) {
            left -= 1;
        }
        block.text.truncate(left);
        let note = ["\n[truncated: ", &text::number(left), " of ", &text::number(whole), " bytes shown]"];
        block.text.push_str(&note.concat());
        left = 0;
    }
}
