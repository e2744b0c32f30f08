//! `cargo xtask NAME`: everything this repository does besides `cargo build`.

mod args;
mod bench;
#[path = "../../tests/harness/src/conformance.rs"]
mod conformance;
mod demo;
#[path = "../../tests/harness/src/fixtures.rs"]
mod fixtures;
mod fuzz;

mod pack;
mod run;
mod setup;
mod test;
#[path = "../../tests/harness/src/vectors/mod.rs"]
mod vectors;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::Misuse;

/// A command of `cargo xtask`. `run` gets the arguments after the name.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "build",
        usage: "build [--dev | --named]",
        about: "the npm package, into pkg/; with --dev unoptimised and quick, with --named for profilers",
        run: pack::run,
    },
    Command {
        name: "demo",
        usage: "demo [--port N] [--once QUESTION] [--model ID] [--base-url URL]",
        about: "builds, then serves the demo page; with --once answers in the terminal",
        run: demo::run,
    },
    Command {
        name: "test",
        usage: "test [NAME...] [--skip NAME] [--list]",
        about: "every check there is, or those that are named",
        run: test::run,
    },
    Command {
        name: "e2e",
        usage: "e2e [NAME...] [--skip NAME] [--list]",
        about: "checks against what must be fetched first: Firefox and WebKit, webpack, Rollup, Deno, Bun and wrangler, llmock's verdict on our client, a real model",
        run: test::e2e,
    },
    Command {
        name: "bench",
        usage: "bench [--engines A,B] [--jobs W1,W2] [--reps N] [--node PATH]",
        about: "the package against a plain loop and its peers; the whole of it writes benches/RESULTS.md",
        run: bench::run,
    },
    Command {
        name: "setup",
        usage: "setup",
        about: "fetches what the others need, ahead of time",
        run: setup::run,
    },
    Command {
        name: "fixtures",
        usage: "fixtures DIR [--engine native|wasm]",
        about: "plays recorded provider answers of a directory through the wires and compares",
        run: play_fixtures,
    },
    Command {
        name: "vectors",
        usage: "vectors DIR",
        about: "plays golden vectors of a directory on the rules and compares",
        run: play_vectors,
    },
    Command {
        name: "conformance",
        usage: "conformance SCENARIO_DIR TRACE_DIR [--engine native|wasm] [--queues inbox|provider] [--judge GOLDEN_DIR]\n  conformance --random N TRACE_DIR",
        about: "plays every scenario of a directory in virtual time and writes one trace each; or N random ones on both engines, and compares",
        run: conformance::run,
    },
    Command {
        name: "fuzz",
        usage: "fuzz [TARGET...] [--minutes N | --seconds N] [--seed N]",
        about: "feeds damaged recordings to every decoder, the readers of SSE and JSON: ten minutes each, or as told",
        run: fuzz::run,
    },
    // A further command is a module with `pub fn run(args: &[String]) -> Result<ExitCode>` and an entry
    // here (as for conformance); CI runs it if test.rs has a row for it.
];

const EXAMPLES: &str = "\
examples
  cargo xtask build                        pkg/, ready for `npm pack`, with a table of its sizes
  cargo xtask demo                         the demo page on 127.0.0.1
  cargo xtask demo --once \"Rain in Oslo?\"   one question, answered in the terminal
  cargo xtask test                         what CI runs
  cargo xtask test rust node               two parts of it
";

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match given.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("help", &[][..]),
    };
    if matches!(name, "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let known: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        eprintln!("error: {}", args::unknown("command", name, &known));
        eprintln!("`cargo xtask help` says what they do");
        return ExitCode::from(2);
    };
    if rest.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h") {
        println!("cargo xtask {}\n  {}", command.usage, command.about);
        return ExitCode::SUCCESS;
    }
    (command.run)(rest).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        if !error.is::<Misuse>() {
            return ExitCode::FAILURE;
        }
        eprintln!("usage: cargo xtask {}", command.usage);
        ExitCode::from(2)
    })
}

fn play_fixtures(args: &[String]) -> Result<ExitCode> {
    let args = args::Args::parse(args, &[], &["--engine"])?;
    let dir = directory(&args.positional)?;
    match args.value("--engine").unwrap_or("native") {
        "native" => Ok(ExitCode::from(u8::from(!fixtures::run(Path::new(dir))))),
        "wasm" => play_in_node("tests/js/fixtures.mjs", dir),
        other => Err(Misuse(args::unknown("engine", other, &["native", "wasm"])).into()),
    }
}

/// Plays a directory in Node with the package, which is built if necessary.
fn play_in_node(script: &str, dir: &str) -> Result<ExitCode> {
    setup::for_build()?;
    pack::build(pack::Kind::Release)?;
    let status =
        run::command("node").arg(run::root().join(script)).arg(std::fs::canonicalize(dir)?).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn play_vectors(args: &[String]) -> Result<ExitCode> {
    let report = vectors::run(Path::new(directory(args)?)).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::from(u8::from(report.failed > 0)))
}

/// Returns the one directory that a command takes.
fn directory(args: &[String]) -> Result<&str> {
    match args {
        [directory] if Path::new(directory).is_dir() => Ok(directory),
        [directory] => Err(Misuse(format!("`{directory}` is no directory")).into()),
        _ => Err(Misuse("one directory is wanted".to_owned()).into()),
    }
}

fn help() -> String {
    let mut text = String::from("cargo xtask NAME\n\n");
    for command in COMMANDS {
        text.push_str(&format!("  {}\n      {}\n", command.usage, command.about));
    }
    text.push('\n');
    text.push_str(EXAMPLES);
    text
}
