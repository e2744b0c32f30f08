use super::*;
use crate::data::json::{FromJson, RawJson, ToJson, Value};
use crate::rules::approval::DecisionSource;
use crate::words::message::ContentBlock;

fn call(id: &str, name: &str) -> ToolCallBlock {
    ToolCallBlock {
        call_id: id.into(),
        tool_name: name.into(),
        arguments: RawJson::empty_object(),
        metadata: None,
    }
}

fn asking(ids: &[&str]) -> ApprovalStateMachine {
    let mut table = ApprovalStateMachine::default();
    let calls = ids.iter().map(|id| call(id, "tool")).collect();
    assert_eq!(table.open(calls, |_| ToolApprovalAction::Ask), []);
    table
}

fn reject() -> ToolDecision {
    ToolDecision::Reject { reason: None }
}

fn drain(table: &mut ApprovalStateMachine, gate: ApprovalGate) -> Vec<String> {
    std::iter::from_fn(|| table.next_ready(gate)).map(|ready| ready.call.call_id).collect()
}

#[test]
fn the_batch_gate_waits_for_all_and_the_prefix_gate_for_the_earlier_ones() {
    for (gate, first, then) in
        [(ApprovalGate::Batch, vec![], vec!["a", "b"]), (ApprovalGate::Prefix, vec!["a"], vec!["b"])]
    {
        let mut table = asking(&["a", "b"]);
        table.resolve("a", ToolDecision::Accept, DecisionSource::Callback).unwrap();
        assert_eq!(drain(&mut table, gate), first);
        table.resolve("b", reject(), DecisionSource::Command).unwrap();
        assert_eq!(drain(&mut table, gate), then);
        assert!(table.is_complete());
    }
}

#[test]
fn several_decisions_are_taken_all_or_none() {
    let mut table = asking(&["a", "b"]);
    table.resolve("b", reject(), DecisionSource::Command).unwrap();
    let before = table.clone();
    let accept = |ids: [&str; 2]| ids.map(|id| (id.to_owned(), ToolDecision::Accept));
    assert!(table.resolve_all(accept(["a", "b"]), DecisionSource::Command).is_err());
    assert!(table.resolve_all(accept(["a", "x"]), DecisionSource::Command).is_err());
    assert!(table.decide_all(accept(["b", "x"]), DecisionSource::Command).is_err());
    assert_eq!(table, before);
}

#[test]
fn decisions_are_told_in_the_order_of_the_calls_and_last_what_is_parked() {
    let ids: Vec<String> = (0..40).map(|n| format!("call_{n}")).collect();
    let mut table = asking(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let accept = |id: &String| (id.clone(), ToolDecision::Accept);
    let later = ["a".to_owned(), "z".to_owned()];
    let decisions = ids.iter().rev().take(30).chain(&later).map(accept);
    let resolved = table.decide_all(decisions, DecisionSource::Command).unwrap();
    let known = ids.iter().skip(10).map(|id| (id.clone(), Resolution::Applied));
    let parked = later.iter().map(|id| (id.clone(), Resolution::Parked));
    assert_eq!(resolved, known.chain(parked).collect::<Vec<_>>());
    let pending = |table: &ApprovalStateMachine| table.pending().count();
    assert_eq!((pending(&table), table.pending), (10, 10));
    for id in &ids {
        let is_first = table.entry(id).is_some_and(ApprovalEntry::is_pending);
        let resolution = if is_first { Resolution::Applied } else { Resolution::Repeated };
        assert_eq!(table.resolve(id, ToolDecision::Accept, DecisionSource::Callback), Ok(resolution));
        assert_eq!(pending(&table), table.pending);
    }
    assert!(table.all_decided() && table.entry("a").is_none());
}

#[test]
fn a_parked_decision_holds_when_its_batch_comes_unless_a_rule_says_otherwise() {
    let mut table = ApprovalStateMachine::default();
    for id in ["a", "b", "z"] {
        let parked = table.decide(id, ToolDecision::Accept, DecisionSource::Command);
        assert_eq!(parked, Ok(Resolution::Parked));
    }
    let deny_bad = |call: &ToolCallBlock| {
        if call.tool_name == "bad" { ToolApprovalAction::Deny } else { ToolApprovalAction::Ask }
    };
    let refused = table.open(vec![call("a", "good"), call("b", "bad")], deny_bad);
    assert_eq!(refused, [ApprovalError::AlreadyResolved("b".into())]);
    let ready: Vec<_> = std::iter::from_fn(|| table.next_ready(ApprovalGate::Batch)).collect();
    assert_eq!((ready[0].decision.clone(), ready[0].by), (ToolDecision::Accept, DecisionSource::Command));
    assert_eq!((ready[1].decision.clone(), ready[1].by), (reject(), DecisionSource::Rule));
}

#[test]
fn what_was_not_handed_out_comes_back_when_the_batch_is_closed() {
    let mut table = asking(&["a", "b", "c"]);
    table.resolve("a", ToolDecision::Accept, DecisionSource::Command).unwrap();
    table.resolve("c", ToolDecision::Accept, DecisionSource::Command).unwrap();
    assert_eq!(drain(&mut table, ApprovalGate::Prefix), ["a"]);
    let left: Vec<_> = table.close().into_iter().map(|entry| entry.call.call_id).collect();
    assert_eq!(left, ["b", "c"]);
    assert!(table.is_complete() && !table.is_waiting_for_user());
}

#[test]
fn the_table_survives_being_written_down() {
    let mut table = asking(&["a", "b", "c", "d"]);
    let with = ToolDecision::AcceptWith(RawJson::parse("{\"p\":1}").unwrap());
    table.resolve("a", with, DecisionSource::Callback).unwrap();
    let result = ToolDecision::Result {
        content: vec![ContentBlock::text("done")],
        details: Some(RawJson::parse("{\"n\":1}").unwrap()),
        is_error: true,
    };
    table.resolve("b", result, DecisionSource::Command).unwrap();
    let why = ToolDecision::Reject { reason: Some("no".into()) };
    table.resolve("c", why, DecisionSource::Command).unwrap();
    table.decide("later", ToolDecision::Accept, DecisionSource::Command).unwrap();
    table.next_ready(ApprovalGate::Prefix).unwrap();
    let written = Value::parse(&table.to_json()).unwrap();
    assert_eq!(ApprovalStateMachine::from_json(&written), Ok(table));
}

#[test]
fn decisions_are_read_in_all_their_forms() {
    let read = |text: &str| ToolDecision::from_json(&Value::parse(text).unwrap());
    let text = |text: &str| vec![ContentBlock::text(text)];
    assert_eq!(read("\"approve\""), Ok(ToolDecision::Accept));
    assert_eq!(
        read(r#"{"action":"reject","reason":"no"}"#),
        Ok(ToolDecision::Reject { reason: Some("no".into()) })
    );
    assert_eq!(
        read(r#"{"action":"result","content":{"k":1},"isError":true}"#),
        Ok(ToolDecision::Result { content: text("{\"k\":1}"), details: None, is_error: true })
    );
    assert_eq!(
        read(r#"{"action":"result","content":"x"}"#),
        Ok(ToolDecision::Result { content: text("x"), details: None, is_error: false })
    );
    assert!(read(r#"{"action":"approve","arguments":[1]}"#).is_err());
    assert!(read("\"maybe\"").unwrap_err().contains("maybe"));
}
