//! `cargo xtask site`: writes the pages, the demo and the viewer of tapes as static files.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::{Args, Misuse};
use crate::pack::{self, Built, Kind};
use crate::run::{command, exit_code, root, target};
use crate::setup;

/// Runs `cargo xtask site --out FOLDER`. The folder is relative to where the user is.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--out"])?;
    args.no_positional()?;
    let Some(out) = args.value("--out") else {
        return Err(Misuse("`--out FOLDER` says where the site is written".to_owned()).into());
    };
    setup::for_build()?;
    let package = pack::build(Kind::Release)?;
    write(&package, &std::path::absolute(out)?)
}

/// Writes the site of a package into a folder.
pub fn write(package: &Built, out: &Path) -> Result<ExitCode> {
    let sizes = target().join("xtask/sizes.txt");
    fs::write(&sizes, package.sizes()?.table())?;
    let mut node = command("node");
    node.arg(root().join("www/site/build.mjs")).arg(out).arg(&package.folder);
    node.arg("--sizes").arg(&sizes);
    Ok(exit_code(node.status().context("cannot start node")?))
}
