//! `cargo xtask pack`: what would be published, as files in a folder, and checked as its users will meet it.

mod gate;
mod rehearse;

pub use rehearse::run as rehearse;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::args::Args;
use crate::crates::{self, CRATES};
use crate::pack::{self, CargoToml, Kind};
use crate::run::{command, read, root, run as run_command, target};
use crate::setup;

/// Runs `cargo xtask pack [--out FOLDER] [--unchecked | --offline] [--release]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &["--unchecked", "--offline", "--release"], &["--out"])?;
    args.no_positional()?;
    let out = args.value("--out").map_or_else(|| target().join("xtask/packed"), PathBuf::from);
    let out = std::path::absolute(out)?;
    let cargo = CargoToml::read()?;
    if args.has("--release") {
        gate::check(&cargo)?;
    }
    setup::for_build()?;
    empty(&out)?;
    let package = pack::build(Kind::Release)?;
    let archives = pack_all(&package, &cargo, &out, args.has("--release"), args.has("--unchecked"))?;
    for archive in &archives {
        print!("{}", table(archive)?);
    }
    print!("\n{}", write_sums(&out, &archives)?);
    if let (false, Some(tarball)) = (args.has("--unchecked"), archives.first()) {
        check(tarball, args.has("--offline"))?;
    }
    println!("{} holds what would be published", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Packs the npm packages and the crates into a folder. The first archive is the package itself.
fn pack_all(
    package: &pack::Built,
    cargo: &CargoToml,
    out: &Path,
    is_release: bool,
    unchecked: bool,
) -> Result<Vec<PathBuf>> {
    package.sizes()?.check()?;
    check_manifest(&fs::read(package.folder.join("package.json"))?, is_release)?;
    let mut npm = command("npm");
    run_command(
        npm.arg("pack").arg(&package.folder).args(["--loglevel=error", "--pack-destination"]).arg(out),
    )?;
    let mut npm = command("npm");
    run_command(
        npm.arg("pack").arg(pack::create_folder()).args(["--loglevel=error", "--pack-destination"]).arg(out),
    )?;
    let tarball = out.join(format!("turnwheel-{}.tgz", cargo.version));
    let starter = out.join(format!("create-turnwheel-{}.tgz", cargo.version));
    Ok([tarball, starter].into_iter().chain(packed_crates(cargo, out, is_release, unchecked)?).collect())
}

/// Writes the hashes of the archives beside them, and returns the lines.
fn write_sums(out: &Path, archives: &[PathBuf]) -> Result<String> {
    let mut sums = String::new();
    for archive in archives {
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        sums.push_str(&format!("{}  {name}\n", pack::hex(&Sha256::digest(fs::read(archive)?))));
    }
    fs::write(out.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

/// Makes the folder empty, if all that is in it was put there by this command.
fn empty(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let file = entry?.path();
        let is_ours = file.extension().is_some_and(|kind| kind == "tgz" || kind == "crate")
            || file.ends_with("SHA256SUMS");
        if !is_ours {
            bail!("{} holds {}, which was not packed here", folder.display(), file.display());
        }
        fs::remove_file(file)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Checks what package.json promises and what it must not do.
fn check_manifest(text: &[u8], is_release: bool) -> Result<()> {
    let package: Value = serde_json::from_slice(text).context("in package.json")?;
    for key in ["license", "engines", "sideEffects", "files", "exports", "types"] {
        if package[key].is_null() {
            bail!("package.json has no `{key}`");
        }
    }
    for key in ["scripts", "dependencies", "optionalDependencies", "gypfile"] {
        if !package[key].is_null() {
            bail!(
                "package.json has `{key}`: the package runs nothing when it is installed, and brings nobody along"
            );
        }
    }
    if is_release && package["repository"].is_null() {
        bail!("package.json has no `repository`, and provenance wants one");
    }
    Ok(())
}

/// Makes the crates; cargo compiles each as it would be downloaded.
fn packed_crates(cargo: &CargoToml, out: &Path, is_release: bool, unchecked: bool) -> Result<Vec<PathBuf>> {
    let mut options = vec!["--locked"];
    if !is_release {
        options.push("--allow-dirty");
    }
    if unchecked {
        options.push("--no-verify");
    }
    let folder = crates::package(&options)?;
    let copy = |name: &&str| {
        let file = format!("{name}-{}.crate", cargo.version);
        let made = folder.join(&file);
        fs::copy(&made, out.join(&file)).with_context(|| format!("cargo made no {}", made.display()))?;
        Ok(out.join(file))
    };
    CRATES.iter().map(copy).collect()
}

/// Lists the files of an archive with their sizes.
fn table(archive: &Path) -> Result<String> {
    let list = read(command("node").arg(root().join("xtask/src/release/archive.mjs")).arg(archive))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("\n{name}, {} bytes\n", fs::metadata(archive)?.len());
    for line in list.lines() {
        let (size, path) = line.split_once('\t').context("archive.mjs printed no table")?;
        text.push_str(&format!("{size:>9}  {path}\n"));
    }
    Ok(text)
}

/// Runs the package as its users will, from this very file: publint, arethetypeswrong and every host.
fn check(tarball: &Path, offline: bool) -> Result<()> {
    let chromium = setup::chromium()?;
    let node = |words: &[&str]| {
        let mut node = command("node");
        run_command(node.args(words).env("CHROMIUM", &chromium).env("TURNWHEEL_TARBALL", tarball))
    };
    node(&["tests/packaging/run.mjs"])?;
    if offline {
        println!("Deno, Bun and the other hosts that are downloaded first are skipped: --offline");
        return Ok(());
    }
    node(&["--test", "tests/packaging/e2e.mjs"])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{ "license": "MIT", "engines": {}, "sideEffects": false, "files": [], "exports": {}, "types": "a" }"#;

    #[test]
    fn a_package_that_runs_something_when_installed_or_brings_others_along_is_refused() {
        assert!(check_manifest(GOOD.as_bytes(), false).is_ok());
        for key in ["scripts", "dependencies", "gypfile"] {
            let bad = GOOD.replacen('{', &format!("{{ \"{key}\": {{}},"), 1);
            let error = check_manifest(bad.as_bytes(), false).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        assert!(check_manifest(GOOD.replace("engines", "motors").as_bytes(), false).is_err());
        assert!(check_manifest(GOOD.as_bytes(), true).unwrap_err().to_string().contains("repository"));
    }

    #[test]
    fn a_folder_with_files_of_somebody_else_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("xtask-packed-{}", std::process::id()));
        empty(&folder).unwrap();
        fs::write(folder.join("turnwheel-0.0.1.tgz"), "").unwrap();
        empty(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::write(folder.join("thesis.txt"), "all of it").unwrap();
        assert!(empty(&folder).is_err());
        assert!(folder.join("thesis.txt").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
