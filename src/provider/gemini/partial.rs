//! Arguments that come in pieces, each with the path where it belongs: `$.a.b[0]`.

use crate::json::{Map, ToJson, Value};

/// What came of them so far.
#[derive(Default)]
pub(super) struct PartialArguments {
    whole: Value,
    /// The text that grows, and its path: put in its place when another follows.
    text: Option<(String, String)>,
}

enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

/// Items that a list may have by its paths alone.
const MAX_INDEX: usize = 100_000;

impl PartialArguments {
    /// Arguments that are whole.
    pub(super) fn set(&mut self, whole: Value) {
        self.whole = whole;
        self.text = None;
    }

    /// Takes one entry of `partialArgs`. Gives the number of bytes.
    pub(super) fn take(&mut self, entry: &Value) -> usize {
        let path = entry.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if let Some(piece) = entry.get("stringValue").and_then(Value::as_str) {
            match &mut self.text {
                Some((known, text)) if known == path => text.push_str(piece),
                _ => {
                    self.settle();
                    self.text = Some((path.to_owned(), piece.to_owned()));
                }
            }
            return piece.len();
        }
        self.settle();
        for key in ["numberValue", "boolValue", "structValue", "listValue"] {
            if let Some(value) = entry.get(key) {
                self.put(path, value.clone());
                return path.len();
            }
        }
        if entry.get("nullValue").is_some() {
            self.put(path, Value::Null);
        }
        path.len()
    }

    /// All of them, as JSON.
    pub(super) fn finish(mut self) -> String {
        self.settle();
        match self.whole {
            Value::Object(_) => self.whole.to_json(),
            _ => "{}".to_owned(),
        }
    }

    fn settle(&mut self) {
        if let Some((path, text)) = self.text.take() {
            self.put(&path, Value::String(text));
        }
    }

    fn put(&mut self, path: &str, leaf: Value) {
        let steps = steps(path);
        if !steps.is_empty() {
            self.whole = placed(std::mem::take(&mut self.whole), &steps, leaf);
        }
    }
}

/// `value` with `leaf` at the end of the steps.
fn placed(value: Value, steps: &[Step<'_>], leaf: Value) -> Value {
    let Some((first, rest)) = steps.split_first() else {
        return leaf;
    };
    match first {
        Step::Key(key) => {
            let mut map = if let Value::Object(map) = value { map } else { Map::new() };
            // In its place, if it has one.
            let before = map.get(key).cloned().unwrap_or_default();
            map.insert(*key, placed(before, rest, leaf));
            Value::Object(map)
        }
        Step::Index(index) => {
            let mut items = if let Value::Array(items) = value { items } else { Vec::new() };
            if *index < MAX_INDEX && items.len() <= *index {
                items.resize(index + 1, Value::Null);
            }
            if let Some(item) = items.get_mut(*index) {
                *item = placed(std::mem::take(item), rest, leaf);
            }
            Value::Array(items)
        }
    }
}

/// The steps of `$.a['b c'][0]`.
fn steps(path: &str) -> Vec<Step<'_>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracket(inner);
            steps.push(step);
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (key, after) = name.split_at_checked(end).unwrap_or((name, ""));
            if !key.is_empty() {
                steps.push(Step::Key(key));
            } else if after.len() >= rest.len() {
                break;
            }
            rest = after;
        }
    }
    steps
}

fn bracket(inner: &str) -> (Step<'_>, &str) {
    for quote in ['\'', '"'] {
        if let Some(name) = inner.strip_prefix(quote)
            && let Some((key, after)) = name.split_once(quote)
        {
            return (Step::Key(key), after.strip_prefix(']').unwrap_or(after));
        }
    }
    let (word, after) = inner.split_once(']').unwrap_or((inner, ""));
    (word.parse().map_or(Step::Key(word), Step::Index), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(entries: &[&str]) -> String {
        let mut partial = PartialArguments::default();
        for entry in entries {
            partial.take(&Value::parse(entry).unwrap());
        }
        partial.finish()
    }

    #[test]
    fn pieces_are_put_where_their_paths_say() {
        let entries = [
            r#"{"jsonPath":"$.city","stringValue":"San ","willContinue":true}"#,
            r#"{"jsonPath":"$.city","stringValue":"Francisco"}"#,
            r#"{"jsonPath":"$.days[1].n","numberValue":2.50}"#,
            r#"{"jsonPath":"$['a b'].c","boolValue":true}"#,
            r#"{"jsonPath":"$.nothing","nullValue":"NULL_VALUE"}"#,
        ];
        let wanted = r#"{"city":"San Francisco","days":[null,{"n":2.50}],"a b":{"c":true},"nothing":null}"#;
        assert_eq!(arguments(&entries), wanted);
    }

    #[test]
    fn odd_paths_do_no_harm() {
        for path in ["", "$", "$.", "$..", "$[", "$[99999999999]", "$['x", "..[.["] {
            arguments(&[&format!(r#"{{"jsonPath":"{path}","numberValue":1}}"#)]);
        }
        assert_eq!(arguments(&[]), "{}");
    }
}
