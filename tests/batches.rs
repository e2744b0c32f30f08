//! The tool calls of one answer: order, gates, decisions, limits, steering, hand-over.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::rc::Rc;
use std::task::Poll;

use rig::clock::Clock;
use rig::host::{
    Port, ScriptedAnswer, Stage, StagedHook, answers, asking, calls, config, deaf, quick, slow, spec, stage,
    text, tool,
};
use turnwheel::agent::Agent;
use turnwheel::approval::{ApprovalGate, ApprovalMode, ToolApprovalAction, ToolApprovalPolicy, ToolDecision};
use turnwheel::config::{AgentLoopConfig, InFlight, QueueMode, SteeringTime, ToolExecutionPolicy};
use turnwheel::event::AgentEvent;
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, ContentBlock, ImageBlock, Media, ToolResultCause};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PostTurn, Verdict};
use turnwheel::ports::{ApprovalRequest, HookCall, HookStages};
use turnwheel::stream::AssistantMessageEvent as E;
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, Transfer};

const STEERED: &str = "tool call cancelled: user requested steering interrupt";
const ABORTED: &str = "tool call cancelled: operation aborted";

fn three(tool: &str) -> ScriptedAnswer {
    calls(&[("a", tool, "{}"), ("b", tool, "{}"), ("c", tool, "{}")])
}

/// A tool that takes as many milliseconds as its argument `ms` says.
fn timed(clock: &Clock) -> Rc<dyn AgentTool> {
    let clock = clock.clone();
    tool(spec("timed"), move |context: ToolContext| {
        let ms = context.arguments.to_value().get("ms").and_then(turnwheel::json::Value::as_u64).unwrap_or(0);
        let pause = clock.pause(ms);
        async move {
            pause.await;
            ToolOutcome::Completed(AgentToolResult::text(format!("{ms} ms")))
        }
    })
}

fn timed_stage(given: &[(&str, &str, &str)], change: impl FnOnce(&mut AgentLoopConfig)) -> Stage {
    let clock = Clock::default();
    let mut config =
        config(&clock, answers(vec![calls(given)]), vec![timed(&clock), deaf("deaf"), quick("quick")]);
    change(&mut config);
    Stage::new(clock, config)
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// The lines between the answer and the end of the first turn.
fn batch(stage: &Stage) -> Vec<String> {
    let lines = stage.lines();
    let from = lines.iter().position(|line| line.starts_with("assistant")).unwrap() + 1;
    let to = lines.iter().position(|line| line.starts_with("turn ends")).unwrap();
    lines[from..to].to_vec()
}

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
fn the_batch_gate_waits_until_all_are_decided_and_the_prefix_gate_for_the_earlier_ones() {
    let given = || vec![calls(&[("a", "quick", "{}"), ("b", "asks", "{}"), ("c", "quick", "{}")])];
    for (gate, before) in [(ApprovalGate::Batch, 0), (ApprovalGate::Prefix, 1)] {
        let mut stage =
            stage(given(), vec![quick("quick"), asking("asks")], |config| config.rules.gate = gate);
        stage.prompt("go").settle();
        assert_eq!(stage.count("tool_execution_end"), before);
        stage.agent.resolve_tool("b", ToolDecision::Accept);
        stage.finish().check();
        assert_eq!(stage.history()[2..5], ["a: quick is done", "b: ran with {}", "c: quick is done"]);
    }
}

#[test]
fn all_asks_of_a_batch_are_shown_at_once_and_decided_in_any_order() {
    let mut stage = stage(vec![three("asks")], vec![asking("asks")], |_| {});
    stage.prompt("go").settle();
    assert_eq!(batch_so_far(&stage), ["a asked about", "b asked about", "c asked about"]);
    stage.agent.resolve_tool("c", ToolDecision::Reject { reason: Some("not that".to_owned()) });
    stage.agent.resolve_tool("a", ToolDecision::Accept);
    stage.settle();
    let open: Vec<String> = stage.agent.pending_approvals().into_iter().map(|call| call.call_id).collect();
    assert_eq!(open, ["b"]);
    stage.agent.resolve_tool("b", ToolDecision::AcceptWith(raw("{\"n\":2}")));
    stage.finish().check();
    assert_eq!(
        stage.history()[2..5],
        ["a: ran with {}", "b: ran with {\"n\":2}", "c!: tool call `asks` was rejected: not that"]
    );
    assert_eq!(stage.answer(1).tool_calls().nth(1).unwrap().arguments, raw("{}"));
}

/// The lines after the answer.
fn batch_so_far(stage: &Stage) -> Vec<String> {
    let lines = stage.lines();
    let from = lines.iter().position(|line| line.starts_with("assistant")).unwrap() + 1;
    lines[from..].to_vec()
}

#[test]
fn a_decision_may_come_before_its_batch() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |_| {});
    assert!(!stage.agent.resolve_tool("a", ToolDecision::Accept), "there is no run that it could be about");
    stage.prompt("go");
    assert!(stage.agent.resolve_tool("a", ToolDecision::Accept));
    stage.finish().check();
    assert_eq!(
        batch(&stage),
        ["a asked about", "a approved by command", "a starts with {}", "a: ran with {}"]
    );
}

#[test]
fn a_decision_that_came_before_its_batch_is_refused_where_a_rule_says_otherwise() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |config| {
        let deny = ToolApprovalPolicy::None.with_overrides([("asks".to_owned(), ToolApprovalAction::Deny)]);
        config.rules.approval.policy = Some(deny);
    });
    stage.prompt("go");
    stage.agent.resolve_tool("a", ToolDecision::Accept);
    stage.finish().check();
    assert_eq!(batch(&stage)[0], "refused: tool_call_id a is already resolved");
    assert_eq!((stage.count("command_refused"), stage.count("tool_execution_start")), (1, 0));
}

#[test]
fn a_repeated_a_contradicting_and_a_late_decision_are_refused_and_end_nothing() {
    let mut stage = stage(vec![three("asks"), text("done")], vec![asking("asks")], |_| {});
    stage.prompt("go").settle();
    let decide = |stage: &mut Stage, decision: ToolDecision| {
        stage.agent.resolve_tool("a", decision);
        stage.settle();
        stage.lines().pop().unwrap()
    };
    assert_eq!(decide(&mut stage, ToolDecision::Accept), "a approved by command");
    let refused = "refused: tool_call_id a is already resolved";
    assert_eq!(decide(&mut stage, ToolDecision::Accept), refused);
    assert_eq!(decide(&mut stage, ToolDecision::Reject { reason: None }), refused);
    let both = [("b", ToolDecision::Accept), ("c", ToolDecision::Accept)];
    stage.agent.resolve_tools(both.map(|(id, decision)| (id.to_owned(), decision)).to_vec());
    stage.until("turn_end");
    assert_eq!(decide(&mut stage, ToolDecision::Accept), "run ends completed");
    assert!(stage.lines().contains(&refused.to_owned()));
    stage.check();
}

#[test]
fn a_decision_about_a_call_that_is_done_without_anybody_is_refused() {
    let mut stage = stage(vec![three("asks")], vec![asking("asks")], |config| {
        config.rules.pre_dispatch = vec![Rc::new(|call: &mut DispatchCall<'_>| {
            Ok(if call.call_id == "b" {
                DispatchVerdict::Skip("not b".to_owned())
            } else {
                DispatchVerdict::Continue
            })
        })];
    });
    stage.prompt("go").settle();
    stage.agent.resolve_tool("b", ToolDecision::Accept);
    stage.settle();
    assert_eq!(stage.lines().pop().unwrap(), "refused: tool_call_id b is already resolved");
    stage.cancel.cancel("enough");
    stage.finish().check();
}

#[test]
fn a_decision_copies_nothing_of_the_calls_that_are_still_open() {
    let mut stage = stage(vec![three("asks")], vec![asking("asks")], |_| {});
    stage.prompt("go").settle();
    let open = |stage: &Stage| -> Vec<(String, *const u8)> {
        let published = stage.agent.published();
        let published = published.borrow();
        let calls = published.questions.iter().filter_map(|question| question.call.as_ref());
        calls.map(|call| (call.call_id.clone(), call.call_id.as_ptr())).collect()
    };
    let before = open(&stage);
    stage.agent.resolve_tool("b", ToolDecision::Accept);
    stage.settle();
    assert_eq!(open(&stage), [before[0].clone(), before[2].clone()]);
    stage.agent.resolve_tool("a", ToolDecision::Accept);
    stage.settle();
    assert_eq!(open(&stage), before[2..]);
    stage.agent.resolve_tool("c", ToolDecision::Accept);
    stage.finish().check();
    assert!(open(&stage).is_empty());
}

#[test]
fn several_decisions_are_taken_all_or_none() {
    let mut stage = stage(vec![three("asks")], vec![asking("asks")], |_| {});
    stage.prompt("go").settle();
    stage.agent.resolve_tool("a", ToolDecision::Accept);
    let both = [("b", ToolDecision::Accept), ("a", ToolDecision::Reject { reason: None })];
    stage.agent.resolve_tools(both.map(|(id, decision)| (id.to_owned(), decision)).to_vec());
    stage.settle();
    assert_eq!(stage.lines().pop().unwrap(), "refused: tool_call_id a is already resolved");
    assert_eq!(stage.agent.pending_approvals().len(), 2);
    let twice = [("b", ToolDecision::Reject { reason: None }), ("b", ToolDecision::Accept)];
    stage.agent.resolve_tools(twice.map(|(id, decision)| (id.to_owned(), decision)).to_vec());
    stage.settle();
    assert_eq!(stage.lines().pop().unwrap(), "refused: invalid approval command for state machine");
    assert_eq!(stage.agent.pending_approvals().len(), 2);
    stage.cancel.cancel("enough");
    stage.finish().check();
}

#[test]
fn who_is_restored_with_an_approver_waits_for_no_command() {
    let mut before = stage(vec![three("asks")], vec![asking("asks")], |_| {});
    before.prompt("go").settle();
    before.agent.resolve_tool("b", ToolDecision::Reject { reason: None });
    before.settle();
    let checkpoint = before.stream.as_mut().unwrap().checkpoint();
    let asked = Rc::new(RefCell::new(Vec::new()));
    let log = asked.clone();
    let mut config = config(&before.clock, answers(Vec::new()), vec![asking("asks")]);
    config.set_approver(Rc::new(Port(move |request: ApprovalRequest| {
        log.borrow_mut().push(request.call_id);
        ready(Ok(ToolDecision::Accept))
    })));
    before.stream = None;
    before.agent = Agent::restore(config, &checkpoint).unwrap();
    before.resume().finish();
    assert_eq!(*asked.borrow(), ["a", "c"]);
    assert_eq!(before.result().text, "done");
}

#[test]
fn a_call_that_cannot_run_waits_for_its_turn_in_a_restored_run_too() {
    let clock = Clock::default();
    let setup = |given: Vec<ScriptedAnswer>, ms: u64| {
        let (mut again, pauses) = (spec("again"), clock.clone());
        again.idempotent = true;
        let again = tool(again, move |_| {
            let pause = pauses.pause(ms);
            async move {
                pause.await;
                ToolOutcome::Completed(AgentToolResult::text("well"))
            }
        });
        let mut config = config(&clock, answers(given), vec![again]);
        config.rules.tool_execution = ToolExecutionPolicy::Sequential;
        config
    };
    let given = vec![calls(&[("a", "again", "{}"), ("b", "ghost", "{}"), ("c", "again", "{}")])];
    let mut stage = Stage::new(clock.clone(), setup(given, 1_000_000));
    stage.prompt("go").until("tool_execution_start");
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    stage.stream = None;
    stage.agent = Agent::restore(setup(Vec::new(), 10), &checkpoint).unwrap();
    stage.resume().finish();
    let lines = stage.lines();
    let place = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
    assert!(place("a: well") < place("b!: no tool") && place("b!: no tool") < place("c starts"), "{lines:?}");
}

#[test]
fn queues_that_are_cleared_before_a_restored_run_goes_on_are_empty() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |_| {});
    stage.prompt("go").settle();
    drop(stage.agent.follow_up("and then".into()));
    stage.settle();
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    stage.stream = None;
    for is_cleared in [true, false] {
        let config = config(&stage.clock, answers(Vec::new()), vec![asking("asks")]);
        stage.agent = Agent::restore(config, &checkpoint).unwrap();
        if is_cleared {
            stage.agent.clear_queues();
        }
        stage.agent.resolve_tool("a", ToolDecision::Accept);
        stage.resume().finish();
        assert_eq!(stage.history().contains(&"user: and then".to_owned()), !is_cleared);
    }
}

#[test]
fn what_was_decided_before_a_checkpoint_is_asked_again() {
    let given = vec![calls(&[("a", "quick", "{}")]), calls(&[("b", "asks", "{}")])];
    let asked = Rc::new(Cell::new(0));
    let tools = || vec![quick("quick"), asking("asks")];
    let mut stage = stage(given, tools(), |_| {});
    let (agent, asks) = (stage.agent.clone(), asked.clone());
    let approver = Rc::new(Port(move |_: ApprovalRequest| {
        asks.set(asks.get() + 1);
        let agent = agent.clone();
        async move {
            // The call is finished already, and that is reported before the decision counts.
            agent.resolve_tool("a", ToolDecision::Accept);
            Ok(ToolDecision::Accept)
        }
    }));
    stage.agent.configure(|config| config.set_approver(approver.clone()));
    stage.prompt("go").until("command_refused");
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    let mut config = config(&stage.clock, answers(Vec::new()), tools());
    config.set_approver(approver);
    stage.finish().check();
    stage.agent = Agent::restore(config, &checkpoint).unwrap();
    stage.resume().finish();
    assert_eq!(stage.result().text, "done");
    assert_eq!(asked.get(), 2);
}

#[test]
fn what_nobody_has_heard_yet_is_in_the_checkpoint() {
    type Act = fn(&Agent);
    let acts: [(&str, Act); 4] = [
        ("steer", |agent| drop(agent.steer("steered".into()))),
        ("follow up", |agent| drop(agent.follow_up("and then".into()))),
        ("clear the queues", Agent::clear_queues),
        ("abort", |agent| agent.abort("enough")),
    ];
    let run_to_end = |stage: &mut Stage| {
        stage.settle();
        for id in ["a", "b"] {
            stage.agent.resolve_tool(id, ToolDecision::Accept);
        }
        stage.finish();
        (stage.history(), stage.result().stop_reason)
    };
    for (name, act) in acts {
        let tools = || vec![asking("asks")];
        let mut stage = stage(vec![calls(&[("a", "asks", "{}"), ("b", "asks", "{}")])], tools(), |_| {});
        stage.prompt("go").settle();
        drop(stage.agent.follow_up("queued before".into()));
        stage.settle();
        act(&stage.agent);
        let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
        let uninterrupted = run_to_end(&mut stage);
        let config = config(&stage.clock, answers(Vec::new()), tools());
        stage.agent = Agent::restore(config, &checkpoint).unwrap();
        assert_eq!(run_to_end(stage.resume()), uninterrupted, "{name}");
    }
}

#[test]
fn a_batch_that_ends_the_run_does_so_after_a_checkpoint_too() {
    // The hook of the first call has not returned when the second call ends the run.
    let after = |answer: Poll<Result<(), String>>| {
        let stages = HookStages { after_tool_execution: true, ..HookStages::default() };
        Rc::new(StagedHook(stages, move |_: HookCall| {
            let answer = answer.clone();
            poll_fn(move |_| answer.clone())
        }))
    };
    let hand_over = || {
        let transfer = Some(Transfer { to: "billing".to_owned(), reason: Some("money".to_owned()) });
        ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::text("moving") })
    };
    let outcomes: [fn() -> ToolOutcome; 2] = [hand_over, || ToolOutcome::Cancelled];
    for outcome in outcomes {
        let tools = || vec![quick("quick"), tool(spec("ends"), move |_| ready(outcome())), deaf("deaf")];
        let begin = |answer| {
            let given = calls(&[("a", "quick", "{}"), ("b", "ends", "{}"), ("c", "deaf", "{}")]);
            let mut stage = stage(vec![given], tools(), |config| config.set_hooks(vec![after(answer)]));
            stage.prompt("go");
            stage
        };
        let mut whole = begin(Poll::Ready(Ok(())));
        whole.finish().check();
        let mut stage = begin(Poll::Pending);
        stage.settle();
        assert!(!stage.is_over());
        let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
        let mut config = config(&stage.clock, answers(Vec::new()), tools());
        config.set_hooks(vec![after(Poll::Ready(Ok(())))]);
        stage.agent = Agent::restore(config, &checkpoint).unwrap();
        stage.resume().finish();
        assert_eq!(stage.history(), whole.history());
        let (woken, whole) = (stage.lines(), whole.lines());
        assert_eq!(woken[woken.len() - 2..], whole[whole.len() - 2..]);
    }
}

#[test]
fn a_command_is_seen_however_its_key_is_written() {
    for key in ["command", "c\\u006fmmand", "\\u0063\\u006F\\u006d\\u006D\\u0061\\u006E\\u0064"] {
        let arguments = format!("{{\"{key}\":\"sh -c 'rm -rf .'\"}}");
        let given = vec![calls(&[("a", "run_command", &arguments)])];
        let mut stage = stage(given, vec![quick("run_command")], |config| {
            let approved = ToolApprovalPolicy::Custom {
                rules: turnwheel::data::table::Table::new(),
                default: ToolApprovalAction::Approve,
            };
            config.rules.approval = approved.into();
        });
        stage.prompt("go").settle();
        assert_eq!(stage.agent.pending_approvals().len(), 1, "{arguments}");
    }
}

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
fn deny_wins_in_every_mode_and_nobody_is_asked() {
    for mode in [ApprovalMode::Smart, ApprovalMode::Enabled, ApprovalMode::Bypassed] {
        let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |config| {
            config.rules.approval.mode = mode;
            config.rules.approval.policy = Some(ToolApprovalPolicy::from_allowlist(["other"]));
        });
        stage.prompt("go").finish().check();
        assert_eq!(batch(&stage), ["a!: tool `t` is denied by a rule"]);
    }
}

#[test]
fn the_approver_sees_what_policies_made_of_the_arguments_and_whether_the_tool_asks() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let requests = seen.clone();
    let mut stage = stage(
        vec![calls(&[("a", "asks", "{}"), ("b", "t", "{}")])],
        vec![asking("asks"), quick("t")],
        |config| {
            config.rules.approval.mode = ApprovalMode::Enabled;
            config.rules.pre_dispatch.push(Rc::new(|call: &mut turnwheel::policy::DispatchCall<'_>| {
                call.arguments = raw("{\"by\":\"policy\"}");
                Ok(turnwheel::policy::DispatchVerdict::Continue)
            }));
            config.set_approver(Rc::new(Port(move |request: ApprovalRequest| {
                requests.borrow_mut().push((request.call_id, request.arguments, request.requires_approval));
                ready(Ok(ToolDecision::Accept))
            })));
        },
    );
    stage.prompt("go").finish().check();
    let by = || raw("{\"by\":\"policy\"}");
    assert_eq!(*seen.borrow(), [("a".to_owned(), by(), true), ("b".to_owned(), by(), false)]);
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
fn a_hand_over_ends_the_run_and_cancels_the_siblings() {
    let hands_over = tool(spec("hand"), |_| {
        let transfer = Some(Transfer { to: "billing".to_owned(), reason: Some("money".to_owned()) });
        ready(ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::default() }))
    });
    let mut stage = stage(
        vec![calls(&[("a", "deaf", "{}"), ("b", "hand", "{}")])],
        vec![deaf("deaf"), hands_over],
        |_| {},
    );
    drop(stage.agent.follow_up("more".into()));
    stage.prompt("go").finish().check();
    assert_eq!(
        batch(&stage)[2..],
        [
            "b: Transfer to billing initiated.",
            "a!: tool call cancelled: transfer initiated",
            "transfer to billing"
        ]
    );
    assert_eq!(stage.lines()[stage.lines().len() - 2..], ["turn ends transfer", "run ends transfer"]);
}

#[test]
fn a_hand_over_in_a_circle_or_down_a_chain_that_is_too_long_is_refused() {
    for (chain, to) in [(vec!["front"], "front"), (vec![], "me"), (vec!["1", "2", "3", "4"], "next")] {
        let hands_over = tool(spec("hand"), move |_| {
            let transfer = Some(Transfer { to: to.to_owned(), reason: None });
            ready(ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::default() }))
        });
        let mut stage = stage(vec![calls(&[("a", "hand", "{}")])], vec![hands_over], |config| {
            config.rules.agent_name = "me".into();
            config.rules.transfer_chain = chain.into_iter().map(str::to_owned).collect();
        });
        stage.prompt("go").finish().check();
        assert!(stage.history()[2].starts_with("a!: transfer refused"), "{}", stage.history()[2]);
        assert_eq!(stage.lines().last().unwrap(), "run ends completed");
    }
}

#[test]
fn changes_of_the_state_are_told_once_a_turn_right_before_its_end() {
    let clock = Clock::default();
    let writes = tool(spec("t"), |context: ToolContext| {
        let n = context.state.get("n").and_then(|n| n.as_u64()).unwrap_or(0) + 1;
        context.state.set("n", n.into());
        context.state.delete("old");
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    });
    let mut config = config(&clock, answers(vec![three("t"), calls(&[("d", "t", "{}")])]), vec![writes]);
    config.rules.session_state.insert("old", true.into());
    config.rules.session_state.insert("n", 5_u64.into());
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    let changes: Vec<String> = stage.lines().into_iter().filter(|line| line.starts_with("state")).collect();
    assert_eq!(changes, ["state {\"n\":8,\"old\":null}", "state {\"n\":9}"]);
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
fn an_abort_in_a_batch_marks_its_message_in_the_history_and_at_the_end_of_the_turn() {
    let mut stage = timed_stage(&[("a", "quick", "{}"), ("b", "deaf", "{}")], |_| {});
    stage.prompt("go").until("tool_execution_end");
    stage.cancel.cancel("the user left");
    stage.finish().check();
    assert_eq!(
        stage.history()[1..],
        ["assistant: [a b] (aborted)", "a: quick is done", &format!("b!: {ABORTED}")]
    );
    assert_eq!(stage.answer(1).error.as_ref().unwrap().message, "the user left");
    assert_eq!(
        stage.end().0,
        ["user: go", "assistant: [a b] (aborted)", "a: quick is done", &format!("b!: {ABORTED}")]
    );
}

#[test]
fn an_abort_between_turns_shows_the_turn_that_was_due() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |config| {
        let polls = Cell::new(0);
        config.set_message_provider(Rc::new(Port(move |_| {
            polls.set(polls.get() + 1);
            let silent = polls.get() == 2;
            async move {
                if silent {
                    pending::<()>().await;
                }
                Vec::new()
            }
        })));
    });
    stage.prompt("go").settle();
    stage.cancel.cancel("stop");
    stage.finish().check();
    assert_eq!(
        stage.lines()[6..],
        [
            "turn ends tools_executed",
            "turn 1",
            "assistant:  (aborted)",
            "turn ends aborted",
            "run ends aborted: stop"
        ]
    );
}

#[test]
fn what_a_policy_injected_is_kept_when_the_run_is_stopped_before_its_turn() {
    let mut stage = stage(vec![text("hi")], Vec::new(), |config| {
        let judge = |_: &PostTurn<'_>| Ok(Verdict::Inject(vec!["a note".into()]));
        config.rules.post_turn.push(Rc::new(judge));
        config.set_message_provider(Rc::new(Port(|_| pending())));
    });
    stage.prompt("go").settle();
    stage.cancel.cancel("stop");
    stage.finish().check();
    assert_eq!(stage.history()[2..], ["user: a note", "assistant:  (aborted)"]);
}

#[test]
fn what_was_steered_while_the_model_spoke_does_not_wait_for_a_person() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |_| {});
    stage.prompt("go").until("message_start");
    drop(stage.agent.steer("no, this".into()));
    stage.finish().check();
    assert_eq!(batch(&stage), ["a asked about", "a refused by abort", &format!("a!: {STEERED}")]);
    assert_eq!(stage.history()[3], "user: no, this");
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

#[test]
fn steering_while_an_approver_thinks_acts_at_once_and_what_he_says_comes_too_late() {
    for when in [SteeringTime::AfterTool, SteeringTime::Immediate] {
        let clock = Clock::default();
        let asks = asking("asks");
        let mut config = config(
            &clock,
            answers(vec![calls(&[("a", "asks", "{}"), ("b", "quick", "{}")])]),
            vec![asks, quick("quick")],
        );
        config.rules.steering.when = when;
        let thinks = clock.clone();
        config.set_approver(Rc::new(Port(move |_| {
            let pause = thinks.pause(50);
            async move {
                pause.await;
                Ok(ToolDecision::Accept)
            }
        })));
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").until("tool_approval_requested").settle();
        drop(stage.agent.steer("no, this".into()));
        stage.finish().check();
        assert_eq!(stage.clock.elapsed(), 0);
        assert!(stage.lines().contains(&"turn ends steering_interrupt".to_owned()));
        assert_eq!(stage.count("tool_execution_start"), 0);
    }
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

#[test]
fn what_policies_injected_about_a_call_goes_with_it_when_a_later_one_skips_it() {
    let mut stage = stage(vec![three("t")], vec![quick("t")], |config| {
        let policies = &mut config.rules.pre_dispatch;
        policies.push(Rc::new(|call: &mut DispatchCall<'_>| {
            Ok(DispatchVerdict::Inject(vec![format!("about {}", call.call_id).as_str().into()]))
        }));
        policies.push(Rc::new(|call: &mut DispatchCall<'_>| {
            let skip = call.call_id == "b";
            Ok(if skip { DispatchVerdict::Skip("no".to_owned()) } else { DispatchVerdict::Continue })
        }));
    });
    stage.prompt("go").finish().check();
    let results = ["a: t is done", "b!: no", "c: t is done", "user: about a", "user: about c"];
    assert_eq!(stage.history()[2..7], results);
}

#[test]
fn a_stop_before_the_calls_drops_what_policies_injected_and_gives_every_call_its_result() {
    let mut stage = stage(vec![three("t")], vec![quick("t")], |config| {
        config.rules.pre_dispatch.push(Rc::new(|call: &mut DispatchCall<'_>| {
            Ok(match call.call_id {
                "c" => DispatchVerdict::Stop("enough".to_owned()),
                id => DispatchVerdict::Inject(vec![format!("about {id}").as_str().into()]),
            })
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("tool_execution_start"), 0);
    assert_eq!(stage.lines().last().unwrap(), "run ends policy_stop");
    let history = stage.history();
    assert_eq!(history.len(), 5, "{history:?}");
    assert!(history[2..].iter().all(|result| result.contains("enough")), "{history:?}");
}

#[test]
fn policies_see_the_session_state_as_it_was_when_the_batch_began() {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let notes = seen.clone();
    let writes = tool(spec("writes"), |context: ToolContext| {
        context.state.set("k", turnwheel::json::Value::from("late"));
        ready(ToolOutcome::Completed(AgentToolResult::text("written")))
    });
    let calls = calls(&[("a", "writes", "{}"), ("b", "asks", "{}")]);
    let mut stage = stage(vec![calls], vec![writes, asking("asks")], |config| {
        config.rules.gate = ApprovalGate::Prefix;
        config.rules.session_state.insert("old", true.into());
        config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
            let has = |key| call.state.get(key).is_some();
            notes.borrow_mut().push(format!("{} {} {}", call.call_id, has("old"), has("k")));
            Ok(DispatchVerdict::Continue)
        }));
    });
    stage.prompt("go").settle();
    stage.agent.resolve_tool("b", ToolDecision::AcceptWith(raw("{\"n\":1}")));
    stage.finish().check();
    assert_eq!(*seen.borrow(), ["a true false", "b true false", "b true false"]);
}

#[test]
fn content_of_the_answer_decides_not_its_stop_reason() {
    let mut answer = calls(&[("a", "t", "{}")]);
    answer.pop();
    answer.push(E::Done { stop_reason: turnwheel::message::MessageStopReason::Stop, usage: None });
    let mut without = text("I would use a tool");
    without.pop();
    without.push(E::Done { stop_reason: turnwheel::message::MessageStopReason::ToolUse, usage: None });
    let mut stage = stage(vec![answer, without], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2..], ["a: t is done", "assistant: I would use a tool"]);
}

#[test]
fn two_tools_of_one_name_are_refused_at_the_door() {
    let clock = Clock::default();
    let mut config = config(&clock, answers(Vec::new()), Vec::new());
    let error = config.set_tools(vec![quick("t"), quick("t")]).unwrap_err();
    assert_eq!(error.to_string(), "two tools are named `t`; names must be unique");
}
