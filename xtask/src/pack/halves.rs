//! The wasm module in two halves: what runs until the first request has left, and the rest. Pages load them one after the
//! other; all other hosts load the whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use module_halves::Module;

use crate::run::{command, read, root};

/// The names of the outputs.
pub(super) const FIRST: &str = "first.wasm";
pub(super) const REST: &str = "rest.wasm";

/// The script that runs a traced module up to the first request.
pub(super) const SCRIPT: &str = "xtask/src/pack/first-request.mjs";

/// Splits the module. What the first half needs is found by running it: the facade in this folder sends first requests of
/// all kinds with a module whose functions note that they were entered.
pub(super) fn split(wasm: &Path, facade: &Path, folder: &Path) -> Result<()> {
    let bytes = fs::read(wasm)?;
    let module = Module::read(&bytes).with_context(|| format!("{} cannot be split", wasm.display()))?;
    let traced = folder.join("traced.wasm");
    fs::write(&traced, module.traced()?)?;
    let entered = read(command("node").arg(root().join(SCRIPT)).arg(facade).arg(&traced))?;
    let kept: BTreeSet<u32> = serde_json::from_str(&entered)
        .with_context(|| format!("{SCRIPT} printed something else than numbers"))?;
    let halves = module.split(&kept)?;
    fs::write(folder.join(FIRST), halves.first)?;
    fs::write(folder.join(REST), halves.rest)?;
    Ok(())
}
