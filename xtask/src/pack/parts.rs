//! The wasm module in parts, for pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use module_halves::{Constants, Module};
use serde::Deserialize;

use super::manifest::MANIFEST;
use crate::run::{command, read, root};

/// Finds out what runs, and when.
const SCRIPT: &str = "xtask/src/pack/trace.mjs";

/// From how many bytes on it pays to take out what did not run, beside what its call passes; found by trying.
const LEAST: usize = 24;

/// The number of the part that is always there.
const FIRST: usize = 0;

/// The name of a part's file.
pub(super) fn file_of(pattern: &str, part: &str) -> String {
    pattern.replace('*', part)
}

/// What makes the parts beside the module: the crate that cuts it, and the recorded answers that the script reads.
pub(super) fn sources() -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(root().join("xtask/halves/src")).context("the crate that splits is gone")? {
        let path = file?.path();
        if path.is_file() {
            found.insert(path.clone(), fs::read(path)?);
        }
    }
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

/// What ran until a first request had left, until an answer had been read, and until a first request of a rarer kind had
/// left, by wire.
#[derive(Deserialize)]
struct Traced {
    sent: BTreeMap<String, BTreeSet<u32>>,
    read: BTreeMap<String, BTreeSet<u32>>,
    rarer: BTreeMap<String, BTreeSet<u32>>,
}

/// Splits the module; `linked` is what the linker made of it, and `facade` the folder of the joined scripts, which run it. What
/// did not run of functions that did is taken out of them first: what never ran, and then what did not for a first request.
pub(super) fn split(
    (linked, wasm): (&Path, &Path),
    facade: &Path,
    parts: &[String],
    folder: &Path,
) -> Result<()> {
    let mut whole = wasm.to_owned();
    for (name, takes_all) in [("without-rest.wasm", true), ("without-answers.wasm", false)] {
        let bytes = fs::read(&whole)?;
        let (module, Traced { sent, read, rarer }) = trace(&bytes, facade, folder)?;
        let later = read.values().chain(rarer.values()).flatten().filter(|_| takes_all);
        let ran = sent.values().flatten().chain(later).copied().collect();
        whole = folder.join(name);
        fs::write(&whole, module.outlined(&ran, LEAST)?)?;
    }
    let bytes = fs::read(&whole)?;
    let (module, traced) = trace(&bytes, facade, folder)?;
    let sets = sets(&module, &traced, parts)?;
    module.check_stack()?;
    let constants =
        Constants::read(&fs::read(linked)?).context("the linker did not say where its data is used")?;
    let wires = Parts::of(parts)?.wires.len();
    for (name, bytes) in parts.iter().zip(module.split(&sets, &constants, &|users| home(users, wires))?) {
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

/// The parts: one for every first request and one for those of each wire; the same for answers; one for rarer requests; the
/// rest.
pub(super) struct Parts<'a, T> {
    pub(super) first: &'a T,
    pub(super) wires: &'a [T],
    pub(super) answer: &'a T,
    pub(super) answers: &'a [T],
    pub(super) requests: &'a T,
    pub(super) rest: &'a T,
}

impl<'a, T> Parts<'a, T> {
    /// # Errors
    /// If it is another number of parts.
    pub(super) fn of(parts: &'a [T]) -> Result<Self> {
        let few = || anyhow!("{MANIFEST} names another number of parts");
        let [first, of_wires @ .., requests, rest] = parts else { return Err(few()) };
        let (wires, reading) = of_wires.split_at(of_wires.len() / 2);
        match reading {
            [answer, answers @ ..] if answers.len() == wires.len() => {
                Ok(Self { first, wires, answer, answers, requests, rest })
            }
            _ => Err(few()),
        }
    }
}

/// The part for what these parts use, by their numbers: one that is there whenever a function of one of them can run. What
/// reads answers is there before what rarer requests take, and all others before the rest; what a wire takes for requests is
/// there before what reads its answers.
fn home(users: &BTreeSet<usize>, wires: usize) -> usize {
    let (answer, requests) = (wires + 1, 2 * wires + 2);
    let mut early = users.iter().copied().filter(|user| *user <= requests);
    let Some(first) = early.next() else { return requests + 1 };
    let others: Vec<usize> = early.collect();
    match others.as_slice() {
        [] => first,
        [reads] if (1..=wires).contains(&first) && *reads == answer + first => first,
        _ if first >= answer => answer,
        _ => FIRST,
    }
}

/// Functions, by wire.
type Functions = BTreeMap<String, BTreeSet<u32>>;

/// The functions of each part: what every request takes; what a wire takes beside that for its requests; what reads an answer
/// on any wire, and what does on one alone; what rarer requests take. All others are the rest.
fn sets(module: &Module<'_>, traced: &Traced, parts: &[String]) -> Result<Vec<BTreeSet<u32>>> {
    let wires = Parts::of(parts)?.wires;
    let functions = |ran: &BTreeMap<String, BTreeSet<u32>>| -> Result<Functions> {
        ran.iter().map(|(wire, ran)| Ok((wire.clone(), module.entered(ran)?))).collect()
    };
    let (sent, read, rarer) = (functions(&traced.sent)?, functions(&traced.read)?, functions(&traced.rarer)?);
    let known: BTreeSet<&String> = sent.keys().collect();
    if known != wires.iter().collect() {
        bail!("wasm-pack.toml names other wires than {SCRIPT}");
    }
    // What one wire takes for a request and another for an answer is not that wire's own.
    let mut sets = by_wire(&sent, &[&sent, &read, &rarer], wires);
    sets.extend(by_wire(&read, &[&read, &rarer], wires));
    sets.push(rarer.into_values().flatten().collect());
    Ok(sets)
}

/// What several wires take, and then what each takes alone, by what they take in these cases.
fn by_wire(own: &Functions, cases: &[&Functions], wires: &[String]) -> Vec<BTreeSet<u32>> {
    let is_alone = |wire: &String, function: &u32| {
        let mut all = cases.iter().flat_map(|case| case.iter());
        !all.any(|(other, ran)| other != wire && ran.contains(function))
    };
    let mut shared = BTreeSet::new();
    let mut alone = BTreeMap::new();
    for (wire, ran) in own {
        let (one, more): (BTreeSet<u32>, BTreeSet<u32>) =
            ran.iter().partition(|function| is_alone(wire, function));
        shared.extend(more);
        alone.insert(wire, one);
    }
    let alone = wires.iter().map(|wire| alone.remove(wire).unwrap_or_default());
    std::iter::once(shared).chain(alone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_where_whatever_uses_it_finds_it() {
        // first, two wires, answer, those of the wires, requests, rest
        let [first, chat, gemini, answer, answer_chat, answer_gemini, requests, rest] =
            [0, 1, 2, 3, 4, 5, 6, 7];
        let home = |users: &[usize]| home(&users.iter().copied().collect(), 2);
        for alone in [first, chat, gemini, answer, answer_chat, answer_gemini, requests, rest] {
            assert_eq!(home(&[alone]), alone);
            // When the rest runs, everything is there.
            assert_eq!(home(&[alone, rest]), alone);
        }
        assert_eq!(home(&[chat, answer_chat, rest]), chat);
        for other in [
            &[chat, gemini][..],
            &[chat, answer],
            &[chat, answer_gemini],
            &[chat, requests],
            &[first, answer],
        ] {
            assert_eq!(home(other), first, "{other:?}");
        }
        for later in [
            &[answer, answer_chat][..],
            &[answer_chat, answer_gemini],
            &[answer_chat, requests],
            &[answer, requests, rest],
        ] {
            assert_eq!(home(later), answer, "{later:?}");
        }
    }
}
