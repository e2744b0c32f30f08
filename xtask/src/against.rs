//! What `--against` names: a package in a folder, or a revision of this repository, which is built in a worktree
//! of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::args::Misuse;
use crate::run::{command, root, run, target};

/// A file that every package has.
const ENTRY: &str = "entry/node.js";

/// The package to compare with.
#[derive(Debug, PartialEq)]
pub enum Old {
    Folder(PathBuf),
    /// The hash of a commit.
    Commit(String),
}

/// Finds what is named, without building anything.
///
/// # Errors
/// [`Misuse`] if it is neither.
pub fn find(named: &str) -> Result<Old> {
    if let Ok(folder) = fs::canonicalize(named)
        && folder.join(ENTRY).is_file()
    {
        return Ok(Old::Folder(folder));
    }
    let commit = command("git")
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{named}^{{commit}}")])
        .output()
        .context("cannot start git")?;
    let hash = String::from_utf8_lossy(&commit.stdout).trim().to_owned();
    if !commit.status.success() || hash.is_empty() {
        let why =
            format!("`{named}` is neither a package (it has no {ENTRY}) nor a revision of this repository");
        return Err(Misuse(why).into());
    }
    Ok(Old::Commit(hash))
}

impl Old {
    /// Returns the hash of the commit, if it is one.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Old::Folder(_) => None,
            Old::Commit(hash) => Some(hash),
        }
    }

    /// Returns the folder of the package, which is built unless it was before.
    ///
    /// # Errors
    /// If the revision does not build.
    pub fn package(&self) -> Result<PathBuf> {
        match self {
            Old::Folder(folder) => Ok(folder.clone()),
            Old::Commit(hash) => built(hash),
        }
    }
}

/// Builds a commit in `target/xtask/against/HASH`. All such worktrees share a target folder, so that dependencies
/// are compiled once; it is not ours, whose files have the same names.
fn built(hash: &str) -> Result<PathBuf> {
    let all = target().join("xtask/against");
    let tree = all.join(hash);
    let package = tree.join("pkg");
    if package.join(ENTRY).is_file() {
        return Ok(package);
    }
    eprintln!("against: building {hash} in {}", tree.display());
    if !tree.join("Cargo.toml").is_file() {
        fs::create_dir_all(&all).with_context(|| format!("cannot make {}", all.display()))?;
        // Forced: git remembers a worktree whose folder was deleted, with target/ as a rule.
        run(command("git").args(["worktree", "add", "--detach", "--force"]).arg(&tree).arg(hash))?;
    }
    link_npm_packages(&tree);
    let mut build = Command::new("cargo");
    build.current_dir(&tree).args(["xtask", "build"]).env("CARGO_TARGET_DIR", all.join("target"));
    // What the running cargo has set holds for this checkout: the other one may name another toolchain.
    for name in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN"] {
        build.env_remove(name);
    }
    let complaint = run(&mut build).err();
    if !package.join(ENTRY).is_file() {
        let why = complaint.map_or("it left no package".to_owned(), |error| format!("{error:#}"));
        bail!("{hash} cannot be built: {why}");
    }
    if complaint.is_some() {
        eprintln!("against: its own checks fail (see above), its package is there and is taken");
    }
    Ok(package)
}

/// Lends the npm packages that are installed here to a worktree that wants the same. Otherwise it installs its
/// own.
fn link_npm_packages(tree: &Path) {
    let lock = |folder: &Path| fs::read(folder.join("package-lock.json")).ok();
    let is_same = lock(tree).is_some_and(|wanted| lock(&root()) == Some(wanted));
    if let (true, Ok(installed)) = (is_same, fs::canonicalize(root().join("node_modules"))) {
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink(installed, tree.join("node_modules"));
        #[cfg(not(unix))]
        drop(installed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_a_folder_nor_a_revision_is_refused() {
        for named in ["nowhere", "--all", ""] {
            let error = find(named).unwrap_err().downcast::<Misuse>().unwrap().to_string();
            let why = "is neither a package (it has no entry/node.js) nor a revision of this repository";
            assert_eq!(error, format!("`{named}` {why}"));
        }
    }

    #[test]
    fn a_folder_is_a_package_by_its_entry() {
        let folder = std::env::temp_dir().join(format!("turnwheel-against-{}", std::process::id()));
        fs::create_dir_all(folder.join("entry")).unwrap();
        assert!(find(&folder.to_string_lossy()).is_err());
        fs::write(folder.join(ENTRY), "").unwrap();
        let found = find(&folder.to_string_lossy()).unwrap();
        assert_eq!(found.commit(), None);
        assert_eq!(found.package().unwrap(), fs::canonicalize(&folder).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}
