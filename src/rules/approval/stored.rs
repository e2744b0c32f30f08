//! The table in a checkpoint.

use crate::data::json::{FromJson, ObjectWriter, ToJson, Value, serde_as_json};
use crate::data::list::read_all;
use crate::data::table::Table;
use crate::words::event::DecisionSource;
use crate::words::message::ToolCallBlock;

use super::decision::{ToolDecision, read_decision};
use super::entry::{ApprovalEntry, ApprovalState};
use super::table::ApprovalStateMachine;

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
        self.write(self.parked(), out);
    }
}

impl ApprovalStateMachine {
    /// Writes the table without the parked decisions: they are about this life of a run, and its reader would not believe
    /// them.
    pub(crate) fn write_entries(&self, out: &mut String) {
        self.write(&Table::new(), out);
    }

    fn write(&self, parked: &Table<String, ToolDecision>, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("entries", self.entries());
        let mut list = ObjectWriter::new(object.key("parked"));
        for (id, decision) in parked.iter() {
            list.field(id, decision);
        }
        list.end();
        object.end();
    }
}

impl FromJson for ApprovalStateMachine {
    fn from_json(value: &Value) -> Result<Self, String> {
        let entries = value.get("entries");
        let entries = entries.map_or(Ok(Vec::new()), |list| read_all(list, ApprovalEntry::from_json))?;
        let mut parked = Table::new();
        if let Some(Value::Object(decisions)) = value.get("parked") {
            for (id, decision) in decisions.iter() {
                parked.insert(id.to_owned(), read_decision(decision)?);
            }
        }
        Ok(ApprovalStateMachine::restored(entries, parked))
    }
}

serde_as_json!(ToolDecision, ApprovalStateMachine);
