//! `cargo xtask test`: a table of parts, run one after the other, each counted, with
//! a time table at the end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::args::{Args, Misuse, unknown};
use crate::run::{command, command_line, root, target};
use crate::setup;

/// One part. It is listed only if the repository has its files, so a part never passes
/// because they are missing.
struct Part {
    name: &'static str,
    /// A path in the repository; `*` in its last segment matches anything. Empty: always present.
    files: &'static str,
    /// `xtask` is this program; the word `FILES` is replaced by the matches of `files`.
    command: &'static [&'static str],
    needs: Need,
    count: Count,
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Nothing,
    /// pkg/: the part `build` runs first.
    Package,
    /// pkg/ and Chromium, whose path is in `CHROMIUM`.
    Browser,
}

/// How a part reports what passed. An exit code other than 0 is a failure in any case.
#[derive(Clone, Copy, PartialEq)]
enum Count {
    /// It does not: the part passes or fails as a whole.
    Whole,
    /// cargo's `test result: ok. 3 passed; 0 failed; 1 ignored`, summed.
    Cargo,
    /// Node's test runner, `# pass 3`.
    Node,
    /// The same, but all tests may be skipped if what they need is not available here.
    Peer,
    /// The last line of the form `3 passed, 0 failed`; without one, the sum of the lines with a name in
    /// front, `retry: 3 passed, 0 failed`.
    Ours,
}

const CLIPPY: &str = "-Dwarnings";
const RUSTDOC: &str = "build.rustdocflags=[\"-Dwarnings\"]";
const TAP: &str = "--test-reporter=tap";
const WASM: &str = "wasm32-unknown-unknown";

/// In the order in which they run: quick parts that often fail come first. The native ones all
/// use `--workspace --all-features`: other choices would make cargo compile the dependencies
/// again with other features.
#[rustfmt::skip] // A row per part, read as a table.
const PARTS: &[Part] = &[
    Part { name: "fmt", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "fmt", "--all", "--check", "--", "--color=never"] },
    Part { name: "clippy", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "clippy", "--workspace", "--all-targets", "--all-features", "--", CLIPPY] },
    Part { name: "clippy-wasm", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "clippy", "--package", "turnwheel", "--package", "turnwheel-npm", "--lib", "--target", WASM, "--", CLIPPY] },
    Part { name: "rust", files: "", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--workspace", "--all-features", "--lib", "--bins", "--tests", "--examples",
            "--no-fail-fast"] },
    Part { name: "doctest", files: "", needs: Need::Nothing, count: Count::Cargo,
        command: &["cargo", "test", "--workspace", "--all-features", "--doc"] },
    Part { name: "doc", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["cargo", "doc", "--workspace", "--all-features", "--no-deps", "--config", RUSTDOC] },
    Part { name: "vectors", files: "tests/data/vectors", needs: Need::Nothing, count: Count::Ours,
        command: &["xtask", "vectors", "FILES"] },
    Part { name: "fixtures", files: "tests/data/fixtures", needs: Need::Nothing, count: Count::Ours,
        command: &["xtask", "fixtures", "FILES"] },
    Part { name: "build", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["xtask", "build"] },
    Part { name: "conformance", files: "tests/js/conformance.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "tests/data/oracle/scenarios", "target/xtask/traces", "--engine", "wasm",
            "--judge", "tests/data/oracle/golden"] },
    Part { name: "fixtures-wasm", files: "tests/js/fixtures.mjs", needs: Need::Package, count: Count::Ours,
        command: &["node", "FILES", "tests/data/fixtures"] },
    Part { name: "engines", files: "tests/js/conformance.mjs", needs: Need::Package, count: Count::Ours,
        command: &["xtask", "conformance", "--random", "3000", "target/xtask/random"] },
    Part { name: "node", files: "tests/js/*.test.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "aimock", files: "tests/js/aimock.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "workerd", files: "tests/js/workerd/*.test.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "browser", files: "tests/js/browser/*.test.mjs", needs: Need::Browser, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "chromium", files: "tests/js/browser/package.mjs", needs: Need::Browser, count: Count::Ours,
        command: &["node", "FILES"] },
    Part { name: "packaging", files: "tests/packaging/run.mjs", needs: Need::Browser, count: Count::Ours,
        command: &["node", "FILES"] },
    Part { name: "examples", files: "tests/examples/*.test.mjs", needs: Need::Browser, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "demo", files: "tests/demo/run.mjs", needs: Need::Browser, count: Count::Ours,
        command: &["node", "FILES"] },
];

/// The parts of `cargo xtask e2e`, which run on demand because they download a lot. A part says so if
/// something is not available.
#[rustfmt::skip]
const E2E: &[Part] = &[
    Part { name: "build", files: "", needs: Need::Nothing, count: Count::Whole,
        command: &["xtask", "build"] },
    Part { name: "browsers", files: "tests/e2e/browsers.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "hosts", files: "tests/packaging/e2e.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "llmock", files: "tests/e2e/llmock.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "wrangler", files: "tests/e2e/wrangler.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "lives", files: "tests/e2e/lives.mjs", needs: Need::Package, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "model", files: "tests/e2e/model.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "docs", files: "tests/e2e/docs.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "deno", files: "tests/e2e/deno.mjs", needs: Need::Package, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "wllama", files: "tests/e2e/wllama.mjs", needs: Need::Browser, count: Count::Peer,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "wasi", files: "tests/e2e/wasi.mjs", needs: Need::Nothing, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
    Part { name: "example-rust", files: "tests/e2e/rust.mjs", needs: Need::Nothing, count: Count::Node,
        command: &["node", "--test", TAP, "FILES"] },
];

/// Longer than any part takes on a slow machine, so that a hanging part does not block CI.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// How many lines of a failed part's output are shown; the file has all of them.
const SHOWN_LINES: usize = 200;

/// Runs `cargo xtask test [NAME...] [--skip NAME] [--list]`.
///
/// The last line on stdout is always `N passed, N failed` over all parts.
pub fn run(args: &[String]) -> Result<ExitCode> {
    run_table(PARTS, args)
}

/// Runs `cargo xtask e2e [NAME...] [--skip NAME] [--list]`, like [`run`].
pub fn e2e(args: &[String]) -> Result<ExitCode> {
    run_table(E2E, args)
}

fn run_table(table: &'static [Part], args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &["--list"], &["--skip"])?;
    let parts = choose(table, &args.positional, args.all("--skip"))?;
    if args.has("--list") {
        for part in &parts {
            println!("{:<14}{}", part.name, part.command.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut total = Tally::default();
    match run_parts(&parts) {
        Ok(rows) => {
            print!("\n{}", time_table(&rows));
            rows.iter().for_each(|row| total.add(row.tally));
        }
        Err(error) => {
            println!("error: {error:#}");
            total.failed = 1;
        }
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the parts to run: all that are present, or those named and what they
/// need, without those to skip.
fn choose(table: &'static [Part], names: &[String], skip: &[String]) -> Result<Vec<&'static Part>> {
    let present: Vec<&Part> =
        table.iter().filter(|part| part.files.is_empty() || !matches(part.files).is_empty()).collect();
    let known: Vec<&str> = present.iter().map(|part| part.name).collect();
    if let Some(name) = names.iter().chain(skip).find(|name| !known.contains(&name.as_str())) {
        return Err(Misuse(unknown("part", name, &known)).into());
    }
    let mut chosen = present;
    if !names.is_empty() {
        let wanted = |part: &Part| names.iter().any(|name| name == part.name);
        let package = chosen.iter().any(|part| wanted(part) && part.needs != Need::Nothing);
        chosen.retain(|part| wanted(part) || (package && part.name == "build"));
    }
    chosen.retain(|part| !skip.iter().any(|name| name == part.name));
    Ok(chosen)
}

/// Returns the matches of a pattern, in order.
fn matches(pattern: &str) -> Vec<PathBuf> {
    let path = root().join(pattern);
    let Some((start, end)) = pattern.rsplit('/').next().and_then(|last| last.split_once('*')) else {
        return if path.exists() { vec![path] } else { Vec::new() };
    };
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
        .collect();
    files.sort();
    files
}

/// The result of one part.
struct Row {
    name: &'static str,
    time: Duration,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

fn run_parts(parts: &[&'static Part]) -> Result<Vec<Row>> {
    setup::for_build()?;
    let this_program = std::env::current_exe().context("cannot tell which program this is")?;
    let wants_browser = parts.iter().any(|part| part.needs == Need::Browser);
    let browser = if wants_browser { setup::chromium() } else { Ok(PathBuf::new()) };
    let logs = target().join("xtask/test");
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let mut package = true;
    let mut rows = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        println!("[{}/{}] {}: {}", index + 1, parts.len(), part.name, part.command.join(" "));
        let start = Instant::now();
        let not_run =
            |reason: String| (Tally { failed: 1, ..Tally::default() }, format!("      not run: {reason}"));
        let (tally, failure) = match (part.needs, &browser) {
            (Need::Package | Need::Browser, _) if !package => {
                not_run("there is no package to test".to_owned())
            }
            (Need::Browser, Err(error)) => not_run(format!("{error:#}")),
            (_, browser) => {
                let mut command = command_of(part, &this_program);
                if let (Need::Browser, Ok(path)) = (part.needs, browser) {
                    command.env("CHROMIUM", path);
                }
                run_part(part, &mut command, &logs.join(format!("{}.log", part.name)))?
            }
        };
        let time = start.elapsed();
        if !failure.is_empty() {
            println!("{failure}");
        }
        if tally.failed > 0 {
            package &= part.name != "build";
        }
        let word = if tally.failed > 0 { "FAILED" } else { "ok" };
        println!(
            "      {word}, {} passed, {} failed, {:.1} s",
            tally.passed,
            tally.failed,
            time.as_secs_f32()
        );
        rows.push(Row { name: part.name, time, tally });
    }
    Ok(rows)
}

/// Runs a part with its output in a file. Returns its counts and what to show: the end of a failed part's
/// output, and why something was skipped.
fn run_part(part: &Part, command: &mut Command, log: &Path) -> Result<(Tally, String)> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    let ended = wait(command)?;
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let success = ended.is_some_and(|status| status.success());
    let (tally, reason) = evaluate(part.count, &output, success);
    let reason = if ended.is_none() { "it took too long" } else { reason };
    if tally.failed == 0 {
        return Ok((tally, skips(&output).join("\n")));
    }
    let lines: Vec<&str> = output.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
    let failure =
        format!("{tail}\n      {}: {reason}; all of its output: {}", command_line(command), log.display());
    Ok((tally, failure))
}

/// Returns the reasons for skipped tests in a TAP stream, each once.
fn skips(output: &str) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for reason in output.lines().filter_map(|line| Some(line.split_once("# SKIP ")?.1)) {
        let line = format!("      skipped: {reason}");
        if !reasons.contains(&line) {
            reasons.push(line);
        }
    }
    reasons
}

fn command_of(part: &Part, this_program: &Path) -> Command {
    let (program, arguments) = part.command.split_first().unwrap_or((&"", &[]));
    let mut run =
        if *program == "xtask" { command(&this_program.to_string_lossy()) } else { command(program) };
    for word in arguments {
        match *word {
            "FILES" => run.args(matches(part.files)),
            word => run.arg(word),
        };
    }
    run
}

/// Waits for the exit status; returns nothing if the part exceeds the limit.
fn wait(command: &mut Command) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", command_line(command)))?;
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a part's counts, and briefly why it failed if it did.
fn evaluate(count: Count, output: &str, success: bool) -> (Tally, &'static str) {
    let counted = match count {
        Count::Whole => Some(Tally { passed: u32::from(success), ..Tally::default() }),
        Count::Cargo => count_cargo(output),
        Count::Node | Count::Peer => count_node(output),
        Count::Ours => count_ours(output),
    };
    match counted {
        Some(tally) if tally.failed > 0 => (tally, "some of it failed"),
        Some(tally) if !success => (Tally { failed: 1, ..tally }, "it failed"),
        Some(tally) if tally.skipped > 0 && count == Count::Peer => (tally, ""),
        // A crate may have no examples in its docs, but a suite of ours that ran nothing is broken.
        Some(tally) if tally.passed == 0 && count != Count::Cargo => {
            (Tally { failed: 1, ..tally }, "it ran no test")
        }
        Some(tally) => (tally, ""),
        None => (Tally { failed: 1, ..Tally::default() }, "it counted nothing"),
    }
}

fn count_cargo(output: &str) -> Option<Tally> {
    let mut sum: Option<Tally> = None;
    for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let number = |unit: &str| {
            line.split(['.', ';'])
                .find_map(|piece| piece.trim().strip_suffix(unit)?.trim().parse().ok())
                .unwrap_or(0)
        };
        let tally = Tally { passed: number("passed"), failed: number("failed"), skipped: number("ignored") };
        sum.get_or_insert_default().add(tally);
    }
    sum
}

fn count_node(output: &str) -> Option<Tally> {
    let number = |name: &str| -> Option<u32> {
        output.lines().rev().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.trim().parse().ok())
    };
    let skipped = number("skipped ").unwrap_or(0) + number("todo ").unwrap_or(0);
    let failed = number("fail ")? + number("cancelled ").unwrap_or(0);
    Some(Tally { passed: number("pass ")?, failed, skipped })
}

fn count_ours(output: &str) -> Option<Tally> {
    let count = |text: &str| -> Option<Tally> {
        let (passed, failed) = text.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some(Tally { passed: passed.parse().ok()?, failed: failed.parse().ok()?, skipped: 0 })
    };
    let total = output.lines().rev().find_map(|line| count(line.trim()));
    total.or_else(|| {
        let sets = output.lines().filter_map(|line| count(line.trim().rsplit_once(": ")?.1));
        sets.reduce(|mut sum, set| {
            sum.add(set);
            sum
        })
    })
}

fn time_table(rows: &[Row]) -> String {
    let mut text = format!("{:<14}{:>9}{:>9}{:>9}{:>9}\n", "part", "seconds", "passed", "failed", "skipped");
    let mut line = |name: &str, time: Duration, tally: Tally| {
        let Tally { passed, failed, skipped } = tally;
        text.push_str(&format!("{name:<14}{:>9.1}{passed:>9}{failed:>9}{skipped:>9}\n", time.as_secs_f32()));
    };
    let mut total = Tally::default();
    for row in rows {
        line(row.name, row.time, row.tally);
        total.add(row.tally);
    }
    line("together", rows.iter().map(|row| row.time).sum(), total);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u32, failed: u32, skipped: u32) -> Tally {
        Tally { passed, failed, skipped }
    }

    #[test]
    fn the_results_of_all_test_binaries_are_summed() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(evaluate(Count::Cargo, output, false), (tally(7, 2, 1), "some of it failed"));
    }

    #[test]
    fn nodes_summary_is_read_and_a_cancelled_test_is_a_failed_one() {
        let output = "# pass 1 is a comment of a test\n# tests 9\n# pass 5\n# fail 1\n# cancelled 1\n# skipped 2\n# todo 0\n";
        assert_eq!(evaluate(Count::Node, output, false).0, tally(5, 2, 2));
    }

    #[test]
    fn of_our_own_lines_the_total_counts_and_without_one_the_sum() {
        let output = "retry: 3 passed, 1 failed\n3 passed, 1 failed\nnoise\n12 passed, 1 failed\n";
        assert_eq!(evaluate(Count::Ours, output, false).0, tally(12, 1, 0));
        let output = "retry: 3 passed, 0 failed\nstream: 4 passed, 2 failed\n";
        assert_eq!(evaluate(Count::Ours, output, false).0, tally(7, 2, 0));
    }

    #[test]
    fn an_exit_code_is_a_failure_whatever_was_counted() {
        assert_eq!(evaluate(Count::Ours, "3 passed, 0 failed", false).0, tally(3, 1, 0));
        assert_eq!(evaluate(Count::Whole, "", false).0, tally(0, 1, 0));
    }

    #[test]
    fn a_failed_test_is_a_failure_whatever_the_exit_code() {
        assert_eq!(evaluate(Count::Ours, "3 passed, 2 failed", true).0, tally(3, 2, 0));
    }

    #[test]
    fn a_part_that_counts_nothing_or_ran_nothing_does_not_pass() {
        assert_eq!(evaluate(Count::Ours, "all well", true).0, tally(0, 1, 0));
        assert_eq!(evaluate(Count::Node, "# pass 0\n# fail 0\n", true).0, tally(0, 1, 0));
        assert_eq!(evaluate(Count::Cargo, "", true).0, tally(0, 1, 0));
    }

    #[test]
    fn a_peer_that_cannot_be_had_is_skipped_with_its_reason() {
        let output = "ok 1 - llmock # SKIP no Python environment: spawnSync python3 ENOENT\n# pass 0\n# fail 0\n# skipped 1\n";
        assert_eq!(evaluate(Count::Peer, output, true), (tally(0, 0, 1), ""));
        assert_eq!(skips(output), ["      skipped: no Python environment: spawnSync python3 ENOENT"]);
        assert_eq!(evaluate(Count::Node, output, true).0, tally(0, 1, 1));
        assert_eq!(evaluate(Count::Peer, "# pass 0\n# fail 0\n# skipped 0\n", true).0, tally(0, 1, 0));
    }

    #[test]
    fn a_crate_without_doc_tests_passes() {
        let output = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(evaluate(Count::Cargo, output, true).0, tally(0, 0, 0));
    }

    #[test]
    fn a_pattern_finds_files_in_order_and_a_path_only_itself() {
        let found = matches("xtask/src/t*.rs");
        assert_eq!(found, [root().join("xtask/src/test.rs")]);
        assert_eq!(matches("xtask/src/none.rs"), Vec::<PathBuf>::new());
        assert_eq!(matches("nowhere/*.rs"), Vec::<PathBuf>::new());
    }

    #[test]
    fn naming_a_part_brings_what_it_needs() {
        let names = |words: &[&str], skip: &[&str]| {
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            choose(PARTS, &owned(words), &owned(skip))
                .map(|parts| parts.iter().map(|part| part.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["doc", "fmt"], &[]).unwrap(), ["fmt", "doc"]);
        assert!(!names(&[], &["fmt"]).unwrap().contains(&"fmt"));
        assert_eq!(names(&["frmt"], &[]).unwrap_err().to_string(), "no part `frmt`; did you mean `fmt`?");
    }
}
