//! `cargo xtask deny`: whom the build and the package may depend on, as deny.toml says it.
//!
//! cargo-deny checks the crates, zizmor the workflows of GitHub, and npm is asked for what is known to be vulnerable. What
//! package-lock.json says of npm's tools is checked here: tools that do it look at the packages that are installed, which are
//! those of one kind of machine. A check that cannot be made is skipped with its reason, never silently.

mod npm;
mod tools;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::args::Args;
use crate::licence::taken_under;
use crate::run::root;

pub use tools::install;

/// What a check found out.
#[derive(Debug, PartialEq)]
enum Verdict {
    Fine,
    /// What is wrong, a line each.
    Broken(Vec<String>),
    /// Why it could not be made.
    Skipped(String),
}

impl From<Vec<String>> for Verdict {
    fn from(flaws: Vec<String>) -> Self {
        if flaws.is_empty() { Self::Fine } else { Self::Broken(flaws) }
    }
}

type Check = (&'static str, fn() -> Result<Verdict>);

const EVERY_DAY: &[Check] = &[
    ("cargo-deny: bans, build scripts, licences, sources", tools::crates),
    ("zizmor: the workflows", tools::workflows),
    ("npm's tools come from the registry, each under its hash", npm::sources),
    ("the licences of npm's tools", npm::licences),
];

const ADVISORIES: &[Check] = &[("cargo-deny: advisories", tools::advisories), ("npm audit", npm::advisories)];

/// Runs `cargo xtask deny [--advisories]`. Prints what Node's test runner would, so that the same eyes read it.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &["--advisories"], &[])?;
    args.no_positional()?;
    let checks = if args.has("--advisories") { ADVISORIES } else { EVERY_DAY };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (number, (name, check)) in (1..).zip(checks) {
        // A check that breaks has not found that all is well.
        match check().unwrap_or_else(|error| Verdict::Broken(vec![format!("{error:#}")])) {
            Verdict::Fine => {
                passed += 1;
                println!("ok {number} - {name}");
            }
            Verdict::Skipped(why) => {
                skipped += 1;
                println!("ok {number} - {name} # SKIP {why}");
            }
            Verdict::Broken(flaws) => {
                failed += 1;
                println!("not ok {number} - {name}");
                flaws.iter().for_each(|flaw| println!("#   {flaw}"));
            }
        }
    }
    println!("# pass {passed}\n# fail {failed}\n# skipped {skipped}");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the licences that deny.toml allows.
fn allowed() -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Deny {
        licenses: Licences,
    }
    #[derive(Deserialize)]
    struct Licences {
        allow: Vec<String>,
    }
    let text = fs::read_to_string(root().join("deny.toml")).context("cannot read deny.toml")?;
    let deny: Deny = toml::from_str(&text).context("in deny.toml")?;
    Ok(deny.licenses.allow)
}

/// Returns what is wrong with the licence of something, if anything is.
fn flaw_of_licence(name: &str, licence: Option<&str>, allowed: &[&str]) -> Option<String> {
    let Some(licence) = licence else { return Some(format!("{name} does not tell its licence")) };
    let error = taken_under(licence, allowed).err()?;
    Some(format!("{name} is under {licence:?}: {error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_allowed_or_named_with_whoever_has_it() {
        let flaw = |licence| flaw_of_licence("slab 1.0.0", licence, &["MIT", "Apache-2.0"]);
        assert_eq!(flaw(Some("MIT OR GPL-3.0-only")), None);
        assert_eq!(flaw(None).unwrap(), "slab 1.0.0 does not tell its licence");
        let flaw = flaw(Some("AGPL-3.0-only")).unwrap();
        assert!(flaw.starts_with("slab 1.0.0 is under \"AGPL-3.0-only\": "), "{flaw}");
        assert!(allowed().unwrap().contains(&"MIT".to_owned()));
    }
}
