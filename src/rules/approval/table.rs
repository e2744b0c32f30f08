//! The table of one batch: which calls are decided, and which may start.

use super::entry::{ApprovalEntry, ApprovalGate, ApprovalState, ReadyCall};
use crate::data::id_map::Index;
use crate::data::table::Table;
use crate::rules::call_ids::CallIds;
use crate::words::event::DecisionSource;
use crate::words::message::ToolCallBlock;

use super::decision::{ApprovalError, Resolution, ToolDecision};
use super::policy::ToolApprovalAction;

/// The decision table of one batch of calls. Each call goes through `Pending → Ready → Dispatched`, in the
/// order of declaration. Decisions may arrive in any order, even before their batch.
///
/// ```
/// use turnwheel::approval::{
///     ApprovalGate, ApprovalStateMachine, DecisionSource, ToolApprovalAction, ToolDecision,
/// };
/// use turnwheel::json::RawJson;
/// use turnwheel::message::ToolCallBlock;
///
/// let call = |id: &str, name: &str| ToolCallBlock {
///     call_id: id.into(),
///     tool_name: name.into(),
///     arguments: RawJson::empty_object(),
///     metadata: None,
/// };
/// let mut table = ApprovalStateMachine::default();
/// table.open(vec![call("a", "delete"), call("b", "look")], |call| match call.tool_name.as_str() {
///     "look" => ToolApprovalAction::Approve,
///     _ => ToolApprovalAction::Ask,
/// });
/// assert!(table.next_ready(ApprovalGate::Prefix).is_none(), "`b` waits for `a`");
///
/// let no = ToolDecision::Reject { reason: Some("not today".into()) };
/// table.resolve("a", no.clone(), DecisionSource::Command)?;
/// let next = table.next_ready(ApprovalGate::Prefix).expect("it is decided");
/// assert_eq!((next.call.call_id.as_str(), next.decision), ("a", no));
/// # Ok::<(), turnwheel::approval::ApprovalError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalStateMachine {
    entries: Vec<ApprovalEntry>,
    /// The index of each call in the entries.
    places: Index,
    /// The number of dispatched entries; these are always the first ones.
    dispatched: usize,
    /// The number of undecided entries.
    pending: usize,
    /// Decisions for calls that no batch has had yet.
    parked: Table<String, ToolDecision>,
}

impl ApprovalStateMachine {
    /// Starts a batch, replacing the previous one. A call that no rule decides takes its parked decision,
    /// if there is one. Calls that share an id are given distinct ids. Returns the refusals of parked
    /// decisions that contradict a rule.
    pub fn open(
        &mut self,
        mut calls: Vec<ToolCallBlock>,
        action: impl Fn(&ToolCallBlock) -> ToolApprovalAction,
    ) -> Vec<ApprovalError> {
        make_distinct(&mut calls);
        let actions: Vec<_> = calls.iter().map(action).collect();
        self.open_with_actions(calls, &actions)
    }

    /// Like [`ApprovalStateMachine::open`], with the ruling for each call. No two calls may share an id.
    pub(crate) fn open_with_actions(
        &mut self,
        calls: Vec<ToolCallBlock>,
        actions: &[ToolApprovalAction],
    ) -> Vec<ApprovalError> {
        self.clear();
        let mut refused = Vec::new();
        for (call, action) in calls.into_iter().zip(actions) {
            let mut entry = ApprovalEntry { state: ApprovalState::ruled(*action), call };
            if let Some(decision) = self.parked.remove(entry.call.call_id.as_str())
                && let Err(refusal) = entry.resolve(decision, DecisionSource::Command)
            {
                refused.push(refusal);
            }
            self.push(entry);
        }
        refused
    }

    /// Puts a table together that was stored.
    pub(super) fn restored(entries: Vec<ApprovalEntry>, parked: Table<String, ToolDecision>) -> Self {
        let dispatched =
            entries.iter().take_while(|entry| matches!(entry.state, ApprovalState::Dispatched)).count();
        let mut table = ApprovalStateMachine { dispatched, parked, ..ApprovalStateMachine::default() };
        entries.into_iter().for_each(|entry| table.push(entry));
        table
    }

    /// Drops the decisions that no batch has had yet.
    pub fn forget_parked(&mut self) {
        self.parked.clear();
    }

    /// Replaces the entries; parked decisions remain.
    pub(crate) fn refill(&mut self, entries: Vec<ApprovalEntry>) {
        self.clear();
        entries.into_iter().for_each(|entry| self.push(entry));
    }

    /// Returns the decisions that no batch has had yet.
    pub(super) fn parked(&self) -> &Table<String, ToolDecision> {
        &self.parked
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        (self.dispatched, self.pending) = (0, 0);
    }

    pub(super) fn push(&mut self, entry: ApprovalEntry) {
        self.places.add(&entry.call.call_id, self.entries.len());
        self.pending += usize::from(entry.is_pending());
        self.entries.push(entry);
    }

    fn place(&self, call_id: &str) -> Option<usize> {
        self.places.find(call_id, |place| self.entries.get(place).is_some_and(|e| e.call.call_id == call_id))
    }

    /// Decides about one call of the batch.
    ///
    /// # Errors
    /// If the batch has no such call, or if the call was decided differently or has started.
    pub fn resolve(
        &mut self,
        call_id: &str,
        decision: ToolDecision,
        by: DecisionSource,
    ) -> Result<Resolution, ApprovalError> {
        match self.place(call_id) {
            Some(place) => self.decide_at(place, call_id, decision, by),
            None => Err(ApprovalError::UnknownToolCallId(call_id.to_owned())),
        }
    }

    /// Decides about the entry at this index; parks the decision if there is no entry.
    fn decide_at(
        &mut self,
        place: usize,
        call_id: &str,
        decision: ToolDecision,
        by: DecisionSource,
    ) -> Result<Resolution, ApprovalError> {
        let Some(entry) = self.entries.get_mut(place) else {
            self.parked.insert(call_id.to_owned(), decision);
            return Ok(Resolution::Parked);
        };
        let resolution = entry.resolve(decision, by)?;
        if resolution == Resolution::Applied {
            self.pending -= 1;
        }
        Ok(resolution)
    }

    /// Decides about several calls of the batch: all of them or none. Returns the effect for each call, in
    /// the order of the calls.
    ///
    /// # Errors
    /// Like [`ApprovalStateMachine::resolve`]. An unknown id is reported before a decision that comes too
    /// late.
    pub fn resolve_all(
        &mut self,
        decisions: impl IntoIterator<Item = (String, ToolDecision)>,
        by: DecisionSource,
    ) -> Result<Vec<(String, Resolution)>, ApprovalError> {
        let decisions: Table<String, ToolDecision> = decisions.into_iter().collect();
        if let Some((id, _)) = decisions.iter().find(|(id, _)| self.place(id).is_none()) {
            return Err(ApprovalError::UnknownToolCallId(id.clone()));
        }
        self.decide_all(decisions, by)
    }

    /// Like [`ApprovalStateMachine::resolve`], but parks a decision about a call that the batch does not
    /// have. If several decisions are parked for a call, the last one holds.
    ///
    /// # Errors
    /// If the call was decided differently or has started.
    pub fn decide(
        &mut self,
        call_id: &str,
        decision: ToolDecision,
        by: DecisionSource,
    ) -> Result<Resolution, ApprovalError> {
        let place = self.place(call_id).unwrap_or(usize::MAX);
        self.decide_at(place, call_id, decision, by)
    }

    /// Like [`ApprovalStateMachine::resolve_all`], but parks decisions about calls that the batch does not
    /// have. They come last in the returned list.
    ///
    /// # Errors
    /// If one of the calls was decided differently or has started. Nothing is parked then either.
    pub fn decide_all(
        &mut self,
        decisions: impl IntoIterator<Item = (String, ToolDecision)>,
        by: DecisionSource,
    ) -> Result<Vec<(String, Resolution)>, ApprovalError> {
        // In the order of the calls, followed by those that match no call.
        let mut placed: Table<usize, (String, ToolDecision)> = Table::new();
        for (id, decision) in decisions {
            let place = self.place(&id).unwrap_or(self.entries.len() + placed.len());
            placed.insert(place, (id, decision));
        }
        for (place, (_, decision)) in placed.iter() {
            if let Some(entry) = self.entries.get(*place) {
                entry.would_resolve(decision)?;
            }
        }
        let mut resolved = Vec::with_capacity(placed.len());
        for (place, (id, decision)) in placed {
            let resolution = self.decide_at(place, &id, decision, by)?;
            resolved.push((id, resolution));
        }
        Ok(resolved)
    }

    /// Hands out the next call in the order of declaration, if the gate permits. Rejected calls are handed
    /// out too.
    pub fn next_ready(&mut self, gate: ApprovalGate) -> Option<ReadyCall> {
        self.hand_out(gate).map(|(call, decision, by)| ReadyCall { call: call.clone(), decision, by })
    }

    /// Like [`ApprovalStateMachine::next_ready`], but without copying the call.
    pub(crate) fn hand_out(
        &mut self,
        gate: ApprovalGate,
    ) -> Option<(&ToolCallBlock, ToolDecision, DecisionSource)> {
        if gate == ApprovalGate::Batch && !self.all_decided() {
            return None;
        }
        let entry = self.entries.get_mut(self.dispatched)?;
        if !matches!(entry.state, ApprovalState::Ready { .. }) {
            return None;
        }
        let ApprovalState::Ready { decision, by } =
            std::mem::replace(&mut entry.state, ApprovalState::Dispatched)
        else {
            return None;
        };
        self.dispatched += 1;
        Some((&entry.call, decision, by))
    }

    /// Ends the batch, and returns the calls that were not handed out, decided or not. Parked decisions
    /// remain.
    pub fn close(&mut self) -> Vec<ApprovalEntry> {
        let left = self.entries.split_off(self.dispatched.min(self.entries.len()));
        self.clear();
        left
    }

    /// Whether all calls of the batch have been handed out.
    pub fn is_complete(&self) -> bool {
        self.dispatched >= self.entries.len()
    }

    /// Whether every call of the batch has been decided.
    pub fn all_decided(&self) -> bool {
        !self.is_waiting_for_user()
    }

    /// Whether a call is waiting for a decision.
    pub fn is_waiting_for_user(&self) -> bool {
        self.pending > 0
    }

    /// Returns the calls that are waiting for a decision.
    pub fn pending(&self) -> impl Iterator<Item = &ToolCallBlock> {
        let left = self.entries.get(self.dispatched..).unwrap_or_default();
        left.iter().filter(|entry| entry.is_pending()).map(|entry| &entry.call)
    }

    /// Returns all calls of the batch, in the order of declaration.
    pub fn entries(&self) -> &[ApprovalEntry] {
        &self.entries
    }

    /// Returns a call of the batch.
    pub fn entry(&self, call_id: &str) -> Option<&ApprovalEntry> {
        self.entries.get(self.place(call_id)?)
    }
}

fn make_distinct(calls: &mut [ToolCallBlock]) {
    // A single call cannot share its id.
    if let [call] = calls
        && !call.call_id.is_empty()
    {
        return;
    }
    let mut ids = CallIds::default();
    calls.iter_mut().for_each(|call| ids.make_distinct(call));
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
