//! Arguments that arrive in pieces, each with the path of its place: `$.a.b[0]`. They are written as JSON
//! while they arrive, because a model produces them in the order of the text.

use crate::data::json::{ToJson, Value, fill, write_str};
use crate::data::text::{Put, parse_u64, split_once, split_while};

/// What the rest needs to know of the arguments written so far.
#[derive(Default)]
pub(super) struct PartialArguments {
    /// The containers that are open, outermost first.
    open: Vec<OpenContainer>,
    /// The path of the string that is open.
    text: Option<String>,
    is_whole: bool,
}

struct OpenContainer {
    is_list: bool,
    /// Members or items begun.
    count: usize,
    /// The names of the members of an object.
    keys: Vec<String>,
    /// The path of the member or item that was begun last.
    last: Option<PathStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// How many items of a list its paths may skip.
const MAX_GAP: usize = 1_000;

/// How many members an object may have. Each is compared with those before it.
const MAX_KEYS: usize = 10_000;

/// The error of a piece that belongs before what is already written.
#[derive(Debug)]
pub(super) struct OutOfOrder;

type InOrder = Result<(), OutOfOrder>;

impl PartialArguments {
    /// Takes arguments that are whole.
    pub(super) fn set(&mut self, whole: &Value, out: &mut String) -> InOrder {
        if self.is_whole || !self.open.is_empty() {
            return Err(OutOfOrder);
        }
        self.is_whole = true;
        whole.write_json(out);
        Ok(())
    }

    /// Takes one entry of `partialArgs` and appends what it adds.
    pub(super) fn take(&mut self, entry: &Value, out: &mut String) -> InOrder {
        let path = entry.text_at("jsonPath").unwrap_or_default();
        let piece = entry.text_at("stringValue");
        if let Some(piece) = piece.filter(|_| self.text.as_deref() == Some(path)) {
            write_inner(piece, out);
            return Ok(());
        }
        let kinds = ["numberValue", "boolValue", "structValue", "listValue"];
        let value = kinds.iter().find_map(|kind| entry.get(kind));
        let is_null = entry.get("nullValue").is_some();
        let steps = steps(path);
        if steps.is_empty() || (piece.is_none() && value.is_none() && !is_null) {
            return Ok(());
        }
        self.close_text(out);
        self.go_to(steps, out)?;
        match (piece, value) {
            (Some(piece), _) => {
                out.put("\"");
                write_inner(piece, out);
                self.text = Some(path.to_owned());
            }
            (None, Some(value)) => value.write_json(out),
            (None, None) => out.put("null"),
        }
        Ok(())
    }

    /// Appends what is missing, because nothing more comes.
    pub(super) fn finish(mut self, out: &mut String) {
        self.close_text(out);
        if self.open.is_empty() && !self.is_whole {
            out.put("{}");
        }
        self.close(0, out);
    }

    fn close_text(&mut self, out: &mut String) {
        if self.text.take().is_some() {
            out.put("\"");
        }
    }

    /// Closes containers until this many are left.
    fn close(&mut self, left: usize, out: &mut String) {
        while self.open.len() > left
            && let Some(level) = self.open.pop()
        {
            out.put(if level.is_list { "]" } else { "}" });
        }
    }

    /// Closes the containers that are not on a path, and opens those that are.
    fn go_to(&mut self, steps: Vec<PathStep>, out: &mut String) -> InOrder {
        if self.is_whole {
            return Err(OutOfOrder);
        }
        if self.open.is_empty() {
            self.enter(steps.first(), out);
        }
        let inner = steps.len().min(self.open.len()).saturating_sub(1);
        let leads = |(level, step): &(&OpenContainer, &PathStep)| level.last.as_ref() == Some(*step);
        let common = self.open.iter().zip(&steps).take(inner).take_while(leads).count();
        self.close(common + 1, out);
        for (depth, step) in steps.iter().enumerate().skip(common) {
            if depth > common {
                self.enter(Some(step), out);
            }
            self.open.last_mut().ok_or(OutOfOrder)?.begin(step, out)?;
        }
        Ok(())
    }

    /// Opens a container for a step.
    fn enter(&mut self, step: Option<&PathStep>, out: &mut String) {
        let is_list = matches!(step, Some(PathStep::Index(_))) && !self.open.is_empty();
        out.put(if is_list { "[" } else { "{" });
        self.open.push(OpenContainer { is_list, count: 0, keys: Vec::new(), last: None });
    }
}

impl OpenContainer {
    /// Begins a member or item.
    fn begin(&mut self, step: &PathStep, out: &mut String) -> InOrder {
        match step {
            PathStep::Key(key) if !self.is_list && self.count < MAX_KEYS && !self.keys.contains(key) => {
                self.keys.push(key.clone());
                if self.count > 0 {
                    out.put(",");
                }
                write_str(key, out);
                out.put(":");
            }
            PathStep::Index(index) if self.is_list && (self.count..=self.count + MAX_GAP).contains(index) => {
                for at in self.count..=*index {
                    out.put(if at > 0 { "," } else { "" });
                    out.put(if at < *index { "null" } else { "" });
                }
                self.count = *index;
            }
            _ => return Err(OutOfOrder),
        }
        self.count += 1;
        self.last = Some(step.clone());
        Ok(())
    }
}

/// Writes a string without its quotes.
fn write_inner(text: &str, out: &mut String) {
    fill("$", &[text], out);
}

/// Returns the steps of a path such as `$.a['b c'][0]`.
fn steps(path: &str) -> Vec<PathStep> {
    let mut rest = path.strip_prefix("$").unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix("[") {
            let (step, after) = bracket(inner);
            steps.push(step);
            rest = after;
        } else {
            let name = rest.strip_prefix(".").unwrap_or(rest);
            let (key, after) = split_while(name, |byte| !b".[".contains(&byte));
            if !key.is_empty() {
                steps.push(PathStep::Key(key.to_owned()));
            } else if after.len() >= rest.len() {
                break;
            }
            rest = after;
        }
    }
    steps
}

fn bracket(inner: &str) -> (PathStep, &str) {
    for quote in ['\'', '"'] {
        if let Some(name) = inner.strip_prefix(quote)
            && let Some((key, after)) = name.split_once(quote)
        {
            return (PathStep::Key(key.to_owned()), after.strip_prefix("]").unwrap_or(after));
        }
    }
    let (word, after) = split_once(inner, "]").unwrap_or((inner, ""));
    let index = parse_u64(word).and_then(|index| usize::try_from(index).ok());
    (index.map_or_else(|| PathStep::Key(word.to_owned()), PathStep::Index), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each entry adds, and the end.
    fn pieces(entries: &[&str]) -> Result<Vec<String>, OutOfOrder> {
        let mut partial = PartialArguments::default();
        let mut pieces = Vec::new();
        for entry in entries {
            let mut piece = String::new();
            partial.take(&Value::parse(entry).unwrap(), &mut piece)?;
            pieces.push(piece);
        }
        let mut end = String::new();
        partial.finish(&mut end);
        pieces.push(end);
        Ok(pieces)
    }

    #[test]
    fn pieces_are_written_while_they_come() {
        let entries = [
            r#"{"jsonPath":"$.city","stringValue":"San \"","willContinue":true}"#,
            r#"{"jsonPath":"$.city","stringValue":"Francisco\n"}"#,
            r#"{"jsonPath":"$.days[1].n","numberValue":2.50}"#,
            r#"{"jsonPath":"$.days[1].of.week","boolValue":false}"#,
            r#"{"jsonPath":"$.days[2]","stringValue":""}"#,
            r#"{"jsonPath":"$['a b'].c","boolValue":true}"#,
            r#"{"jsonPath":"$.nothing","nullValue":"NULL_VALUE"}"#,
        ];
        let wanted = [
            r#"{"city":"San \""#,
            r"Francisco\n",
            r#"","days":[null,{"n":2.50"#,
            r#","of":{"week":false"#,
            r#"}},""#,
            r#""],"a b":{"c":true"#,
            r#"},"nothing":null"#,
            "}",
        ];
        let pieces = pieces(&entries).unwrap();
        assert_eq!(pieces, wanted);
        Value::parse(&pieces.concat()).unwrap();
    }

    #[test]
    fn what_would_change_what_was_told_is_refused() {
        let at = |path: &str| format!(r#"{{"jsonPath":"{path}","numberValue":1}}"#);
        for paths in
            [["$.a", "$.a"], ["$.a", "$.a.b"], ["$.l[1]", "$.l[0]"], ["$.l[0]", "$.l.k"], ["$.o.k", "$.o[0]"]]
        {
            assert!(pieces(&[&at(paths[0]), &at(paths[1])]).is_err(), "{paths:?}");
        }
        assert!(pieces(&[&at("$.a.b"), &at("$.c"), &at("$.a.d")]).is_err());
        assert!(pieces(&[&at("$.l[99999999]")]).is_err());
    }

    #[test]
    fn odd_paths_do_no_harm() {
        for path in ["", "$", "$.", "$..", "$[", "$[0]", "$[99999999999]", "$['x", "..[.["] {
            if let Ok(pieces) = pieces(&[&format!(r#"{{"jsonPath":"{path}","numberValue":1}}"#)]) {
                Value::parse(&pieces.concat()).unwrap();
            }
        }
        assert_eq!(pieces(&[]).unwrap(), ["{}"]);
    }
}
