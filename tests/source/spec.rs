//! Reads the tables of `tests/data/spec`: whether every row claims something, and whether what it names is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The tables, in the order of the documents.
const TABLES: &[&str] =
    &["mission.md", "data-model.md", "loop-document.md", "loop-lessons.md", "stakpak-agent-core.md"];

/// What is wrong, and how many rows there are in each table.
pub(crate) struct Report {
    pub(crate) faults: Vec<String>,
    pub(crate) summary: Vec<(String, usize)>,
}

/// Reads all tables.
pub(crate) fn check() -> Report {
    let mut report = Report { faults: Vec::new(), summary: Vec::new() };
    for table in TABLES {
        let text = read(&format!("tests/data/spec/{table}"));
        report.faults.extend(faults_of(table, &text));
        report.summary.push(((*table).to_owned(), rows(&text).count()));
    }
    report
}

/// How many rows the docs say that there are.
pub(crate) fn told_in_the_docs() -> Vec<(String, usize)> {
    let page = read("docs/specification.md");
    let counts = page.lines().filter(|line| line.starts_with("| [")).filter_map(|line| {
        let table = TABLES.iter().find(|table| line.contains(&format!("/{table})")))?;
        let count = line.trim_end_matches(" |").rsplit("| ").next()?.parse().ok()?;
        Some(((*table).to_owned(), count))
    });
    counts.collect()
}

/// What is wrong with a table.
pub(crate) fn faults_of(table: &str, text: &str) -> Vec<String> {
    let (mut faults, mut files) = (Vec::new(), BTreeMap::new());
    for (number, row) in rows(text) {
        let mut fault = |what: &str| faults.push(format!("{table}:{number}: {what}"));
        let [line, claim, shown] = &row[..] else {
            fault("a row has three columns: line, claim, shown by");
            continue;
        };
        if !line.starts_with(|first: char| first.is_ascii_digit()) {
            fault("it names no line of the document");
        }
        if claim.is_empty() {
            fault("it claims nothing");
        }
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        let is_difference =
            |at: usize| shown.split('`').nth(2 * at).is_some_and(|before| before.ends_with("differs: "));
        let mut tests = 0;
        for (at, name) in names.iter().enumerate() {
            let found = if is_difference(at) {
                file(&mut files, "docs/specification.md").replace('`', "").contains(name)
            } else {
                tests += 1;
                match is_there(name, &mut files) {
                    Some(found) => found,
                    None => {
                        fault(&format!("a name that nobody understands: {name}"));
                        continue;
                    }
                }
            };
            if !found {
                fault(&format!("{name} is not there"));
            }
        }
        match (names.is_empty(), tests) {
            (true, _) => fault("it shows nothing"),
            (false, 0) => fault("no test shows it"),
            _ => {}
        }
    }
    faults
}

/// The rows of a table with their numbers, without its head.
fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines().enumerate().filter(|(_, line)| line.starts_with('|')).filter_map(|(number, line)| {
        let row: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let is_head = row.first().is_some_and(|cell| *cell == "line" || cell.starts_with("---"));
        (!is_head).then_some((number + 1, row))
    })
}

/// Whether a test is there; nothing if the name has no form that is known.
fn is_there(name: &str, files: &mut BTreeMap<String, String>) -> Option<bool> {
    if let Some(scenario) = name.strip_prefix("scenario:") {
        let places = ["oracle", "scenarios"].map(|set| format!("tests/data/{set}/golden/{scenario}.json"));
        return Some(places.iter().any(|place| root().join(place).exists()));
    }
    if let Some(id) = name.strip_prefix("package:") {
        let list = file(files, &format!("tests/data/{}/out-of-reach.txt", folder_of(id)));
        let is_listed = list.split_whitespace().any(|word| word == id);
        return Some(!is_listed && is_there(&format!("vector:{id}"), files) == Some(true));
    }
    if let Some(id) = name.strip_prefix("vector:") {
        let folder = folder_of(id);
        let folder = root().join("tests/data").join(folder);
        let sets = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut sets = sets.filter(|set| set.path().extension().is_some_and(|extension| extension == "json"));
        return Some(sets.any(|set| {
            let place = format!("{}/{}", folder.display(), set.file_name().display());
            let set = file(files, &place);
            ["", " "].iter().any(|blank| set.contains(&format!("\"id\":{blank}\"{id}\"")))
        }));
    }
    if let Some(command) = name.strip_prefix("xtask:") {
        return Some(file(files, "xtask/src/main.rs").contains(&format!("name: \"{command}\"")));
    }
    if let Some((place, function)) = name.split_once("::") {
        let source = file(files, place);
        return Some(source.split("#[test]").skip(1).any(|test| {
            // Further attributes may stand between.
            let head = test.split('{').next().unwrap_or_default();
            head.contains(&format!("fn {function}()"))
        }));
    }
    if let Some((place, title)) = name.split_once(": ") {
        let source = file(files, place);
        let calls = ["test", "check", "host"].iter();
        let mut calls = calls.flat_map(|call| ["\"", "`"].map(|quote| format!("{call}({quote}{title}")));
        return Some(calls.any(|call| source.contains(&call)));
    }
    None
}

/// The folder of a vector.
fn folder_of(id: &str) -> &'static str {
    if id.starts_with("own-") { "runs" } else { "vectors" }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(place: &str) -> String {
    fs::read_to_string(root().join(place)).unwrap_or_default()
}

/// A file, read once.
fn file<'f>(files: &'f mut BTreeMap<String, String>, place: &str) -> &'f str {
    files.entry(place.to_owned()).or_insert_with(|| read(place))
}
