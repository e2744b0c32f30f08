//! Random worlds in which something happens inside every single call of the host: an abort, a steering
//! message, a follow-up, or a panic in the host's own code. `TURNWHEEL_RUNS=1000000 cargo test --test
//! hostile` plays more of them.

use std::collections::BTreeMap;

use rig::hostile::{Act, CALLS, Played, play};
use rig::worlds::seeds;

fn check(seed: u64, at: Option<(usize, Act)>) -> Played {
    let played = play(seed, at);
    let (call, events) = (at.and_then(|(at, _)| played.host_calls.get(at)), played.events.join(" "));
    assert!(
        played.faults.is_empty(),
        "seed {seed}, {at:?} in {call:?}:\n{}\n{events}",
        played.faults.join("\n")
    );
    played
}

/// Plays one world after the other, each once for every host call in it.
fn everywhere(act: Act) {
    // A tenth of these are as many as it takes to reach every call three times.
    let (seeds, mut disturbed) = (seeds(250_000), BTreeMap::new());
    let mut left = usize::try_from(seeds.end - seeds.start).unwrap();
    for seed in seeds.start.. {
        let calls = check(seed, None).host_calls;
        for (at, call) in calls.iter().enumerate() {
            check(seed, Some((at, act)));
            *disturbed.entry(*call).or_insert(0) += 1;
        }
        left = left.saturating_sub(calls.len() + 1);
        if left == 0 {
            break;
        }
    }
    // The worlds are only useful if they reach everything.
    let rare: Vec<&str> = CALLS.iter().filter(|call| disturbed.remove(**call) < Some(3)).copied().collect();
    assert!(rare.is_empty() && disturbed.is_empty(), "rare: {rare:?}, unknown: {disturbed:?}");
}

#[test]
fn an_abort_inside_any_call_of_the_host_ends_the_run_at_once() {
    everywhere(Act::Abort);
}

#[test]
fn a_message_steered_inside_any_call_of_the_host_is_delivered_once_or_waits() {
    everywhere(Act::Steer);
}

#[test]
fn a_follow_up_queued_inside_any_call_of_the_host_is_delivered_once_or_waits() {
    everywhere(Act::FollowUp);
}

#[test]
fn a_panic_inside_any_call_of_the_host_leaves_a_whole_run() {
    everywhere(Act::Panic);
}
