//! The wasm module in parts, in the order in which a run needs them. Pages load them one after the other; all other hosts
//! load the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use module_halves::Module;

use crate::run::{command, read, root};

/// The script that runs a traced module and prints which functions each part needs.
pub(super) const SCRIPT: &str = "xtask/src/pack/trace.mjs";

/// The file of a part, made from the name in wasm-pack.toml, in which `*` stands for that of the part.
pub(super) fn file_of(pattern: &str, part: &str) -> String {
    pattern.replace('*', part)
}

/// Splits the module into these parts, the last of which has what no other needs. What is in them is found by running it: the
/// facade in this folder sends first requests of all kinds, and reads answers, with a module whose functions note that they
/// were entered.
pub(super) fn split(wasm: &Path, facade: &Path, parts: &[String], folder: &Path) -> Result<()> {
    let bytes = fs::read(wasm)?;
    let module = Module::read(&bytes).with_context(|| format!("{} cannot be split", wasm.display()))?;
    let traced = folder.join("traced.wasm");
    fs::write(&traced, module.traced()?)?;
    let printed = read(command("node").arg(root().join(SCRIPT)).arg(facade).arg(&traced))?;
    let mut found: BTreeMap<String, BTreeSet<u32>> = serde_json::from_str(&printed)
        .with_context(|| format!("{SCRIPT} printed something else than the functions of each part"))?;
    let named = parts.split_last().context("wasm-pack.toml names no parts")?.1;
    let sets: Option<Vec<BTreeSet<u32>>> = named.iter().map(|name| found.remove(name)).collect();
    let (Some(sets), true) = (sets, found.is_empty()) else {
        bail!("wasm-pack.toml names other parts than {SCRIPT}");
    };
    for (name, bytes) in parts.iter().zip(module.split(&sets)?) {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}
