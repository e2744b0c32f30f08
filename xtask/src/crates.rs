//! `cargo xtask crates`: packs the crates and compiles each as somebody who downloads it would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::run::{cargo_home, command, run as run_command, target};

/// The crates that are published, in the order in which they depend on each other.
pub const CRATES: &[&str] = &["turnwheel", "turnwheel-web"];

/// Runs `cargo xtask crates`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    Args::parse(args, &[], &[])?.no_positional()?;
    package(&["--offline", "--allow-dirty"])?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `cargo package` for the crates, with further options.
///
/// Cargo compiles the second crate against the packed first one, through a registry that it makes for
/// the purpose. It takes for granted that a name and a version of a registry stay what they were: neither
/// what it unpacked nor what it compiled is looked at again. So both are removed first, or yesterday's
/// source would be checked.
///
/// Returns the folder that the archives are in.
pub fn package(options: &[&str]) -> Result<PathBuf> {
    if let Some(home) = cargo_home() {
        forget(&home.join("registry/src"))?;
    }
    let compiled = target().join("xtask/crates");
    if compiled.exists() {
        fs::remove_dir_all(&compiled).with_context(|| format!("cannot remove {}", compiled.display()))?;
    }
    let mut package = command("cargo");
    package.arg("package").args(CRATES.iter().flat_map(|name| ["--package", name])).args(options);
    run_command(package.arg("--target-dir").arg(&compiled))?;
    Ok(compiled.join("package"))
}

/// Removes what cargo unpacked of our crates from registries that are folders of this machine. Their
/// names begin with a dash, because a folder has no host; other registries stay as they are.
fn forget(sources: &Path) -> Result<()> {
    for registry in fs::read_dir(sources).into_iter().flatten() {
        let registry = registry?;
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for unpacked in fs::read_dir(registry.path()).into_iter().flatten() {
            let unpacked = unpacked?;
            let name = unpacked.file_name().to_string_lossy().into_owned();
            let is_ours = name.rsplit_once('-').is_some_and(|(name, _)| CRATES.contains(&name));
            if is_ours {
                let folder = unpacked.path();
                fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_crates_of_registries_on_this_machine_are_forgotten() {
        let sources = target().join("xtask/tests/forget");
        let _ = fs::remove_dir_all(&sources);
        let unpacked = [
            "-12ab/turnwheel-0.1.0",
            "-12ab/turnwheel-web-0.1.0",
            "-12ab/serde-1.0.0",
            "index.example-12ab/turnwheel-0.1.0",
        ];
        for folder in unpacked {
            fs::create_dir_all(sources.join(folder)).unwrap();
        }
        forget(&sources).unwrap();
        let left: Vec<&str> = unpacked.into_iter().filter(|folder| sources.join(folder).exists()).collect();
        assert_eq!(left, ["-12ab/serde-1.0.0", "index.example-12ab/turnwheel-0.1.0"]);
        forget(&sources.join("missing")).unwrap();
    }
}
