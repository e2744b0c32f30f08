//! How many random worlds a test plays, and from which seed.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;
/// More seeds than a day plays.
const SEEDS_PER_DAY: u64 = 10_000_000;

/// The seeds that a test plays, of the number that it plays when all are played.
///
/// A change plays a tenth, from the seed of the day, so that every day tries other worlds. `TURNWHEEL_WORLDS=all` plays all from
/// seed 0; `TURNWHEEL_SEED=N` begins there, and `TURNWHEEL_RUNS=N` plays so many. The first seed is printed: it reproduces
/// a finding.
pub fn seeds(all: u64) -> std::ops::Range<u64> {
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str| variable(name).and_then(|text| text.parse().ok());
    let is_all = variable("TURNWHEEL_WORLDS").as_deref() == Some("all");
    let runs = number("TURNWHEEL_RUNS").unwrap_or(if is_all { all } else { all.div_ceil(10) });
    let first = number("TURNWHEEL_SEED").unwrap_or(if is_all { 0 } else { of_the_day() });
    println!("{runs} worlds from seed {first}");
    first..first + runs
}

/// How many of so many worlds must have something of which all have at least this share, from 0 to 1.
///
/// All of them are the same every time. A sample has other worlds every day, and may miss the share by chance, by four
/// standard deviations at most.
pub fn at_least(share: f64, worlds: u64, all: u64) -> f64 {
    let expected = share * worlds as f64;
    if worlds < all { expected - 4.0 * (expected * (1.0 - share)).sqrt() } else { expected }
}

fn of_the_day() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() / SECONDS_PER_DAY * SEEDS_PER_DAY
}
