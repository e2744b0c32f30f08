//! Every await of a run can be interrupted. In one place after the other something never answers, and the
//! run is aborted, times out, is dropped or is steered there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails here says where"
)]

use std::cell::RefCell;
use std::future::{pending, ready};
use std::rc::Rc;

use futures::FutureExt;
use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{
    Port, ScriptedAnswer, Stage, StagedHook, answers, calls, config, deaf, failure, model, quick, spec, text,
    tool,
};
use turnwheel::agent::{Agent, Receipt};
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, SteeringTime};
use turnwheel::error::ErrorKind;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;
use turnwheel::ports::HookStages;
use turnwheel::stream::AssistantMessageEvent;
use turnwheel::tool::{AgentToolResult, ApprovalNeed, ToolOutcome};

/// The places where nothing answers, and whether steering can move the run on from there.
const PLACES: [(&str, bool); 19] = [
    ("the transformer", false),
    ("the keys", false),
    ("the model", false),
    ("the model, after some text", false),
    ("the model, after a whole call", false),
    ("the back-off", false),
    ("the hook before inference", false),
    ("the hook after inference", false),
    ("the approver", true),
    ("the user who should approve", true),
    ("the hook before a tool", false),
    ("a tool", false),
    ("a tool beside one that is done", false),
    ("the hook after a tool", true),
    ("the provider of steering, beside tools", true),
    ("the provider of steering, between turns", true),
    ("the provider of follow-ups", true),
    ("the transformer that should make room", false),
    ("the compaction", false),
];

fn setup(place: &str, clock: &Clock) -> AgentLoopConfig {
    let call = || calls(&[("a", "quick", "{}")]);
    let plain =
        |answer: ScriptedAnswer| config(clock, answers(vec![answer]), vec![quick("quick"), deaf("deaf")]);
    let hook = |stages: HookStages, answer: ScriptedAnswer| {
        let mut config = plain(answer);
        config.set_hooks(vec![Rc::new(StagedHook(stages, |_| pending()))]);
        config
    };
    let asking = || {
        let mut spec = spec("asks");
        spec.requires_approval = ApprovalNeed::Always;
        let asks = tool(spec, |_| ready(ToolOutcome::Completed(AgentToolResult::text("ran"))));
        config(clock, answers(vec![calls(&[("a", "asks", "{}")])]), vec![asks])
    };
    let talking = |events: Vec<AssistantMessageEvent>| {
        let talks =
            model("m", move |_, _| stream::iter(events.clone()).chain(stream::pending()).boxed_local());
        config(clock, talks, Vec::new())
    };
    let polled = |answer: ScriptedAnswer, silent: fn(usize, bool) -> bool| {
        let mut config = plain(answer);
        let polls = RefCell::new(0);
        config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
            *polls.borrow_mut() += 1;
            if silent(*polls.borrow(), follow_up) {
                pending().boxed_local()
            } else {
                ready(Vec::new()).boxed_local()
            }
        })));
        config
    };
    let too_long = || plain(failure(ErrorKind::ContextOverflow));
    let stages = HookStages::default();
    match place {
        "the transformer" => {
            let mut config = plain(text("hi"));
            config.ports.transformer = Some(Rc::new(Port(|_, _| pending())));
            config
        }
        "the keys" => {
            let mut config = plain(text("hi"));
            config.ports.keys = Some(Rc::new(Port(|_: &str| pending())));
            config
        }
        "the model" => talking(Vec::new()),
        "the model, after some text" => talking(text("half")[..3].to_vec()),
        "the model, after a whole call" => talking(call()[..4].to_vec()),
        "the back-off" => plain(failure(ErrorKind::Throttled)),
        "the hook before inference" => hook(HookStages { before_inference: true, ..stages }, text("hi")),
        "the hook after inference" => hook(HookStages { after_inference: true, ..stages }, call()),
        "the approver" => {
            let mut config = asking();
            config.set_approver(Rc::new(Port(|_| pending())));
            config
        }
        "the user who should approve" => asking(),
        "the hook before a tool" => hook(HookStages { before_tool_execution: true, ..stages }, call()),
        "a tool" => plain(calls(&[("a", "deaf", "{}")])),
        "a tool beside one that is done" => plain(calls(&[("a", "deaf", "{}"), ("b", "quick", "{}")])),
        "the hook after a tool" => hook(HookStages { after_tool_execution: true, ..stages }, call()),
        "the provider of steering, beside tools" => polled(call(), |poll, _| poll == 1),
        "the provider of steering, between turns" => polled(text("hi"), |poll, _| poll == 1),
        "the provider of follow-ups" => polled(text("hi"), |poll, follow_up| follow_up && poll == 2),
        "the transformer that should make room" => {
            let mut config = too_long();
            config.ports.transformer = Some(Rc::new(Port(|_, overflow: bool| {
                if overflow { pending().boxed_local() } else { ready(Ok(Transform::Unchanged)).boxed_local() }
            })));
            config
        }
        "the compaction" => {
            let mut config = too_long();
            config.ports.compaction = Some(Rc::new(Port(|_| pending())));
            config
        }
        other => panic!("nobody knows {other}"),
    }
}

/// A run that waits for something that never answers.
fn stuck(place: &str, change: impl Fn(&mut AgentLoopConfig)) -> Stage {
    let clock = Clock::default();
    let mut config = setup(place, &clock);
    change(&mut config);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    assert!(!stage.is_over(), "{place} answers: {:?}", stage.names());
    stage
}

fn ending(stage: &Stage) -> (RunStopReason, Option<ErrorKind>) {
    let result = stage.result();
    (result.stop_reason, result.error.as_ref().map(|error| error.code()))
}

#[test]
fn an_abort_ends_the_run_at_once_wherever_it_waits() {
    for (place, _) in PLACES {
        let mut stage = stuck(place, |_| {});
        stage.cancel.cancel("enough");
        stage.settle();
        assert!(stage.is_over(), "{place}: the run goes on after {:?}", stage.names());
        assert_eq!(ending(&stage), (RunStopReason::Aborted, Some(ErrorKind::Aborted)), "{place}");
        stage.check();
        assert!(!stage.agent.is_running(), "{place}");
    }
}

#[test]
fn an_error_hook_that_never_answers_does_not_keep_the_run_from_ending() {
    let clock = Clock::default();
    let mut config = config(&clock, answers(vec![failure(ErrorKind::Auth)]), Vec::new());
    config.set_hooks(vec![Rc::new(Port(|call| {
        let is_error = matches!(call, turnwheel::ports::HookCall::OnError { .. });
        if is_error { pending().boxed_local() } else { ready(Ok(())).boxed_local() }
    }))]);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    assert!(!stage.is_over());
    stage.cancel.cancel("enough");
    stage.settle();
    assert_eq!(ending(&stage), (RunStopReason::Error, Some(ErrorKind::Auth)));
    stage.check();
}

#[test]
fn a_time_limit_ends_the_run_wherever_it_waits() {
    for (place, _) in PLACES {
        let mut stage = stuck(place, |config| config.rules.timeouts.total = Some(500));
        while !stage.is_over() && stage.clock.elapsed() <= 500 {
            assert!(stage.clock.advance(), "{place}: no alarm is set");
            stage.settle();
        }
        assert_eq!(ending(&stage), (RunStopReason::Error, Some(ErrorKind::Timeout)), "{place}");
        assert_eq!(stage.clock.elapsed(), 500, "{place}");
        stage.check();
    }
}

#[test]
fn a_run_that_is_dropped_leaves_a_whole_history_and_tells_its_end() {
    for (place, _) in PLACES {
        let mut stage = stuck(place, |_| {});
        let events = Rc::new(RefCell::new(Vec::new()));
        let listener = events.clone();
        stage.agent.subscribe(move |event| listener.borrow_mut().push(event.clone()));
        stage.stream = None;
        assert!(!stage.agent.is_running(), "{place}");
        assert!(matches!(events.borrow().last(), Some(AgentEvent::AgentEnd { .. })), "{place}: {events:?}");
        let faults = rig::grammar::faults_of_history(&stage.agent.messages());
        assert!(faults.is_empty(), "{place}: {faults:?}");
        assert_eq!(stage.clock.alarms(), 0, "{place}: a timer is left");
    }
}

#[test]
fn a_run_from_a_checkpoint_that_is_dropped_before_it_went_on_leaves_a_whole_history_too() {
    for (place, _) in PLACES {
        let mut stage = stuck(place, |_| {});
        let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
        let agent = Agent::restore(setup(place, &stage.clock), &checkpoint).unwrap();
        let events = Rc::new(RefCell::new(Vec::new()));
        let listener = events.clone();
        agent.subscribe(move |event| listener.borrow_mut().push(event.name()));
        drop(agent.continue_run(agent.resumable().unwrap(), CancelToken::new()).unwrap());
        assert!(!agent.is_running() && agent.pending_approvals().is_empty(), "{place}");
        assert_eq!(events.borrow().first(), Some(&"run_resumed"), "{place}");
        assert_eq!(events.borrow().last(), Some(&"agent_end"), "{place}");
        let faults = rig::grammar::faults_of_history(&agent.messages());
        assert!(faults.is_empty(), "{place}: {faults:?}");
    }
}

#[test]
fn a_tool_that_panics_when_it_is_told_to_end_ends_nothing_else() {
    struct Falls(bool);
    impl Drop for Falls {
        fn drop(&mut self) {
            assert!(!self.0, "it fell");
        }
    }
    for falls in [false, true] {
        let clock = Clock::default();
        let waits = tool(spec("waits"), move |context| {
            context.cancel.on_cancel(move || assert!(falls, "it does not want to hear of it"));
            let held = Falls(falls);
            async move {
                let _held = held;
                pending().await
            }
        });
        let model = answers(vec![calls(&[("a", "waits", "{}"), ("b", "quick", "{}")])]);
        let mut stage = Stage::new(clock.clone(), config(&clock, model, vec![waits, quick("quick")]));
        stage.prompt("go").until("tool_execution_end");
        drop(stage.agent.steer("stop".into()));
        stage.finish().check();
        assert_eq!(stage.result().text, "done");
    }
}

#[test]
fn steering_gets_a_run_on_its_way_where_no_tool_runs_and_else_waits_in_the_queue() {
    for (place, acts) in PLACES {
        let mut stage = stuck(place, |_| {});
        let mut receipt = stage.agent.steer(AgentMessage::user("this way"));
        stage.settle();
        // A hook is waited for in any case: it observes what has happened.
        let waits = place == "the hook after a tool";
        let delivered = receipt.try_recv().unwrap();
        let turn = acts.then_some(Receipt::Delivered { turn_index: 1 }).filter(|_| !waits);
        assert_eq!(delivered, turn, "{place}: {:?}", stage.names());
        stage.cancel.cancel("enough");
        stage.settle();
        assert!(stage.is_over(), "{place}");
        stage.check();
        stage.agent.clear_queues();
        let settled = delivered.or_else(|| receipt.try_recv().unwrap());
        assert_eq!(settled, Some(turn.unwrap_or(Receipt::Cleared)), "{place}");
    }
}

#[test]
fn immediate_steering_does_not_wait_for_a_tool() {
    for place in ["a tool", "a tool beside one that is done", "the hook before a tool"] {
        let mut stage = stuck(place, |config| config.rules.steering.when = SteeringTime::Immediate);
        let mut receipt = stage.agent.steer(AgentMessage::user("this way"));
        stage.settle();
        assert_eq!(receipt.try_recv().unwrap(), Some(Receipt::Delivered { turn_index: 1 }), "{place}");
        let cancelled = "a!: tool call cancelled: user requested steering interrupt".to_owned();
        assert!(stage.history().contains(&cancelled), "{place}: {:?}", stage.history());
        stage.cancel.cancel("enough");
        stage.settle().check();
    }
}

#[test]
fn what_was_cancelled_is_told_so_and_dropped() {
    let clock = Clock::default();
    let cancelled = Rc::new(RefCell::new(Vec::new()));
    let (of_tool, of_model) = (cancelled.clone(), cancelled.clone());
    let waits = tool(spec("waits"), move |context| {
        let cancelled = of_tool.clone();
        context.cancel.on_cancel(move || cancelled.borrow_mut().push("tool"));
        pending()
    });
    let answer = RefCell::new(Some(calls(&[("a", "waits", "{}")])));
    let model = model("m", move |_, cancel| match answer.borrow_mut().take() {
        Some(answer) => stream::iter(answer).boxed_local(),
        None => {
            let cancelled = of_model.clone();
            cancel.on_cancel(move || cancelled.borrow_mut().push("model"));
            stream::pending().boxed_local()
        }
    });
    let mut config = config(&clock, model, vec![waits]);
    config.rules.steering.when = SteeringTime::Immediate;
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    drop(stage.agent.steer(AgentMessage::user("this way")));
    stage.settle();
    assert_eq!(*cancelled.borrow(), ["tool"]);
    stage.cancel.cancel("enough");
    stage.settle().check();
    assert_eq!(*cancelled.borrow(), ["tool", "model"]);
}
