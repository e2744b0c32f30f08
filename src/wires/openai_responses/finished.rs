//! What is done when an item of the answer ends: its last event holds the whole of it, so that what its
//! pieces did not contain can be added.

use crate::data::json::{RawJson, ToJson, Value, fill};
use crate::data::text::Put;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::fields::tree;

use super::items::{OutputItemKind, OutputItems};
use super::signatures::{PART_SEPARATOR, signature_of_message, signature_of_reasoning};

impl OutputItems {
    /// Ends an item.
    pub(super) fn finish(&mut self, index: Option<u64>, written: &str, answering: &mut Answering) {
        let Some(value) = tree(written, answering) else {
            return;
        };
        let kind = self.kind_of(&value);
        let known = self.find_whole(index, kind, &value);
        // Its end came before.
        if known.and_then(|at| self.items.get(at)).is_some_and(|item| item.is_done) {
            return;
        }
        let Some(at) = known.or_else(|| self.add(index, &value, answering)) else {
            return;
        };
        if let Some(item) = self.items.get_mut(at) {
            item.is_done = true;
            self.open.retain(|open| *open != at);
            item.is_cut = value.text_at("status") == Some("incomplete");
        }
        match kind {
            OutputItemKind::Message => self.finish_message(at, &value, answering),
            OutputItemKind::Reasoning => self.finish_reasoning(at, value, answering),
            OutputItemKind::Call | OutputItemKind::CustomCall => self.finish_call(at, &value, answering),
            OutputItemKind::Other => answering.keep(written),
        }
    }

    fn finish_message(&mut self, at: usize, value: &Value, answering: &mut Answering) {
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        item.signature = signature_of_message(value);
        for part in value.list_at("content") {
            for annotation in part.list_at("annotations") {
                self.citations.take(&[annotation], answering);
            }
        }
        let rest = |field, emitted: &str| rest_of(&texts(value, "content", field).concat(), emitted);
        let rests = [
            (BlockKind::Text, rest("text", &item.emitted)),
            (BlockKind::Refusal, rest("refusal", &item.emitted_refusal)),
        ];
        for (kind, rest) in rests {
            if !rest.is_empty() {
                self.text(at, kind, rest.as_str().into(), answering);
            }
        }
        if let Some(item) = self.items.get(at)
            && !(item.emitted.is_empty() && item.emitted_refusal.is_empty())
            && (answering.is_open(BlockKind::Text) || answering.is_open(BlockKind::Refusal))
        {
            answering.set_signature(&item.signature);
        }
        answering.close();
    }

    fn finish_reasoning(&mut self, at: usize, value: Value, answering: &mut Answering) {
        let Some(item) = self.items.get(at) else {
            return;
        };
        let mut source = item.thinks_in;
        for list in ["summary", "content"] {
            if source.is_none() && !texts(&value, list, "text").is_empty() {
                source = Some(list);
            }
        }
        let source = source.unwrap_or("summary");
        let mut parts = texts(&value, source, "text");
        let lengths: Vec<u64> = parts.iter().filter_map(|part| u64::try_from(part.len()).ok()).collect();
        // Nothing was emitted for empty ones.
        parts.retain(|part| !part.is_empty());
        let whole = parts.join(PART_SEPARATOR);
        if item.emitted.is_empty() {
            answering.close();
        } else if !answering.is_open(BlockKind::Thinking)
            && (item.index.is_none() || value.get("encrypted_content").is_none_or(Value::is_null))
        {
            // Another item began since, and nothing in this one is worth a block after it.
            return;
        }
        let rest = rest_of(&whole, &item.emitted);
        if !rest.is_empty() {
            answering.text(BlockKind::Thinking, rest.as_str().into());
        }
        // The signature is worth a block even if there is no text.
        answering.open(BlockKind::Thinking);
        answering.set_signature(&signature_of_reasoning(value, source, &lengths));
        answering.close();
    }

    fn finish_call(&mut self, at: usize, value: &Value, answering: &mut Answering) {
        self.name(at, value.text_at("name").unwrap_or_default(), answering);
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        let field = if item.kind == OutputItemKind::Call { "arguments" } else { "input" };
        let whole = match value.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_json(),
            _ => String::new(),
        };
        let mut members = String::new();
        if let Some(id) = value.text_at("id") {
            fill(",\"item_id\":\"$\"", &[id], &mut members);
        }
        if item.kind == OutputItemKind::CustomCall {
            members.put(",\"custom\":true");
        }
        item.metadata = RawJson::object_of(&members);
        self.whole_arguments(at, &whole, answering);
        let Some(item) = self.items.get(at) else {
            return;
        };
        if let (OutputItemKind::CustomCall, Some(block)) = (item.kind, item.block) {
            let end = if !item.emitted.is_empty() { "\"}" } else { "{\"input\":\"\"}" };
            answering.arguments(block, end.into());
        }
    }
}

/// Returns what an item holds after what was emitted of it; nothing if it begins with something else.
fn rest_of(whole: &str, emitted: &str) -> String {
    whole.strip_prefix(emitted).unwrap_or_default().to_owned()
}

/// Returns the texts of the parts of an item, by the field that they stand in.
pub(super) fn texts<'v>(item: &'v Value, list: &str, field: &str) -> Vec<&'v str> {
    let parts = item.list_at(list);
    parts.iter().filter_map(|part| part.text_at(field)).collect()
}
