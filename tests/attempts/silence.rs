//! Models that say nothing, and clocks that break.

use std::cell::Cell;
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Stage, answers, config, model, text};
use turnwheel::config::{Model, Timeouts};
use turnwheel::retry::RetryConfig;
use turnwheel::stream::AssistantMessageEvent as E;

use super::kit::crash;

#[test]
fn the_watchdog_ends_a_call_that_says_nothing() {
    let clock = Clock::default();
    let silent = model("m", |_, _| stream::pending().boxed_local());
    let mut config = config(&clock, silent, Vec::new());
    config.rules.timeouts = Timeouts { first_chunk: Some(3_000), ..Timeouts::default() };
    config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends error: the model was silent for 3000 ms");
    assert_eq!(stage.clock.elapsed(), 3_000);
}

/// A model that sends something every `every` ms.
fn dripping(clock: &Clock, every: u64, event: fn(usize) -> E, times: usize) -> Model {
    let clock = clock.clone();
    model("m", move |_, _| {
        let clock = clock.clone();
        let drops = stream::unfold(0, move |n| {
            let pause = clock.pause(every);
            async move {
                pause.await;
                (n < times).then(|| (event(n), n + 1))
            }
        });
        drops.chain(stream::iter(text("done"))).boxed_local()
    })
}

#[test]
fn pings_are_life_and_so_is_every_piece() {
    let piece = |n: usize| match n {
        0 => E::Start,
        1 => E::TextStart { index: 0 },
        _ => E::TextDelta { index: 0, delta: "…".to_owned() },
    };
    for event in [|_| E::Ping, piece] {
        let clock = Clock::default();
        let mut config = config(&clock, dripping(&clock, 900, event, 6), Vec::new());
        config.rules.timeouts =
            Timeouts { first_chunk: Some(1_000), chunk: Some(1_000), ..Timeouts::default() };
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines().last().unwrap(), "run ends completed");
        assert_eq!(stage.count("retry_attempt"), 0);
    }
}

#[test]
fn the_watchdog_sees_a_pause_between_two_chunks() {
    let clock = Clock::default();
    let mut config = config(&clock, dripping(&clock, 900, |_| E::Ping, 5), Vec::new());
    config.rules.timeouts = Timeouts { first_chunk: Some(1_000), chunk: Some(500), ..Timeouts::default() };
    config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.clock.elapsed(), 1_400);
    assert_eq!(stage.lines().last().unwrap(), "run ends error: the model was silent for 500 ms");
}

#[test]
fn who_spoke_early_may_not_be_silent_for_as_long_as_one_who_has_not_spoken() {
    let clock = Clock::default();
    let stuck = model("m", |_, _| stream::iter([E::Start]).chain(stream::pending()).boxed_local());
    for (model, silence) in [(stuck, 500), (model("m", |_, _| stream::pending().boxed_local()), 60_000)] {
        let clock = clock.clone();
        let before = clock.elapsed();
        let mut config = config(&clock, model, Vec::new());
        config.rules.timeouts =
            Timeouts { first_chunk: Some(60_000), chunk: Some(500), ..Timeouts::default() };
        config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(stage.clock.elapsed() - before, silence);
        let end = format!("run ends error: the model was silent for {silence} ms");
        assert_eq!(stage.lines().last(), Some(&end));
    }
}

#[test]
fn many_signs_of_life_cost_one_timer() {
    let clock = Clock::default();
    let mut config = config(&clock, dripping(&clock, 1, |_| E::Ping, 50), Vec::new());
    config.rules.timeouts = Timeouts { chunk: Some(1_000), ..Timeouts::default() };
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    for _ in 0..40 {
        stage.clock.advance();
        stage.settle();
        assert!(stage.clock.alarms() <= 2, "{} alarms", stage.clock.alarms());
    }
}

/// A clock that fails once the run has started.
struct Broken(Cell<bool>);

impl turnwheel::ports::Timer for Broken {
    fn now(&self) -> u64 {
        assert!(!self.0.replace(true), "the clock broke");
        7
    }

    fn sleep(&self, _: u64) -> futures::future::LocalBoxFuture<'static, ()> {
        crash()
    }
}

#[test]
fn a_clock_that_panics_stands_still() {
    let mut config =
        turnwheel::config::AgentLoopConfig::new(answers(vec![text("hi")]), Rc::new(Broken(Cell::new(false))));
    config.rules.timeouts = Timeouts { total: Some(5), chunk: Some(5), ..Timeouts::default() };
    let mut stage = Stage::new(Clock::default(), config);
    stage.prompt("go").until("turn_start");
    assert!(stage.stream.as_mut().unwrap().checkpoint().own_state().is_some());
    stage.finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends completed");
}
