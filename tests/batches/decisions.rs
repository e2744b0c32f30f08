//! Gates, questions and decisions about calls.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, answers, asking, calls, config, quick, stage, text};
use turnwheel::approval::{ApprovalGate, ApprovalMode, ToolApprovalAction, ToolApprovalPolicy, ToolDecision};
use turnwheel::config::SteeringTime;
use turnwheel::policy::{DispatchCall, DispatchVerdict};
use turnwheel::ports::ApprovalRequest;

use super::kit::{STEERED, batch, raw, three};

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
fn what_was_steered_while_the_model_spoke_does_not_wait_for_a_person() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |_| {});
    stage.prompt("go").until("message_start");
    drop(stage.agent.steer("no, this".into()));
    stage.finish().check();
    assert_eq!(batch(&stage), ["a asked about", "a refused by abort", &format!("a!: {STEERED}")]);
    assert_eq!(stage.history()[3], "user: no, this");
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
