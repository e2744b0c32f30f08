//! `cargo xtask NAME`: everything this repository does besides `cargo build`.

mod against;
mod args;
mod bench;
mod crates;
mod demo;
mod deny;
mod differ;
mod licence;
mod locks;
mod pack;
mod players;
mod release;
mod run;
mod setup;
mod site;
mod soak;
mod test;

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
        usage: "build [--dev | --named] [--out FOLDER]",
        about: "the npm package, into pkg/ or FOLDER, in place of the package there; with --dev unoptimised and quick, with --named for profilers",
        run: pack::run,
    },
    Command {
        name: "pack",
        usage: "pack [--out FOLDER] [--unchecked | --offline] [--release]",
        about: "what would be published, in target/xtask/packed or FOLDER: the npm tarball and the crates, listed and run in every host; with --release only if all is set for one",
        run: release::run,
    },
    Command {
        name: "release",
        usage: "release --rehearse [--out FOLDER]",
        about: "all that the release workflow does but the upload, into target/xtask/rehearsed or FOLDER: archives, hashes, notes, data for the provenance, the site; names what is missing for a release",
        run: release::rehearse,
    },
    Command {
        name: "demo",
        usage: "demo [--port N] [--model ID] [--base-url URL]\n  demo --out FOLDER [--weights FOLDER|FILE|URL]",
        about: "builds, then serves the demo page; with --out writes a folder for any web host, with the weights of a small model if they are given",
        run: demo::run,
    },
    Command {
        name: "site",
        usage: "site --out FOLDER",
        about: "builds, then writes the docs with search and blocks that run, the demo and the viewer of tapes, as static files for any web host",
        run: site::run,
    },
    Command {
        name: "test",
        usage: "test [NAME...] [--skip NAME] [--list]",
        about: "every check there is, or those that are named",
        run: test::run,
    },
    Command {
        name: "e2e",
        usage: "e2e [NAME...] [--skip NAME] [--list] [--gguf FILE]",
        about: "checks against what must be fetched first: Firefox and WebKit, webpack, Rollup, Deno, Bun and wrangler, llmock's verdict on our client, a real model",
        run: test::e2e,
    },
    Command {
        name: "crates",
        usage: "crates",
        about: "packs the crates, and compiles each as somebody who downloads it would",
        run: crates::run,
    },
    Command {
        name: "deny",
        usage: "deny [--advisories]",
        about: "whom the build and the package depend on, by the rules of deny.toml; with --advisories what is known to be vulnerable",
        run: deny::run,
    },
    Command {
        name: "bench",
        usage: "bench [--engines A,B] [--jobs W1,W2] [--reps N] [--node PATH]\n  bench --against REV|OLD_PKG [CELL...] [--rounds N] [--node PATH]\n  bench --page [--rounds N]\n  bench --tape [CELL...] [--rounds N]",
        about: "the package against a plain loop and its peers; the whole of it writes benches/RESULTS.md; or against another revision or build of itself, in turns: fails if a cell got worse by more than its noise; or pages of all on a slow network, until the first text: the whole of it writes benches/PAGE.md; or what recording a tape costs",
        run: bench::run,
    },
    Command {
        name: "differ",
        usage: "differ --against REV|OLD_PKG [--sequences N] [--seed N]",
        about: "plays random sequences of calls of the public API, 9,000 or as told, with the package of another revision or folder and with the present one, and compares everything that can be seen; each goes on from the other's checkpoints too",
        run: differ::run,
    },
    Command {
        name: "setup",
        usage: "setup",
        about: "fetches what the others need, ahead of time",
        run: setup::run,
    },
    Command {
        name: "fixtures",
        usage: "fixtures DIR [--engine native|wasm|ai-sdk]",
        about: "plays recorded provider answers of a directory through the wires and compares",
        run: players::fixtures,
    },
    Command {
        name: "vectors",
        usage: "vectors DIR [--engine native|wasm]",
        about: "plays golden vectors of a directory on the rules, or on the package, and compares",
        run: players::vectors,
    },
    Command {
        name: "conformance",
        usage: "conformance SCENARIO_DIR TRACE_DIR [--engine native|wasm|web|component] [--queues inbox|provider] [--judge GOLDEN_DIR] [--ag-ui | --replay]\n  conformance --random N TRACE_DIR [--engine wasm|web] [--ag-ui | --replay]",
        about: "plays every scenario of a directory in virtual time and writes one trace each; or N random ones natively and on another engine, and compares; with --ag-ui the package's runs must also pass both AG-UI verifiers; with --replay the traces are those of the recorded tapes, replayed in another process",
        run: players::conformance,
    },
    Command {
        name: "replay",
        usage: "replay FILE",
        about: "lives a tape again, natively, and prints what happens",
        run: players::replay,
    },
    Command {
        name: "fuzz",
        usage: "fuzz [TARGET...] [--minutes N | --seconds N] [--seed N]",
        about: "feeds damaged recordings to every decoder, the readers of SSE and JSON: ten minutes each, or as told",
        run: players::fuzz,
    },
    Command {
        name: "soak",
        usage: "soak [--minutes N | --seconds N] [--seed N] [--life ID] [--only A,B] [--hosts n,v,w] [--lives N] [--at-once N] [--patience SECONDS] [--sabotage NAME] [--verbose]",
        about: "agents by the hundred against a server that does everything wrong, with kills and restores: prints a ledger, and fails unless all of it holds; a minute, or as told",
        run: soak::run,
    },
    // A further command is a module with `pub fn run(args: &[String]) -> Result<ExitCode>` and an entry
    // here; CI runs it if test.rs has a row for it.
];

const EXAMPLES: &str = "\
examples
  cargo xtask build                        pkg/, ready for `npm pack`, with a table of its sizes
  cargo xtask build --dev --out target/p   the quick one elsewhere; pkg/ stays as it is
  cargo xtask demo                         the demo page on 127.0.0.1
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

fn help() -> String {
    let mut text = String::from("cargo xtask NAME\n\n");
    for command in COMMANDS {
        text.push_str(&format!("  {}\n      {}\n", command.usage, command.about));
    }
    text.push('\n');
    text.push_str(EXAMPLES);
    text
}
