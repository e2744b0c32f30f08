//! The loop document: its event sequence.

use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Stage, answers, calls, config, deaf, quick, slow, stage, text};
use turnwheel::policy::{PolicyContext, Verdict};

use super::kit::{Notes, note, noting_tool};

#[test]
fn every_event_of_a_two_turn_run_with_one_tool_call() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")]), text("so")], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.lines(),
        [
            "run",
            "turn 0",
            "+{}",
            "assistant: [a]",
            "a starts with {}",
            "a: t is done",
            "turn ends tools_executed",
            "turn 1",
            "+so",
            "assistant: so",
            "turn ends complete",
            "run ends completed",
        ]
    );
}

#[test]
fn steering_messages_cause_the_loop_to_abandon_remaining_tools_and_are_injected_before_the_next_turn() {
    let clock = Clock::default();
    let tools = vec![slow("s", &clock, 10), deaf("d")];
    let given = vec![calls(&[("a", "s", "{}"), ("b", "d", "{}"), ("c", "d", "{}")])];
    let mut stage = Stage::new(clock.clone(), config(&clock, answers(given), tools));
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer("rather this".into()));
    stage.finish().check();
    let cancelled = "tool call cancelled: user requested steering interrupt";
    assert_eq!(
        stage.lines()[6..],
        [
            "a starts with {}",
            "b starts with {}",
            "c starts with {}",
            "a: s is done",
            &format!("b!: {cancelled}"),
            &format!("c!: {cancelled}"),
            "turn ends steering_interrupt",
            "turn 1",
            "+done",
            "assistant: done",
            "turn ends complete",
            "run ends completed",
        ]
    );
    assert_eq!(stage.history()[5..], ["user: rather this", "assistant: done"]);
}

#[test]
fn each_event_is_delivered_to_every_registered_subscriber_before_the_loop_proceeds() {
    let notes = Notes::default();
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![noting_tool("t", &notes)], |_| {});
    for name in ["one", "two"] {
        let notes = notes.clone();
        stage.agent.subscribe(move |event| {
            if event.name() == "tool_execution_start" {
                note(&notes, name);
            }
        });
    }
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["one", "two", "run a with {}"]);
}

#[test]
fn pre_turn_stop_ends_the_run_with_its_turn_told() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        config
            .rules
            .pre_turn
            .push(Rc::new(|_: &PolicyContext<'_>| Ok(Verdict::Stop("no budget".to_owned()))));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines(), ["run", "turn 0", "turn ends complete", "run ends policy_stop"]);
}
