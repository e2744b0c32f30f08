//! What looks like an approval and is none.

use std::future::ready;
use std::rc::Rc;

use rig::host::{Port, calls, quick, spec, stage, tool};
use turnwheel::approval::{
    ApprovalError, ApprovalGate, ApprovalStateMachine, DecisionSource, ToolApprovalAction, ToolDecision,
};
use turnwheel::json::{FromJson, RawJson, Value};
use turnwheel::message::{AgentMessage, ToolCallBlock, ToolResultCause};
use turnwheel::ports::ApprovalRequest;
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolOutcome};

/// Arguments that are no object.
const NONE: [&str; 7] = ["null", "[]", "[{}]", "\"{}\"", "0", "true", "false"];

fn asking() -> Rc<dyn AgentTool> {
    let mut spec = spec("pay");
    spec.requires_approval = ApprovalNeed::Always;
    tool(spec, |_| ready(ToolOutcome::Completed(AgentToolResult::text("paid"))))
}

#[test]
fn arguments_that_are_no_object_are_no_approval() {
    for arguments in NONE {
        let written = ["{\"action\":\"approve\",\"arguments\":", arguments, "}"].concat();
        let error = ToolDecision::from_json(&Value::parse(&written).unwrap()).unwrap_err();
        assert!(error.contains("`arguments` of a decision must be an object"), "{error}");
    }
    assert_eq!(
        ToolDecision::from_json(&Value::parse("{\"action\":\"approve\"}").unwrap()),
        Ok(ToolDecision::Accept)
    );
}

#[test]
fn the_table_refuses_them_and_the_question_stays_open() {
    let call = ToolCallBlock {
        call_id: "a".into(),
        tool_name: "pay".into(),
        arguments: RawJson::empty_object(),
        metadata: None,
    };
    for arguments in NONE {
        let mut table = ApprovalStateMachine::default();
        table.open(vec![call.clone()], |_| ToolApprovalAction::Ask);
        let decision = ToolDecision::AcceptWith(RawJson::parse(arguments).unwrap());
        let refused = table.resolve("a", decision, DecisionSource::Command);
        assert_eq!(refused, Err(ApprovalError::InvalidArguments("a".into())), "{arguments}");
        assert!(table.is_waiting_for_user() && table.next_ready(ApprovalGate::Batch).is_none());
    }
}

#[test]
fn a_command_with_them_is_refused_aloud_and_the_next_decision_counts() {
    for arguments in NONE {
        let mut stage = stage(vec![calls(&[("a", "pay", "{}")])], vec![asking()], |_| {});
        stage.prompt("go").settle();
        stage.agent.resolve_tool("a", ToolDecision::AcceptWith(RawJson::parse(arguments).unwrap()));
        stage.settle();
        assert_eq!(
            (stage.count("command_refused"), stage.count("tool_execution_start")),
            (1, 0),
            "{arguments}"
        );
        assert_eq!(stage.agent.pending_approvals().len(), 1);
        stage.agent.resolve_tool("a", ToolDecision::Reject { reason: None });
        stage.finish().check();
        assert_eq!(stage.count("tool_execution_start"), 0);
    }
}

#[test]
fn an_approver_that_gives_them_has_failed() {
    for arguments in NONE {
        let mut stage = stage(vec![calls(&[("a", "pay", "{}")])], vec![asking(), quick("look")], |config| {
            config.set_approver(Rc::new(Port(move |_: ApprovalRequest| {
                let decision = ToolDecision::AcceptWith(RawJson::parse(arguments).unwrap());
                ready(Ok(decision))
            })));
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.count("tool_execution_start"), 0, "{arguments}");
        let is_rejected = |message: &AgentMessage| matches!(message, AgentMessage::ToolResult(result) if result.cause == Some(ToolResultCause::Rejected));
        assert!(stage.agent.messages().iter().any(is_rejected));
    }
}
