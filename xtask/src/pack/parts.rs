//! The wasm module in three parts, for pages: what runs until a first request has been sent, what reads its
//! answer, the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use split::Module;

use crate::run::{command, read, root};

/// Finds out what runs, and when.
const SCRIPT: &str = "xtask/src/pack/trace.mjs";

/// The names of the files, or what is known of them, in the order in which a page loads them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts<T> {
    pub(super) first: T,
    pub(super) answer: T,
    pub(super) rest: T,
}

impl<T> Parts<T> {
    pub(super) fn all(&self) -> [&T; 3] {
        [&self.first, &self.answer, &self.rest]
    }

    pub(super) fn try_map<U>(&self, change: impl Fn(&T) -> Result<U>) -> Result<Parts<U>> {
        Ok(Parts { first: change(&self.first)?, answer: change(&self.answer)?, rest: change(&self.rest)? })
    }
}

/// What makes the parts beside the module: the crate that cuts it, and the recorded answers that the script
/// reads.
pub(super) fn sources() -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut folders = vec![root().join("xtask/split/src")];
    for folder in fs::read_dir(root().join("tests/data/fixtures")).context("there are no recorded answers")? {
        folders.push(folder?.path());
    }
    let mut found = BTreeMap::new();
    for file in folders.iter().flat_map(fs::read_dir).flatten() {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "rs" || extension == "sse") {
            found.insert(path.clone(), fs::read(path)?);
        }
    }
    Ok(found)
}

/// The functions that ran until a first request had left, and until an answer had been read or a request of a
/// rarer kind had left.
#[derive(Deserialize)]
struct Traced {
    sent: BTreeSet<u32>,
    read: BTreeSet<u32>,
}

/// Splits the module; `facade` is the folder of the joined scripts, which run it.
pub(super) fn split(wasm: &Path, facade: &Path, names: &Parts<String>, folder: &Path) -> Result<()> {
    let bytes = fs::read(wasm)?;
    let module = Module::read(&bytes).context("the module cannot be split")?;
    // Whoever makes a call undone puts back the memory above the end of the stack.
    module.check_stack()?;
    let copy = folder.join("traced.wasm");
    fs::write(&copy, module.traced()?)?;
    let printed = read(command("node").arg(root().join(SCRIPT)).arg(facade).arg(&copy))?;
    let Traced { sent, read } =
        serde_json::from_str(&printed).with_context(|| format!("{SCRIPT} printed something else"))?;
    if sent.is_empty() || read.is_subset(&sent) {
        bail!("{SCRIPT} ran no request, or read no answer");
    }
    for (name, part) in names.all().into_iter().zip(module.split(&[sent, read])?) {
        fs::write(folder.join(name), part)?;
    }
    Ok(())
}
