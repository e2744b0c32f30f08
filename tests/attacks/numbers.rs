//! Arguments that one reader shows and another runs otherwise: numbers that are not finite, names that are there twice, `-0`,
//! `__proto__`. They are refused before anybody is asked, or everybody has the same.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, answers, calls, config, deaf, spec, stage, text, tool};
use turnwheel::agent::Agent;
use turnwheel::approval::{
    ApprovalError, ApprovalStateMachine, DecisionSource, ToolApprovalAction, ToolDecision,
};
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::event::AgentEvent;
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, ToolCallBlock, ToolResultCause};
use turnwheel::policy::{DispatchCall, DispatchVerdict};
use turnwheel::ports::ApprovalRequest;
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolOutcome};

/// Arguments with a number that is not finite as a double, and what is said of it.
const INFINITE: [(&str, &str); 8] = [
    (r#"{"amount":1e400}"#, "`amount` is 1e400, which is too large for a number"),
    (r#"{"amount":-1E+309}"#, "`amount` is -1E+309, which"),
    (r#"{"amount":1.7976931348623159e308}"#, "`amount` is 1.7976931348623159e308, which"),
    (
        r#"{"a":1,"deep":[{"b":2},[3,{"n":1e99999999999999999999}]]}"#,
        "`deep[1][1].n` is 1e99999999999999999999,",
    ),
    (r#"{"amount":0.001e312}"#, "`amount` is 0.001e312,"),
    (r#"{"amount":1e400,"amount":1e401}"#, "`amount` is 1e401,"),
    ("[1e400]", "`[0]` is 1e400,"),
    ("1e400", "it is 1e400,"),
];

/// What a model writes, and what everybody has of it.
const MENDED: [(&str, &str); 9] = [
    (r#"{"amount":1,"amount":1000}"#, r#"{"amount":1000}"#),
    (r#"{"a":{"b":[{"c":1,"d":2,"\u0063":3}]}}"#, r#"{"a":{"b":[{"d":2,"c":3}]}}"#),
    (r#"{"a":-0,"b":[-0.0,-0e5],"c":-1e-400}"#, r#"{"a":0,"b":[0,0],"c":0}"#),
    (r#"{"__proto__":{"amount":1000},"amount":1}"#, r#"{"amount":1}"#),
    (r#"{"a":[{"\u005f_proto__":{"x":1}}]}"#, r#"{"a":[{}]}"#),
    // These stay as they are.
    (r#"{"n":12345678901234567890}"#, r#"{"n":12345678901234567890}"#),
    (r#"{"n":1.7976931348623157e308,"m":-0.5}"#, r#"{"n":1.7976931348623157e308,"m":-0.5}"#),
    (r#"{"n":1e-400, "m": 0e999}"#, r#"{"n":1e-400, "m": 0e999}"#),
    (r#"{"a":{"x":1},"b":{"x":1}}"#, r#"{"a":{"x":1},"b":{"x":1}}"#),
];

type Ran = Rc<RefCell<Vec<String>>>;

/// A tool that asks a person first, and what it ran with.
fn pay() -> (Rc<dyn AgentTool>, Ran) {
    let ran = Ran::default();
    let seen = ran.clone();
    let mut spec = spec("pay");
    spec.requires_approval = ApprovalNeed::Always;
    let pay = tool(spec, move |call| {
        seen.borrow_mut().push(call.arguments.as_str().to_owned());
        ready(ToolOutcome::Completed(AgentToolResult::text("paid")))
    });
    (pay, ran)
}

/// The text of the result of each call, if it is one of invalid arguments.
fn refusals(messages: &[AgentMessage]) -> Vec<String> {
    let refusal = |message: &AgentMessage| match message {
        AgentMessage::ToolResult(result) if result.cause == Some(ToolResultCause::InvalidArguments) => {
            Some(format!("{:?}", result.content))
        }
        _ => None,
    };
    messages.iter().filter_map(refusal).collect()
}

fn shown(events: &[AgentEvent]) -> Vec<String> {
    let shown = |event: &AgentEvent| match event {
        AgentEvent::ToolApprovalRequested { arguments, .. } => Some(arguments.as_str().to_owned()),
        _ => None,
    };
    events.iter().filter_map(shown).collect()
}

#[test]
fn a_number_that_is_not_finite_is_asked_about_by_nobody_and_the_model_may_mend_it() {
    for (arguments, said) in INFINITE {
        let (pay, ran) = pay();
        let mended = calls(&[("b", "pay", r#"{"amount":1}"#)]);
        let mut stage = stage(vec![calls(&[("a", "pay", arguments)]), mended, text("ok")], vec![pay], |_| {});
        stage.prompt("go").until("tool_approval_requested");
        assert_eq!(shown(&stage.events), [r#"{"amount":1}"#], "{arguments}");
        let refused = refusals(&stage.agent.messages());
        assert!(refused.len() == 1 && refused[0].contains("invalid arguments for `pay`: "), "{refused:?}");
        assert!(refused[0].contains(said), "{refused:?}");
        stage.agent.resolve_tool("b", ToolDecision::Accept);
        stage.finish().check();
        assert_eq!(*ran.borrow(), [r#"{"amount":1}"#]);
        // No provider has to read it.
        assert!(!stage.agent.messages()[1].as_llm().is_none_or(|m| format!("{m:?}").contains("1e400")));
    }
}

#[test]
fn what_is_asked_is_what_runs_and_what_the_history_has() {
    for (arguments, kept) in MENDED {
        let (pay, ran) = pay();
        let mut stage = stage(vec![calls(&[("a", "pay", arguments)]), text("ok")], vec![pay], |_| {});
        stage.prompt("go").until("tool_approval_requested");
        stage.agent.resolve_tool("a", ToolDecision::Accept);
        stage.finish().check();
        let call = stage.answer(1).tool_calls().next().unwrap().arguments.as_str().to_owned();
        assert_eq!(
            (shown(&stage.events), ran.borrow().clone(), call),
            (vec![kept.into()], vec![kept.into()], kept.into())
        );
    }
}

#[test]
fn a_decision_gives_no_such_arguments() {
    let call = ToolCallBlock {
        call_id: "a".into(),
        tool_name: "pay".into(),
        arguments: RawJson::empty_object(),
        metadata: None,
    };
    for (arguments, said) in INFINITE.iter().filter(|(arguments, _)| arguments.starts_with('{')) {
        let given = || ToolDecision::AcceptWith(RawJson::parse(arguments).unwrap());
        let mut table = ApprovalStateMachine::default();
        table.open(vec![call.clone()], |_| ToolApprovalAction::Ask);
        let refused = table.resolve("a", given(), DecisionSource::Command);
        assert_eq!(refused, Err(ApprovalError::InvalidArguments("a".into())), "{arguments}");

        let (pay, ran) = pay();
        let mut person = stage(vec![calls(&[("a", "pay", "{}")]), text("ok")], vec![pay], |_| {});
        person.prompt("go").settle();
        person.agent.resolve_tool("a", given());
        person.settle();
        assert_eq!((person.count("command_refused"), person.agent.pending_approvals().len()), (1, 1));
        person.agent.resolve_tool("a", ToolDecision::Reject { reason: None });
        person.finish().check();
        assert!(ran.borrow().is_empty());

        let (pay, ran) = self::pay();
        let arguments = (*arguments).to_owned();
        let mut approver = stage(vec![calls(&[("a", "pay", "{}")]), text("ok")], vec![pay], |config| {
            config.set_approver(Rc::new(Port(move |_: ApprovalRequest| {
                ready(Ok(ToolDecision::AcceptWith(RawJson::parse(&arguments).unwrap())))
            })));
        });
        approver.prompt("go").finish().check();
        assert!(ran.borrow().is_empty());
        assert!(approver.agent.messages().iter().any(|message| format!("{message:?}").contains(said)));
    }
    // What is the same for all readers is taken, and mended.
    let (pay, ran) = pay();
    let mut stage = stage(vec![calls(&[("a", "pay", "{}")]), text("ok")], vec![pay], |_| {});
    stage.prompt("go").settle();
    let given = RawJson::parse(r#"{"amount":1,"amount":-0}"#).unwrap();
    stage.agent.resolve_tool("a", ToolDecision::AcceptWith(given));
    stage.finish().check();
    assert_eq!(*ran.borrow(), [r#"{"amount":0}"#]);
}

#[test]
fn a_policy_gives_no_such_arguments() {
    for (arguments, said) in INFINITE {
        let (pay, ran) = pay();
        let given = vec![calls(&[("a", "pay", "{}"), ("b", "pay", r#"{"amount":1}"#)]), text("ok")];
        let mut stage = stage(given, vec![pay], |config| {
            config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
                if call.call_id == "a" {
                    call.arguments = RawJson::parse(arguments).unwrap();
                }
                Ok(DispatchVerdict::Continue)
            }));
        });
        stage.prompt("go").settle();
        assert_eq!(shown(&stage.events), [r#"{"amount":1}"#], "{arguments}");
        stage.agent.resolve_tool("b", ToolDecision::Accept);
        stage.finish().check();
        assert_eq!(*ran.borrow(), [r#"{"amount":1}"#]);
        let refused = refusals(&stage.agent.messages());
        assert!(refused.len() == 1 && refused[0].contains(said), "{refused:?}");
    }
    // Nor after a person has decided.
    let (pay, ran) = pay();
    let mut stage = stage(vec![calls(&[("a", "pay", r#"{"amount":1}"#)]), text("ok")], vec![pay], |config| {
        config.rules.pre_dispatch.push(Rc::new(|call: &mut DispatchCall<'_>| {
            if call.arguments.as_str().contains("2") {
                call.arguments = RawJson::parse(r#"{"amount":2e999}"#).unwrap();
            }
            Ok(DispatchVerdict::Continue)
        }));
    });
    stage.prompt("go").settle();
    stage.agent.resolve_tool("a", ToolDecision::AcceptWith(RawJson::parse(r#"{"amount":2}"#).unwrap()));
    stage.finish().check();
    assert!(ran.borrow().is_empty());
    assert!(refusals(&stage.agent.messages())[0].contains("2e999"));
}

#[test]
fn a_checkpoint_brings_no_such_arguments() {
    let clock = Clock::default();
    // A call that waits for a person, one that may run, and one that ran and may run twice.
    for (event, policy) in [
        ("tool_approval_requested", false),
        ("tool_approval_requested", true),
        ("tool_execution_start", false),
    ] {
        for (number, said) in
            [("1e400", "`amount` is 1e400,"), ("[{\"n\":-1e309}]", "`amount[0].n` is -1e309,")]
        {
            let (waiting, _) = pay();
            let given = calls(&[(
                "a",
                if event == "tool_execution_start" { "look" } else { "pay" },
                r#"{"amount":4711}"#,
            )]);
            let mut first =
                Stage::new(clock.clone(), config(&clock, answers(vec![given]), vec![waiting, deaf("look")]));
            first.prompt("go").until(event);
            let honest = first.stream.as_mut().unwrap().checkpoint().encode();
            assert!(honest.contains("4711"));
            let forged = CheckpointEnvelopeV1::decode(honest.replace("4711", number).as_bytes()).unwrap();

            let (pay, ran) = pay();
            let mut look = turnwheel::tool::ToolSpec::clone(&spec("look"));
            look.idempotent = true;
            let seen = ran.clone();
            let look = tool(look, move |call| {
                seen.borrow_mut().push(call.arguments.as_str().to_owned());
                ready(ToolOutcome::Completed(AgentToolResult::text("seen")))
            });
            let mut config = config(&clock, answers(vec![text("ok")]), vec![pay, look]);
            if policy {
                config
                    .rules
                    .pre_dispatch
                    .push(Rc::new(|_: &mut DispatchCall<'_>| Ok(DispatchVerdict::Continue)));
            }
            let mut second = Stage::new(clock.clone(), config.clone());
            second.agent = Agent::restore(config, &forged).unwrap();
            second.resume().finish();
            assert!(ran.borrow().is_empty() && shown(&second.events).is_empty(), "{event} {number}");
            let refused = refusals(&second.agent.messages());
            assert!(refused.len() == 1 && refused[0].contains(said), "{refused:?}");
            assert!(second.agent.pending_approvals().is_empty());
        }
    }
}
