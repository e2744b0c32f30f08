//! The decisions about a batch of tool calls, and which call may start. This is plain data: it can be
//! cloned, and stored in a checkpoint while a person takes days to decide.

mod policy;

use std::fmt;

pub use policy::{ApprovalMode, ApprovalOptions, ToolApprovalAction, ToolApprovalPolicy, strip_tool_prefix};

use crate::data::id_map::Index;
use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, serde_as_json};
use crate::data::list::read_all;
use crate::data::table::Table;
use crate::rules::call_ids::CallIds;
pub use crate::rules::event::DecisionSource;
use crate::words::message::{ContentBlock, ToolCallBlock};

/// A decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDecision {
    /// Run the call.
    Accept,
    /// Run the call with these arguments instead, a JSON object.
    AcceptWith(RawJson),
    /// Do not run the call.
    Reject {
        /// The reason, for the model.
        reason: Option<String>,
    },
    /// Do not run the call; use this as its result.
    Result {
        /// Text and image blocks.
        content: Vec<ContentBlock>,
        /// Data for the UI; never sent to the model.
        details: Option<RawJson>,
        /// Whether the result counts as a failure.
        is_error: bool,
    },
}

impl ToolDecision {
    /// Whether the tool runs.
    pub fn is_approval(&self) -> bool {
        matches!(self, ToolDecision::Accept | ToolDecision::AcceptWith(_))
    }
}

/// Why a decision was refused. A refused decision changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalError {
    /// The batch has no call with this id.
    UnknownToolCallId(String),
    /// The call has already been decided or has started.
    AlreadyResolved(String),
    /// The command contains no decision about a call.
    InvalidCommand,
}

impl ApprovalError {
    /// Returns the id of the call that the error is about.
    pub fn call_id(&self) -> Option<&str> {
        match self {
            ApprovalError::UnknownToolCallId(id) | ApprovalError::AlreadyResolved(id) => Some(id),
            ApprovalError::InvalidCommand => None,
        }
    }
}

impl fmt::Display for ApprovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl ApprovalError {
    /// Returns the text that `Display` writes.
    pub(crate) fn text(&self) -> String {
        match self {
            ApprovalError::UnknownToolCallId(id) => ["unknown tool_call_id: ", id].concat(),
            ApprovalError::AlreadyResolved(id) => ["tool_call_id ", id, " is already resolved"].concat(),
            ApprovalError::InvalidCommand => "invalid approval command for state machine".to_owned(),
        }
    }
}

impl std::error::Error for ApprovalError {}

/// The effect of a decision that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The decision now holds.
    Applied,
    /// The same decision already held.
    Repeated,
    /// No batch has this call yet. The decision will hold as soon as one does.
    Parked,
}

/// When a call may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalGate {
    /// When all calls of the batch have been decided.
    #[default]
    Batch,
    /// When this call and all earlier ones have been decided.
    Prefix,
}

/// A call of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalEntry {
    /// The call, with the arguments to be decided on.
    pub call: ToolCallBlock,
    /// The state of the call.
    pub state: ApprovalState,
}

/// The state of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// Not decided yet.
    Pending,
    /// Decided, but not started.
    Ready {
        /// The decision.
        decision: ToolDecision,
        /// Who made the decision.
        by: DecisionSource,
    },
    /// Handed out by [`ApprovalStateMachine::next_ready`].
    Dispatched,
}

/// A call that may start, or whose rejection may be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyCall {
    /// The call.
    pub call: ToolCallBlock,
    /// The decision.
    pub decision: ToolDecision,
    /// Who made the decision.
    pub by: DecisionSource,
}

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
    /// The indexes of the entries that waited for a decision and got one, in the order of the decisions.
    decided: DecidedPlaces,
    /// Decisions for calls that no batch has had yet.
    parked: Table<String, ToolDecision>,
}

#[derive(Clone, Debug, Default, Eq)]
struct DecidedPlaces(Vec<usize>);

impl PartialEq for DecidedPlaces {
    /// Always equal: a checkpoint does not keep in which order the decisions came.
    fn eq(&self, _: &Self) -> bool {
        true
    }
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
            let mut entry = ApprovalEntry { state: initial_state(*action), call };
            if let Some(decision) = self.parked.remove(entry.call.call_id.as_str())
                && let Err(refusal) = entry.resolve(decision, DecisionSource::Command)
            {
                refused.push(refusal);
            }
            self.push(entry);
        }
        refused
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.decided.0.clear();
        (self.dispatched, self.pending) = (0, 0);
    }

    fn push(&mut self, entry: ApprovalEntry) {
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
            self.decided.0.push(place);
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

    /// Brings a list of the calls that are waiting up to date. Decisions come one by one, and each must not cost more
    /// the more calls wait, so only what was decided since is looked at.
    pub(crate) fn update_pending(&self, known: &mut PendingCalls) {
        let batch = self.entries.first().map(|entry| &*entry.call.call_id);
        if known.batch.as_deref() != batch {
            known.batch = batch.map(str::to_owned);
            known.decided = self.decided.0.len();
            let pending = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_pending());
            known.calls = pending.map(|(place, entry)| (place, entry.call.clone())).collect();
            return;
        }
        for place in self.decided.0.get(known.decided..).unwrap_or_default() {
            known.calls.remove(place);
        }
        known.decided = self.decided.0.len();
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

/// The calls of a batch that are waiting for a decision, as they were last looked at.
#[derive(Clone, Debug, Default)]
pub struct PendingCalls {
    /// The id of the batch's first call, which is unique in the history.
    batch: Option<String>,
    /// The calls by their place in the batch.
    calls: Table<usize, ToolCallBlock>,
    /// How many decisions have been looked at.
    decided: usize,
}

impl PendingCalls {
    /// Returns the calls in the order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.calls.iter().map(|(_, call)| call)
    }
}

impl ApprovalEntry {
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, ApprovalState::Pending)
    }

    fn would_resolve(&self, decision: &ToolDecision) -> Result<Resolution, ApprovalError> {
        match &self.state {
            ApprovalState::Pending => Ok(Resolution::Applied),
            // Compared by JSON text, because comparing decisions block by block would need more code than
            // the writer.
            ApprovalState::Ready { decision: first, .. } if first.to_json() == decision.to_json() => {
                Ok(Resolution::Repeated)
            }
            _ => Err(ApprovalError::AlreadyResolved(self.call.call_id.clone())),
        }
    }

    fn resolve(&mut self, decision: ToolDecision, by: DecisionSource) -> Result<Resolution, ApprovalError> {
        let resolution = self.would_resolve(&decision)?;
        if resolution == Resolution::Applied {
            self.state = ApprovalState::Ready { decision, by };
        }
        Ok(resolution)
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

fn initial_state(action: ToolApprovalAction) -> ApprovalState {
    let decision = match action {
        ToolApprovalAction::Ask => return ApprovalState::Pending,
        ToolApprovalAction::Approve => ToolDecision::Accept,
        ToolApprovalAction::Deny => ToolDecision::Reject { reason: None },
    };
    ApprovalState::Ready { decision, by: DecisionSource::Rule }
}

impl ToJson for ToolDecision {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            ToolDecision::Accept => drop(object.field("action", "approve")),
            ToolDecision::AcceptWith(arguments) => {
                object.field("action", "approve").field("arguments", arguments);
            }
            ToolDecision::Reject { reason } => {
                object.field("action", "reject").optional("reason", reason);
            }
            ToolDecision::Result { content, details, is_error } => {
                object.field("action", "result");
                let mut output = ObjectWriter::new(object.key("content"));
                output.field("content", content).optional("details", details);
                output.end();
                object.field("isError", is_error);
            }
        }
        object.end();
    }
}

impl FromJson for ToolDecision {
    fn from_json(value: &Value) -> Result<Self, String> {
        let action = value.as_str().or_else(|| value.text_at("action"));
        match action {
            Some("approve") => match value.get("arguments") {
                Some(other) if other.as_object().is_none() && !other.is_null() => {
                    Err(["the `arguments` of a decision must be an object, got ", other.kind()].concat())
                }
                _ => read_decision(value),
            },
            _ => read_decision(value),
        }
    }
}

/// Reads a decision without checking its arguments. They are checked together with the call.
pub(crate) fn read_decision(value: &Value) -> Result<ToolDecision, String> {
    let action = value.as_str().or_else(|| value.text_at("action"));
    match action {
        Some("approve") => match value.get("arguments") {
            None | Some(Value::Null) => Ok(ToolDecision::Accept),
            Some(arguments) => Ok(ToolDecision::AcceptWith(arguments.to_raw())),
        },
        Some("reject") => {
            let reason = value.owned_at("reason");
            Ok(ToolDecision::Reject { reason })
        }
        Some("result") => result_decision(value),
        other => {
            let got = other.unwrap_or(value.kind());
            Err(["a decision must be `approve`, `reject` or { action: \"result\", content }, got ", got]
                .concat())
        }
    }
}

fn result_decision(value: &Value) -> Result<ToolDecision, String> {
    let flag = |value: &Value| value.flag_at("isError");
    let output = value.get("content").unwrap_or(&Value::Null);
    let blocks = output.get("content").filter(|content| content.as_array().is_some());
    let content = match (output, blocks) {
        (_, Some(blocks)) => Vec::<ContentBlock>::from_json(blocks)?,
        (Value::Null, None) => Vec::new(),
        (Value::String(text), None) => vec![ContentBlock::text(text.as_str())],
        (json, None) => vec![ContentBlock::text(json.to_json())],
    };
    let shown = |block: &ContentBlock| matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_));
    if !content.iter().all(shown) {
        return Err("the `content` of a result takes text and image blocks only".to_owned());
    }
    let is_error = flag(value).or_else(|| blocks.and_then(|_| flag(output))).unwrap_or(false);
    let details = blocks.and_then(|_| output.get("details")).map(ToJson::to_raw);
    Ok(ToolDecision::Result { content, details, is_error })
}

impl ToJson for ApprovalEntry {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("call", &self.call);
        match &self.state {
            ApprovalState::Pending => drop(object.field("state", "pending")),
            ApprovalState::Ready { decision, by } => {
                object.field("state", "ready").field("decision", decision).field("by", by.as_str());
            }
            ApprovalState::Dispatched => drop(object.field("state", "dispatched")),
        }
        object.end();
    }
}

impl FromJson for ApprovalEntry {
    fn from_json(value: &Value) -> Result<Self, String> {
        let word = |key: &str| value.text_at(key);
        let state = match word("state") {
            Some("pending") => ApprovalState::Pending,
            Some("dispatched") => ApprovalState::Dispatched,
            Some("ready") => ApprovalState::Ready {
                decision: read_decision(value.get("decision").unwrap_or(&Value::Null))?,
                by: word("by").and_then(DecisionSource::from_word).unwrap_or(DecisionSource::Command),
            },
            _ => return Err("the `state` of a call must be `pending`, `ready` or `dispatched`".to_owned()),
        };
        let call = ToolCallBlock::from_json(value.get("call").unwrap_or(&Value::Null))?;
        Ok(ApprovalEntry { call, state })
    }
}

impl ToJson for ApprovalStateMachine {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("entries", &self.entries);
        let mut parked = ObjectWriter::new(object.key("parked"));
        for (id, decision) in self.parked.iter() {
            parked.field(id, decision);
        }
        parked.end();
        object.end();
    }
}

impl FromJson for ApprovalStateMachine {
    #[inline(never)]
    fn from_json(value: &Value) -> Result<Self, String> {
        let entries = value.get("entries");
        let entries = entries.map_or(Ok(Vec::new()), |list| read_all(list, ApprovalEntry::from_json))?;
        let dispatched =
            entries.iter().take_while(|entry| matches!(entry.state, ApprovalState::Dispatched)).count();
        let mut parked = Table::new();
        if let Some(Value::Object(decisions)) = value.get("parked") {
            for (id, decision) in decisions.iter() {
                parked.insert(id.to_owned(), read_decision(decision)?);
            }
        }
        let mut table = ApprovalStateMachine { dispatched, parked, ..ApprovalStateMachine::default() };
        entries.into_iter().for_each(|entry| table.push(entry));
        Ok(table)
    }
}

serde_as_json!(ToolDecision, ApprovalStateMachine);

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str) -> ToolCallBlock {
        ToolCallBlock {
            call_id: id.into(),
            tool_name: name.into(),
            arguments: RawJson::empty_object(),
            metadata: None,
        }
    }

    fn asking(ids: &[&str]) -> ApprovalStateMachine {
        let mut table = ApprovalStateMachine::default();
        let calls = ids.iter().map(|id| call(id, "tool")).collect();
        assert_eq!(table.open(calls, |_| ToolApprovalAction::Ask), []);
        table
    }

    fn reject() -> ToolDecision {
        ToolDecision::Reject { reason: None }
    }

    fn drain(table: &mut ApprovalStateMachine, gate: ApprovalGate) -> Vec<String> {
        std::iter::from_fn(|| table.next_ready(gate)).map(|ready| ready.call.call_id).collect()
    }

    #[test]
    fn the_batch_gate_waits_for_all_and_the_prefix_gate_for_the_earlier_ones() {
        for (gate, first, then) in
            [(ApprovalGate::Batch, vec![], vec!["a", "b"]), (ApprovalGate::Prefix, vec!["a"], vec!["b"])]
        {
            let mut table = asking(&["a", "b"]);
            table.resolve("a", ToolDecision::Accept, DecisionSource::Callback).unwrap();
            assert_eq!(drain(&mut table, gate), first);
            table.resolve("b", reject(), DecisionSource::Command).unwrap();
            assert_eq!(drain(&mut table, gate), then);
            assert!(table.is_complete());
        }
    }

    #[test]
    fn several_decisions_are_taken_all_or_none() {
        let mut table = asking(&["a", "b"]);
        table.resolve("b", reject(), DecisionSource::Command).unwrap();
        let before = table.clone();
        let accept = |ids: [&str; 2]| ids.map(|id| (id.to_owned(), ToolDecision::Accept));
        assert!(table.resolve_all(accept(["a", "b"]), DecisionSource::Command).is_err());
        assert!(table.resolve_all(accept(["a", "x"]), DecisionSource::Command).is_err());
        assert!(table.decide_all(accept(["b", "x"]), DecisionSource::Command).is_err());
        assert_eq!(table, before);
    }

    #[test]
    fn decisions_are_told_in_the_order_of_the_calls_and_last_what_is_parked() {
        let ids: Vec<String> = (0..40).map(|n| format!("call_{n}")).collect();
        let mut table = asking(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        let accept = |id: &String| (id.clone(), ToolDecision::Accept);
        let later = ["a".to_owned(), "z".to_owned()];
        let decisions = ids.iter().rev().take(30).chain(&later).map(accept);
        let resolved = table.decide_all(decisions, DecisionSource::Command).unwrap();
        let known = ids.iter().skip(10).map(|id| (id.clone(), Resolution::Applied));
        let parked = later.iter().map(|id| (id.clone(), Resolution::Parked));
        assert_eq!(resolved, known.chain(parked).collect::<Vec<_>>());
        let pending = |table: &ApprovalStateMachine| table.pending().count();
        assert_eq!((pending(&table), table.pending), (10, 10));
        for id in &ids {
            let is_first = table.entry(id).is_some_and(ApprovalEntry::is_pending);
            let resolution = if is_first { Resolution::Applied } else { Resolution::Repeated };
            assert_eq!(table.resolve(id, ToolDecision::Accept, DecisionSource::Callback), Ok(resolution));
            assert_eq!(pending(&table), table.pending);
        }
        assert!(table.all_decided() && table.entry("a").is_none());
    }

    #[test]
    fn a_parked_decision_holds_when_its_batch_comes_unless_a_rule_says_otherwise() {
        let mut table = ApprovalStateMachine::default();
        for id in ["a", "b", "z"] {
            let parked = table.decide(id, ToolDecision::Accept, DecisionSource::Command);
            assert_eq!(parked, Ok(Resolution::Parked));
        }
        let deny_bad = |call: &ToolCallBlock| {
            if call.tool_name == "bad" { ToolApprovalAction::Deny } else { ToolApprovalAction::Ask }
        };
        let refused = table.open(vec![call("a", "good"), call("b", "bad")], deny_bad);
        assert_eq!(refused, [ApprovalError::AlreadyResolved("b".into())]);
        let ready: Vec<_> = std::iter::from_fn(|| table.next_ready(ApprovalGate::Batch)).collect();
        assert_eq!((ready[0].decision.clone(), ready[0].by), (ToolDecision::Accept, DecisionSource::Command));
        assert_eq!((ready[1].decision.clone(), ready[1].by), (reject(), DecisionSource::Rule));
    }

    #[test]
    fn what_was_not_handed_out_comes_back_when_the_batch_is_closed() {
        let mut table = asking(&["a", "b", "c"]);
        table.resolve("a", ToolDecision::Accept, DecisionSource::Command).unwrap();
        table.resolve("c", ToolDecision::Accept, DecisionSource::Command).unwrap();
        assert_eq!(drain(&mut table, ApprovalGate::Prefix), ["a"]);
        let left: Vec<_> = table.close().into_iter().map(|entry| entry.call.call_id).collect();
        assert_eq!(left, ["b", "c"]);
        assert!(table.is_complete() && !table.is_waiting_for_user());
    }

    #[test]
    fn the_table_survives_being_written_down() {
        let mut table = asking(&["a", "b", "c", "d"]);
        let with = ToolDecision::AcceptWith(RawJson::parse("{\"p\":1}").unwrap());
        table.resolve("a", with, DecisionSource::Callback).unwrap();
        let result = ToolDecision::Result {
            content: vec![ContentBlock::text("done")],
            details: Some(RawJson::parse("{\"n\":1}").unwrap()),
            is_error: true,
        };
        table.resolve("b", result, DecisionSource::Command).unwrap();
        let why = ToolDecision::Reject { reason: Some("no".into()) };
        table.resolve("c", why, DecisionSource::Command).unwrap();
        table.decide("later", ToolDecision::Accept, DecisionSource::Command).unwrap();
        table.next_ready(ApprovalGate::Prefix).unwrap();
        let written = Value::parse(&table.to_json()).unwrap();
        assert_eq!(ApprovalStateMachine::from_json(&written), Ok(table));
    }

    #[test]
    fn decisions_are_read_in_all_their_forms() {
        let read = |text: &str| ToolDecision::from_json(&Value::parse(text).unwrap());
        let text = |text: &str| vec![ContentBlock::text(text)];
        assert_eq!(read("\"approve\""), Ok(ToolDecision::Accept));
        assert_eq!(
            read(r#"{"action":"reject","reason":"no"}"#),
            Ok(ToolDecision::Reject { reason: Some("no".into()) })
        );
        assert_eq!(
            read(r#"{"action":"result","content":{"k":1},"isError":true}"#),
            Ok(ToolDecision::Result { content: text("{\"k\":1}"), details: None, is_error: true })
        );
        assert_eq!(
            read(r#"{"action":"result","content":"x"}"#),
            Ok(ToolDecision::Result { content: text("x"), details: None, is_error: false })
        );
        assert!(read(r#"{"action":"approve","arguments":[1]}"#).is_err());
        assert!(read("\"maybe\"").unwrap_err().contains("maybe"));
    }
}
