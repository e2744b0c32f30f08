//! `cargo xtask bench`: compares the package with no engine at all and with its peers, on the same
//! verified work. The harness is `benches/run.mjs`.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::pack::{self, Kind};
use crate::run::{command, read, root, run as run_command};
use crate::setup;

const FLAGS: [&str; 4] = ["--engines", "--jobs", "--reps", "--node"];

/// Runs `cargo xtask bench [--engines A,B] [--jobs W1,W2] [--reps N] [--node PATH]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &FLAGS)?;
    args.no_positional()?;
    setup::for_build()?;
    pack::build(Kind::Release)?;
    let mut bench = command("node");
    bench.arg(root().join("benches/run.mjs"));
    let given: Vec<(&str, &str)> =
        FLAGS.into_iter().filter_map(|flag| Some((flag, args.value(flag)?))).collect();
    for (flag, value) in &given {
        bench.args([flag, value]);
    }
    let is_part = given.iter().any(|(flag, _)| matches!(*flag, "--engines" | "--jobs"));
    // Partial measurements are only printed; the file holds complete ones.
    if !is_part {
        bench.arg("--write");
    }
    if given.iter().all(|(flag, value)| *flag != "--engines" || !is_own(value)) {
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
