//! The calls of an answer that a provider filtered, or that the model refused to finish, do not run.

use rig::clock::Clock;
use rig::host::{Stage, answers, calls, config, quick, stage, text};
use turnwheel::agent::Agent;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::json::ToJson;
use turnwheel::message::{AgentMessage, MessageStopReason, ToolResultCause};
use turnwheel::scripted::ScriptedAnswer;
use turnwheel::stream::AssistantMessageEvent;

const REASONS: [MessageStopReason; 2] = [MessageStopReason::ContentFilter, MessageStopReason::Refusal];

/// Calls whose answer ends for this reason.
fn ended(given: &[(&str, &str, &str)], reason: MessageStopReason) -> ScriptedAnswer {
    let mut answer = calls(given);
    answer.pop();
    answer.push(AssistantMessageEvent::Done { stop_reason: reason, usage: None });
    answer
}

/// Each call's result: its id, and its cause.
fn results(messages: &[AgentMessage]) -> Vec<(String, Option<ToolResultCause>)> {
    let result = |message: &AgentMessage| match message {
        AgentMessage::ToolResult(result) => Some((result.call_id.clone(), result.cause)),
        _ => None,
    };
    messages.iter().filter_map(result).collect()
}

#[test]
fn each_call_gets_one_result_that_says_so_and_none_runs_or_is_asked_about() {
    for reason in REASONS {
        let given = [("a", "look", "{}"), ("b", "unknown", "{}"), ("c", "look", "{\"cut\":")];
        let mut stage = stage(vec![ended(&given, reason), text("sorry")], vec![quick("look")], |config| {
            config.rules.approval.mode = turnwheel::approval::ApprovalMode::Enabled;
        });
        stage.prompt("go").finish().check();
        let wanted = ["a", "b", "c"].map(|id| (id.to_owned(), Some(ToolResultCause::Filtered)));
        assert_eq!(results(&stage.agent.messages()), wanted, "{reason:?}");
        assert_eq!(stage.count("tool_execution_start") + stage.count("tool_approval_requested"), 0);
        assert_eq!(stage.result().stop_reason, RunStopReason::Completed);
    }
}

#[test]
fn a_parked_approval_does_not_run_a_filtered_call() {
    let filtered = ended(&[("a", "look", "{}")], MessageStopReason::Refusal);
    let mut stage = stage(vec![filtered], vec![quick("look")], |_| {});
    stage.agent.resolve_tool("a", turnwheel::approval::ToolDecision::Accept);
    stage.prompt("go").finish().check();
    assert_eq!(results(&stage.agent.messages()), [("a".to_owned(), Some(ToolResultCause::Filtered))]);
}

#[test]
fn the_cause_survives_a_checkpoint_and_a_checkpoint_cannot_lift_it() {
    let clock = Clock::default();
    let waits = config(&clock, answers(vec![calls(&[("a", "look", "{}")])]), vec![rig::host::deaf("look")]);
    let mut stage = Stage::new(clock.clone(), waits);
    stage.prompt("go").until("tool_execution_start");
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    // Whoever can write a checkpoint marks the answer as filtered, and its call as running or ready.
    let honest = checkpoint.encode();
    let (before, after) = honest.split_once("\"role\":\"assistant\"").unwrap();
    let own = r#""provider_options":{"turnwheel":{"#;
    let marked = after.replacen(own, &[own, r#""stopReason":"content_filter","#].concat(), 1);
    let forged = [before, "\"role\":\"assistant\"", &marked].concat();
    let forged = CheckpointEnvelopeV1::decode(forged.as_bytes()).unwrap();
    let mut tools = turnwheel::tool::ToolSpec::clone(&rig::host::spec("look"));
    tools.idempotent = true;
    let ran = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = ran.clone();
    let look = rig::host::tool(tools, move |_| {
        seen.set(true);
        std::future::ready(turnwheel::tool::ToolOutcome::Completed(turnwheel::tool::AgentToolResult::text(
            "x",
        )))
    });
    let agent = Agent::restore(config(&clock, answers(Vec::new()), vec![look]), &forged).unwrap();
    let mut restored = Stage::new(clock.clone(), config(&clock, answers(Vec::new()), Vec::new()));
    restored.agent = agent;
    restored.resume().finish();
    assert!(!ran.get());
    let messages = restored.agent.messages();
    assert_eq!(results(&messages), [("a".to_owned(), Some(ToolResultCause::Filtered))]);
    let again = CheckpointEnvelopeV1::decode(restored.agent.checkpoint(2).encode().as_bytes()).unwrap();
    assert_eq!(results(&again.agent_messages().unwrap()), results(&messages));
    let is_end = |event: &&AgentEvent| matches!(event, AgentEvent::ToolExecutionEnd { .. });
    assert_eq!(restored.events.iter().filter(is_end).count(), 1, "{}", messages.to_json());
}
