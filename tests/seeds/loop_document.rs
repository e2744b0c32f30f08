//! The loop document: its event sequence.

use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{ScriptedAnswer, Stage, answers, calls, config, deaf, failure, quick, slow, stage, text};
use turnwheel::agent::Agent;
use turnwheel::config::Rules;
use turnwheel::error::ErrorKind;
use turnwheel::event::CompactionReport;
use turnwheel::message::AgentMessage;
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, PostTurn, Transform, Verdict};

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

/// A policy of each slot, which notes when it decides.
fn noting_policies(rules: &mut Rules, notes: &Notes) {
    let noted = |slot: &'static str| {
        let notes = notes.clone();
        move || note(&notes, slot)
    };
    let (pre_turn, post_turn) = (noted("> preTurn"), noted("> postTurn"));
    let (pre_dispatch, post_loop) = (noted("> preDispatch"), noted("> postLoop"));
    rules.pre_turn.push(Rc::new(move |_: &PolicyContext<'_>| {
        pre_turn();
        Ok(Verdict::Continue)
    }));
    rules.pre_dispatch.push(Rc::new(move |_: &mut DispatchCall<'_>| {
        pre_dispatch();
        Ok(DispatchVerdict::Continue)
    }));
    rules.post_turn.push(Rc::new(move |_: &PostTurn<'_>| {
        post_turn();
        Ok(Verdict::Continue)
    }));
    rules.post_loop.push(Rc::new(move |_: &PolicyContext<'_>| {
        post_loop();
        Ok(Verdict::Continue)
    }));
}

fn note_events(stage: &Stage, notes: &Notes) {
    let notes = notes.clone();
    stage.agent.subscribe(move |event| match event.name() {
        "message_start" | "message_update" => {}
        name => note(&notes, name),
    });
}

#[test]
fn policies_decide_when_every_subscriber_has_received_the_events_before() {
    let notes = Notes::default();
    let given = vec![calls(&[("a", "t", "{}"), ("b", "t", "[")]), text("so")];
    let mut stage = stage(given, vec![quick("t")], |config| noting_policies(&mut config.rules, &notes));
    note_events(&stage, &notes);
    stage.prompt("go").finish().check();
    assert_eq!(
        *notes.borrow(),
        [
            "agent_start",
            "turn_start",
            "> preTurn",
            "message_end",
            "tool_calls_proposed",
            "tool_execution_end",
            "> preDispatch",
            "tool_execution_start",
            "tool_execution_end",
            "> postTurn",
            "turn_end",
            "turn_start",
            "> preTurn",
            "message_end",
            "> postTurn",
            "turn_end",
            "> postLoop",
            "agent_end",
        ]
    );
}

#[test]
fn a_policy_before_the_call_decides_when_the_compaction_was_received() {
    let notes = Notes::default();
    let mut stage = stage(vec![text("so")], Vec::new(), |config| {
        config.rules.transformers.push(Rc::new(|messages: &[AgentMessage], _: bool| {
            let report = Some(CompactionReport::default());
            Ok(Transform::Replace { messages: messages.to_vec(), report })
        }));
        noting_policies(&mut config.rules, &notes);
    });
    note_events(&stage, &notes);
    stage.prompt("go").finish().check();
    assert_eq!(notes.borrow()[2..4], ["context_compacted", "> preTurn"]);
}

#[test]
fn an_abort_by_a_subscriber_comes_before_the_policies_that_would_decide() {
    for (at, policies) in [
        ("message_end", vec!["> preTurn", "> postTurn"]),
        ("tool_execution_end", vec!["> preTurn", "> preDispatch", "> postTurn"]),
    ] {
        let notes = Notes::default();
        let given = vec![calls(&[("a", "t", "{}")]), text("so")];
        let mut stage = stage(given, vec![quick("t")], |config| noting_policies(&mut config.rules, &notes));
        note_events(&stage, &notes);
        stage.prompt("go").until(at);
        stage.cancel.cancel("enough");
        stage.finish().check();
        let slots: Vec<String> =
            notes.borrow().iter().filter(|line| line.starts_with('>')).cloned().collect();
        assert_eq!(slots, policies, "aborted at {at}");
        let end = notes.borrow().iter().skip_while(|line| *line != at).cloned().collect::<Vec<_>>();
        let place = |name: &str| end.iter().rposition(|line| line == name).unwrap_or(usize::MAX);
        assert!(place("tool_execution_end") < place("> postTurn"), "{end:?}");
        assert!(stage.lines().contains(&"turn ends aborted".to_owned()), "{:?}", stage.lines());
    }
}

#[test]
fn an_answer_that_is_cut_is_received_before_the_policies_after_the_turn() {
    for answer in [failure(ErrorKind::Auth), cut_after_a_call()] {
        let notes = Notes::default();
        let mut stage =
            stage(vec![answer], vec![quick("t")], |config| noting_policies(&mut config.rules, &notes));
        note_events(&stage, &notes);
        stage.prompt("go").finish().check();
        let notes = notes.borrow();
        let policy = notes.iter().position(|line| line == "> postTurn").expect("it decides");
        assert_eq!(notes[policy + 1], "turn_end", "{notes:?}");
        assert!(["message_end", "tool_execution_end"].contains(&notes[policy - 1].as_str()), "{notes:?}");
    }
}

fn cut_after_a_call() -> ScriptedAnswer {
    let mut answer = calls(&[("a", "t", "{}")]);
    answer.pop();
    answer.extend(failure(ErrorKind::Auth));
    answer
}

#[test]
fn a_checkpoint_taken_where_policies_are_about_to_decide_goes_on_there() {
    let moments = [
        ("message_end", 1),
        ("tool_calls_proposed", 1),
        ("tool_execution_end", 1),
        ("tool_execution_end", 2),
        ("message_end", 2),
    ];
    for (at, nth) in moments {
        let (notes, restored) = (Notes::default(), Notes::default());
        let config = |given: Vec<ScriptedAnswer>, notes: &Notes| {
            let mut config = config(&Clock::default(), answers(given), vec![quick("t")]);
            noting_policies(&mut config.rules, notes);
            config
        };
        let given = vec![calls(&[("a", "t", "{}"), ("b", "t", "[")]), text("so")];
        let mut first = Stage::new(Clock::default(), config(given, &notes));
        note_events(&first, &notes);
        first.prompt("go");
        for _ in 0..nth {
            first.until(at);
        }
        let checkpoint = first.stream.as_mut().expect("it runs").checkpoint();
        let seen = notes.borrow().clone();

        let mut second = Stage::new(Clock::default(), config(Vec::new(), &restored));
        second.agent = Agent::restore(config(vec![text("so")], &restored), &checkpoint).expect("it is read");
        note_events(&second, &restored);
        second.resume().finish();
        let seen: Vec<String> = seen.iter().chain(restored.borrow().iter()).cloned().collect();
        let count = |line: &str| seen.iter().filter(|seen| *seen == line).count();
        assert_eq!(
            ["> preDispatch", "> postTurn", "> postLoop", "tool_calls_proposed", "agent_end"].map(count),
            [1, 2, 1, 1, 1],
            "at {at} {nth}: {seen:?}"
        );
        assert_eq!(second.history().len(), 5, "{:?}", second.history());
    }
}
