//! Fuzzing: everything that reads foreign data gets recordings that were cut, spliced and flipped. Every
//! run of the tests plays a fixed share; `cargo xtask fuzz` runs for as long as you like. Inputs that once
//! failed are in `tests/data/fuzz`.

mod mutate;
mod targets;

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use mutate::{Dice, mutated};
pub use targets::{TARGETS, Target};

/// Longer than any input may take, on a busy machine, unoptimised.
const SLOW: Duration = Duration::from_secs(20);

/// How many inputs are kept because something new happened in them.
const MOST_KEPT: usize = 2_000;

/// An input that failed.
#[derive(Debug)]
pub struct Failure {
    pub input: Vec<u8>,
    /// The seed that it failed with.
    pub seed: u64,
    /// What does not hold.
    pub why: String,
}

/// Fuzzes the named targets, or all, for a while each. The same seed produces the same inputs, as far as the
/// time allows. An input that fails is shortened and kept in `tests/data/fuzz`.
///
/// # Errors
/// If there is no target of that name, or an input cannot be kept.
pub fn run(names: &[&str], seed: u64, time: Duration) -> Result<bool> {
    let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        bail!("no target `{name}`; the targets are {}", known.join(", "));
    }
    let (mut passed, mut failed) = (0, 0);
    for target in TARGETS.iter().filter(|target| names.is_empty() || names.contains(&target.name)) {
        let end = Instant::now() + time;
        match fuzz(target, target.inputs(), seed, |_| Instant::now() < end) {
            Ok(rounds) => {
                passed += 1;
                println!("{}: {rounds} rounds in {} s", target.name, time.as_secs());
            }
            Err(failure) => {
                failed += 1;
                let seed = failure.seed;
                let path = crate::data("fuzz").join(format!("{}.{seed:016x}", target.name));
                fs::write(&path, minimized(target, failure.input, seed))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                println!("{}: {}\n  kept as {}", target.name, failure.why, path.display());
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

/// Runs a target until told to stop. Returns the number of rounds.
///
/// # Errors
/// The first input that failed.
pub fn fuzz(
    target: &Target,
    mut inputs: Vec<Vec<u8>>,
    seed: u64,
    is_running: impl Fn(u64) -> bool,
) -> Result<u64, Failure> {
    let play = |input: &[u8], seed| {
        play(target, input, seed).map_err(|why| Failure { input: input.to_vec(), seed, why })
    };
    let mut shapes = HashSet::new();
    for input in &inputs {
        shapes.insert(play(input, seed)?);
    }
    let mut dice = Dice(seed);
    let mut round = 0;
    while is_running(round) {
        round += 1;
        let input = mutated(&inputs, &mut dice);
        let seed = dice.next();
        let shape = play(&input, seed)?;
        if inputs.len() < MOST_KEPT && shapes.insert(shape) {
            inputs.push(input);
        }
    }
    Ok(round)
}

/// Plays an input. Returns a number that stands for what happened.
///
/// # Errors
/// What does not hold; a panic counts.
pub fn play(target: &Target, input: &[u8], seed: u64) -> Result<u64, String> {
    let begun = Instant::now();
    let played = catch_unwind(AssertUnwindSafe(|| (target.play)(target, input, &mut Dice(seed))));
    let shape = played.map_err(|_| "it panicked".to_owned())??;
    if begun.elapsed() > SLOW { Err(format!("it took {:?}", begun.elapsed())) } else { Ok(shape) }
}

/// Leaves out pieces of an input as long as something still fails.
pub fn minimized(target: &Target, mut input: Vec<u8>, seed: u64) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that cannot take an `x` with a `y` somewhere behind it.
    fn fragile(panics: bool) -> Target {
        fn refuse(_: &Target, input: &[u8], _: &mut Dice) -> Result<u64, String> {
            let at = input.iter().position(|byte| *byte == b'x');
            let is_bad = at.is_some_and(|at| input[at..].contains(&b'y'));
            if is_bad { Err("x before y".to_owned()) } else { Ok(input.len() as u64) }
        }
        fn panic(target: &Target, input: &[u8], dice: &mut Dice) -> Result<u64, String> {
            // No panic message: the test's output stays clean.
            refuse(target, input, dice).or_else(|why| std::panic::resume_unwind(Box::new(why)))
        }
        Target::new("fragile", if panics { panic } else { refuse })
    }

    #[test]
    fn an_input_that_fails_is_found_and_shortened_to_what_matters() {
        for panics in [false, true] {
            let target = fragile(panics);
            let inputs = vec![b"....y...".to_vec(), b"..x.....".to_vec()];
            let failure = fuzz(&target, inputs, 1, |round| round < 100_000).unwrap_err();
            assert_eq!(failure.why, if panics { "it panicked" } else { "x before y" });
            assert!(play(&target, &failure.input, failure.seed).is_err());
            assert_eq!(minimized(&target, failure.input, failure.seed), b"xy");
        }
    }

    #[test]
    fn the_same_seed_finds_the_same_input() {
        let found = || fuzz(&fragile(false), vec![b"y.x".to_vec()], 7, |round| round < 100_000);
        let (one, other) = (found().unwrap_err(), found().unwrap_err());
        assert_eq!((one.input, one.seed), (other.input, other.seed));
    }

    #[test]
    fn a_target_that_is_none_is_an_error() {
        let error = run(&["telegraph"], 1, Duration::ZERO).unwrap_err().to_string();
        assert!(error.starts_with("no target `telegraph`; the targets are openai-chat, "), "{error}");
    }
}
