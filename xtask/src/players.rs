//! `cargo xtask fixtures | vectors | conformance | fuzz`. The players are a crate of the tests,
//! `tests/harness`: here the arguments are checked, what an engine needs is built, and the harness is
//! started. It is no dependency, so that xtask never waits for the product to compile.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::args::{self, Args, Misuse};
use crate::run::{command, exit_code, root, target};
use crate::{pack, run, setup};

/// What scenarios can be played on: a module of `tests/harness/src/engines`, and what must be built first.
struct Engine {
    name: &'static str,
    prepare: fn() -> Result<()>,
}

/// Where the harness finds what was built for the engine `web`.
const WEB_PLAYER: &str = "WEB_PLAYER";

const ENGINES: [Engine; 4] = [
    Engine { name: "native", prepare: nothing },
    Engine { name: "wasm", prepare: package },
    Engine { name: "web", prepare: web_player },
    Engine { name: "component", prepare: core },
];

/// The engines for recorded answers. `ai-sdk` is the package with the AI SDK's own providers behind its model.
const WIRE_ENGINES: [Engine; 3] = [
    Engine { name: "native", prepare: nothing },
    Engine { name: "wasm", prepare: package },
    Engine { name: "ai-sdk", prepare: package },
];

/// The engines for golden vectors.
const RULE_ENGINES: [Engine; 2] =
    [Engine { name: "native", prepare: nothing }, Engine { name: "wasm", prepare: package }];

const QUEUES: [&str; 2] = ["inbox", "provider"];

fn nothing() -> Result<()> {
    Ok(())
}

fn package() -> Result<()> {
    setup::for_build()?;
    pack::build(pack::Kind::Release).map(drop)
}

/// Builds the core module.
fn core() -> Result<()> {
    setup::for_build()?;
    pack::build_core().map(drop)
}

/// Where the harness finds what was built for the engine `component`.
const CORE_MODULE: &str = "CORE_MODULE";

/// Builds the crate `web-player` for Node.
fn web_player() -> Result<()> {
    setup::for_build()?;
    let package = ["build", "--quiet", "--package", "web-player", "--target", "wasm32-unknown-unknown"];
    run::run(command("cargo").args(package))?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(target().join("wasm32-unknown-unknown/debug/web_player.wasm"));
    bindgen.nodejs_module(true)?.typescript(false);
    bindgen.generate(web_player_folder()).context("wasm-bindgen failed")
}

fn web_player_folder() -> PathBuf {
    target().join("xtask/web-player")
}

/// Runs `cargo xtask fixtures DIR [--engine NAME]`.
pub fn fixtures(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--engine"])?;
    let dir = directory(&args.positional)?;
    one_of("engine", args.value("--engine"), &WIRE_ENGINES.map(|engine| engine.name))?;
    prepare(&WIRE_ENGINES, args.value("--engine"))?;
    harness("dev", "fixtures", &args, &[dir])
}

/// Runs `cargo xtask vectors DIR [--engine NAME]`.
pub fn vectors(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--engine"])?;
    let dir = directory(&args.positional)?;
    one_of("engine", args.value("--engine"), &RULE_ENGINES.map(|engine| engine.name))?;
    prepare(&RULE_ENGINES, args.value("--engine"))?;
    harness("dev", "vectors", &args, &[dir])
}

/// Runs `cargo xtask conformance`. By default the engine polls host queues where a scenario is a single run
/// of the loop, as the recorded engine did, and messages are posted where it uses an agent. With `--judge
/// GOLDEN_DIR` the traces are compared right away, and the command fails if the judge finds a fault;
/// otherwise it fails only if nothing could be played. With `--ag-ui` the runs are also read as AG-UI events, and
/// both versions of its client must accept them. With `--replay` the scenarios are recorded, and the traces are those
/// of their tapes, lived again in another process. With `--random N --journal`, runs inside a durable engine move between Rust and the
/// package at every record.
pub fn conformance(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(
        args,
        &["--ag-ui", "--replay", "--journal"],
        &["--engine", "--queues", "--judge", "--random"],
    )?;
    let folders: Vec<&str> = args.positional.iter().map(String::as_str).collect();
    let engine = match (args.value("--random"), folders.as_slice()) {
        (Some(number), [_]) => {
            let no_number = |_| Misuse(format!("`{number}` is no number of scenarios"));
            number.parse::<u64>().map_err(no_number)?;
            Some(args.value("--engine").unwrap_or("wasm"))
        }
        (_, [_, _]) => args.value("--engine"),
        _ => return Err(Misuse("two folders are needed: scenarios and traces".to_owned()).into()),
    };
    one_of("engine", engine, &ENGINES.map(|engine| engine.name))?;
    one_of("kind of queues", args.value("--queues"), &QUEUES)?;
    if args.has("--ag-ui") && engine != Some("wasm") {
        return Err(Misuse("`--ag-ui` reads runs of the package: it wants `--engine wasm`".to_owned()).into());
    }
    if args.has("--ag-ui") && args.has("--replay") {
        return Err(Misuse("`--ag-ui` reads runs, `--replay` tapes: give one of them".to_owned()).into());
    }
    prepare(&ENGINES, engine)?;
    harness("dev", "conformance", &args, &folders)
}

/// Runs `cargo xtask replay FILE`.
pub fn replay(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &[])?;
    let [file] = args.positional.as_slice() else {
        return Err(Misuse("one tape is wanted".to_owned()).into());
    };
    if !Path::new(file).is_file() {
        return Err(Misuse(format!("there is no tape `{file}`")).into());
    }
    harness("dev", "show", &args, &[file])
}

/// Runs `cargo xtask fuzz`, for ten minutes a target by default. The same seed produces the same inputs, as far
/// as the time allows.
pub fn fuzz(args: &[String]) -> Result<ExitCode> {
    let mut args = Args::parse(args, &[], &["--minutes", "--seconds", "--seed"])?;
    // Checked before the build, which takes minutes.
    for name in &args.positional {
        one_of("target", Some(name), &fuzz_targets())?;
    }
    for name in ["--minutes", "--seconds", "--seed"] {
        let number = args.value(name).map(str::parse::<u64>).transpose();
        number.map_err(|_| Misuse(format!("`{name}` wants a whole number")))?;
    }
    let targets = std::mem::take(&mut args.positional);
    harness("fuzz", "fuzz", &args, &targets.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the names of the targets, read from their own list.
fn fuzz_targets() -> Vec<&'static str> {
    let named = |line: &'static str| line.trim().strip_prefix("Target { name: \"")?.split('"').next();
    include_str!("../../tests/harness/src/fuzz/targets.rs").lines().filter_map(named).collect()
}

/// Builds what an engine needs.
fn prepare(engines: &[Engine], engine: Option<&str>) -> Result<()> {
    let engine = engines.iter().find(|known| Some(known.name) == engine);
    engine.map_or(Ok(()), |engine| (engine.prepare)())
}

/// Starts the harness where the user is, because folders may be given relative to there. Quiet if it is
/// compiled already; errors of its compilation are shown. The exit code is the harness's.
fn harness(profile: &str, command: &str, args: &Args, words: &[&str]) -> Result<ExitCode> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--package", "harness", "--profile", profile, "--manifest-path"]);
    cargo.env(CORE_MODULE, target().join("xtask/component/turnwheel.core.wasm"));
    cargo.env(WEB_PLAYER, web_player_folder().join("web_player.js"));
    cargo.arg(root().join("Cargo.toml")).args(["--", command]).args(args.options()).args(words);
    Ok(exit_code(cargo.status().context("cannot start cargo")?))
}

/// Checks that a name, if one is given, is a known one.
fn one_of(what: &str, given: Option<&str>, known: &[&str]) -> Result<()> {
    match given {
        Some(name) if !known.contains(&name) => Err(Misuse(args::unknown(what, name, known)).into()),
        _ => Ok(()),
    }
}

/// Returns the one directory that a command takes.
fn directory(args: &[String]) -> Result<&str> {
    match args {
        [directory] if Path::new(directory).is_dir() => Ok(directory),
        [directory] => Err(Misuse(format!("`{directory}` is no directory")).into()),
        _ => Err(Misuse("one directory is wanted".to_owned()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: fn(&[String]) -> Result<ExitCode>, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let error = command(&words).unwrap_err();
        assert!(error.is::<Misuse>(), "{error}");
        error.to_string()
    }

    #[test]
    fn what_makes_no_sense_is_named_before_anything_is_built() {
        let folder = std::env::temp_dir();
        let folder = folder.to_str().unwrap();
        assert_eq!(refused(fuzz, &["jsom"]), "no target `jsom`; did you mean `json`?");
        assert_eq!(refused(fuzz, &["sse", "--seconds", "x"]), "`--seconds` wants a whole number");
        assert_eq!(refused(vectors, &[]), "one directory is wanted");
        assert_eq!(refused(vectors, &["nowhere"]), "`nowhere` is no directory");
        assert_eq!(refused(vectors, &[folder, "--engine=web"]), "no engine `web`; there is native, wasm");
        assert_eq!(
            refused(fixtures, &[folder, "--engine", "wsam"]),
            "no engine `wsam`; did you mean `wasm`?"
        );
        assert_eq!(refused(conformance, &["a"]), "two folders are needed: scenarios and traces");
        assert_eq!(refused(conformance, &["--random=x", "a"]), "`x` is no number of scenarios");
        assert_eq!(refused(conformance, &["a", "b", "--engine=wbe"]), "no engine `wbe`; did you mean `web`?");
        let error = refused(conformance, &["a", "b", "--ag-ui"]);
        assert_eq!(error, "`--ag-ui` reads runs of the package: it wants `--engine wasm`");
        let error = refused(conformance, &["a", "b", "--queues=x"]);
        assert_eq!(error, "no kind of queues `x`; there is inbox, provider");
    }
}
