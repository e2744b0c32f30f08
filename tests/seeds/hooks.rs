//! What hooks hear: every attempt and every tool, once.

use std::future::{pending, ready};
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, calls, config, failure, model, quick, spec, stage, tool};
use turnwheel::error::ErrorKind;
use turnwheel::message::ToolResultCause;
use turnwheel::ports::HookCall;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::ToolOutcome;

use super::kit::{Notes, note};

/// One word for each call of a hook.
fn word(call: &HookCall) -> String {
    match call {
        HookCall::BeforeInference { turn_index, attempt, .. } => format!("before {turn_index}.{attempt}"),
        HookCall::AfterInference { turn_index, attempt, message, .. } => {
            format!("after {turn_index}.{attempt} {}", message.stop_reason.as_str())
        }
        HookCall::AfterToolExecution { call, result } => format!("{} {:?}", call.call_id, result.cause),
        _ => "other".to_owned(),
    }
}

fn noting_hooks(notes: &Notes) -> impl Fn(HookCall) -> std::future::Ready<Result<(), String>> + use<> {
    let notes = notes.clone();
    move |call| {
        note(&notes, word(&call));
        ready(Ok(()))
    }
}

#[test]
fn the_after_hook_hears_of_tools_that_threw_or_took_too_long() {
    let notes = Notes::default();
    let broken = tool(spec("broken"), |_| ready(ToolOutcome::Failed("no".to_owned())));
    let limited = turnwheel::tool::ToolSpec { timeout_ms: Some(10), ..spec("deaf") };
    let deaf = tool(limited, |_| pending::<ToolOutcome>());
    let asked =
        calls(&[("a", "broken", "{}"), ("b", "deaf", "{}"), ("c", "quick", "{}"), ("d", "none", "{}")]);
    let mut stage = stage(vec![asked], vec![broken, deaf, quick("quick")], |config| {
        config.set_hooks(vec![Rc::new(Port(noting_hooks(&notes)))]);
    });
    stage.prompt("go").finish().check();
    let told: Vec<String> = notes.borrow().iter().filter(|line| line.contains(['N', 'S'])).cloned().collect();
    let cause = |cause: ToolResultCause| format!("{:?}", Some(cause));
    let threw = format!("a {}", cause(ToolResultCause::Threw));
    let late = format!("b {}", cause(ToolResultCause::Timeout));
    assert_eq!(told, [threw, late, "c None".to_owned()]);
}

#[test]
fn every_attempt_has_one_beginning_and_one_end() {
    let notes = Notes::default();
    let given = vec![failure(ErrorKind::Network), failure(ErrorKind::Network), calls(&[("a", "t", "{}")])];
    let mut stage = stage(given, vec![quick("t")], |config| {
        config.set_hooks(vec![Rc::new(Port(noting_hooks(&notes)))]);
    });
    stage.prompt("go").finish().check();
    let told: Vec<String> = notes.borrow().iter().filter(|line| line.contains('.')).cloned().collect();
    assert_eq!(
        told,
        [
            "before 0.1",
            "after 0.1 error",
            "before 0.2",
            "after 0.2 error",
            "before 0.3",
            "after 0.3 tool_use",
            "before 1.1",
            "after 1.1 stop"
        ]
    );
}

#[test]
fn an_attempt_that_is_aborted_ends_too_and_one_that_never_began_does_not() {
    for (at, wanted) in [(0, vec![]), (1, vec!["before 0.1", "after 0.1 aborted"])] {
        let notes = Notes::default();
        let silent =
            model("m", |_: ModelRequest, _| futures::StreamExt::boxed_local(futures::stream::pending::<E>()));
        let clock = Clock::default();
        let mut config = config(&clock, silent, Vec::new());
        config.set_hooks(vec![Rc::new(Port(noting_hooks(&notes)))]);
        let mut stage = rig::host::Stage::new(clock, config);
        stage.prompt("go");
        if at == 1 {
            stage.settle();
        }
        stage.agent.abort("enough");
        stage.finish().check();
        assert_eq!(*notes.borrow(), wanted);
    }
}
