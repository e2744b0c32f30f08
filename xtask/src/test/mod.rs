//! `cargo xtask test`: a table of parts, run two at a time, each counted, with a time table at the end.

mod count;
mod parts;
mod queue;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::args::{Args, Misuse, unknown};
use crate::run::{command, command_line, root, target};
use crate::setup;
use count::{Tally, evaluate, skips};
use parts::{E2E, Need, PARTS, Part};
use queue::{Package, Queue};

/// Longer than any part takes on a slow machine, so that a hanging part does not block CI.
const LIMIT: Duration = Duration::from_secs(25 * 60);
/// The same of `cargo xtask e2e`, some of whose parts compile for long.
const E2E_LIMIT: Duration = Duration::from_secs(45 * 60);

/// The weights that the caller named; the parts get them as `GGUF`.
static WEIGHTS: OnceLock<PathBuf> = OnceLock::new();

/// Set for every process of a part, so that what it leaves behind is found: servers of a test that timed out, for example.
const MARK: &str = "XTASK_PART";

/// How many lines of a failed part's output are shown; the file has all of them.
const SHOWN_LINES: usize = 200;

/// Runs `cargo xtask test [NAME...] [--skip NAME] [--list]`.
///
/// The last line on stdout is always `N passed, N failed` over all parts.
pub fn run(args: &[String]) -> Result<ExitCode> {
    run_table(PARTS, args, (LIMIT, 2))
}

/// Runs `cargo xtask e2e [NAME...] [--skip NAME] [--list] [--gguf FILE]`, like [`run`]. FILE has the weights for the parts with
/// a real model.
pub fn e2e(args: &[String]) -> Result<ExitCode> {
    run_table(E2E, args, (E2E_LIMIT, 1))
}

fn run_table(table: &'static [Part], args: &[String], how: (Duration, usize)) -> Result<ExitCode> {
    let args = Args::parse(args, &["--list"], &["--skip", "--gguf"])?;
    if let Some(file) = args.all("--gguf").last() {
        let file = fs::canonicalize(file).with_context(|| format!("there are no weights at {file}"))?;
        WEIGHTS.get_or_init(|| file);
    }
    let parts = choose(table, &args.positional, args.all("--skip"))?;
    if args.has("--list") {
        for part in &parts {
            println!("{:<19}{}", part.name, part.command.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut total = Tally::default();
    let start = Instant::now();
    match run_parts(&parts, how) {
        Ok(rows) => {
            print!("\n{}", time_table(&rows, start.elapsed()));
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
        let package = chosen.iter().any(|part| wanted(part) && part.needs.wants_package());
        chosen.retain(|part| wanted(part) || (package && part.name == "build"));
    }
    chosen.retain(|part| !skip.iter().any(|name| name == part.name));
    Ok(chosen)
}

/// Returns the matches of a pattern, in order.
fn matches(pattern: &str) -> Vec<PathBuf> {
    let mut words = pattern.split(' ');
    let mut found = vec![root().to_owned()];
    for segment in words.next().unwrap_or_default().split('/') {
        found = found.iter().flat_map(|folder| inside(folder, segment)).collect();
    }
    let left_out: Vec<PathBuf> =
        words.filter_map(|word| Some(root().join(word.strip_prefix('!')?))).collect();
    found.retain(|path| !left_out.iter().any(|folder| path.starts_with(folder)));
    found
}

/// What is in a folder and has this name, in which a `*` matches anything.
fn inside(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Some((start, end)) = name.split_once('*') else {
        let path = folder.join(name);
        return if path.exists() { vec![path] } else { Vec::new() };
    };
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
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

/// What the parts run with.
struct Runner {
    this_program: PathBuf,
    browser: Result<PathBuf>,
    driver: Result<PathBuf>,
    logs: PathBuf,
    limit: Duration,
}

fn run_parts(parts: &[&'static Part], (limit, at_once): (Duration, usize)) -> Result<Vec<Row>> {
    setup::for_build()?;
    let wants = |need| parts.iter().any(|part| part.needs == need);
    let runner = Runner {
        this_program: std::env::current_exe().context("cannot tell which program this is")?,
        browser: if wants(Need::Browser) { setup::chromium() } else { Ok(PathBuf::new()) },
        driver: if wants(Need::Driver) { setup::chromedriver() } else { Ok(PathBuf::new()) },
        logs: target().join("xtask/test"),
        limit,
    };
    fs::create_dir_all(&runner.logs).with_context(|| format!("cannot make {}", runner.logs.display()))?;
    let queue = Queue::new(parts);
    let work = || -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        while let Some((part, package)) = queue.next() {
            let row = runner.run(part, package);
            queue.done(part, row.as_ref().is_ok_and(|row| row.tally.failed > 0));
            rows.push(row?);
        }
        Ok(rows)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let mut rows = Vec::new();
        for worker in workers {
            rows.extend(worker.join().map_err(|_| anyhow!("a part could not be run"))??);
        }
        Ok(rows)
    })
}

impl Runner {
    fn run(&self, part: &Part, package: Package) -> Result<Row> {
        println!("{}: {}", part.name, part.command.join(" "));
        let start = Instant::now();
        let not_run =
            |reason: String| (Tally { failed: 1, ..Tally::default() }, format!("      not run: {reason}"));
        let mut command = command_of(part, &self.this_program);
        command.envs(WEIGHTS.get().map(|file| ("GGUF", file)));
        let (tally, failure) = match (part.needs, &self.browser, &self.driver) {
            (need, ..) if need.wants_package() && package == Package::Failed => {
                not_run("there is no package to test".to_owned())
            }
            (Need::Browser, Err(error), _) | (Need::Driver, _, Err(error)) => not_run(format!("{error:#}")),
            (need, browser, driver) => {
                match (need, browser, driver) {
                    (Need::Browser, Ok(path), _) => command.env("CHROMIUM", path),
                    (Need::Driver, _, Ok(path)) => {
                        command.env("CHROMEDRIVER", path).env("WASM_BINDGEN_USE_BROWSER", "1")
                    }
                    _ => &mut command,
                };
                run_part(part, &mut command, &self.logs.join(format!("{}.log", part.name)), self.limit)?
            }
        };
        let time = start.elapsed();
        let word = if tally.failed > 0 { "FAILED" } else { "ok" };
        let Tally { passed, failed, .. } = tally;
        let shown = if failure.is_empty() { failure } else { failure + "\n" };
        println!(
            "{shown}      {}: {word}, {passed} passed, {failed} failed, {:.1} s",
            part.name,
            time.as_secs_f32()
        );
        Ok(Row { name: part.name, time, tally })
    }
}

/// Runs a part with its output in a file. Returns its counts and what to show: the end of a failed part's
/// output, and why something was skipped.
fn run_part(part: &Part, command: &mut Command, log: &Path, limit: Duration) -> Result<(Tally, String)> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mark = format!("{}-{}", std::process::id(), part.name);
    command.stdout(file.try_clone()?).stderr(file).env(MARK, &mark);
    let ended = wait(command, limit)?;
    let left = kill_marked(&mark);
    if left > 0 {
        println!("      {left} processes that it had left were ended");
    }
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
fn wait(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", command_line(command)))?;
    let end = Instant::now() + limit;
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

/// Ends all processes with this mark in their environment, where the system shows it (Linux). Returns how many.
fn kill_marked(mark: &str) -> usize {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let ids: Vec<String> = processes
        .filter(|process| is_marked(process))
        .filter_map(|process| Some(process.file_name()?.to_string_lossy().into_owned()))
        .collect();
    if !ids.is_empty() {
        // One that has ended meanwhile is no failure.
        let _ = command("kill").arg("-KILL").args(&ids).stderr(std::process::Stdio::null()).status();
    }
    ids.len()
}

fn time_table(rows: &[Row], whole: Duration) -> String {
    let mut text = format!("{:<19}{:>9}{:>9}{:>9}{:>9}\n", "part", "seconds", "passed", "failed", "skipped");
    let mut line = |name: &str, time: Duration, tally: Tally| {
        let Tally { passed, failed, skipped } = tally;
        text.push_str(&format!("{name:<19}{:>9.1}{passed:>9}{failed:>9}{skipped:>9}\n", time.as_secs_f32()));
    };
    let mut total = Tally::default();
    for row in rows {
        line(row.name, row.time, row.tally);
        total.add(row.tally);
    }
    line("together", whole, total);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_files_in_order_and_a_path_only_itself() {
        let found = matches("xtask/src/test/p*.rs");
        assert_eq!(found, [root().join("xtask/src/test/parts.rs")]);
        assert_eq!(matches("xtask/src/none.rs"), Vec::<PathBuf>::new());
        assert_eq!(matches("nowhere/*.rs"), Vec::<PathBuf>::new());
        assert_eq!(matches("xtask/src/main.rs/*.rs"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_pattern_looks_into_all_folders_but_those_that_it_leaves_out() {
        let names = |pattern| {
            matches(pattern)
                .iter()
                .map(|file| file.strip_prefix(root()).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let folder = |name: &str| PathBuf::from(format!("xtask/src/test/{name}.rs"));
        assert_eq!(names("xtask/*/test/*s.rs"), [folder("parts")]);
        let found = names("xtask/src/t*t/*.rs");
        assert_eq!(found, ["count", "mod", "parts", "queue"].map(folder));
        let without = names("xtask/src/t*t/*.rs !xtask/src/test/mod.rs");
        assert_eq!(without, ["count", "parts", "queue"].map(folder));
        assert_eq!(names("xtask/src/t*t/*.rs !xtask/src/te"), found);
        assert_eq!(names("xtask/src/t*t/*.rs !xtask/src/test"), Vec::<PathBuf>::new());
    }

    #[test]
    fn every_test_file_of_the_package_is_in_one_part() {
        let parts = PARTS.iter().filter(|part| part.files.contains(".test.mjs"));
        let mut run: Vec<PathBuf> = parts.flat_map(|part| matches(part.files)).collect();
        run.retain(|file| file.starts_with(root().join("tests/js")));
        let mut all = [matches("tests/js/*.test.mjs"), matches("tests/js/*/*.test.mjs")].concat();
        run.sort();
        all.sort();
        assert_eq!(run, all);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_part_that_takes_too_long_ends_with_all_its_children() {
        let mark = format!("{}-children", std::process::id());
        let mut part = command("sh");
        part.args(["-c", "sleep 600 & sleep 600"]).env(MARK, &mark);
        assert!(wait(&mut part, Duration::from_millis(200)).unwrap().is_none());
        assert_eq!(kill_marked(&mark), 2);
        while kill_marked(&mark) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn the_jobs_on_github_are_all_parts_together() {
        let workflow = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
        let lists = workflow.lines().filter_map(|line| line.trim().strip_prefix("parts: "));
        let mut listed: Vec<&str> = lists.flat_map(str::split_whitespace).collect();
        // Every job with the package builds it.
        let mut parts: Vec<&str> =
            PARTS.iter().map(|part| part.name).filter(|name| *name != "build").collect();
        listed.sort_unstable();
        parts.sort_unstable();
        assert_eq!(listed, parts);
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
