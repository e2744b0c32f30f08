//! What is left out of a tape before it is written.

use std::rc::Rc;

use crate::data::json::{Map, ToJson, Value};

use super::pieces::in_full;

/// Sees a text and the name of the member that holds it, and returns what is written.
pub type Redact = dyn Fn(&str, &str) -> String;

/// Members that say what something is. Without them nobody could read the tape.
const STRUCTURE: [&str; 17] = [
    "in",
    "ask",
    "kind",
    "type",
    "role",
    "as",
    "at",
    "code",
    "stopReason",
    "mode",
    "callId",
    "toolName",
    "runId",
    "sessionId",
    "engine",
    "cause",
    "action",
];

/// `left out`, in base64.
const LEFT_OUT: &str = "bGVmdCBvdXQ=";

pub(super) struct Redactor {
    pub(super) max_bytes: Option<usize>,
    pub(super) redact: Option<Rc<Redact>>,
}

impl Redactor {
    /// Whether something may be left out of a line of this length.
    pub(super) fn looks_at(&self, length: usize) -> bool {
        self.redact.is_some() || self.max_bytes.is_some_and(|limit| length > limit)
    }

    /// Returns a line without what is left out.
    pub(super) fn line(&self, line: String) -> String {
        let Ok(mut value) = Value::parse_container(&line) else { return line };
        self.walk("", &mut value);
        value.to_json()
    }

    /// Whether texts are looked at.
    pub(super) fn sees_texts(&self) -> bool {
        self.redact.is_some()
    }

    /// Like [`Redactor::line`], for a line of pieces: the texts of one block are seen as one, and come in as many pieces as
    /// before.
    pub(super) fn pieces(&self, line: &str) -> String {
        let Ok(mut value) = Value::parse_container(line) else { return line.to_owned() };
        if let Some(Value::Array(pieces)) = value.get_mut("pieces") {
            in_full(pieces);
            self.join_deltas(pieces);
        }
        self.walk("", &mut value);
        value.to_json()
    }

    fn walk(&self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) if !STRUCTURE.contains(&key) => {
                if let Some(redact) = &self.redact {
                    *text = redact(key, text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(key, item)),
            Value::Object(map) => {
                self.leave_out(map);
                let members = std::mem::take(map).into_iter();
                *map = members
                    .map(|(key, mut value)| {
                        self.walk(&key, &mut value);
                        (key, value)
                    })
                    .collect();
            }
            _ => {}
        }
    }

    /// Leaves out the content of an image or a file that is too large.
    fn leave_out(&self, map: &mut Map) {
        let Some(limit) = self.max_bytes else { return };
        let is_file = matches!(map.get("type").and_then(Value::as_str), Some("image" | "file"));
        let length = map.get("data").and_then(Value::as_str).map_or(0, str::len);
        if is_file && length > limit {
            map.insert("data", LEFT_OUT.into());
            map.insert("leftOut", u64::try_from(length).unwrap_or(u64::MAX).into());
        }
    }

    fn join_deltas(&self, pieces: &mut [Value]) {
        let Some(redact) = &self.redact else { return };
        let mut from = 0;
        while from < pieces.len() {
            let block = block_of(pieces.get(from));
            let same = pieces
                .iter()
                .skip(from)
                .take_while(|piece| block.is_some() && block_of(Some(piece)) == block);
            let count = same.count().max(1);
            if block.is_some() {
                let texts =
                    pieces.iter().skip(from).take(count).map(|piece| delta_of(piece).unwrap_or_default());
                let parts = spread(&redact("delta", &texts.collect::<String>()), count);
                for (piece, part) in pieces.iter_mut().skip(from).zip(parts) {
                    set_delta(piece, part);
                }
            }
            from += count;
        }
    }
}

/// The kind and the index of the block that a piece adds to.
fn block_of(piece: Option<&Value>) -> Option<(String, u64)> {
    let event = piece?.as_array()?.get(2)?;
    event.get("delta")?;
    Some((event.owned_at("type")?, event.number_at("contentIndex")?))
}

fn delta_of(piece: &Value) -> Option<&str> {
    piece.as_array()?.get(2)?.text_at("delta")
}

fn set_delta(piece: &mut Value, delta: String) {
    let Value::Array(parts) = piece else { return };
    if let Some(slot) = parts.get_mut(2).and_then(|event| event.get_mut("delta")) {
        *slot = delta.into();
    }
}

/// Cuts a text into so many parts, none of them empty: an empty piece would be no event.
fn spread(whole: &str, count: usize) -> Vec<String> {
    let characters = whole.chars().count();
    let each = (characters / count.max(1)).max(1);
    let mut rest = whole.chars();
    let mut parts: Vec<String> = (1..count).map(|_| rest.by_ref().take(each).collect()).collect();
    parts.push(rest.collect());
    for part in &mut parts {
        if part.is_empty() {
            part.push_str("…");
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_two_pieces_is_seen_as_one() {
        let hide: Rc<Redact> = Rc::new(|_, text| text.replace("secret", "*"));
        let redactor = Redactor { max_bytes: None, redact: Some(hide) };
        let piece = |delta: &str| {
            [r#"[0,1,{"type":"text_delta","contentIndex":0,"delta":""#, delta, r#""}]"#].concat()
        };
        let line = [r#"{"in":"pieces","pieces":["#, &piece("my sec"), ",", &piece("ret"), "]}"].concat();
        let seen = redactor.pieces(&line);
        assert!(!seen.contains("sec") && seen.contains("my") && seen.contains('*'), "{seen}");
        assert_eq!(Value::parse(&seen).unwrap().list_at("pieces").len(), 2);
    }

    #[test]
    fn a_large_image_leaves_its_size() {
        let redactor = Redactor { max_bytes: Some(4), redact: None };
        let seen = redactor.line(r#"{"type":"image","mimeType":"image/png","data":"AAAAAAAA"}"#.to_owned());
        assert_eq!(seen, r#"{"type":"image","mimeType":"image/png","data":"bGVmdCBvdXQ=","leftOut":8}"#);
    }
}
