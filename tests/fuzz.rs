//! Fuzzing, the share of every day: what was found once, and the same damaged recordings in every run.
//! `cargo xtask fuzz` runs for as long as you like.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic here is a test that fails")]

use std::fs;

use harness::fuzz::{TARGETS, fuzz, minimized, play};

#[test]
fn what_was_found_once_is_found_no_more() {
    let mut played = 0;
    for entry in fs::read_dir(harness::data("fuzz")).unwrap() {
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
        if let Err(failure) = fuzz(target, target.inputs(), 1, |round| round < 1_500) {
            let input = minimized(target, failure.input, failure.seed);
            panic!("{}: {}\n{:?}", target.name, failure.why, String::from_utf8_lossy(&input));
        }
    }
}
