//! What stands as the result of a call: bounds, ids, failures, causes.

use std::future::{pending, ready};
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Stage, answers, asking, calls, config, deaf, quick, slow, spec, stage, text, tool};
use turnwheel::approval::ToolDecision;
use turnwheel::event::AgentEvent;
use turnwheel::message::{AgentMessage, ContentBlock, ImageBlock, Media, ToolResultCause};
use turnwheel::tool::{AgentToolResult, ToolOutcome};

use super::kit::{ABORTED, batch, raw};

#[test]
fn a_custom_result_stands_in_for_the_tool() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |_| {});
    let content = vec![ContentBlock::text("I did it myself")];
    stage.prompt("go");
    stage.agent.resolve_tool("a", ToolDecision::Result { content, details: None, is_error: false });
    stage.finish().check();
    assert_eq!(batch(&stage), ["a asked about", "a approved by command", "a: I did it myself"]);
}

#[test]
fn unknown_and_invalid_calls_are_error_results_that_name_the_way_out() {
    let given = calls(&[
        ("a", "ghost", "{}"),
        ("b", "t", "[1]"),
        ("c", "t", "{\"n\":"),
        ("d", "t", ""),
        ("e", "t", "{}"),
    ]);
    let mut stage = stage(vec![given], vec![quick("t"), quick("u")], |config| {
        config.rules.validator =
            Some(Rc::new(
                |_, call, _| if call.call_id == "e" { Err("`n` is missing".to_owned()) } else { Ok(()) },
            ));
    });
    stage.prompt("go").finish().check();
    let history = stage.history();
    assert_eq!(history[2], "a!: no tool named `ghost`; known tools: `t`, `u`");
    assert_eq!(history[3], "b!: invalid arguments for `t`: the arguments must be an object, got a list");
    assert!(
        history[4].starts_with("c!: invalid arguments for `t`: the arguments are no JSON ("),
        "{}",
        history[4]
    );
    assert!(history[4].ends_with("): {\"n\":"), "{}", history[4]);
    assert_eq!(history[5..7], ["d: t is done", "e!: invalid arguments for `t`: `n` is missing"]);
    // The stored calls can be sent to any provider; the event shows what the model wrote.
    assert!(stage.answer(1).tool_calls().all(|call| call.arguments.is_object()));
    let shown = stage.events.iter().find_map(|event| match event {
        AgentEvent::MessageEnd { message, .. } => Some(message.clone()),
        _ => None,
    });
    assert_eq!(shown.unwrap().tool_calls().nth(1).unwrap().arguments, raw("[1]"));
}

#[test]
fn ids_are_made_unique_in_the_whole_history_and_every_event_shows_the_same() {
    let twice = || calls(&[("t1", "t", "{}"), ("t1", "t", "{}"), ("", "t", "{}")]);
    let mut stage = stage(vec![twice(), twice()], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    let ids: Vec<String> = [1, 5]
        .into_iter()
        .flat_map(|at| stage.answer(at).tool_calls().map(|c| c.call_id.clone()).collect::<Vec<_>>())
        .collect();
    assert_eq!(ids, ["t1", "t1#2", "call_1", "t1#3", "t1#4", "call_2"]);
    let original = stage.answer(1).tool_calls().nth(1).unwrap().metadata.clone().unwrap();
    assert_eq!(original, raw("{\"originalCallId\":\"t1\"}"));
    let deltas: Vec<String> = stage
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::MessageUpdate(turnwheel::stream::Delta {
                kind: turnwheel::stream::DeltaKind::ToolCall { call_id, .. },
                ..
            }) => Some(call_id.as_ref().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ids);
}

#[test]
fn ids_of_calls_that_a_prompt_shows_are_taken_too() {
    let again = || calls(&[("t1", "asks", "{}")]);
    let mut stage = stage(vec![again(), text("done"), again()], vec![asking("asks")], |_| {});
    stage.prompt("an example");
    stage.agent.resolve_tool("t1", ToolDecision::Accept);
    stage.finish().check();
    let mut example = stage.agent.messages();
    example.push(AgentMessage::user("now you"));
    stage.agent.reset();
    let run = stage.agent.prompt(example, rig::host::context(), stage.cancel.clone());
    stage.stream = Some(run.unwrap());
    stage.settle();
    assert_eq!(stage.agent.pending_approvals()[0].call_id, "t1#2");
    stage.agent.resolve_tool("t1#2", ToolDecision::Accept);
    stage.finish();
    assert_eq!(stage.history()[5..], ["assistant: [t1#2]", "t1#2: ran with {}", "assistant: done"]);
}

#[test]
fn a_tool_that_takes_too_long_is_an_error_result_and_is_dropped() {
    let mut limited = spec("limited");
    limited.timeout_ms = Some(40);
    let clock = Clock::default();
    let tools = vec![tool(limited, |_| pending()), deaf("deaf"), slow("s", &clock, 10)];
    let given = vec![calls(&[("a", "limited", "{}"), ("b", "deaf", "{}"), ("c", "s", "{}")])];
    let mut config = config(&clock, answers(given), tools);
    config.rules.timeouts.tool = Some(60);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.history()[2..5],
        [
            "a!: tool `limited` did not finish within 40 ms",
            "b!: tool `deaf` did not finish within 60 ms",
            "c: s is done"
        ]
    );
    assert_eq!((stage.clock.elapsed(), stage.clock.alarms()), (60, 0));
}

#[test]
fn results_are_bounded_at_a_character_with_a_note() {
    let mut bounded = spec("t");
    bounded.max_result_bytes = Some(5);
    let long = tool(bounded, |_| {
        let image = ContentBlock::Image(ImageBlock { media: Media::data("image/png", "AAAA").unwrap() });
        let content = vec![ContentBlock::text("aé"), image, ContentBlock::text("bééé")];
        ready(ToolOutcome::Completed(AgentToolResult { content, ..AgentToolResult::default() }))
    });
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![long], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2], "a: aéb\n[truncated: 1 of 7 bytes shown]");
}

#[test]
fn the_text_of_a_failure_is_bounded_like_a_result() {
    let mut bounded = spec("t");
    bounded.max_result_bytes = Some(20);
    let failing = tool(bounded, |_| ready(ToolOutcome::Failed("y".repeat(500))));
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![failing], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2], "a!: tool `t` failed: yyy\n[truncated: 20 of 517 bytes shown]");
}

#[test]
fn a_fatal_tool_ends_the_run_with_an_error_and_its_siblings_are_answered() {
    let mut fatal = spec("fatal");
    fatal.fatal = true;
    let fatal = tool(fatal, |_| ready(ToolOutcome::Failed("disk gone".to_owned())));
    let mut stage =
        stage(vec![calls(&[("a", "deaf", "{}"), ("b", "fatal", "{}")])], vec![fatal, deaf("deaf")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.history()[2..],
        [format!("a!: {ABORTED}"), "b!: tool `fatal` failed: disk gone".to_owned()]
    );
    assert_eq!(
        stage.lines()[stage.lines().len() - 2..],
        ["turn ends error", "run ends error: tool `fatal` failed: disk gone"]
    );
}

#[test]
fn a_tool_that_answers_cancelled_ends_the_run_as_by_abort() {
    let cancels = tool(spec("cancels"), |_| ready(ToolOutcome::Cancelled));
    let mut stage = stage(
        vec![calls(&[("a", "cancels", "{}"), ("b", "deaf", "{}")])],
        vec![cancels, deaf("deaf")],
        |_| {},
    );
    stage.prompt("go").finish().check();
    let lines = stage.lines();
    assert_eq!(lines[lines.len() - 2..], ["turn ends aborted", "run ends aborted: a tool cancelled the run"]);
    assert!(stage.answer(1).is_cut());
}

#[test]
fn results_that_no_tool_wrote_carry_their_cause_and_the_hosts_words() {
    let mut stage =
        stage(vec![calls(&[("a", "ghost", "{}"), ("b", "t", "[]")])], vec![quick("t")], |config| {
            config.rules.result_texts = Some(Rc::new(|cause, call, _, _| {
                (cause == ToolResultCause::UnknownTool).then(|| format!("what is {}?", call.tool_name))
            }));
        });
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2], "a!: what is ghost?");
    let causes: Vec<_> = stage
        .agent
        .messages()
        .iter()
        .filter_map(|message| match message {
            AgentMessage::ToolResult(result) => Some(result.cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [Some(ToolResultCause::UnknownTool), Some(ToolResultCause::InvalidArguments)]);
}

#[test]
fn two_tools_of_one_name_are_refused_at_the_door() {
    let clock = Clock::default();
    let mut config = config(&clock, answers(Vec::new()), Vec::new());
    let error = config.set_tools(vec![quick("t"), quick("t")]).unwrap_err();
    assert_eq!(error.to_string(), "two tools are named `t`; names must be unique");
}
