//! `cargo xtask vectors DIR`: plays golden vectors on the rules of this crate, or on the npm package. The README beside
//! the vectors describes their format. A case is played by its contents, never by its name.

mod approval;
mod checkpoint;
mod context;
mod overflow;
mod package;
mod peer_message;
mod retry;
mod runs;
mod stream;

use std::collections::BTreeMap;
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
#[derive(Clone, Copy)]
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
    /// Cases whose subject cannot be reached with this engine.
    pub unreachable: usize,
}

/// What came of a case.
enum Played {
    /// Output in the shape of `expected`.
    Output {
        actual: Value,
        shows: Shows,
    },
    /// Its subject cannot be reached with this engine, for a reason.
    Unreachable(String),
    Failed(String),
}

/// How much of what is expected an engine shows.
#[derive(Default)]
struct Shows {
    /// The members that it does not show.
    hidden: Vec<String>,
    /// Whether it shows messages as a wire sends them: a text is a list of that text, and neighbours of one role are one.
    as_sent: bool,
}

impl Shows {
    /// Returns a value as far as it is shown.
    fn of(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let is_message = self.as_sent && fields.get("role").is_some();
                let kept = fields.iter().filter(|(key, _)| !self.hidden.iter().any(|name| name == key));
                let shown = kept.map(|(key, value)| match value {
                    Value::String(text) if is_message && key == "content" => (key.to_owned(), as_parts(text)),
                    value => (key.to_owned(), self.of(value)),
                });
                Value::Object(shown.collect())
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.of(item)).collect();
                Value::Array(if self.as_sent { joined(items) } else { items })
            }
            value => value.clone(),
        }
    }
}

/// Joins neighbours of one role, if the items are messages.
fn joined(items: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for mut item in items {
        let role = item.get("role").and_then(Value::as_str);
        let is_next = role.is_some() && role == joined.last().and_then(|last| last.get("role")?.as_str());
        match joined.last_mut().and_then(|last| last.get_mut("content")) {
            Some(Value::Array(parts)) if is_next => {
                if let Value::Array(more) = item.take("content") {
                    parts.extend(more);
                }
            }
            _ => joined.push(item),
        }
    }
    joined
}

fn as_parts(text: &str) -> Value {
    Value::Array(vec![object([("type", "text".into()), ("text", text.into())])])
}

/// Plays the case at a place of a file.
type Play<'a> = dyn Fn(&Player, &Path, usize, &Value) -> Played + 'a;

/// Plays all sets in a directory on the rules of the crate: prints a line per failing case, and the totals of each set.
/// Returns the overall totals.
///
/// # Errors
/// If the directory or a file in it cannot be read.
pub fn run(dir: &Path) -> Result<Report, String> {
    let played = run_with(dir, &|player, _, _, input| match (player.play)(input) {
        Ok(actual) => Played::Output { actual, shows: Shows::default() },
        Err(error) => Played::Failed(error),
    });
    played.map(|(report, _)| report)
}

/// The cases of a directory that the package cannot play, by the reason: a line for each set and reason.
pub const OUT_OF_REACH: &str = "out-of-reach.txt";

/// Plays all sets in a directory on the npm package in pkg/, in Node. What came of a case is judged as by [`run`]. The cases
/// whose subject cannot be reached from JavaScript are printed by name, with the reason; if the directory has a list of them,
/// it must be that list.
///
/// # Errors
/// As for [`run`], if Node cannot be started, and if the list is another.
pub fn run_package(dir: &Path) -> Result<Report, String> {
    let answers = package::play(dir)?;
    let (report, unreachable) = run_with(dir, &move |_, file, at, _| answers.at(file, at))?;
    match std::fs::read_to_string(dir.join(OUT_OF_REACH)) {
        Ok(list) if list.lines().ne(unreachable.iter().map(String::as_str)) => {
            Err(format!("{} is not the list of what was out of reach", dir.join(OUT_OF_REACH).display()))
        }
        _ => Ok(report),
    }
}

fn run_with(dir: &Path, play: &Play<'_>) -> Result<(Report, Vec<String>), String> {
    let mut files = json_files(dir)?;
    files.sort();
    if files.is_empty() {
        return Err(format!(
            "no vectors in {}: a set is a file NAME.json with `set` and `cases`",
            dir.display()
        ));
    }
    let (mut total, mut unreachable) = (Report::default(), Vec::new());
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
        let (report, lines) = play_set(player, cases, &|at, input| play(player, &file, at, input));
        lines.iter().for_each(|line| println!("out of reach: {line}"));
        unreachable.extend(lines);
        let without = match report.unreachable {
            0 => String::new(),
            number => format!(", {number} out of reach"),
        };
        println!("{set}: {} passed, {} failed{without}", report.passed, report.failed);
        total.passed += report.passed;
        total.failed += report.failed;
        total.unreachable += report.unreachable;
    }
    Ok((total, unreachable))
}

fn json_files(dir: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(|error| error.to_string()));
    let paths: Result<Vec<_>, _> = paths.collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    Ok(paths)
}

fn play_set(
    player: &Player,
    cases: &[Value],
    play: &dyn Fn(usize, &Value) -> Played,
) -> (Report, Vec<String>) {
    let mut report = Report::default();
    let mut unreachable: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        let case = match Case::read(case) {
            Ok(case) => case,
            Err(error) => {
                report.failed += 1;
                println!("FAILED case {} of {}: {error}", at + 1, player.set);
                continue;
            }
        };
        let (verdict, got) = match play(at, case.input) {
            Played::Output { actual, shows } => {
                let (expected, actual) = (shows.of(case.expected), shows.of(&actual));
                let wanted = case.wanted.map(|wanted| shows.of(wanted));
                let case = Case { expected: &expected, wanted: wanted.as_ref(), ..case };
                (judge(player, &case, &actual), actual.to_json())
            }
            Played::Unreachable(reason) => {
                report.unreachable += 1;
                unreachable.entry(reason).or_default().push(case.id);
                continue;
            }
            Played::Failed(error) => (Err("an answer".to_owned()), error),
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
    let lines =
        unreachable.into_iter().map(|(reason, ids)| format!("{}: {reason}: {}", player.set, ids.join(" ")));
    (report, lines.collect())
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
