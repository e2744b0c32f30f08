//! The JavaScript of the package: what is vendored, and the modules of the facade, joined by esbuild.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::files::Files;
use super::manifest::Vendor;
use crate::run::{command, feed, read, root};

impl Vendor {
    /// Our own files, unchanged.
    pub(super) fn sources(&self) -> Result<Vec<String>> {
        let read =
            |file| fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"));
        let own = [read(&self.edits), Ok(include_str!("vendor.mjs").to_owned())];
        self.replace.values().map(read).chain(own).collect()
    }
}

/// Bundles an npm module, minified, below a comment with its name and licence.
pub(super) fn vendor(vendored: &Vendor, out: &Path) -> Result<()> {
    let package = root().join("node_modules").join(&vendored.module).join("package.json");
    let package: Value = serde_json::from_slice(&fs::read(&package)?)?;
    let text = |key: &str| package[key].as_str().with_context(|| format!("{} has no {key}", vendored.module));
    let (version, licence) = (text("version")?, text("license")?);
    let entry = format!("export {{ {} }} from {:?};", vendored.exports.join(", "), vendored.module);
    let banner = format!(
        "/*! {} {version}, shortened; {licence} licence, see LICENSE-THIRD-PARTY */",
        vendored.module
    );
    let mut node = command("node");
    node.current_dir(root()).arg("xtask/src/pack/vendor.mjs").args([&entry, &banner, &vendored.edits]);
    node.args(vendored.replace.iter().map(|(file, ours)| format!("{file}={ours}")));
    let code = read(&mut node)?;
    fs::write(out, code).with_context(|| format!("cannot write {}", out.display()))
}

/// Joins the modules of the facade: what several entries share becomes one file. A host that loads each
/// module separately, as Node and a page without a bundler do, starts in half the time.
pub(super) fn join(parts: &BTreeMap<String, Vec<u8>>, entries: &[String], folder: &Path) -> Result<()> {
    let (from, out) = (folder.join("parts"), folder.join("out"));
    fs::create_dir_all(&out)?;
    Files(parts.clone()).lay_out(&from)?;
    let outdir = format!("--outdir={}", out.display());
    let mut flags =
        vec!["--bundle", "--splitting", "--format=esm", "--target=es2022", "--legal-comments=inline"];
    // Inlines constants.
    flags.push("--minify-syntax");
    // The wasm file, and what the host or the user supplies, stay imports by name.
    flags.extend([
        "--packages=external",
        "--external:*.wasm",
        "--chunk-names=core-[hash]",
        "--outbase=.",
        &outdir,
    ]);
    flags.extend(entries.iter().map(String::as_str));
    esbuild(&from, "", &flags)?;
    let mut joined = Files::default();
    joined.add_folder(&out, "")?;
    for (name, code) in joined.0 {
        // An import without names is for side effects, which these files do not have;
        // bundlers would warn about it.
        let code = String::from_utf8(code)?;
        let is_bare =
            |line: &&str| line.starts_with("import \"./core-") || line.starts_with("import \"../core-");
        let kept: String = code.split_inclusive('\n').filter(|line| !is_bare(line)).collect();
        fs::write(out.join(name), kept)?;
    }
    Ok(())
}

/// Runs esbuild on code that may import what is importable from a folder.
///
/// Runs the program itself, not the script in its package: the script adds a page of
/// stack trace to every error.
pub(super) fn esbuild(folder: &Path, code: &str, flags: &[&str]) -> Result<String> {
    let platforms = fs::read_dir(root().join("node_modules/@esbuild")).context("esbuild is not installed")?;
    let mut programs = platforms.filter_map(|entry| Some(entry.ok()?.path().join("bin/esbuild")));
    let program =
        programs.find(|program| program.is_file()).context("npm installed no esbuild for this machine")?;
    let mut esbuild = command(&program.to_string_lossy());
    feed(esbuild.current_dir(folder).arg("--log-level=warning").args(flags), code)
}
