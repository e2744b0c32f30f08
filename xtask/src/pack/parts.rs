//! The wasm module in parts, for pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use module_halves::Module;
use serde::Deserialize;

use crate::run::{command, read, root};

/// Finds out what runs, and when.
const SCRIPT: &str = "xtask/src/pack/trace.mjs";

/// From how many bytes on it pays to take out what did not run, beside what its call passes; found by trying.
const LEAST: usize = 24;

/// The name of a part's file.
pub(super) fn file_of(pattern: &str, part: &str) -> String {
    pattern.replace('*', part)
}

/// What the script reads beside the module: recorded answers.
pub(super) fn recordings() -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for folder in fs::read_dir(root().join("tests/data/fixtures")).context("there are no recorded answers")? {
        let Ok(files) = fs::read_dir(folder?.path()) else { continue };
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "sse") {
                found.insert(path.clone(), fs::read(path)?);
            }
        }
    }
    Ok(found)
}

/// What ran until a first request had left, and until an answer had been read, by wire.
#[derive(Deserialize)]
struct Traced {
    sent: BTreeMap<String, BTreeSet<u32>>,
    read: BTreeMap<String, BTreeSet<u32>>,
}

/// Splits the module; `facade` is the folder of the joined scripts, which run it. What did not run of functions that did is
/// taken out of them first: what never ran, and then what only answers take.
pub(super) fn split(wasm: &Path, facade: &Path, parts: &[String], folder: &Path) -> Result<()> {
    let mut whole = wasm.to_owned();
    for (name, takes_answers) in [("without-rest.wasm", true), ("without-answers.wasm", false)] {
        let bytes = fs::read(&whole)?;
        let (module, traced) = trace(&bytes, facade, folder)?;
        let sent = traced.sent.values().flatten();
        let answered = traced.read.values().flatten().filter(|_| takes_answers);
        let outlined = module.outlined(&sent.chain(answered).copied().collect(), LEAST)?;
        whole = folder.join(name);
        fs::write(&whole, outlined)?;
    }
    let bytes = fs::read(&whole)?;
    let (module, traced) = trace(&bytes, facade, folder)?;
    let sets = sets(&module, &traced, parts)?;
    for (name, bytes) in parts.iter().zip(module.split(&sets)?) {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

fn trace<'a>(bytes: &'a [u8], facade: &Path, folder: &Path) -> Result<(Module<'a>, Traced)> {
    let module = Module::read(bytes).context("the module cannot be split")?;
    let traced: PathBuf = folder.join("traced.wasm");
    fs::write(&traced, module.traced()?)?;
    let printed = read(command("node").arg(root().join(SCRIPT)).arg(facade).arg(&traced))?;
    let traced =
        serde_json::from_str(&printed).with_context(|| format!("{SCRIPT} printed something else"))?;
    Ok((module, traced))
}

/// The functions of each part: what every request takes; what a wire takes beside that for its requests; what reads an
/// answer, on any wire. All others are the rest.
fn sets(module: &Module<'_>, traced: &Traced, parts: &[String]) -> Result<Vec<BTreeSet<u32>>> {
    let [_, wires @ .., _, _] = parts else { bail!("wasm-pack.toml names too few parts") };
    let functions = |ran: &BTreeMap<String, BTreeSet<u32>>| -> Result<Vec<(String, BTreeSet<u32>)>> {
        ran.iter().map(|(wire, ran)| Ok((wire.clone(), module.entered(ran)?))).collect()
    };
    let (sent, read) = (functions(&traced.sent)?, functions(&traced.read)?);
    if !sent
        .iter()
        .map(|(wire, _)| wire)
        .collect::<BTreeSet<_>>()
        .iter()
        .eq(&wires.iter().collect::<BTreeSet<_>>())
    {
        bail!("wasm-pack.toml names other wires than {SCRIPT}");
    }
    // What one wire takes for a request and another for an answer is not that wire's own.
    let is_shared = |wire: &String, function: &u32| {
        sent.iter().chain(&read).any(|(other, ran)| other != wire && ran.contains(function))
    };
    let shared =
        sent.iter().flat_map(|(wire, ran)| ran.iter().filter(move |function| is_shared(wire, function)));
    let mut sets: Vec<BTreeSet<u32>> = vec![shared.copied().collect()];
    for wire in wires {
        let own = sent.iter().find(|(known, _)| known == wire).map(|(_, ran)| ran.clone());
        sets.push(own.unwrap_or_default());
    }
    sets.push(read.into_iter().flat_map(|(_, ran)| ran).collect());
    Ok(sets)
}
