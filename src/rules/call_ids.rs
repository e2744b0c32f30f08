//! Ids of tool calls, made unique in the whole history, whatever the model sends.

use crate::data::id_map::IdMap;
use crate::data::json::{Map, RawJson, ToJson, Value};
use crate::data::text;
use crate::words::message::{AgentMessage, ToolCallBlock};

/// The ids in use. A second `t1` becomes `t1#2`; an empty id becomes `call_1`.
#[derive(Clone, Debug, Default)]
pub struct CallIds {
    /// Each id, with the number to try next if it occurs again; 0 for an id that was released.
    taken: IdMap<String, u64>,
}

impl CallIds {
    /// Collects the ids of all calls in a history.
    pub fn of(messages: &[AgentMessage]) -> Self {
        let mut ids = CallIds::default();
        ids.learn(messages);
        ids
    }

    /// Adds the ids of all calls in these messages.
    pub fn learn(&mut self, messages: &[AgentMessage]) {
        for message in messages {
            if let AgentMessage::Assistant(message) = message {
                for call in message.tool_calls() {
                    if !self.is_taken(&call.call_id) {
                        self.taken.insert(call.call_id.clone(), 2);
                    }
                }
            }
        }
    }

    /// Releases an id that was claimed for a call that came to nothing.
    pub fn release(&mut self, id: &str) {
        self.taken.insert(id.to_owned(), 0);
    }

    pub(crate) fn is_taken(&self, id: &str) -> bool {
        self.taken.get(id).is_some_and(|next| *next > 0)
    }

    /// Claims an id: the wanted one if it is free, or else one derived from it.
    pub fn claim(&mut self, wanted: &str) -> String {
        let (stem, separator) = if wanted.is_empty() { ("call", "_") } else { (wanted, "#") };
        let first = if wanted.is_empty() { 1 } else { 2 };
        if !wanted.is_empty() && !self.is_taken(wanted) {
            self.taken.insert(wanted.to_owned(), first);
            return wanted.to_owned();
        }
        let mut number = self.taken.get(wanted).copied().unwrap_or(first);
        let id = loop {
            let id = [stem, separator, &text::number(number)].concat();
            number += 1;
            if !self.is_taken(&id) {
                break id;
            }
        };
        self.taken.insert(wanted.to_owned(), number);
        self.taken.insert(id.clone(), 2);
        id
    }

    /// Gives a call a unique id. If that differs from the model's own id, the latter is kept in the
    /// metadata under [`ORIGINAL_ID`].
    pub fn make_distinct(&mut self, call: &mut ToolCallBlock) {
        if let Some(original) = self.claim_for(&mut call.call_id) {
            keep_original(call, original);
        }
    }

    /// Claims an id. If the wanted one is taken, replaces it with a free one and returns the wanted one.
    pub(crate) fn claim_for(&mut self, id: &mut String) -> Option<String> {
        if !id.is_empty() && !self.is_taken(id) {
            self.taken.insert(id.clone(), 2);
            return None;
        }
        let claimed = self.claim(id);
        Some(std::mem::replace(id, claimed))
    }
}

/// The metadata key of the id that the model gave to a call.
pub const ORIGINAL_ID: &str = "originalCallId";

/// Metadata that is not an object belongs to someone else and is left alone.
pub(crate) fn keep_original(call: &mut ToolCallBlock, original: String) {
    let metadata = call.metadata.as_ref().map_or_else(|| Value::Object(Map::new()), RawJson::to_value);
    if let Value::Object(mut map) = metadata {
        map.insert(ORIGINAL_ID, Value::String(original));
        call.metadata = Some(Value::Object(map).to_raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::message::{AssistantMessage, ContentBlock, MessageStopReason, Usage};

    #[test]
    fn no_two_calls_share_an_id() {
        let mut ids = CallIds::default();
        let wanted = ["t1", "t1", "t1#2", "t1", "", "", "call_1", "call_3", ""];
        let got = wanted.map(|id| ids.claim(id));
        assert_eq!(got, ["t1", "t1#2", "t1#2#2", "t1#3", "call_1", "call_2", "call_1#2", "call_3", "call_4"]);
    }

    #[test]
    fn an_id_that_was_given_back_is_free() {
        let mut ids = CallIds::default();
        for id in ["t1", "call_1"] {
            assert_eq!(ids.claim(id), id);
            ids.release(id);
        }
        let (mut first, mut again) = ("t1".to_owned(), "t1".to_owned());
        assert_eq!((ids.claim_for(&mut first), ids.claim_for(&mut again)), (None, Some("t1".into())));
        assert_eq!([&*first, &again, &ids.claim("")], ["t1", "t1#2", "call_1"]);
    }

    #[test]
    fn the_ids_of_the_history_are_taken() {
        let call = ContentBlock::ToolCall(ToolCallBlock {
            call_id: "t1".into(),
            tool_name: "view".into(),
            arguments: RawJson::empty_object(),
            metadata: None,
        });
        let message = AssistantMessage {
            content: vec![call],
            provider: String::new(),
            model: String::new(),
            usage: Usage::default(),
            stop_reason: MessageStopReason::ToolUse,
            error: None,
            timestamp: 0,
            id: None,
            foreign: None,
        };
        assert_eq!(CallIds::of(&[message.into()]).claim("t1"), "t1#2");
    }
}
