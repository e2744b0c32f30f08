//! Fuzzing: everything that reads foreign data gets recordings that were cut, spliced and flipped. Every
//! test run plays a fixed share; `cargo xtask fuzz` runs for as long as you like. Inputs that once failed
//! are in `tests/data/fuzz` and are played first.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "a panic here is a test that fails"
)]

#[path = "harness/src/fuzz/mutate.rs"]
mod mutate;
#[path = "harness/src/fuzz/targets.rs"]
mod targets;

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mutate::{Dice, mutated};
use targets::{TARGETS, Target};

/// Longer than any input may take, on a busy machine, unoptimised.
const SLOW: Duration = Duration::from_secs(20);

/// How many inputs are kept because something new happened in them.
const MOST_KEPT: usize = 2_000;

/// Plays an input. Any fault, a panic included, is an error.
fn play(target: &Target, input: &[u8], seed: u64) -> Result<u64, String> {
    let begun = Instant::now();
    let played = catch_unwind(AssertUnwindSafe(|| (target.play)(target, input, &mut Dice(seed))));
    let shape = played.map_err(|_| "it panicked".to_owned())??;
    if begun.elapsed() > SLOW { Err(format!("it took {:?}", begun.elapsed())) } else { Ok(shape) }
}

/// Runs a target until told to stop. Returns the number of rounds, or the input that failed, and how.
fn fuzz(target: &Target, seed: u64, is_running: impl Fn(u64) -> bool) -> Result<u64, (Vec<u8>, u64, String)> {
    let mut inputs = target.inputs();
    let mut shapes = HashSet::new();
    for input in &inputs {
        shapes.insert(play(target, input, seed).map_err(|why| (input.clone(), seed, why))?);
    }
    let mut dice = Dice(seed);
    let mut round = 0;
    while is_running(round) {
        round += 1;
        let input = mutated(&inputs, &mut dice);
        let seed = dice.next();
        let shape = play(target, &input, seed).map_err(|why| (input.clone(), seed, why))?;
        if inputs.len() < MOST_KEPT && shapes.insert(shape) {
            inputs.push(input);
        }
    }
    Ok(round)
}

/// Minimizes an input: leaves out pieces as long as something still fails.
fn minimized(target: &Target, mut input: Vec<u8>, seed: u64) -> Vec<u8> {
    let mut size = input.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..(at + size).min(input.len()));
            if play(target, &shorter, seed).is_err() { input = shorter } else { at += size }
        }
        size /= 2;
    }
    input
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz")
}

#[test]
fn what_was_found_once_is_found_no_more() {
    let mut played = 0;
    for entry in fs::read_dir(cases()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(target) = TARGETS.iter().find(|target| name.starts_with(&format!("{}.", target.name)))
        else {
            continue;
        };
        let input = fs::read(&path).unwrap();
        // The file name contains the seed that found it.
        let found = name.rsplit('.').next().and_then(|seed| u64::from_str_radix(seed, 16).ok());
        for seed in found.into_iter().chain(0..100) {
            assert_eq!(play(target, &input, seed).err(), None, "{name}");
        }
        played += 1;
    }
    assert!(played > 0, "no case was played");
}

#[test]
fn a_share_of_it_every_day() {
    for target in &TARGETS {
        if let Err((input, seed, why)) = fuzz(target, 1, |round| round < 1_500) {
            let input = minimized(target, input, seed);
            panic!("{}: {why}\n{:?}", target.name, String::from_utf8_lossy(&input));
        }
    }
}

/// The test that `cargo xtask fuzz` runs. Reads `FUZZ_TARGETS` (names, or nothing for all),
/// `FUZZ_SECONDS` for each target, and `FUZZ_SEED`.
#[test]
#[ignore = "takes as long as it is told to"]
fn on_demand() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let seconds = variable("FUZZ_SECONDS").parse().unwrap_or(600);
    let seed = variable("FUZZ_SEED").parse().unwrap_or(1);
    let targets = variable("FUZZ_TARGETS");
    let names: Vec<&str> = targets.split_whitespace().collect();
    let unknown = names.iter().find(|name| TARGETS.iter().all(|target| target.name != **name));
    assert_eq!(unknown, None, "the targets are {:?}", TARGETS.map(|target| target.name));
    let (mut passed, mut failed) = (0, 0);
    for target in TARGETS.iter().filter(|target| names.is_empty() || names.contains(&target.name)) {
        let end = Instant::now() + Duration::from_secs(seconds);
        match fuzz(target, seed, |_| Instant::now() < end) {
            Ok(rounds) => {
                passed += 1;
                println!("{}: {rounds} rounds in {seconds} s", target.name);
            }
            Err((input, seed, why)) => {
                failed += 1;
                let input = minimized(target, input, seed);
                let path = cases().join(format!("{}.{seed:016x}", target.name));
                fs::write(&path, &input).unwrap();
                println!("{}: {why}\n  kept as {}", target.name, path.display());
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    assert_eq!(failed, 0);
}
