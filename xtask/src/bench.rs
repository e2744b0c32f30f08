//! `cargo xtask bench`: compares the package with no engine at all and with its peers, on the same
//! verified work. The harness is `benches/run.mjs`.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::against;
use crate::args::{Args, Misuse};
use crate::pack::{self, Kind};
use crate::run::{command, exit_code, read, root, run as run_command};
use crate::setup;

/// The options of a comparison with peers, and of one with another build of the package.
const WITH_PEERS: [&str; 3] = ["--engines", "--jobs", "--reps"];
const WITH_A_BUILD: [&str; 2] = ["--against", "--rounds"];

/// Runs `cargo xtask bench`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let options: Vec<&str> = [&WITH_PEERS[..], &WITH_A_BUILD, &["--node"]].concat();
    let args = Args::parse(args, &["--page", "--tape"], &options)?;
    let is_given = |name: &&&str| args.value(name).is_some();
    if args.has("--tape") {
        let is_other = |name: &&str| args.has("--page") || args.value(name).is_some();
        let mut others = WITH_PEERS.iter().chain(&["--against", "--node"]);
        if let Some(other) = others.find(|name| is_other(name)) {
            let other = if args.has("--page") { "--page" } else { other };
            let why = "`--tape` compares runs that are recorded with runs that are not";
            return Err(Misuse(format!("`{other}` does not go with it: {why}")).into());
        }
        return tape(&args);
    }
    if args.has("--page") {
        let other = WITH_PEERS.iter().chain(&["--against", "--node"]).find(is_given);
        return match other {
            Some(other) => {
                let why = "`--page` opens pages in Chromium and measures one thing";
                Err(Misuse(format!("`{other}` does not go with it: {why}")).into())
            }
            None => page(&args),
        };
    }
    match (args.value("--against"), WITH_PEERS.iter().find(is_given)) {
        (Some(_), Some(other)) => {
            let why = "`--against` compares two builds, cell by cell";
            Err(Misuse(format!("`{other}` does not go with it: {why}")).into())
        }
        (Some(old), None) => against(old, &args),
        (None, _) if args.value("--rounds").is_some() => {
            Err(Misuse("`--rounds` belongs to `--against` and `--page`; here it is `--reps`".to_owned())
                .into())
        }
        (None, _) => with_peers(&args),
    }
}

/// Compares the package with another build of it, or with that of a revision, in one run, interleaved. Fails if a
/// cell got worse by more than its noise.
fn against(old: &str, args: &Args) -> Result<ExitCode> {
    let old = against::find(old)?;
    setup::for_build()?;
    let old = old.package()?;
    let new = pack::build(Kind::Release)?.folder;
    let mut bench = command("node");
    bench.arg(root().join("benches/against.mjs")).args([old, new]).args(&args.positional);
    for flag in ["--rounds", "--node"] {
        bench.args(args.value(flag).map(|value| format!("{flag}={value}")));
    }
    Ok(exit_code(bench.status().context("cannot start node")?))
}

/// Measures, beside the peers, how long a page on a slow network waits for the first text. Writes benches/PAGE.md, unless
/// a number of rounds is asked for.
fn page(args: &Args) -> Result<ExitCode> {
    args.no_positional()?;
    setup::for_build()?;
    pack::build(Kind::Release)?;
    install_peers()?;
    let mut visit = command("node");
    visit.arg(root().join("benches/page.mjs")).env("CHROMIUM", setup::chromium()?);
    visit.arg(args.value("--rounds").map_or("--write".to_owned(), |rounds| format!("--rounds={rounds}")));
    Ok(exit_code(visit.status().context("cannot start node")?))
}

/// Measures what recording costs, in this build, with a recorder and without one in turns.
fn tape(args: &Args) -> Result<ExitCode> {
    setup::for_build()?;
    pack::build(Kind::Release)?;
    let mut bench = command("node");
    bench.arg("--expose-gc").arg(root().join("benches/tape.mjs")).args(&args.positional);
    if let Some(rounds) = args.value("--rounds") {
        bench.args(["--rounds", rounds]);
    }
    Ok(exit_code(bench.status().context("cannot start node")?))
}

fn with_peers(args: &Args) -> Result<ExitCode> {
    args.no_positional()?;
    setup::for_build()?;
    pack::build(Kind::Release)?;
    let mut bench = command("node");
    bench.arg(root().join("benches/run.mjs"));
    for flag in WITH_PEERS.iter().chain(&["--node"]) {
        if let Some(value) = args.value(flag) {
            bench.args([flag, value]);
        }
    }
    let is_part = ["--engines", "--jobs"].iter().any(|flag| args.value(flag).is_some());
    // Partial measurements are only printed; the file holds complete ones.
    if !is_part {
        bench.arg("--write");
    }
    if !args.value("--engines").is_some_and(is_own) {
        install_peers()?;
    }
    run_command(&mut bench)?;
    if !is_part {
        append_other_parts()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures where the time goes, the other hosts, and the memory of long runs and of many runs. Prints
/// the results and appends them to the file.
fn append_other_parts() -> Result<()> {
    let file = root().join("benches/RESULTS.md");
    let mut results = fs::read_to_string(&file).context("the bench wrote no RESULTS.md")?;
    let parts = [
        ("Where the time goes", "profile.mjs"),
        ("In other hosts", "hosts.mjs"),
        ("What runs hold", "limits.mjs"),
        ("What recording costs", "tape.mjs"),
        ("What a durable step costs", "durable.mjs"),
    ];
    for (title, script) in parts {
        let output = read(command("node").arg("--expose-gc").arg(root().join("benches").join(script)))?;
        print!("{output}");
        // Some of the scripts print a Markdown table, the others one for a terminal.
        let output = if output.contains("\n|---") { output } else { format!("```\n{output}```\n") };
        results.push_str(&format!("\n## {title}\n\n{output}"));
    }
    fs::write(&file, results).with_context(|| format!("cannot write {}", file.display()))
}

fn is_own(engines: &str) -> bool {
    engines.split(',').all(|name| matches!(name, "floor" | "turnwheel"))
}

/// Installs the peers, unless the versions of the lock file are installed already.
fn install_peers() -> Result<()> {
    let folder = root().join("benches");
    let lock = fs::read_to_string(folder.join("package-lock.json"))
        .context("benches/package-lock.json is missing")?;
    let stamp = folder.join("node_modules/.xtask-installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    eprintln!("bench: installing the peers");
    let mut npm = command("npm");
    npm.current_dir(&folder).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    run_command(&mut npm).context("npm could not install the peers")?;
    fs::write(&stamp, lock).with_context(|| format!("cannot write {}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_builds_and_peers_are_two_comparisons() {
        let refused = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            run(&words).unwrap_err().downcast::<Misuse>().unwrap().to_string()
        };
        assert!(refused(&["--against", "nowhere"]).starts_with("`nowhere` is neither a package ("));
        assert!(refused(&["--against", "pkg", "--jobs", "W1"]).starts_with("`--jobs` does not go with it: "));
        assert_eq!(
            refused(&["--rounds", "9"]),
            "`--rounds` belongs to `--against` and `--page`; here it is `--reps`"
        );
        assert!(refused(&["--page", "--jobs", "W1"]).starts_with("`--jobs` does not go with it: "));
        assert!(refused(&["--tape", "--jobs", "W1"]).starts_with("`--jobs` does not go with it: "));
        assert!(refused(&["--tape", "--page"]).starts_with("`--page` does not go with it: "));
    }
}
