//! When a steering message acts that says so itself, and what becomes of the others that wait with it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Stage, answers, calls, config, deaf, quick, slow, spec, tool};
use turnwheel::agent::Agent;
use turnwheel::approval::ToolDecision;
use turnwheel::config::{AgentLoopConfig, QueueMode, SteeringTime, ToolExecutionPolicy};
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome};

fn asking(name: &str) -> Rc<dyn AgentTool> {
    let mut asks = spec(name);
    asks.requires_approval = ApprovalNeed::Always;
    tool(asks, |_: ToolContext| ready(ToolOutcome::Completed(AgentToolResult::text("allowed"))))
}

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
    assert_eq!(stage.history()[2..], ["a: allowed", "user: by the way", "assistant: done"]);
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
        ["a: allowed", "b: quick is done", "user: by the way", "assistant: done"]
    );
}
