//! The crates of Cargo.lock.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Verdict, allowed, flaw_of_licence};
use crate::locks::{CargoLock, LockedCrate};
use crate::run::{command, read, root};

/// As Cargo.lock writes it: the address of the index, whichever way the crates really come.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What cargo tells of all crates, for every platform.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
}

fn packages() -> Result<Vec<Package>> {
    let mut cargo = command("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let metadata: Metadata = serde_json::from_str(&read(&mut cargo)?).context("in cargo's metadata")?;
    Ok(metadata.packages)
}

pub(super) fn sources() -> Result<Verdict> {
    let (lock, packages) = (CargoLock::read()?, packages()?);
    let ours = packages.iter().filter(|package| package.manifest_path.starts_with(root()));
    let ours: Vec<&str> = ours.map(|package| package.name.as_str()).collect();
    Ok(lock.crates.iter().filter_map(|locked| flaw_of_source(locked, &ours)).collect::<Vec<_>>().into())
}

fn flaw_of_source(locked: &LockedCrate, ours: &[&str]) -> Option<String> {
    let LockedCrate { name, version, source, checksum } = locked;
    match source.as_deref() {
        None if ours.contains(&name.as_str()) => None,
        None => Some(format!("{name} {version} comes from a folder outside of this repository")),
        Some(CRATES_IO) if checksum.as_ref().is_some_and(|sum| sum.len() == 64) => None,
        Some(CRATES_IO) => Some(format!("{name} {version} has no checksum")),
        Some(other) => Some(format!("{name} {version} comes from {other}")),
    }
}

pub(super) fn licences() -> Result<Verdict> {
    let allowed = allowed()?;
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let flaw = |package: &Package| {
        let name = format!("{} {}", package.name, package.version);
        flaw_of_licence(&name, package.license.as_deref(), &allowed)
    };
    Ok(packages()?.iter().filter_map(flaw).collect::<Vec<_>>().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_comes_from_crates_io_under_its_checksum() {
        let flaw = |name: &str, source: Option<&str>, checksum: Option<String>| {
            let (name, version) = (name.to_owned(), "1.0.0".to_owned());
            flaw_of_source(
                &LockedCrate { name, version, source: source.map(str::to_owned), checksum },
                &["turnwheel"],
            )
        };
        let sum = || Some("a".repeat(64));
        assert_eq!(flaw("slab", Some(CRATES_IO), sum()), None);
        assert_eq!(flaw("turnwheel", None, None), None);
        assert!(flaw("slab", Some(CRATES_IO), None).is_some());
        assert!(flaw("slab", Some(CRATES_IO), Some(String::new())).is_some());
        assert!(flaw("slab", None, None).is_some());
        assert!(flaw("slab", Some("git+https://git.example/slab#1234"), None).is_some());
        assert!(flaw("slab", Some("registry+https://crates.example/index"), sum()).is_some());
    }

    #[test]
    fn the_lock_file_of_the_repository_keeps_to_it() {
        assert_eq!(sources().unwrap(), Verdict::Fine);
    }
}
