//! The vectors on the npm package: `tests/js/vectors.mjs` plays them in Node, by the package's public API, and writes what
//! came of each on a line.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use turnwheel::json::Value;

use super::{Played, Shows, text_of};

/// What came of the cases, by their files and their places in them.
pub(super) struct Answers(BTreeMap<(String, u64), Value>);

/// Plays all cases of a directory.
pub(super) fn play(dir: &Path) -> Result<Answers, String> {
    let mut node = Command::new("node");
    node.arg(crate::tests().join("js/vectors.mjs")).arg(dir).stderr(Stdio::inherit());
    let output = node.output().map_err(|error| format!("cannot start node: {error}"))?;
    if !output.status.success() {
        return Err(format!("tests/js/vectors.mjs ended with {}", output.status));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(line).collect::<Result<_, _>>().map(Answers)
}

fn line(text: &str) -> Result<((String, u64), Value), String> {
    let line = Value::parse(text).map_err(|error| format!("{error} in a line of the player: {text}"))?;
    let at = line.get("at").and_then(Value::as_u64).ok_or("no `at` in a line of the player")?;
    Ok(((text_of(&line, "file")?.to_owned(), at), line))
}

impl Answers {
    pub(super) fn at(&self, file: &Path, at: usize) -> Played {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(answer) = self.0.get(&(name, at as u64)) else {
            return Played::Failed("it was not played".to_owned());
        };
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        if let Some(reason) = text("unreachable") {
            return Played::Unreachable(reason);
        }
        let hidden = answer.get("hidden").and_then(Value::as_array).unwrap_or_default();
        let shows = Shows {
            hidden: hidden.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            as_sent: answer.get("asSent").and_then(Value::as_bool) == Some(true),
        };
        match answer.get("actual") {
            Some(actual) => Played::Output { actual: actual.clone(), shows },
            None => Played::Failed(text("error").unwrap_or_default()),
        }
    }
}
