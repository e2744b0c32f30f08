//! The history of a family is taken back: refused in a run, done between two.

use std::rc::Rc;

use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::event::AgentEvent;
use turnwheel::ports::AgentRunContext;

use super::books::Books;
use super::watch::Watch;
use super::{BEGINNING, Family};
use crate::grammar::faults_of_history;

/// Nothing is taken back from a run in progress.
pub(super) fn refused(family: &Family, agent: &Agent) {
    if !agent.is_running() {
        return;
    }
    let before = agent.messages().len();
    family.watch.borrow_mut().count("rewind refused");
    if agent.rewind(0, Vec::new()).is_ok() || agent.messages().len() != before {
        family.fault("the history of a run in progress is taken back");
    }
}

/// Takes the history back to some message, and there again; in some families another run goes on from there.
pub(super) fn between_runs(family: &Rc<Family>, agent: &Agent) {
    let before = agent.messages();
    let length = family.dice.below(before.len() + 1);
    let (kept, rest) = before.split_at(length);
    family.watch.borrow_mut().count("rewound");
    match agent.rewind(length, Vec::new()) {
        Ok(cut) if cut == rest && agent.messages() == kept => {}
        other => family.fault(&format!("rewound to {length} of {}: {other:?}", before.len())),
    }
    if agent.rewind(length + 1, Vec::new()).is_ok() {
        family.fault("a history is taken back to more than it has");
    }
    if agent.rewind(length, rest.to_vec()).is_err() || agent.messages() != before {
        family.fault("what was cut does not come back");
    }
    if family.dice.chance(40) {
        play_on(family, agent);
    }
}

/// Another run, from a part of the history that is whole.
fn play_on(family: &Rc<Family>, agent: &Agent) {
    let before = agent.messages();
    let is_whole =
        |length: &usize| before.get(..*length).is_some_and(|kept| faults_of_history(kept).is_empty());
    let lengths: Vec<usize> = (0..=before.len()).filter(is_whole).collect();
    let length = *family.dice.pick(&lengths);
    agent.clear_queues();
    if agent.rewind(length, Vec::new()).is_err() {
        return family.fault("an idle agent is not taken back");
    }
    // Nothing of the run before counts: its calls have their ids again.
    let next = family.watch.borrow_mut().next_run();
    let first = family.watch.replace(next);
    let books = family.books.replace(Books::default());
    family.is_quiet.set(true);
    let context = AgentRunContext::new("r", "s");
    match agent.prompt(vec!["Again.".into()], context, CancelToken::new()) {
        Err(error) => family.fault(&format!("no run after a rewind: {error}")),
        Ok(mut run) => {
            family.watch.borrow_mut().begin_life(BEGINNING + family.clock.elapsed());
            loop {
                match family.clock.run(run.next()) {
                    Err(_) => break family.fault("the run after a rewind hangs"),
                    Ok(None) => {
                        family.watch.borrow_mut().end_life(agent, &run);
                        break family.books.borrow_mut().finish();
                    }
                    Ok(Some(event)) => {
                        family.books.borrow_mut().share(&run, &event);
                        family.watch.borrow_mut().take(&event);
                        family.attend(&event);
                        if let AgentEvent::AgentEnd { .. } = event {
                            family.watch.borrow_mut().count("played on");
                        }
                    }
                }
            }
        }
    }
    let second = family.watch.replace(Watch::default());
    family.watch.replace(first.and(second));
    let mut second = family.books.replace(books);
    family.books.borrow_mut().faults.append(&mut second.faults);
}
