//! Steering in the middle of a batch, and who provides it.

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, StagedHook, answers, calls, config, deaf, quick, spec, stage, tool};
use turnwheel::agent::Agent;
use turnwheel::config::{InFlight, QueueMode, SteeringTime, ToolExecutionPolicy};
use turnwheel::event::AgentEvent;
use turnwheel::message::AgentMessage;
use turnwheel::ports::{HookCall, HookStages};
use turnwheel::tool::{AgentToolResult, ToolOutcome};

use super::kit::{STEERED, batch, three, timed, timed_stage};

#[test]
fn steering_acts_when_a_tool_has_taken_too_long_too() {
    let mut limited = spec("limited");
    limited.timeout_ms = Some(40);
    let clock = Clock::default();
    let given = vec![calls(&[("a", "limited", "{}"), ("b", "t", "{}")])];
    let mut config = config(&clock, answers(given), vec![tool(limited, |_| pending()), quick("t")]);
    config.rules.tool_execution = ToolExecutionPolicy::Sequential;
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer("not b".into()));
    stage.finish().check();
    let results = ["a!: tool `limited` did not finish within 40 ms".to_owned(), format!("b!: {STEERED}")];
    assert_eq!(stage.history()[2..4], results);
}

#[test]
fn steering_lets_running_tools_finish_where_the_host_wants_it() {
    let given = [("a", "timed", "{\"ms\":10}"), ("b", "timed", "{\"ms\":30}"), ("c", "timed", "{\"ms\":5}")];
    let mut stage = timed_stage(&given, |config| {
        config.rules.steering.in_flight = InFlight::Finish;
        config.rules.max_concurrent_tools = Some(2);
    });
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer("this".into()));
    stage.finish().check();
    assert_eq!(
        stage.history()[2..],
        ["a: 10 ms", "b: 30 ms", &format!("c!: {STEERED}"), "user: this", "assistant: done"]
    );
    assert_eq!(stage.clock.elapsed(), 30);
}

#[test]
fn what_is_steered_while_tools_finish_goes_with_the_rest() {
    let given = [("a", "timed", "{\"ms\":10}"), ("b", "timed", "{\"ms\":30}")];
    let mut stage = timed_stage(&given, |config| config.rules.steering.in_flight = InFlight::Finish);
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer("first".into()));
    stage.until("tool_execution_end");
    drop(stage.agent.steer("second".into()));
    stage.finish().check();
    assert_eq!(stage.history()[4..], ["user: first", "user: second", "assistant: done"]);
}

#[test]
fn one_message_a_poll_where_the_host_wants_it() {
    let given = [("a", "timed", "{\"ms\":10}"), ("b", "deaf", "{}")];
    let mut stage = timed_stage(&given, |config| config.rules.steering.delivery = QueueMode::OneAtATime);
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer("first".into()));
    drop(stage.agent.steer("second".into()));
    stage.finish().check();
    assert_eq!(stage.history()[4..], ["user: first", "assistant: done", "user: second", "assistant: done"]);
}

#[test]
fn immediate_steering_spares_nothing_that_has_finished() {
    let given = [("a", "quick", "{}"), ("b", "deaf", "{}")];
    let mut stage = timed_stage(&given, |config| config.rules.steering.when = SteeringTime::Immediate);
    stage.prompt("go").until("tool_execution_end");
    drop(stage.agent.steer("this".into()));
    stage.finish().check();
    assert_eq!(stage.history()[2..4], ["a: quick is done".to_owned(), format!("b!: {STEERED}")]);
}

#[test]
fn before_the_first_call_steering_is_polled_only_where_the_host_wants_it() {
    for (wanted, order) in [
        (false, ["user: go", "assistant: done", "user: early", "assistant: done"].as_slice()),
        (true, ["user: go", "user: early", "assistant: done"].as_slice()),
    ] {
        let mut stage =
            stage(Vec::new(), Vec::new(), |config| config.rules.steering.before_first_call = wanted);
        drop(stage.agent.steer("early".into()));
        stage.prompt("go").finish().check();
        assert_eq!(stage.history(), order);
    }
}

#[test]
fn a_slow_provider_of_steering_does_not_stall_the_batch_and_interrupts_it_when_it_answers() {
    let clock = Clock::default();
    let given = vec![calls(&[
        ("a", "timed", "{\"ms\":10}"),
        ("b", "timed", "{\"ms\":20}"),
        ("c", "timed", "{\"ms\":90}"),
    ])];
    let mut config = config(&clock, answers(given), vec![timed(&clock)]);
    let (polls, at) = (Cell::new(0), clock.clone());
    config.set_message_provider(Rc::new(Port(move |_| {
        polls.set(polls.get() + 1);
        let (first, pause) = (polls.get() == 1, at.pause(40));
        async move {
            if !first {
                return Vec::new();
            }
            pause.await;
            vec![AgentMessage::user("from afar")]
        }
    })));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").until("turn_end");
    assert_eq!(stage.clock.elapsed(), 50);
    assert_eq!(batch(&stage)[3..], ["a: 10 ms", "b: 20 ms", &format!("c!: {STEERED}")]);
    stage.finish().check();
    assert_eq!(stage.history()[5..], ["user: from afar", "assistant: done"]);
}

#[test]
fn what_a_provider_says_after_the_batch_was_interrupted_another_way_is_not_lost() {
    let clock = Clock::default();
    let given = vec![calls(&[("a", "timed", "{\"ms\":10}"), ("b", "deaf", "{}")])];
    let mut config = config(&clock, answers(given), vec![timed(&clock), deaf("deaf")]);
    config.rules.steering.when = SteeringTime::Immediate;
    let (polls, at) = (Cell::new(0), clock.clone());
    config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
        polls.set(polls.get() + 1);
        let (wait, first) = (at.pause(if polls.get() == 1 { 100 } else { 300 }), polls.get() == 1);
        async move {
            wait.await;
            if first && !follow_up { vec![AgentMessage::user("from afar")] } else { Vec::new() }
        }
    })));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").until("tool_execution_end");
    stage.settle();
    drop(stage.agent.steer("at once".into()));
    stage.finish().check();
    assert_eq!(
        stage.history()[4..],
        ["user: at once", "assistant: done", "user: from afar", "assistant: done"]
    );
}

#[test]
fn what_a_provider_says_late_does_not_wait_for_what_it_is_asked_next() {
    let clock = Clock::default();
    let given = vec![calls(&[("a", "quick", "{}"), ("b", "deaf", "{}")])];
    let mut config = config(&clock, answers(given), vec![quick("quick"), deaf("deaf")]);
    config.rules.steering.when = SteeringTime::Immediate;
    let (polls, at) = (Cell::new(0), clock.clone());
    config.set_message_provider(Rc::new(Port(move |_: bool| {
        polls.set(polls.get() + 1);
        let (wait, poll) = (at.pause(100), polls.get());
        async move {
            match poll {
                1 => wait.await,
                2 => pending().await,
                _ => {}
            }
            if poll == 1 { vec![AgentMessage::user("from afar")] } else { Vec::new() }
        }
    })));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").until("tool_execution_end");
    drop(stage.agent.steer("at once".into()));
    stage.finish().check();
    assert_eq!(
        stage.history()[4..],
        ["user: at once", "assistant: done", "user: from afar", "assistant: done"]
    );
}

#[test]
fn what_a_tool_steers_while_steering_waits_already_comes_in_the_same_turn() {
    let slot: Rc<RefCell<Option<Agent>>> = Rc::default();
    let own = slot.clone();
    let steers = tool(spec("steers"), move |_| {
        if let Some(agent) = &*own.borrow() {
            drop(agent.steer("and this".into()));
        }
        ready(ToolOutcome::Completed(AgentToolResult::text("done")))
    });
    let mut stage = stage(vec![calls(&[("a", "steers", "{}")])], vec![steers], |_| {});
    *slot.borrow_mut() = Some(stage.agent.clone());
    drop(stage.agent.steer("this".into()));
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[3..], ["user: this", "user: and this", "assistant: done"]);
}

#[test]
fn steering_that_waits_already_lets_what_is_ready_count_and_the_hooks_hear_of_it_first() {
    let slot: Rc<RefCell<Option<Agent>>> = Rc::default();
    let (seen, own) = (Rc::new(RefCell::new(Vec::new())), slot.clone());
    let notes = seen.clone();
    let stages = HookStages { after_tool_execution: true, ..HookStages::default() };
    let hook = StagedHook(stages, move |_: HookCall| {
        let agent = own.borrow().clone();
        notes.borrow_mut().push(agent.map_or(0, |agent| agent.messages().len()));
        ready(Ok(()))
    });
    let given = calls(&[("a", "t", "{}"), ("b", "t", "{}"), ("c", "deaf", "{}"), ("d", "deaf", "{}")]);
    let mut stage = stage(vec![given], vec![quick("t"), deaf("deaf")], |config| {
        config.set_hooks(vec![Rc::new(hook)]);
    });
    *slot.borrow_mut() = Some(stage.agent.clone());
    drop(stage.agent.steer("this".into()));
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2..4], ["a: t is done", "b: t is done"]);
    // The cancelled calls have their results by the time both are reported.
    assert_eq!(seen.borrow().first(), Some(&3));
}

#[test]
fn steering_stays_queued_where_the_run_is_stopped_before_its_turn() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |_| {});
    drop(stage.agent.steer("this".into()));
    let agent = stage.agent.clone();
    stage.agent.subscribe(move |event| {
        if let AgentEvent::TurnEnd { turn_index: 0, .. } = event {
            agent.abort("enough");
        }
    });
    stage.prompt("go").finish().check();
    assert!(!stage.history().contains(&"user: this".to_owned()));
    assert!(stage.agent.has_waiting());
}

#[test]
fn immediate_steering_from_before_the_batch_starts_nothing() {
    let mut stage = stage(vec![three("quick")], vec![quick("quick")], |config| {
        config.rules.steering.when = SteeringTime::Immediate;
    });
    stage.prompt("go").until("message_start");
    drop(stage.agent.steer("no, this".into()));
    stage.finish().check();
    assert_eq!(stage.count("tool_execution_start"), 0);
    assert!(stage.lines().contains(&"turn ends steering_interrupt".to_owned()));
}
