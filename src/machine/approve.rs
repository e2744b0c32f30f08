//! Who is asked about the calls of an answer, and what the decisions cause.

use crate::data::json::{RawJson, Reader};
use crate::data::table::Table;
use crate::data::text::contains;
use crate::host::config::EarlyDecisions;
use crate::host::isolate::guard;
use crate::host::ports::ApprovalRequest;
use crate::host::tool::ApprovalNeed;
use crate::rules::approval::{
    ApprovalEntry, ApprovalError, ApprovalGate, ApprovalState, DecisionSource, Resolution,
    ToolApprovalAction, ToolDecision,
};
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, ToolCallBlock};

use super::batch::{Asked, Batch, CallStatus};
use super::checkpoint::long;
use super::dispatch::Cleared;
use super::output::Effect;
use super::phase::Phase;
use super::step::Step;

impl Step<'_> {
    /// Second pass: everything that needs a decision is asked for, all at once.
    pub(super) fn open_table(&mut self, batch: &mut Batch) {
        let calls = batch.blocks(&|call| !call.status.is_done());
        let mut actions = Vec::with_capacity(calls.len());
        let mut asked = Vec::new();
        for call in &calls {
            let (action, need) = self.ruling(call);
            if action == ToolApprovalAction::Ask {
                asked.push((call.call_id.clone(), need));
            }
            actions.push(action);
        }
        for refusal in self.state.approvals.open_with_actions(calls, &actions) {
            let call_id = refusal.call_id().map(str::to_owned);
            self.emit(AgentEvent::CommandRefused { id: None, call_id, reason: refusal.text() });
        }
        for (call_id, need) in &asked {
            let Some(place) = batch.place_of(call_id) else { continue };
            if batch.is_open(place) {
                self.request_approval(batch, place, *need);
            }
        }
    }

    /// What the rules say about a call, and whether its tool requires approval.
    pub(super) fn ruling(&self, call: &ToolCallBlock) -> (ToolApprovalAction, bool) {
        let need = self.requires_approval(call);
        let command = command_of(&call.arguments);
        (self.rules.approval.action(&call.tool_name, command.as_deref(), need), need)
    }

    pub(super) fn requires_approval(&self, call: &ToolCallBlock) -> bool {
        match self.spec(&call.tool_name).map(|(_, spec)| &spec.requires_approval) {
            None | Some(ApprovalNeed::Never) => false,
            Some(ApprovalNeed::Always) => true,
            Some(ApprovalNeed::Depends(depends)) => {
                guard(|| depends(&call.arguments, &self.state.about())).unwrap_or(true)
            }
        }
    }

    pub(super) fn request_approval(&mut self, batch: &mut Batch, place: usize, requires_approval: bool) {
        let id = self.new_question(batch, place);
        let Some(call) = batch.calls.get(place) else { return };
        let (call_id, tool_name) = (call.block.call_id.clone(), call.block.tool_name.clone());
        let is_pending = self.state.approvals.entry(&call_id).is_some_and(ApprovalEntry::is_pending);
        let (arguments, asked_at) = (call.arguments.clone(), self.now);
        self.emit(AgentEvent::ToolApprovalRequested {
            id,
            call_id: call_id.clone(),
            tool_name,
            arguments,
            asked_at,
            path: Vec::new(),
        });
        if !is_pending {
            // Decided before the question: the decision was parked.
            self.apply_decision(batch, place, DecisionSource::Command);
        } else if self.rules.has_approver {
            self.ask_approver(batch, place, requires_approval);
        }
    }

    /// Gives a call a question with an id that no other question has.
    fn new_question(&self, batch: &mut Batch, place: usize) -> String {
        let mut id = self.new_id();
        // A host whose ids are not unique: at least no two questions of a batch share one.
        while id.is_empty() || batch.questions.contains(&id) {
            id.push('+');
        }
        if let Some(call) = batch.calls.get_mut(place) {
            call.question = Some(Asked { id: id.clone(), at: self.now });
            batch.questions.insert(id.clone(), long(place));
        }
        id
    }

    pub(super) fn ask_approver(&mut self, batch: &mut Batch, place: usize, requires_approval: bool) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let effect = self.start(Effect::Approve(ApprovalRequest {
            id: call.question.as_ref().map(|asked| asked.id.clone()).unwrap_or_default(),
            call_id: call.block.call_id.clone(),
            tool_name: call.block.tool_name.clone(),
            arguments: call.arguments.clone(),
            requires_approval,
        }));
        call.status = CallStatus::Asked(effect);
        batch.effects.insert(effect, place);
    }

    /// Applies a decision in the table: the listeners are told, and the policies evaluate changed
    /// arguments. With the batch gate, a rejection takes effect without waiting for other decisions.
    pub(super) fn apply_decision(&mut self, batch: &mut Batch, place: usize, by: DecisionSource) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        if let CallStatus::Asked(effect) = call.status {
            batch.effects.remove(&effect);
            call.status = CallStatus::Waiting;
            self.cancel(effect);
        }
        let Some(call) = batch.calls.get(place) else { return };
        let Some(decision) = self.decision(&call.block.call_id) else { return };
        let approved = !matches!(decision, ToolDecision::Reject { .. });
        self.close_question(batch, place, approved, by);
        match decision {
            ToolDecision::AcceptWith(arguments) => self.clear_again(batch, place, arguments),
            ToolDecision::Accept => {}
            refusal if self.gate() == ApprovalGate::Batch => self.carry_out(batch, place, refusal, false),
            _ => {}
        }
    }

    /// Tells the listeners that the question about a call is closed.
    pub(super) fn close_question(&mut self, batch: &Batch, place: usize, approved: bool, by: DecisionSource) {
        let Some(call) = batch.calls.get(place) else { return };
        let Some(Asked { id, .. }) = call.question.clone() else { return };
        let (call_id, tool_name) = (call.block.call_id.clone(), call.block.tool_name.clone());
        self.emit(AgentEvent::ToolApprovalResolved {
            id,
            call_id,
            tool_name,
            approved,
            by,
            path: Vec::new(),
        });
    }

    fn decision(&self, call_id: &str) -> Option<ToolDecision> {
        match &self.state.approvals.entry(call_id)?.state {
            ApprovalState::Ready { decision, .. } => Some(decision.clone()),
            _ => None,
        }
    }

    fn clear_again(&mut self, batch: &mut Batch, place: usize, arguments: RawJson) {
        let arguments = arguments.as_arguments().unwrap_or(arguments);
        if let Some(call) = batch.calls.get_mut(place) {
            call.given = Some(arguments.clone());
            call.arguments = arguments;
        }
        let state = std::mem::take(&mut batch.state);
        let cleared = self.clear_call(batch, place, &state);
        batch.state = state;
        match cleared {
            Some(Cleared::Stop(reason)) => self.stop_batch(batch, &reason),
            Some(Cleared::No(cause, text)) => self.settle(batch, place, cause, &text),
            Some(Cleared::Yes(arguments)) => {
                if let Some(call) = batch.calls.get_mut(place) {
                    call.arguments = arguments;
                }
            }
            None => {}
        }
    }

    pub(super) fn resolve_by_command(&mut self, decisions: Vec<(String, ToolDecision)>) {
        let first = decisions.first().map(|(id, _)| id.clone());
        let answered = decisions.iter().map(|(id, _)| id).find(|id| self.has_result(id)).cloned();
        let count = decisions.len();
        let decisions: Table<String, ToolDecision> = decisions.into_iter().collect();
        let resolved = match answered {
            Some(id) => Err(ApprovalError::AlreadyResolved(id)),
            // Two decisions about the same call.
            None if decisions.len() < count => Err(ApprovalError::InvalidCommand),
            None => match self.too_early(&decisions) {
                Some(id) => Err(ApprovalError::UnknownToolCallId(id)),
                None => self.state.approvals.decide_all(decisions, DecisionSource::Command),
            },
        };
        match resolved {
            Ok(resolved) => self.apply_decisions(resolved),
            Err(refusal) => {
                let call_id = refusal.call_id().map(str::to_owned).or(first);
                self.emit(AgentEvent::CommandRefused { id: None, call_id, reason: refusal.text() });
            }
        }
    }

    /// Returns a call among these that is not asked about, if decisions about it are refused.
    fn too_early(&self, decisions: &Table<String, ToolDecision>) -> Option<String> {
        let mut ids = decisions.iter().map(|(id, _)| id);
        let is_unknown = |id: &&String| self.state.approvals.entry(id).is_none();
        ids.find(is_unknown).filter(|_| self.rules.early_decisions == EarlyDecisions::Refuse).cloned()
    }

    /// Whether a call of this run already has a result, so that there is nothing left to decide.
    fn has_result(&self, id: &str) -> bool {
        // The calls of the current batch are in the table; an id that no call ever had has no result. These
        // are the only cases to consider.
        if self.state.approvals.entry(id).is_some() || !self.state.history.call_ids.is_taken(id) {
            return false;
        }
        if let Phase::Dispatching(batch) = &self.state.phase
            && batch.places.contains(id)
        {
            return true;
        }
        let is_result =
            |m: &AgentMessage| matches!(m, AgentMessage::ToolResult(result) if result.call_id == id);
        self.state.appended.messages.iter().rev().any(is_result)
    }

    fn apply_decisions(&mut self, resolved: Vec<(String, Resolution)>) {
        let mut batch = self.take_batch();
        for (call_id, resolution) in &resolved {
            if *resolution == Resolution::Repeated {
                let reason = ApprovalError::AlreadyResolved(call_id.clone()).text();
                self.emit(AgentEvent::CommandRefused { id: None, call_id: Some(call_id.clone()), reason });
            } else if let Some(batch) = &mut batch
                && let Some(place) = batch.place_of(call_id)
                && batch.is_open(place)
            {
                self.apply_decision(batch, place, DecisionSource::Command);
            }
        }
        if let Some(batch) = batch {
            self.advance(batch);
        }
    }
}

/// Returns the text argument named `command`, for rules about shells.
fn command_of(arguments: &RawJson) -> Option<String> {
    let written = arguments.as_str();
    // A key may be written with escapes: `"\u0063ommand"`.
    if !contains(written, "command") && !contains(written, "\\u") {
        return None;
    }
    let mut command = None;
    let _ = Reader::new(written).object(|reader, key| {
        // Of equal keys the last one counts.
        if key == "command" {
            command = None;
            if reader.peek() == Some(b'"') {
                command = reader.value()?.as_str().map(str::to_owned);
                return Ok(());
            }
        }
        reader.pass_over()
    });
    command
}
