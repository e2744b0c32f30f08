//! The crate of the boundary, compiled to wasm.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use super::Kind;
use super::manifest::Manifest;
use crate::run::{cargo_home, command, read, root};

const TARGET: &str = "wasm32-unknown-unknown";

/// What cargo made.
pub(super) struct Compiled {
    pub(super) wasm: PathBuf,
    /// The manifests of the crates that were compiled for the module: ours, others', and those of the standard library
    /// if it was compiled too.
    pub(super) crates: BTreeSet<PathBuf>,
}

/// Compiles a crate to wasm.
pub(super) fn compile(
    manifest: &Manifest,
    (engine, profile): (&str, &str),
    kind: Kind,
    own_std: bool,
) -> Result<Compiled> {
    let profile = if kind == Kind::Dev { &manifest.cargo.dev_profile } else { profile };
    let mut cargo = command("cargo");
    cargo.args(["rustc", "--package", engine, "--lib", "--target", TARGET]);
    cargo.args(["--profile", profile, "--message-format", "json-render-diagnostics"]);
    let mut flags = without_machine_paths()?;
    if own_std {
        // The meaning of these flags depends on the version of rustc, which rust-toolchain.toml pins.
        cargo.env("RUSTC_BOOTSTRAP", "1").args(&manifest.std.flags);
        flags.extend_from_slice(&manifest.std.rustflags);
        let further = manifest.modules.values().find(|module| module.engine == engine);
        flags.extend_from_slice(further.map_or(&manifest.cargo.rustflags, |module| &module.rustflags));
    }
    without_own_flags(&mut cargo);
    let flags = format!("target.{TARGET}.rustflags={}", serde_json::to_string(&flags)?);
    cargo.args(["--config", &flags]);
    let library = engine.replace('-', "_");
    let mut compiled = Compiled { wasm: PathBuf::new(), crates: BTreeSet::new() };
    for line in read(&mut cargo)?.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let files = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // Build scripts and macros are compiled for the machine that builds.
        let files: Vec<&Path> = files.map(Path::new).filter(|file| is_for_target(file)).collect();
        if let (false, Some(of)) = (files.is_empty(), message["manifest_path"].as_str()) {
            compiled.crates.insert(of.into());
        }
        let is_module = |file: &&&Path| file.extension().is_some_and(|kind| kind == "wasm");
        if let (true, Some(file)) =
            (message["target"]["name"] == library.as_str(), files.iter().find(is_module))
        {
            compiled.wasm = (*file).to_owned();
        }
    }
    if compiled.wasm.as_os_str().is_empty() {
        bail!("cargo said nothing about a .wasm file");
    }
    Ok(compiled)
}

/// Leaves out what whoever builds has set for other crates: with `RUSTFLAGS`, cargo would forget the flags of the package.
fn without_own_flags(cargo: &mut Command) {
    let is_own = |name: &str| {
        name.ends_with("RUSTFLAGS") || name.starts_with("CARGO_PROFILE_") || name == "CARGO_INCREMENTAL"
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_own) {
            cargo.env_remove(name);
        }
    }
}

fn is_for_target(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == TARGET)
}

/// Returns flags that remove this machine's folders from panic messages: they are private, they differ
/// from machine to machine, and they add bytes to the package.
fn without_machine_paths() -> Result<Vec<String>> {
    // If the sources of the standard library are installed, panic messages name them by this path.
    let sysroot = read(command("rustc").args(["--print", "sysroot"]))?;
    let mut prefixes = vec![root(), Path::new(sysroot.trim()).join("lib/rustlib/src/rust")];
    if let Some(sources) = cargo_home().map(|home| home.join("registry/src")) {
        let registries = fs::read_dir(&sources).into_iter().flatten();
        // What begins with a dash is a folder of this machine that `cargo package` took for a registry.
        let remote =
            registries.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('-'));
        prefixes.extend(remote.map(|entry| entry.path()));
        // Before the first build there is no folder for a registry yet.
        prefixes.push(sources);
    }
    // The same flags in every run, or cargo recompiles everything; of two that fit, rustc takes the last.
    prefixes.sort();
    Ok(prefixes.iter().map(|folder| format!("--remap-path-prefix={}/=", folder.display())).collect())
}
