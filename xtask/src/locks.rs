//! What the two lock files pin: crates in Cargo.lock, npm's tools in package-lock.json.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::run::root;

/// A Cargo.lock.
#[derive(Deserialize)]
pub struct CargoLock {
    #[serde(rename = "package")]
    pub crates: Vec<LockedCrate>,
}

/// A crate that it pins. Those of a workspace have no checksum.
#[derive(Deserialize)]
pub struct LockedCrate {
    pub name: String,
    pub version: String,
    pub checksum: Option<String>,
}

impl CargoLock {
    /// Reads the one of the repository.
    pub fn read() -> Result<Self> {
        Self::at(&root().join("Cargo.lock"))
    }

    pub fn at(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        toml::from_str(&text).with_context(|| format!("in {}", file.display()))
    }

    pub fn find(&self, name: &str, version: &str) -> Option<&LockedCrate> {
        self.crates.iter().find(|locked| locked.name == name && locked.version == version)
    }
}

/// package-lock.json.
#[derive(Deserialize)]
pub struct PackageLock {
    /// By their folders; the workspace itself is "".
    pub packages: BTreeMap<String, LockedPackage>,
}

/// An npm package that it pins.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LockedPackage {
    pub version: Option<String>,
    pub resolved: Option<String>,
    pub integrity: Option<String>,
    pub license: Option<String>,
    pub link: bool,
}

impl PackageLock {
    pub fn read() -> Result<Self> {
        let text = fs::read(root().join("package-lock.json")).context("package-lock.json is missing")?;
        serde_json::from_slice(&text).context("in package-lock.json")
    }

    /// Returns the package that an import by this name finds.
    pub fn find(&self, name: &str) -> Option<&LockedPackage> {
        self.packages.get(&format!("node_modules/{name}"))
    }
}
