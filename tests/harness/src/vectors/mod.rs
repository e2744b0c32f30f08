//! `cargo xtask vectors DIR`: plays golden vectors on the rules of this crate. The README beside the
//! vectors describes their format. A case is played by its contents, never by its name.

mod approval;
mod checkpoint;
mod context;
mod overflow;
mod peer_message;
mod retry;
mod runs;
mod stream;

use std::path::Path;

use turnwheel::json::{ToJson, Value};

/// How the cases of one set are played.
struct Player {
    set: &'static str,
    /// Returns the output for an input, in the shape of `expected`.
    play: fn(&Value) -> Result<Value, String>,
    /// Whether an output meets the expectation. Most sets compare them; some know
    /// fields that do not count.
    meets: fn(expected: &Value, actual: &Value) -> bool,
    /// Whether an output meets the recommendation instead, if the case has one.
    meets_recommendation: fn(case: &Case<'_>, actual: &Value) -> bool,
}

const PLAYERS: [Player; 8] = [
    context::PLAYER,
    retry::PLAYER,
    overflow::PLAYER,
    approval::TABLE,
    approval::POLICY,
    checkpoint::PLAYER,
    stream::PLAYER,
    runs::PLAYER,
];

/// One case of a set.
struct Case<'a> {
    id: &'a str,
    title: &'a str,
    status: &'a str,
    is_host_specific: bool,
    recommended: Option<&'a str>,
    wanted: Option<&'a Value>,
    input: &'a Value,
    expected: &'a Value,
}

/// The results of a directory of vectors.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that did not.
    pub failed: usize,
}

/// Plays all sets in a directory: prints a line per failing case, and the totals of each set.
/// Returns the overall totals.
///
/// # Errors
/// If the directory or a file in it cannot be read.
pub fn run(dir: &Path) -> Result<Report, String> {
    let mut files = json_files(dir)?;
    files.sort();
    if files.is_empty() {
        return Err(format!(
            "no vectors in {}: a set is a file NAME.json with `set` and `cases`",
            dir.display()
        ));
    }
    let mut total = Report::default();
    for file in files {
        let shown = file.display();
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{shown}: {error}"))?;
        let vectors = Value::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
        let set =
            vectors.get("set").and_then(Value::as_str).ok_or_else(|| format!("{shown} names no `set`"))?;
        let cases = vectors.get("cases").and_then(Value::as_array);
        let cases = cases.ok_or_else(|| format!("{shown} has no `cases`"))?;
        let player = PLAYERS.iter().find(|player| player.set == set);
        let player = player.ok_or_else(|| format!("{shown}: nobody plays the set `{set}`"))?;
        let report = play_set(player, cases);
        println!("{set}: {} passed, {} failed", report.passed, report.failed);
        total.passed += report.passed;
        total.failed += report.failed;
    }
    Ok(total)
}

fn json_files(dir: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(|error| error.to_string()));
    let paths: Result<Vec<_>, _> = paths.collect();
    Ok(paths?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")).collect())
}

fn play_set(player: &Player, cases: &[Value]) -> Report {
    let mut report = Report::default();
    for (at, case) in cases.iter().enumerate() {
        let case = match Case::read(case) {
            Ok(case) => case,
            Err(error) => {
                report.failed += 1;
                println!("FAILED case {} of {}: {error}", at + 1, player.set);
                continue;
            }
        };
        let (verdict, got) = match (player.play)(case.input) {
            Ok(actual) => (judge(player, &case, &actual), actual.to_json()),
            Err(error) => (Err("an answer".to_owned()), error),
        };
        match verdict {
            Ok(()) => report.passed += 1,
            Err(wanted) => {
                report.failed += 1;
                println!("FAILED {} ({}, {})", case.id, case.status, case.title);
                println!("  wanted {wanted}");
                println!("  came   {got}");
            }
        }
    }
    report
}

/// Applies the rules of the README: `required` as expected; `pinned` as expected or as
/// recommended; `defect` as wanted.
fn judge(player: &Player, case: &Case<'_>, actual: &Value) -> Result<(), String> {
    let as_expected = case.status != "defect" && (player.meets)(case.expected, actual);
    let as_recommended = case.status != "required" && (player.meets_recommendation)(case, actual);
    if as_expected || as_recommended {
        return Ok(());
    }
    let mut wanted = match case.wanted {
        Some(wanted) if case.status == "defect" => wanted.to_json(),
        _ => case.expected.to_json(),
    };
    if let Some(recommended) = case.recommended {
        wanted = format!("{wanted} ({recommended})");
    }
    Err(wanted)
}

impl<'a> Case<'a> {
    fn read(case: &'a Value) -> Result<Self, String> {
        let text = |key: &str| case.get(key).and_then(Value::as_str);
        let id = text("id").unwrap_or("?");
        let member = |key: &str| case.get(key).ok_or_else(|| format!("`{id}` has no `{key}`"));
        let status = text("status").unwrap_or("required");
        if !["required", "pinned", "defect"].contains(&status) {
            return Err(format!("`{id}` has a status that nobody knows, `{status}`"));
        }
        Ok(Case {
            id,
            title: text("title").unwrap_or_default(),
            status,
            is_host_specific: text("note").is_some_and(|note| note.starts_with("host-specific")),
            recommended: text("recommended"),
            wanted: case.get("wanted"),
            input: member("input")?,
            expected: member("expected")?,
        })
    }
}

/// Compares two values, except for fields that hold other people's wording.
fn same(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let counts = |key: &str| key != "message_informative";
            expected
                .iter()
                .filter(|(key, _)| counts(key))
                .all(|(key, wanted)| actual.get(key).is_some_and(|got| same(wanted, got)))
                && actual.iter().filter(|(key, _)| counts(key)).all(|(key, _)| expected.get(key).is_some())
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(wanted, got)| same(wanted, got))
        }
        (Value::Number(expected), Value::Number(actual)) => {
            let number = |text: &str| text.parse::<f64>().ok();
            expected == actual || number(expected.as_str()) == number(actual.as_str())
        }
        _ => expected == actual,
    }
}

/// Whether everything in `wanted` is present, whatever else is.
fn includes(actual: &Value, wanted: &Value) -> bool {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => {
            wanted.iter().all(|(key, wanted)| actual.get(key).is_some_and(|got| includes(got, wanted)))
        }
        _ => same(wanted, actual),
    }
}

/// Whether `wanted` is an alternative value, and was returned.
fn gives_wanted(case: &Case<'_>, actual: &Value) -> bool {
    case.wanted.is_some_and(|wanted| includes(actual, wanted))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn text_of<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| format!("no text `{key}`"))
}

fn list_of<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    value.get(key).and_then(Value::as_array).ok_or_else(|| format!("no list `{key}`"))
}
