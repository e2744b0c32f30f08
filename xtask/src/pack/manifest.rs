//! The contents of wasm-pack.toml.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::run::root;

pub(super) const MANIFEST: &str = "wasm-pack.toml";

/// The contents of wasm-pack.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Manifest {
    pub(super) package: Package,
    pub(super) cargo: Cargo,
    pub(super) std: Std,
    pub(super) wasm_opt: WasmOpt,
    pub(super) vendor: BTreeMap<String, Vendor>,
    pub(super) budget: Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) engine: String,
    pub(super) source: String,
    pub(super) out: String,
    pub(super) wasm: String,
    pub(super) glue: String,
    pub(super) inner: Vec<String>,
    /// Scripts that `import()` loads when they are needed: an app's first load does not have them.
    pub(super) deferred: Vec<String>,
    pub(super) copy: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Cargo {
    pub(super) profile: String,
    pub(super) dev_profile: String,
    pub(super) flags: Vec<String>,
}

/// How the standard library is compiled together with the crate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Std {
    pub(super) flags: Vec<String>,
    pub(super) rustflags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WasmOpt {
    pub(super) flags: Vec<String>,
}

#[derive(Deserialize, Hash)]
#[serde(deny_unknown_fields)]
pub(super) struct Vendor {
    pub(super) module: String,
    pub(super) exports: Vec<String>,
    /// Files of the module that are replaced by our own.
    #[serde(default)]
    pub(super) replace: BTreeMap<String, String>,
    /// Our script that lists the edits in other files.
    pub(super) edits: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    pub(super) entry: String,
    pub(super) total: usize,
}

impl Manifest {
    pub(super) fn read() -> Result<Self> {
        let text =
            fs::read_to_string(root().join(MANIFEST)).with_context(|| format!("cannot read {MANIFEST}"))?;
        let manifest: Self = toml::from_str(&text).with_context(|| format!("in {MANIFEST}"))?;
        // Unknown files in this folder are deleted, so it must be one of ours.
        let out = &manifest.package.out;
        if out.is_empty() || out.contains(['/', '\\', '.']) {
            bail!(
                "in {MANIFEST}: `out` is `{out}`; it has to be the plain name of a folder in the repository"
            );
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_the_repository_is_understood() {
        let manifest = Manifest::read().unwrap();
        assert_eq!(manifest.package.engine, "turnwheel-npm");
        assert!(manifest.budget.total > 0);
    }
}
