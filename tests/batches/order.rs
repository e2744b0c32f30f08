//! In which order and at which time the calls of an answer run.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Stage, StagedHook, answers, calls, config, quick, spec, stage, tool};
use turnwheel::approval::{ApprovalGate, ApprovalMode, ToolDecision};
use turnwheel::config::{AgentLoopConfig, SteeringTime, ToolExecutionPolicy};
use turnwheel::ports::{HookCall, HookStages};
use turnwheel::tool::{AgentToolResult, ToolContext, ToolOutcome};

use super::kit::{ABORTED, STEERED, batch, three, timed_stage};

#[test]
fn results_stand_in_the_order_of_the_calls_whoever_finishes_first() {
    let given = [("a", "timed", "{\"ms\":30}"), ("b", "timed", "{\"ms\":10}"), ("c", "timed", "{\"ms\":20}")];
    let mut stage = timed_stage(&given, |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(batch(&stage)[3..], ["b: 10 ms", "c: 20 ms", "a: 30 ms"]);
    assert_eq!(stage.history()[2..5], ["a: 30 ms", "b: 10 ms", "c: 20 ms"]);
}

#[test]
fn results_are_committed_as_soon_as_all_before_them_are() {
    let given = [("a", "timed", "{\"ms\":10}"), ("b", "timed", "{\"ms\":20}"), ("c", "timed", "{\"ms\":15}")];
    let mut stage = timed_stage(&given, |_| {});
    let mut lengths = Vec::new();
    stage.prompt("go");
    for _ in 0..3 {
        stage.until("tool_execution_end");
        lengths.push(stage.history().len());
    }
    assert_eq!(lengths, [3, 3, 5]);
    stage.finish().check();
}

#[test]
fn a_cap_on_how_many_run_at_once() {
    let given = [("a", "timed", "{\"ms\":10}"), ("b", "timed", "{\"ms\":10}"), ("c", "timed", "{\"ms\":10}")];
    let mut stage = timed_stage(&given, |config| config.rules.max_concurrent_tools = Some(2));
    stage.prompt("go").finish().check();
    assert_eq!(stage.clock.elapsed(), 20);
    assert_eq!(
        batch(&stage),
        [
            "a starts with {\"ms\":10}",
            "b starts with {\"ms\":10}",
            "a: 10 ms",
            "c starts with {\"ms\":10}",
            "b: 10 ms",
            "c: 10 ms"
        ]
    );
}

#[test]
fn priorities_run_the_higher_first_and_the_equal_together() {
    let clock = Clock::default();
    let leveled = |name: &str, priority: i32| {
        let (mut spec, clock) = (spec(name), clock.clone());
        spec.priority = priority;
        tool(spec, move |_| {
            let pause = clock.pause(10);
            async move {
                pause.await;
                ToolOutcome::Completed(AgentToolResult::text("ok"))
            }
        })
    };
    let given = calls(&[("a", "low", "{}"), ("b", "high", "{}"), ("c", "low", "{}"), ("d", "high", "{}")]);
    let tools = vec![leveled("low", -1), leveled("high", 5)];
    let mut config = config(&clock, answers(vec![given]), tools);
    config.rules.tool_execution = ToolExecutionPolicy::Priority;
    let mut stage = Stage::new(clock.clone(), config);
    stage.prompt("go").finish().check();
    let starts: Vec<String> = batch(&stage).into_iter().filter(|line| line.contains("starts")).collect();
    assert_eq!(starts.concat(), "b starts with {}d starts with {}a starts with {}c starts with {}");
    assert_eq!(clock.elapsed(), 20);
}

#[test]
fn one_after_the_other_a_call_that_cannot_run_waits_for_its_turn_too() {
    let given = [("a", "timed", "{\"ms\":10}"), ("b", "ghost", "{}"), ("c", "timed", "{\"ms\":10}")];
    let sequential =
        |config: &mut AgentLoopConfig| config.rules.tool_execution = ToolExecutionPolicy::Sequential;
    let mut stage = timed_stage(&given, sequential);
    stage.prompt("go").finish().check();
    let unknown = "b!: no tool named `ghost`; known tools: `timed`, `deaf`, `quick`";
    assert_eq!(
        batch(&stage),
        ["a starts with {\"ms\":10}", "a: 10 ms", unknown, "c starts with {\"ms\":10}", "c: 10 ms"]
    );

    let mut stage = timed_stage(&given, sequential);
    stage.prompt("go").until("tool_execution_start");
    drop(stage.agent.steer("wait".into()));
    stage.finish().check();
    let steered = "tool call cancelled: user requested steering interrupt";
    assert_eq!(
        batch(&stage),
        [
            "a starts with {\"ms\":10}".to_owned(),
            "a: 10 ms".to_owned(),
            format!("b!: {steered}"),
            format!("c!: {steered}")
        ]
    );
}

#[test]
fn an_invalid_partition_fails_the_batch_with_one_clear_text_and_runs_nothing() {
    for (groups, why) in [
        (vec![vec![0, 7]], "index 7 is out of range"),
        (vec![vec![0, 0], vec![1, 2]], "index 0 stands twice"),
        (vec![vec![0], vec![2]], "index 1 is missing"),
    ] {
        let mut stage = stage(vec![three("t")], vec![quick("t")], |config| {
            config.rules.tool_execution =
                ToolExecutionPolicy::Custom(Rc::new(move |_, _| Ok(groups.clone())));
        });
        stage.prompt("go").finish().check();
        let text = format!("custom tool execution strategy returned an invalid partition: {why}");
        assert_eq!(batch(&stage), ["a", "b", "c"].map(|id| format!("{id}!: {text}")));
    }
}

#[test]
fn a_tool_result_that_is_ready_counts_before_abort_and_steering() {
    for abort in [true, false] {
        let given = [("a", "timed", "{\"ms\":10}"), ("b", "timed", "{\"ms\":10}"), ("c", "deaf", "{}")];
        let mut stage = timed_stage(&given, |_| {});
        stage.prompt("go").until("tool_execution_start");
        stage.settle();
        // Both tools and then the user, in a single wake-up.
        stage.clock.advance();
        stage.clock.advance();
        if abort {
            stage.cancel.cancel("stop");
        } else {
            drop(stage.agent.steer("this".into()));
        }
        stage.finish().check();
        let cut = if abort { ABORTED } else { STEERED };
        assert_eq!(stage.history()[2..5], ["a: 10 ms", "b: 10 ms", &format!("c!: {cut}")]);
    }
}

#[test]
fn a_tool_that_never_rests_starves_nobody() {
    let restless = tool(spec("t"), |context: ToolContext| {
        std::future::poll_fn(move |cx| {
            context.updates.text("still here");
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        })
    });
    for abort in [true, false] {
        let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![restless.clone()], |config| {
            config.rules.steering.when = SteeringTime::Immediate;
        });
        stage.prompt("go").until("tool_execution_update");
        let mut receipt = stage.agent.steer("this".into());
        if abort {
            stage.cancel.cancel("stop");
        }
        stage.until("turn_end");
        assert_eq!(receipt.try_recv().unwrap(), None);
        stage.finish().check();
    }
}

#[test]
fn after_hooks_are_told_in_the_order_of_the_calls_and_a_group_waits_for_them() {
    let reported = Rc::new(RefCell::new(Vec::new()));
    let notes = reported.clone();
    let given = [("a", "timed", "{\"ms\":20}"), ("b", "timed", "{\"ms\":10}"), ("c", "ghost", "{}")];
    let mut stage = timed_stage(&given, |config| {
        let stages = HookStages { after_tool_execution: true, ..HookStages::default() };
        config.set_hooks(vec![Rc::new(StagedHook(stages, move |call| {
            if let HookCall::AfterToolExecution { call, result } = call {
                notes.borrow_mut().push(format!("{}: {}", call.call_id, result.text()));
            }
            ready(Ok(()))
        }))]);
    });
    stage.prompt("go").finish().check();
    // No tool ran for the third call.
    assert_eq!(*reported.borrow(), ["a: 20 ms", "b: 10 ms"]);
}

#[test]
fn one_after_the_other_a_call_that_is_refused_is_done_too() {
    let mut stage = stage(vec![three("t")], vec![quick("t")], |config| {
        config.rules.tool_execution = ToolExecutionPolicy::Sequential;
        config.rules.gate = ApprovalGate::Prefix;
        config.rules.approval.mode = ApprovalMode::Enabled;
    });
    stage.prompt("go");
    stage.agent.resolve_tools(vec![
        ("a".to_owned(), ToolDecision::Reject { reason: None }),
        ("b".to_owned(), ToolDecision::Accept),
    ]);
    drop(stage.agent.steer("hurry".into()));
    stage.finish().check();
    let cut = "tool call cancelled: user requested steering interrupt";
    let results = ["a!: tool call `t` was rejected", &format!("b!: {cut}"), &format!("c!: {cut}")];
    assert_eq!(stage.history()[2..5], results);
    assert_eq!(stage.count("tool_execution_start"), 0);
}
