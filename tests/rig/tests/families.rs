//! Families by the ten thousand: random worlds in which agents run inside agents, with budgets, questions, messages of each
//! kind, and a process that ends in the midst of it. `cargo xtask test worlds` plays them, compiled with optimisation; with
//! `TURNWHEEL_SEED=n ... one_family` the family of a seed, to look into a finding.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails here says where")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rig::family::{Deaths, Played, play, play_killed};
use rig::worlds::{at_least, seeds};

/// How many worlds the longest of these tests plays.
const WORLDS: u64 = 100_000;
/// How many seeds a core takes at once.
const SHARE: u64 = 64;

/// What must be seen, and in how many of a hundred worlds at least.
#[rustfmt::skip] // A row per kind, read as a table.
const REACHED: [(&str, u64); 36] = [
    ("killed", 99), ("killed in an answer", 10), ("killed in a tool", 5), ("killed with a child", 20),
    ("killed with children", 5), ("killed with a question", 4), ("run_resumed", 99), ("outlived a process", 2),
    ("inside", 55), ("two deep", 15), ("at once", 15),
    ("asked", 45), ("asked about a call", 10), ("asked about a call inside", 8), ("asked for more", 3),
    ("asked for more inside", 3), ("asked by a tool", 8), ("asked by a tool inside", 5), ("answered", 30),
    ("has a budget", 70), ("warned", 10), ("exceeded", 15), ("raised", 2), ("no call left", 3), ("last call", 3),
    ("sent a message", 60), ("steered", 20), ("again", 1), ("retry_attempt", 5), ("all is known", 5),
    ("asked for a result", 10), ("asked for a result inside", 8), ("rewind refused", 5), ("rewound", 95), ("played on", 30),
    ("all of it", 25),
];

/// What was seen, and in how many worlds.
#[derive(Default)]
struct Tally {
    worlds: u64,
    events: u64,
    seen: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, played: &Played) {
        self.worlds += 1;
        self.events += played.events;
        let seen = |what: &str| played.seen.contains_key(what);
        let all = seen("killed")
            && seen("inside")
            && seen("has a budget")
            && seen("asked")
            && seen("sent a message");
        let flags = [("all of it", all), ("all of it, inside", all && seen("killed with a child"))];
        let flags = flags.into_iter().filter_map(|(what, is_so)| is_so.then_some(what));
        for what in played.seen.keys().copied().chain(flags) {
            *self.seen.entry(what).or_default() += 1;
        }
    }

    fn merge(&mut self, other: &Tally) {
        self.worlds += other.worlds;
        self.events += other.events;
        other.seen.iter().for_each(|(what, worlds)| *self.seen.entry(what).or_default() += worlds);
    }

    /// The share of the worlds in which something was seen, in percent.
    fn share(&self, what: &str) -> f64 {
        100.0 * self.seen.get(what).copied().unwrap_or(0) as f64 / self.worlds.max(1) as f64
    }

    fn print(&self, name: &str) {
        println!("{name}: {} worlds, {} events", self.worlds, self.events / self.worlds.max(1));
        let mut seen: Vec<&str> = self.seen.keys().copied().collect();
        seen.sort_by(|a, b| self.share(b).total_cmp(&self.share(a)));
        let parts = seen.into_iter().map(|what| format!("{what} {:.1} %", self.share(what)));
        println!("  {}", parts.collect::<Vec<_>>().join(", "));
    }
}

/// Plays the worlds of these seeds, on every core.
fn on_all_cores(seeds: Range<u64>, world: impl Fn(u64, &mut Tally) + Sync) -> Tally {
    let end = seeds.end;
    let (next, sum) = (AtomicU64::new(seeds.start), Mutex::new(Tally::default()));
    let work = || {
        let mut tally = Tally::default();
        loop {
            let begin = next.fetch_add(SHARE, Ordering::Relaxed);
            if begin >= end {
                break;
            }
            (begin..end.min(begin + SHARE)).for_each(|seed| world(seed, &mut tally));
        }
        sum.lock().unwrap().merge(&tally);
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    sum.into_inner().unwrap()
}

/// A family may have no faults.
fn checked(seed: u64, played: Played) -> Played {
    assert!(played.faults.is_empty(), "seed {seed}: {:#?}\n{}", played.faults, played.trace.join("\n"));
    played
}

/// Where the process of a family ends; of some it ends more than once.
fn deaths(seed: u64) -> Deaths {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    // Most are small: where one is over by then, it is played again.
    let most = if seed.is_multiple_of(3) { 60 } else { 18 };
    let more = if seed.is_multiple_of(4) { 30 } else { 0 };
    Deaths { first: Some(1 + mixed % most), in_question: seed % 8 == 1, more }
}

#[test]
fn families_keep_their_budgets_lose_no_question_and_do_nothing_twice() {
    let tally = on_all_cores(seeds(WORLDS), |seed, tally| {
        tally.add(&checked(seed, play_killed(seed, deaths(seed))));
    });
    tally.print("families");
    // The worlds are only useful if they reach everything.
    for (what, least) in REACHED {
        let share = tally.share(what);
        let expected = at_least(least as f64 / 100.0, tally.worlds, WORLDS) / tally.worlds as f64 * 100.0;
        assert!(
            share >= expected,
            "{what}: {share:.2} % of the worlds, at least {expected:.2} % were expected"
        );
    }
}

#[test]
fn a_family_may_be_killed_at_any_event() {
    // Seeds that the test above does not play.
    let tally = on_all_cores(seeds(200), |seed, tally| {
        let seed = 1_000_000_000 + seed;
        let live = checked(seed, play(seed, Deaths::default()));
        for at in 1..live.events {
            tally.add(&checked(seed, play(seed, Deaths { first: Some(at), ..Deaths::default() })));
        }
    });
    tally.print("at every event");
    assert!(tally.share("killed") > 99.9, "{}", tally.share("killed"));
}

#[test]
#[ignore = "plays the family of TURNWHEEL_SEED, to look into a finding"]
fn one_family() {
    let seed = std::env::var("TURNWHEEL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.expect("TURNWHEEL_SEED is a number");
    checked(seed, play_killed(seed, deaths(seed)));
}
