//! Durable runs: engines in memory that are killed at random moments, in random worlds of virtual time.
//! `TURNWHEEL_RUNS=20000 cargo test --profile fuzz --test durable` plays more of them.

#![cfg(feature = "durable")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails here says where"
)]

mod engines;
mod rules;
mod worlds;

use std::rc::Rc;

use engines::{Life, Mode, Records};
use rig::dice::Dice;
use turnwheel::AgentEvent;
use turnwheel::json::ToJson;
use turnwheel::tape::{self, Tape};
use worlds::{Features, Lived, World};

/// Bytes of a record in which mail has room, and most answers have not.
const NARROW: usize = 700;

fn runs() -> u64 {
    std::env::var("TURNWHEEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(60)
}

/// A life of a world.
fn life(world: &Rc<World>, records: &Rc<Records>, dice: &Dice, mode: Mode, kills: u32) -> Rc<Life> {
    let mut life = Life::new(records, &world.clock, dice.clone(), mode, kills);
    let own = Rc::get_mut(&mut life).unwrap();
    own.waits = world.features.waits;
    own.sleeps = world.features.sleeps;
    own.max_bytes = world.features.max_bytes;
    life
}

/// Lives a world, with up to so many kills, and once more from its records. Returns how often it was killed.
fn survive(seed: u64, mode: Mode, kills: u32, features: Features) -> usize {
    let world = World::new(seed, features);
    let dice = Dice::new(seed * 7 + 3);
    let records = Rc::new(Records::default());
    let mut lives: Vec<Lived> = Vec::new();
    let mut left = kills;
    loop {
        assert!(lives.len() < 30, "seed {seed} never ends");
        let life = life(&world, &records, &dice, mode, left);
        let lived = world.live(&life);
        left = life.kills.get();
        let died = lived.died;
        lives.push(lived);
        if !died {
            break;
        }
    }
    let last = lives.last().unwrap();
    assert!(!last.error.as_deref().unwrap_or_default().contains("step"), "seed {seed}: {:?}", last.error);
    assert_eq!(records.faults.borrow().as_slice(), [""; 0], "seed {seed}");
    for lived in &lives {
        let same = lived.messages.iter().zip(&last.messages).take_while(|(one, other)| one == other).count();
        // An abort, and the end of a process, say so in the answer whose calls they end.
        assert!(same + 4 > lived.messages.len().min(last.messages.len()) || lived.died, "seed {seed}");
    }
    for (call, times) in world.begins.borrow().iter() {
        assert!(call.starts_with("look") || *times == 1, "seed {seed}: {call} began {times} times");
    }
    let mut again = life(&world, &records, &dice, mode, 0);
    Rc::get_mut(&mut again).unwrap().is_left_alone = true;
    let replayed = world.live(&again);
    assert_eq!(again.began.borrow().as_slice(), [""; 0], "seed {seed}: nothing runs again");
    assert_eq!(replayed.error, last.error, "seed {seed}: the same end");
    assert_eq!(replayed.messages, last.messages, "seed {seed}: the same history");
    let (one, two) = (last.whole(), replayed.whole());
    let at = one.iter().zip(&two).position(|(one, two)| one != two).unwrap_or(one.len().min(two.len()));
    let near = |events: &[String]| events[at.saturating_sub(2)..events.len().min(at + 2)].join("\n");
    assert!(one == two, "seed {seed}, event {at}:\n{}\n\nand lived again:\n{}", near(&one), near(&two));
    for lived in [last, &replayed] {
        check_tape(lived, seed);
    }
    lives.len() - 1
}

/// A tape of a durable run gives the same events.
fn check_tape(lived: &Lived, seed: u64) {
    let Some(tape) = &lived.tape else { return };
    let replayed =
        tape::replay(&Tape::parse(tape).unwrap()).unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}"));
    let texts = |events: &[AgentEvent]| events.iter().map(ToJson::to_json).collect::<Vec<_>>();
    assert!(texts(&replayed.events) == texts(&lived.events), "seed {seed}: the tape gives other events");
}

fn survive_all(mode: Mode, features: Features, from: u64) {
    survive_so_many(runs(), mode, features, from);
}

fn survive_so_many(runs: u64, mode: Mode, features: Features, from: u64) {
    let mut kills = 0;
    for seed in from..from + runs {
        kills += survive(seed, mode, 4, features);
    }
    assert!(kills as u64 > runs / 2, "only {kills} kills");
}

#[test]
fn a_run_that_is_killed_goes_on_and_does_nothing_twice() {
    survive_all(Mode::Name, Features::default(), 0);
}

#[test]
fn steering_is_in_the_same_place_in_every_life() {
    survive_all(Mode::Name, Features { steers: true, ..Features::default() }, 10_000);
}

#[test]
fn an_abort_is_too() {
    survive_all(Mode::Name, Features { aborts: true, ..Features::default() }, 20_000);
}

#[test]
fn an_engine_that_counts_its_steps_finds_them_in_order() {
    survive_all(Mode::Order, Features::default(), 30_000);
}

#[test]
fn an_engine_that_gives_one_result_at_a_time_fixes_their_order() {
    survive_all(Mode::Single, Features { steers: true, ..Features::default() }, 40_000);
}

#[test]
fn an_engine_that_waits_and_sleeps_itself_needs_no_more_than_its_records() {
    for (at, mode) in (0..).zip([Mode::Name, Mode::Order, Mode::Single]) {
        let features = Features { waits: true, sleeps: true, ..Features::default() };
        survive_so_many(runs().div_ceil(2), mode, features, 50_000 + 1_000 * at);
    }
}

#[test]
#[ignore = "long: `cargo xtask e2e worlds` plays it"]
fn so_it_is_in_thousands_of_worlds() {
    let kinds = [
        (false, false, false, None),
        (true, false, false, None),
        (false, true, false, None),
        (false, false, true, None),
        (true, true, false, None),
        (true, false, true, None),
        (true, true, false, Some(NARROW)),
        (true, false, true, Some(NARROW)),
    ];
    for (at, mode) in (0..).zip([Mode::Name, Mode::Order, Mode::Single]) {
        for (place, (steers, aborts, waits, max_bytes)) in (0..).zip(kinds) {
            let features = Features { steers, aborts, waits, sleeps: waits, max_bytes };
            survive_so_many(2_000, mode, features, 1_000_000 * (1 + at) + 100_000 * place);
        }
    }
}

#[test]
fn a_step_that_was_ended_while_the_run_was_ending_does_not_stop_it() {
    survive(30_856, Mode::Order, 4, Features::default());
    survive(50_808, Mode::Name, 4, Features { waits: true, sleeps: true, ..Features::default() });
    survive(50_438, Mode::Name, 4, Features { waits: true, sleeps: true, ..Features::default() });
}

#[test]
fn what_had_arrived_of_an_answer_counts_only_if_a_record_has_it() {
    survive(3_200_139, Mode::Single, 4, Features { aborts: true, ..Features::default() });
    // A letter begins an answer, and behind the letter the time of the run is over.
    survive(
        7_500_432,
        Mode::Name,
        4,
        Features { steers: true, waits: true, sleeps: true, ..Features::default() },
    );
}

#[test]
fn answers_that_are_too_large_to_be_stored_are_the_same_in_every_life() {
    for (at, mode) in (0..).zip([Mode::Name, Mode::Order, Mode::Single]) {
        let features =
            Features { steers: true, aborts: true, max_bytes: Some(NARROW), ..Features::default() };
        survive_so_many(runs().div_ceil(2), mode, features, 60_000 + 1_000 * at);
    }
}
