//! What must be so before anything is released.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::pack::CargoToml;
use crate::run::{command, read, root};
use crate::setup;

/// What the conditions are about.
struct State<'a> {
    cargo: &'a CargoToml,
    /// The version of `turnwheel-web`, which is released together with `turnwheel`.
    web: &'a str,
    changelog: &'a str,
    /// What `git status --porcelain` prints.
    changes: &'a str,
    /// What `git tag --points-at HEAD` prints.
    tags: &'a str,
    own_std: bool,
}

/// Checks all conditions.
///
/// # Errors
/// Names everything that is missing.
pub(super) fn check(cargo: &CargoToml) -> Result<()> {
    let missing = now(cargo)?;
    if !missing.is_empty() {
        bail!("this cannot be released:\n  {}", missing.join("\n  "));
    }
    Ok(())
}

/// What is missing for a release at present.
pub(super) fn now(cargo: &CargoToml) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Web {
        package: Package,
    }
    #[derive(Deserialize)]
    struct Package {
        version: String,
    }
    let web: Web =
        toml::from_str(&fs::read_to_string(root().join("web/Cargo.toml"))?).context("in web/Cargo.toml")?;
    let state = State {
        cargo,
        web: &web.package.version,
        changelog: &fs::read_to_string(root().join("CHANGELOG.md"))?,
        changes: &read(command("git").args(["status", "--porcelain"]))?,
        tags: &read(command("git").args(["tag", "--points-at", "HEAD"]))?,
        own_std: setup::std_source()?,
    };
    Ok(missing(&state))
}

fn missing(state: &State) -> Vec<String> {
    let version = &state.cargo.version;
    let mut missing = Vec::new();
    if state.cargo.repository.is_none() {
        missing.push(
            "no address of the repository: set `repository` under [workspace.package] in Cargo.toml; \
             provenance, crates.io and readers need it"
                .to_owned(),
        );
    }
    if state.web != version {
        missing.push(format!(
            "turnwheel-web is {}, and turnwheel {version}: both are released together",
            state.web
        ));
    }
    let heading = state.changelog.lines().find(|line| line.starts_with(&format!("## {version}")));
    if heading.is_none_or(|heading| heading.contains("not released")) {
        missing.push(format!("CHANGELOG.md has no section `## {version}` with the day of the release"));
    }
    if !state.changes.trim().is_empty() {
        missing.push(format!(
            "there are changes that no commit has:\n    {}",
            state.changes.trim().replace('\n', "\n    ")
        ));
    }
    if !state.tags.lines().any(|tag| tag == format!("v{version}")) {
        missing.push(format!("this commit has no tag v{version}"));
    }
    if !state.own_std {
        missing.push(
            "the sources of the standard library are missing: `rustup component add rust-src`".to_owned(),
        );
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(repository: Option<&str>) -> CargoToml {
        CargoToml { version: "1.2.0".to_owned(), repository: repository.map(str::to_owned) }
    }

    fn ready(cargo: &CargoToml) -> State<'_> {
        let changelog = "# Changelog\n\n## 1.2.0, 2026-12-01\n\n## 1.1.0, 2026-01-01\n";
        State { cargo, web: "1.2.0", changelog, changes: "", tags: "v1.2.0\nother\n", own_std: true }
    }

    #[test]
    fn what_is_ready_can_be_released() {
        assert_eq!(missing(&ready(&cargo(Some("https://git.example/a/b")))), Vec::<String>::new());
    }

    #[test]
    fn without_an_address_nothing_is_released() {
        let missing = missing(&ready(&cargo(None)));
        assert_eq!(missing.len(), 1);
        assert!(
            missing[0].contains("set `repository` under [workspace.package] in Cargo.toml"),
            "{missing:?}"
        );
    }

    #[test]
    fn each_condition_is_named() {
        let cargo = cargo(Some("https://git.example/a/b"));
        let named = |state: State, word: &str| {
            let missing = missing(&state);
            assert!(missing.len() == 1 && missing[0].contains(word), "{word}: {missing:?}");
        };
        named(State { web: "1.1.0", ..ready(&cargo) }, "turnwheel-web");
        named(State { changelog: "## 1.2.0, not released\n", ..ready(&cargo) }, "CHANGELOG.md");
        named(State { changelog: "## 1.1.0, 2026-01-01\n", ..ready(&cargo) }, "CHANGELOG.md");
        named(State { changes: " M src/lib.rs\n", ..ready(&cargo) }, "src/lib.rs");
        named(State { tags: "v1.2.0-rc.1\n", ..ready(&cargo) }, "tag v1.2.0");
        named(State { own_std: false, ..ready(&cargo) }, "rust-src");
    }
}
