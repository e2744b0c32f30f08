//! When a steering message acts that says so itself, and what becomes of the others that wait with it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::Cell;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, answers, asking, calls, config, deaf, quick, slow};
use turnwheel::agent::Agent;
use turnwheel::approval::ToolDecision;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::{AgentLoopConfig, InFlight, QueueMode, SteeringTime, ToolExecutionPolicy};
use turnwheel::json::{FromJson, Value};
use turnwheel::machine::Letter;
use turnwheel::message::AgentMessage;

/// A run with one answer that calls these tools by their names, `slow` takes 50 ms.
fn stage(tools: &[&str], change: impl FnOnce(&mut AgentLoopConfig)) -> Stage {
    let clock = Clock::default();
    let given: Vec<(&str, &str, &str)> =
        ["a", "b", "c"].into_iter().zip(tools).map(|(id, name)| (id, *name, "{}")).collect();
    let known = vec![quick("quick"), slow("slow", &clock, 50), deaf("deaf"), asking("asks")];
    let mut config = config(&clock, answers(vec![calls(&given)]), known);
    change(&mut config);
    Stage::new(clock, config)
}

#[test]
fn after_the_batch_nothing_is_cancelled_and_the_message_is_read_before_the_next_call() {
    let mut stage = stage(&["quick", "slow", "quick"], |config| {
        config.rules.tool_execution = ToolExecutionPolicy::Sequential;
    });
    stage.prompt("go").until("tool_execution_start");
    let receipt = stage.agent.steer_when("by the way".into(), SteeringTime::AfterBatch);
    stage.finish().check();
    assert_eq!(
        stage.history()[2..],
        ["a: quick is done", "b: slow is done", "c: quick is done", "user: by the way", "assistant: done"]
    );
    assert!(stage.lines().contains(&"turn ends tools_executed".to_owned()));
    drop(receipt);
}

#[test]
fn after_the_batch_waits_for_a_person_too() {
    let mut stage = stage(&["asks"], |_| {});
    stage.prompt("go").until("tool_approval_requested").settle();
    drop(stage.agent.steer_when("by the way".into(), SteeringTime::AfterBatch));
    stage.settle();
    assert_eq!(stage.agent.pending_approvals().len(), 1, "the question is still open");
    assert!(stage.agent.resolve_tool("a", ToolDecision::Accept));
    stage.finish().check();
    assert_eq!(stage.history()[2..], ["a: ran with {}", "user: by the way", "assistant: done"]);
}

#[test]
fn the_message_that_may_wait_least_takes_the_others_with_it() {
    let mut stage = stage(&["slow", "deaf"], |_| {});
    stage.prompt("go").until("tool_execution_start").settle();
    drop(stage.agent.steer_when("later".into(), SteeringTime::AfterBatch));
    drop(stage.agent.steer_when("now".into(), SteeringTime::Immediate));
    stage.finish().check();
    assert_eq!(stage.clock.elapsed(), 0, "nothing was waited for");
    assert_eq!(stage.history()[4..], ["user: later", "user: now", "assistant: done"]);
    assert!(stage.lines().contains(&"turn ends steering_interrupt".to_owned()));
}

#[test]
fn one_at_a_time_the_oldest_is_read_first_though_another_decided_the_moment() {
    let mut stage = stage(&["slow", "deaf"], |config| config.rules.steering.delivery = QueueMode::OneAtATime);
    stage.prompt("go").until("tool_execution_start").settle();
    drop(stage.agent.steer_when("later".into(), SteeringTime::AfterBatch));
    drop(stage.agent.steer_when("now".into(), SteeringTime::Immediate));
    stage.finish().check();
    assert_eq!(stage.history()[4..], ["user: later", "assistant: done", "user: now", "assistant: done"]);
}

#[test]
fn a_message_may_be_more_patient_than_the_agents_rule_and_the_rule_knows_the_word() {
    for own in [None, Some(SteeringTime::AfterBatch)] {
        let mut stage = stage(&["slow", "slow"], |config| {
            config.rules.steering.when =
                if own.is_some() { SteeringTime::Immediate } else { SteeringTime::AfterBatch };
        });
        stage.prompt("go").until("tool_execution_start").settle();
        match own {
            Some(when) => drop(stage.agent.steer_when("by the way".into(), when)),
            None => drop(stage.agent.steer("by the way".into())),
        }
        stage.finish().check();
        assert_eq!(stage.history()[2..4], ["a: slow is done", "b: slow is done"]);
    }
}

#[test]
fn what_waits_for_the_end_of_the_batch_goes_on_waiting_after_a_restore() {
    let clock = Clock::default();
    let given = [("a", "asks", "{}"), ("b", "quick", "{}")];
    let setup = |given| config(&clock, answers(given), vec![asking("asks"), quick("quick")]);
    let mut stage = Stage::new(clock.clone(), setup(vec![calls(&given)]));
    stage.prompt("go").until("tool_approval_requested").settle();
    drop(stage.agent.steer_when("by the way".into(), SteeringTime::AfterBatch));
    stage.settle();
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    stage.stream = None;
    stage.agent = Agent::restore(setup(Vec::new()), &checkpoint).unwrap();
    stage.resume().until("run_resumed").settle();
    assert_eq!(stage.agent.pending_approvals().len(), 1, "it did not interrupt");
    assert!(stage.agent.resolve_tool("a", ToolDecision::Accept));
    stage.finish().check();
    assert_eq!(
        stage.history()[2..],
        ["a: ran with {}", "b: quick is done", "user: by the way", "assistant: done"]
    );
}

#[test]
fn what_the_host_keeps_in_a_queue_of_its_own_is_asked_for_though_a_patient_message_waits() {
    let polled = Rc::new(Cell::new(false));
    let seen = polled.clone();
    let mut stage = stage(&["quick", "deaf"], |config| {
        config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
            let is_first = !follow_up && !seen.replace(true);
            async move { if is_first { vec![AgentMessage::user("from afar")] } else { Vec::new() } }
        })));
    });
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer_when("later".into(), SteeringTime::AfterBatch));
    stage.finish().check();
    assert!(stage.lines().contains(&"turn ends steering_interrupt".to_owned()), "{:?}", stage.lines());
    assert_eq!(stage.history()[4..], ["user: later", "user: from afar", "assistant: done"]);
}

#[test]
fn a_checkpoint_whose_message_names_no_time_is_refused_by_name() {
    let letter = r#"{ "message": { "role": "user", "content": "x" }, "when": "later" }"#;
    let refused = Letter::from_json(&Value::parse(letter).unwrap()).unwrap_err();
    assert_eq!(refused, "`when` of a steering message is no time: later");
}

#[test]
fn calls_that_were_about_to_start_beside_one_that_may_finish_have_results_after_a_restore() {
    // The message comes when all three are about to start, and the process ends when only the first was announced.
    let finish = |config: &mut AgentLoopConfig| config.rules.steering.in_flight = InFlight::Finish;
    let mut first = stage(&["slow", "slow", "slow"], finish);
    first.prompt("go").until("tool_calls_proposed");
    drop(first.agent.steer_when("by the way".into(), SteeringTime::Immediate));
    first.until("tool_execution_start");
    let checkpoint = first.stream.as_mut().unwrap().checkpoint().encode();
    let envelope = CheckpointEnvelopeV1::decode(checkpoint.as_bytes()).unwrap();
    let mut config = config(&first.clock, answers(Vec::new()), vec![slow("slow", &first.clock, 50)]);
    finish(&mut config);
    let mut second = Stage::new(first.clock.clone(), config.clone());
    second.agent = Agent::restore(config, &envelope).unwrap();
    second.resume().finish();
    let steered = |text: &String| text.contains("user requested steering interrupt");
    let history = second.history();
    assert!(history[2].starts_with("a!: tool call interrupted"), "{history:?}");
    assert!(history[3..5].iter().all(steered), "{history:?}");
    assert_eq!(history[5..], ["user: by the way", "assistant: done"]);
}
