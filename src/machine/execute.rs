//! Running tools: their effects, their replies, and steering that arrives meanwhile.

use crate::data::text;
use crate::host::config::{InFlight, SteeringTime};
use crate::host::tool::{AgentToolResult, Progress, ToolOutcome, Transfer};
use crate::rules::approval::{DecisionSource, ToolDecision};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{ContentBlock, ToolResultCause};

use super::batch::{Batch, CallStatus, Ending};
use super::input::{Queue, Reply};
use super::output::{Effect, EffectId};
use super::step::Step;

/// How many bytes the text of a result may have that the engine writes.
const LONGEST_ERROR: u64 = 1 << 16;

impl Step<'_> {
    pub(super) fn execute(&mut self, batch: &mut Batch, place: usize, announce: Option<AgentEvent>) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let spec = self.rules.tools.get(call.tool);
        if spec.is_some_and(|spec| spec.is_external) {
            return self.ask_elsewhere(batch, place, announce);
        }
        let limit = spec.and_then(|spec| spec.timeout_ms);
        let limit = limit.or(self.rules.timeouts.tool);
        let effect = Effect::Execute {
            tool: call.tool,
            call_id: call.block.call_id.as_str().into(),
            arguments: call.arguments.clone(),
        };
        call.executed = true;
        let effect = self.start_announced(effect, announce);
        batch.effects.insert(effect, place);
        let timer = limit.map(|ms| self.start(Effect::Sleep { ms }));
        if let Some(timer) = timer {
            batch.effects.insert(timer, place);
        }
        if let Some(call) = batch.calls.get_mut(place) {
            call.status = CallStatus::Running(effect, timer);
            call.times_out = self.now.saturating_add(limit.unwrap_or_default());
        }
    }

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
            CallStatus::Elsewhere(timer) => (None, timer),
            _ => (None, None),
        };
        match reply {
            Reply::Approved(decision) if matches!(status, CallStatus::Asked(effect) if effect == id) => {
                let sound = |decision: ToolDecision| decision.flaw().map_or(Ok(decision), Err);
                let decision = decision.and_then(sound).unwrap_or_else(|text| ToolDecision::Reject {
                    reason: Some(["the approver failed: ", &text].concat()),
                });
                let call_id = call.block.call_id.clone();
                if self.state.approvals.resolve(&call_id, decision, DecisionSource::Callback).is_ok() {
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
                match progress {
                    Progress::Update(update) => {
                        self.emit(AgentEvent::ToolExecutionUpdate { call_id, tool_name, update });
                    }
                    Progress::Event(event) => self.child_event(batch, place, event),
                    Progress::Ask(asking) => self.ask_person(batch, place, asking),
                }
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
            ToolOutcome::Interrupted => self.settle(batch, place, ToolResultCause::Interrupted, ""),
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

    pub(super) fn answered_by_tool(&mut self, batch: &mut Batch, place: usize, mut result: AgentToolResult) {
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

    /// Cuts the texts of a tool's result to the length that the tool allows.
    pub(super) fn limit_result(&self, batch: &Batch, place: usize, result: &mut AgentToolResult) {
        let spec = batch.calls.get(place).and_then(|call| self.rules.tools.get(call.tool));
        if let Some(limit) = spec.and_then(|spec| spec.max_result_bytes) {
            truncate_texts(result, limit);
        }
    }

    /// Cuts the text of a result that the engine writes: it may repeat what the model sent.
    pub(super) fn limit_error(&self, batch: &Batch, place: usize, result: &mut AgentToolResult) {
        let name = batch.calls.get(place).map(|call| call.block.tool_name.as_str());
        let spec = name.and_then(|name| self.spec(name));
        let limit = spec.and_then(|(_, spec)| spec.max_result_bytes).unwrap_or(LONGEST_ERROR);
        truncate_texts(result, limit.min(LONGEST_ERROR));
    }

    /// A tool has finished, so steering is polled while the other tools keep running; no tool starts in the
    /// meantime. Always an effect, even without a provider: what the tool itself has posted is known before
    /// another tool starts, and other replies that are ready count.
    pub(super) fn completed(&mut self, batch: &mut Batch) {
        if !matches!(batch.ending, Ending::Normal) {
            return;
        }
        if self.is_polled(batch) {
            return self.steer_if_any(batch);
        }
        let queue = if self.may_interrupt() { Queue::Posted } else { Queue::Steering };
        let poll = self.start(Effect::Poll(queue));
        self.state.queues.polls.insert(poll, queue);
        batch.poll = Some(poll);
    }

    pub(super) fn is_polled(&self, batch: &Batch) -> bool {
        batch.poll.is_some_and(|poll| self.state.queues.polls.contains_key(&poll))
    }

    /// Interrupts the batch if a message waits for this moment, which what waits for the end of the batch does not.
    pub(super) fn steer_if_any(&mut self, batch: &mut Batch) {
        if matches!(batch.ending, Ending::Normal) && self.may_interrupt() {
            self.steer(batch);
        }
    }

    /// Whether a message waits that interrupts a batch when a tool has finished, at the latest.
    fn may_interrupt(&self) -> bool {
        self.steering_time().is_some_and(|time| time >= SteeringTime::AfterTool)
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
            let runs = |status| {
                matches!(
                    status,
                    CallStatus::Running(..) | CallStatus::BeforeHook(_) | CallStatus::Elsewhere(_)
                )
            };
            finish && runs(status)
        });
    }
}

/// Cuts the texts of a result at a character boundary, and adds a note. A text that a host has cut already, with such a
/// note, stays as it is.
fn truncate_texts(result: &mut AgentToolResult, limit: u64) {
    let mut left = usize::try_from(limit).unwrap_or(usize::MAX);
    for block in &mut result.content {
        let ContentBlock::Text(block) = block else { continue };
        let kept = kept_before_note(&block.text);
        if kept <= left {
            left -= kept;
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

/// Returns the length of a text without the note that it was cut, if it ends with one.
fn kept_before_note(text: &str) -> usize {
    let from = text.len().saturating_sub(LONGEST_NOTE);
    let note = text.as_bytes().get(from..).filter(|_| text.ends_with(" bytes shown]"));
    let place = note.and_then(|tail| tail.windows(NOTE.len()).rposition(|part| part == NOTE));
    place.map_or(text.len(), |at| from + at)
}

const NOTE: &[u8] = b"\n[truncated: ";

/// The note with two numbers of sixteen digits.
const LONGEST_NOTE: usize = 64;
