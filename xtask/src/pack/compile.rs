//! The crate of the boundary, compiled to wasm.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Kind;
use super::manifest::Manifest;
use crate::run::{command, read, root};

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles the crate to wasm and returns the path.
pub(super) fn compile(manifest: &Manifest, kind: Kind, own_std: bool) -> Result<PathBuf> {
    let profile = if kind == Kind::Dev { &manifest.cargo.dev_profile } else { &manifest.cargo.profile };
    let mut cargo = command("cargo");
    cargo.args(["rustc", "--package", &manifest.package.engine, "--lib", "--target", TARGET]);
    cargo.args(["--profile", profile, "--message-format", "json-render-diagnostics"]);
    let mut flags = without_machine_paths()?;
    if own_std {
        // The meaning of these flags depends on the version of rustc, which rust-toolchain.toml pins.
        cargo.env("RUSTC_BOOTSTRAP", "1").args(&manifest.std.flags);
        flags.extend_from_slice(&manifest.std.rustflags);
    }
    let flags = format!("target.{TARGET}.rustflags={}", serde_json::to_string(&flags)?);
    cargo.args(["--config", &flags]).args(&manifest.cargo.flags);
    let messages = read(&mut cargo)?;
    let library = manifest.package.engine.replace('-', "_");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == library.as_str())
        .filter_map(|message| message["filenames"].as_array().cloned())
        .flatten()
        .find_map(|file| file.as_str().filter(|file| file.ends_with(".wasm")).map(PathBuf::from))
        .context("cargo said nothing about a .wasm file")
}

/// Returns flags that remove this machine's folders from panic messages: they are private, they differ
/// from machine to machine, and they add bytes to the package.
fn without_machine_paths() -> Result<Vec<String>> {
    // If the sources of the standard library are installed, panic messages name them by this path.
    let sysroot = read(command("rustc").args(["--print", "sysroot"]))?;
    let mut prefixes = vec![root(), Path::new(sysroot.trim()).join("lib/rustlib/src/rust")];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    if let Some(registries) = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()) {
        prefixes.extend(registries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    prefixes.sort(); // The same flags in every run, or cargo recompiles everything.
    Ok(prefixes.iter().map(|folder| format!("--remap-path-prefix={}/=", folder.display())).collect())
}
