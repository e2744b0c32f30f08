//! The contents of wasm-pack.toml.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::parts::Parts;
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
    #[serde(default)]
    pub(super) modules: BTreeMap<String, Module>,
    pub(super) budget: Budget,
}

/// A further wasm module of the package.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Module {
    pub(super) engine: String,
    pub(super) wasm: String,
    pub(super) glue: String,
    pub(super) profile: String,
    /// What rustc is told beside [`Std::rustflags`].
    #[serde(default)]
    pub(super) rustflags: Vec<String>,
    /// What wasm-opt is told in place of `-Oz`.
    pub(super) optimise: String,
    pub(super) budget: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) engine: String,
    pub(super) source: String,
    pub(super) out: String,
    pub(super) wasm: String,
    /// The files of its parts.
    pub(super) parts: Parts<String>,
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
    /// What rustc is told beside [`Std::rustflags`] when it compiles the engine.
    pub(super) rustflags: Vec<String>,
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
    /// What the page imports whose first load is measured.
    pub(super) app: Vec<String>,
    pub(super) first: usize,
    pub(super) everything: usize,
    /// The script with the engine inside.
    pub(super) inline: usize,
    /// What further entries may add; `tests/js/build/entry-sizes.test.mjs` measures it.
    #[serde(default)]
    pub(super) entries: BTreeMap<String, usize>,
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

/// What of Cargo.toml the package repeats. It is the only place where these are written.
pub struct CargoToml {
    pub version: String,
    /// Where the sources are: an address that a browser opens, without `.git`. None is set yet.
    pub repository: Option<String>,
}

impl CargoToml {
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(root().join("Cargo.toml")).context("cannot read Cargo.toml")?;
        Self::from_text(&text)
    }

    fn from_text(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Toml {
            package: Named,
            workspace: Workspace,
        }
        #[derive(Deserialize)]
        struct Named {
            version: String,
        }
        #[derive(Deserialize)]
        struct Workspace {
            package: Shared,
        }
        #[derive(Deserialize)]
        struct Shared {
            repository: String,
        }
        let toml: Toml = toml::from_str(text).context("in Cargo.toml")?;
        let address = toml.workspace.package.repository;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~/:".contains(letter);
        let has_path = address
            .strip_prefix("https://")
            .is_some_and(|rest| rest.split('/').all(|part| !part.is_empty()) && rest.contains('/'));
        if !address.is_empty() && (!has_path || !address.chars().all(is_plain) || address.ends_with(".git")) {
            bail!(
                "in Cargo.toml: `repository` of [workspace.package] is `{address}`; it has to be like \
                 https://github.com/OWNER/NAME, without .git and without a slash at the end"
            );
        }
        Ok(Self {
            version: toml.package.version,
            repository: Some(address).filter(|address| !address.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_the_repository_is_understood() {
        let manifest = Manifest::read().unwrap();
        assert_eq!(manifest.package.engine, "turnwheel-npm");
        assert!(manifest.budget.first > 0);
    }

    #[test]
    fn an_address_is_unset_or_one_that_npm_and_crates_io_take() {
        let read = |address: &str| {
            CargoToml::from_text(&format!(
                "[package]\nversion = \"1.0.0\"\n[workspace.package]\nrepository = \"{address}\"\n"
            ))
        };
        assert_eq!(read("").unwrap().repository, None);
        let whole = "https://git.example/owner/name";
        assert_eq!(read(whole).unwrap().repository.as_deref(), Some(whole));
        let wrong = [
            "http://git.example/a/b",
            "https://git.example",
            "https://git.example/a/b.git",
            "https://git.example/a/b/",
            "https://git.example/a b",
            "https://git.example/a?x=1",
            "git@git.example:a/b",
        ];
        for address in wrong {
            assert!(read(address).is_err(), "{address}");
        }
        assert!(CargoToml::from_text("[package]\nversion = \"1.0.0\"\n[workspace.package]\n").is_err());
        assert!(CargoToml::read().is_ok());
    }
}
