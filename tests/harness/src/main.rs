//! The players as a program. `cargo xtask` is the front door: it checks the arguments, builds what an engine
//! needs and starts this with options written as `--name=value`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use harness::engines::{Engine, engine};
use harness::{conformance, fuzz, journals, random, show, vectors};
use rig::ports::Route;

const USAGE: &str = "\
harness fixtures [--engine=NAME] DIR
harness vectors [--engine=native|wasm] DIR
harness conformance [--engine=NAME] [--queues=inbox|provider] [--judge=GOLDEN_DIR] [--ag-ui | --replay] SCENARIO_DIR TRACE_DIR
harness conformance --random=N [--engine=NAME] [--ag-ui | --replay | --journal] DIR
harness replay [--engine=NAME] TAPE_DIR TRACE_DIR
harness show TAPE
harness fuzz [--minutes=N | --seconds=N] [--seed=N] [TARGET...]";

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    match run(&given) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether everything that was played passed.
fn run(given: &[String]) -> Result<bool> {
    let (options, words): (Vec<&str>, Vec<&str>) =
        given.iter().map(String::as_str).partition(|word| word.starts_with("--"));
    let options = Options(options);
    match words.as_slice() {
        ["fixtures", dir] => options.engine()?.fixtures(Path::new(dir)),
        ["vectors", dir] => {
            let play = match options.value("--engine") {
                None | Some("native") => vectors::run,
                Some("wasm") => vectors::run_package,
                Some(other) => bail!("no engine `{other}` plays vectors"),
            };
            let report = play(Path::new(dir)).map_err(anyhow::Error::msg)?;
            println!("{} passed, {} failed", report.passed, report.failed);
            Ok(report.failed == 0 && report.passed > 0)
        }
        ["conformance", dir] => {
            let number = options.number("--random")?.context(USAGE)?;
            if options.has("--journal") {
                return journals::exchange(number, Path::new(dir));
            }
            let play = if options.has("--replay") { random::exchange_tapes } else { random::compare_engines };
            play(number, options.engine_name("wasm"), Path::new(dir))
        }
        ["conformance", scenarios, traces] => {
            let (engine, queues) = (options.engine()?, options.queues()?);
            let golden = options.value("--judge").map(Path::new);
            let folders = [scenarios, traces].map(Path::new);
            if options.has("--replay") {
                let name = options.value("--engine").unwrap_or("native");
                return conformance::run_replayed((name, engine), queues, folders, golden);
            }
            conformance::run(engine, queues, folders, golden)
        }
        ["replay", tapes, traces] => {
            std::fs::create_dir_all(traces)?;
            options.engine()?.replay(Path::new(tapes), Path::new(traces))
        }
        ["show", tape] => show::run(Path::new(tape)),
        ["fuzz", targets @ ..] => {
            let minutes = options.number("--minutes")?.unwrap_or(10);
            let seconds = options.number("--seconds")?.unwrap_or(minutes * 60);
            fuzz::run(targets, options.number("--seed")?.unwrap_or(1), Duration::from_secs(seconds))
        }
        _ => bail!("this is not how it is called; it is\n{USAGE}"),
    }
}

/// The words that begin with `--`.
struct Options<'a>(Vec<&'a str>);

impl<'a> Options<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let number = self.value(name).map(str::parse).transpose();
        number.with_context(|| format!("`{name}` wants a whole number"))
    }

    /// The package also plays what `--ag-ui` asks for.
    fn engine_name(&self, default: &'a str) -> &'a str {
        if self.0.contains(&"--ag-ui") { "ag-ui" } else { self.value("--engine").unwrap_or(default) }
    }

    fn engine(&self) -> Result<&'static dyn Engine> {
        let name = self.engine_name("native");
        engine(name).ok_or_else(|| anyhow!("no engine `{name}`"))
    }

    fn queues(&self) -> Result<Option<Route>> {
        match self.value("--queues") {
            None => Ok(None),
            Some("inbox") => Ok(Some(Route::Inbox)),
            Some("provider") => Ok(Some(Route::Provider)),
            Some(other) => bail!("no kind of queues `{other}`"),
        }
    }
}
