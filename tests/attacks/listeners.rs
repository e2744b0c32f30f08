//! Listeners that panic.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Stage, answers, config};

fn crash() {
    std::panic::resume_unwind(Box::new("the disk is full"));
}

#[test]
fn one_that_is_kept_hears_the_next_event_and_everyone_can_hear_that_it_panicked() {
    let clock = Clock::default();
    let mut stage = Stage::new(clock.clone(), config(&clock, answers(Vec::new()), Vec::new()));
    let (kept, lost, told) =
        (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let (count, counted) = (kept.clone(), lost.clone());
    let keeps = stage.agent.subscribe_kept(move |_| {
        count.set(count.get() + 1);
        crash();
    });
    let loses = stage.agent.subscribe(move |_| {
        counted.set(counted.get() + 1);
        crash();
    });
    let log = told.clone();
    stage.agent.on_listener_panic(move |id, text| {
        log.borrow_mut().push((id, text.to_owned()));
        // Who hears of it may fail too.
        crash();
    });
    stage.prompt("go").finish().check();
    assert_eq!((kept.get(), lost.get()), (stage.events.len(), 1));
    let told = told.borrow();
    assert_eq!(told.len(), stage.events.len() + 1);
    assert!(told.iter().all(|(_, text)| text == "the disk is full"));
    assert_eq!(told.iter().filter(|(id, _)| *id == loses).count(), 1);
    stage.agent.unsubscribe(keeps);
    stage.prompt("again").finish();
    assert_eq!(kept.get(), told.len() - 1);
}
