//! What listeners may do, and when it takes effect.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::FutureExt;
use rig::clock::Clock;
use rig::host::{Stage, answers, calls, config, context, deaf, quick, slow, spec, text, tool};
use turnwheel::agent::{Agent, Receipt};
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::config::SteeringTime;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::message::AgentMessage;
use turnwheel::tool::{AgentToolResult, ApprovalNeed, ToolOutcome};

type EventLog = Rc<RefCell<Vec<String>>>;

/// Records every event under a name.
fn listener(log: &EventLog, name: &str) -> impl Fn(&AgentEvent) + 'static {
    let (log, name) = (log.clone(), name.to_owned());
    move |event| log.borrow_mut().push(format!("{name} {}", event.name()))
}

fn events_of(log: &EventLog, name: &str) -> Vec<String> {
    let mine = format!("{name} ");
    log.borrow().iter().filter_map(|line| line.strip_prefix(&mine)).map(str::to_owned).collect()
}

const PLAIN: [&str; 7] =
    ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"];

fn plain() -> Stage {
    let clock = Clock::default();
    let config = config(&clock, answers(Vec::new()), Vec::new());
    Stage::new(clock, config)
}

/// An agent whose model first makes these calls.
fn calling(
    given: &[(&str, &str, &str)],
    tools: &dyn Fn(&Clock) -> Vec<Rc<dyn turnwheel::tool::AgentTool>>,
) -> Stage {
    let clock = Clock::default();
    let config = config(&clock, answers(vec![calls(given)]), tools(&clock));
    Stage::new(clock, config)
}

/// Acts once, at the first event of this kind.
fn once(agent: &Agent, at: &'static str, act: impl Fn(&Agent) + 'static) {
    let (done, inner) = (Cell::new(false), agent.clone());
    agent.subscribe(move |event| {
        if event.name() == at && !done.replace(true) {
            act(&inner);
        }
    });
}

#[test]
fn they_hear_every_event_in_the_order_of_their_subscription() {
    let (mut stage, log) = (plain(), EventLog::default());
    stage.agent.subscribe(listener(&log, "first"));
    stage.agent.subscribe(listener(&log, "second"));
    stage.prompt("hi").finish().check();
    let both: Vec<String> =
        PLAIN.iter().flat_map(|event| [format!("first {event}"), format!("second {event}")]).collect();
    assert_eq!(*log.borrow(), both);
}

#[test]
fn one_that_is_added_in_mid_run_hears_from_then_on() {
    let (mut stage, log) = (plain(), EventLog::default());
    let late = log.clone();
    once(&stage.agent, "message_update", move |agent| {
        agent.subscribe(listener(&late, "late"));
    });
    stage.prompt("hi").finish().check();
    assert_eq!(events_of(&log, "late"), ["message_end", "turn_end", "agent_end"]);
}

#[test]
fn one_that_is_removed_in_a_dispatch_hears_that_dispatch_to_its_end() {
    let (mut stage, log) = (plain(), EventLog::default());
    let id = Rc::new(Cell::new(None));
    let removed = id.clone();
    once(&stage.agent, "turn_start", move |agent| agent.unsubscribe(removed.get().unwrap()));
    id.set(Some(stage.agent.subscribe(listener(&log, "gone"))));
    stage.prompt("hi").finish().check();
    assert_eq!(events_of(&log, "gone"), ["agent_start", "turn_start"]);
}

#[test]
fn one_that_panics_is_removed_and_the_others_go_on() {
    let (mut stage, log) = (plain(), EventLog::default());
    let of_bad = log.clone();
    stage.agent.subscribe(move |event| {
        listener(&of_bad, "bad")(event);
        if event.name() == "message_start" {
            std::panic::resume_unwind(Box::new("crash"));
        }
    });
    stage.agent.subscribe(listener(&log, "good"));
    stage.prompt("hi").finish().check();
    assert_eq!(events_of(&log, "bad"), ["agent_start", "turn_start", "message_start"]);
    assert_eq!(events_of(&log, "good"), PLAIN);
}

#[test]
fn an_abort_from_inside_comes_before_any_later_tool() {
    for at in ["message_end", "tool_calls_proposed"] {
        let mut stage = calling(&[("a", "quick", "{}")], &|_| vec![quick("quick")]);
        once(&stage.agent, at, |agent| agent.abort("no"));
        stage.prompt("go").finish().check();
        assert_eq!(stage.count("tool_execution_start"), 0, "at {at}");
        assert_eq!(stage.history()[2], "a!: tool call cancelled: operation aborted", "at {at}");
    }
}

#[test]
fn an_abort_at_the_start_of_a_tool_comes_before_the_tool() {
    let ran = Rc::new(Cell::new(0));
    let count = ran.clone();
    let mut stage = calling(&[("a", "t", "{}"), ("b", "t", "{}")], &move |_| {
        let count = count.clone();
        vec![tool(spec("t"), move |_| {
            count.set(count.get() + 1);
            std::future::ready(ToolOutcome::Completed(AgentToolResult::text("ran")))
        })]
    });
    once(&stage.agent, "tool_execution_start", |agent| agent.abort("no"));
    stage.prompt("go").finish().check();
    assert_eq!(
        (ran.get(), stage.count("tool_execution_start"), stage.count("tool_execution_end")),
        (0, 1, 2)
    );
}

#[test]
fn steering_from_inside_comes_before_any_later_tool() {
    let mut stage = calling(&[("a", "quick", "{}"), ("b", "quick", "{}")], &|_| vec![quick("quick")]);
    stage.agent.configure(|config| config.rules.steering.when = SteeringTime::Immediate);
    once(&stage.agent, "tool_execution_start", |agent| drop(agent.steer("rather this".into())));
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("tool_execution_start"), 1);
    assert_eq!(stage.history()[4..], ["user: rather this", "assistant: done"]);
}

#[test]
fn steering_at_a_tools_end_keeps_the_next_one_of_a_sequence_from_starting() {
    let mut stage = calling(&[("a", "quick", "{}"), ("b", "quick", "{}")], &|_| vec![quick("quick")]);
    stage.agent.configure(|config| {
        config.rules.tool_execution = turnwheel::config::ToolExecutionPolicy::Sequential;
    });
    once(&stage.agent, "tool_execution_end", |agent| drop(agent.steer("rather this".into())));
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("tool_execution_start"), 1);
    assert_eq!(
        stage.history()[2..4],
        ["a: quick is done", "b!: tool call cancelled: user requested steering interrupt"]
    );
}

#[test]
fn what_is_posted_at_the_end_of_a_turn_keeps_the_run_going() {
    for follow_up in [false, true] {
        let mut stage = plain();
        once(&stage.agent, "turn_end", move |agent| {
            drop(if follow_up { agent.follow_up("one more".into()) } else { agent.steer("one more".into()) });
        });
        stage.prompt("hi").finish().check();
        assert_eq!(stage.history()[2..], ["user: one more", "assistant: done"]);
    }
}

#[test]
fn what_is_posted_at_the_end_of_a_run_waits_for_the_next() {
    let mut stage = plain();
    let receipt = Rc::new(RefCell::new(None));
    let posted = receipt.clone();
    once(&stage.agent, "agent_end", move |agent| *posted.borrow_mut() = Some(agent.steer("later".into())));
    stage.prompt("hi").finish();
    assert_eq!(receipt.borrow_mut().as_mut().unwrap().try_recv().unwrap(), None);
    stage.prompt("again").finish().check();
    assert_eq!(stage.history()[4..], ["user: later", "assistant: done"]);
    let delivery = receipt.borrow_mut().as_mut().unwrap().try_recv().unwrap();
    assert_eq!(delivery, Some(Receipt::Delivered { turn_index: 1 }));
}

#[test]
fn a_call_may_be_decided_when_it_is_asked_about() {
    let mut spec = spec("asks");
    spec.requires_approval = ApprovalNeed::Always;
    let mut stage = calling(&[("a", "asks", "{}")], &move |_| {
        vec![tool(spec.clone(), |_| std::future::ready(ToolOutcome::Completed(AgentToolResult::text("ran"))))]
    });
    once(&stage.agent, "tool_approval_requested", |agent| {
        agent.resolve_tool("a", ToolDecision::Accept);
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2], "a: ran");
    assert!(stage.agent.pending_approvals().is_empty());
}

#[test]
fn the_next_run_may_begin_when_the_end_is_told() {
    let stage = Rc::new(RefCell::new(plain()));
    let next = Rc::new(RefCell::new(None));
    let begun = next.clone();
    once(&stage.borrow().agent, "agent_end", move |agent| {
        assert!(!agent.is_running());
        *begun.borrow_mut() = agent.prompt(vec!["again".into()], context(), CancelToken::new()).ok();
    });
    stage.borrow_mut().prompt("hi").finish();
    assert!(stage.borrow().agent.is_running());
    let second = next.borrow_mut().take().unwrap();
    stage.borrow_mut().stream = Some(second);
    stage.borrow_mut().finish().check();
    let history = stage.borrow().history();
    assert_eq!(history, ["user: hi", "assistant: done", "user: again", "assistant: done"]);
}

#[test]
fn nothing_else_may_begin_while_a_run_is_on_not_even_at_its_last_turn() {
    let mut stage = plain();
    let refused = Rc::new(Cell::new(0));
    for at in ["agent_start", "message_update", "message_end", "turn_end"] {
        let count = refused.clone();
        once(&stage.agent, at, move |agent| {
            let second = agent.prompt(vec!["me too".into()], context(), CancelToken::new());
            count.set(count.get() + u32::from(second.is_err()));
        });
    }
    stage.prompt("hi").finish().check();
    assert_eq!(refused.get(), 4);
}

#[test]
fn the_history_can_be_read_from_inside() {
    let mut stage = plain();
    let lengths = Rc::new(RefCell::new(Vec::new()));
    let (noted, agent) = (lengths.clone(), stage.agent.clone());
    stage.agent.subscribe(move |_| noted.borrow_mut().push(agent.messages().len()));
    stage.prompt("hi").finish().check();
    assert_eq!(*lengths.borrow(), [1, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn a_reset_from_inside_ends_the_run_and_nothing_of_it_is_left() {
    let mut stage = calling(&[("a", "deaf", "{}")], &|_| vec![deaf("deaf")]);
    once(&stage.agent, "tool_execution_start", |agent| {
        drop(agent.steer("forgotten".into()));
        agent.reset();
    });
    stage.prompt("go").settle();
    assert!(stage.is_over());
    assert!(matches!(
        stage.events.last(),
        Some(AgentEvent::AgentEnd { stop_reason: RunStopReason::Aborted, .. })
    ));
    assert_eq!((stage.agent.messages().len(), stage.agent.is_running()), (0, false));
    stage.prompt("fresh").finish();
    assert_eq!(stage.history(), ["user: fresh", "assistant: done"]);
}

#[test]
fn a_run_that_was_reset_does_not_touch_the_one_after_it() {
    let mut stage = calling(&[("a", "slow", "{}")], &|clock| vec![slow("slow", clock, 100)]);
    stage.prompt("go").until("tool_execution_start");
    stage.agent.reset();
    let mut old = stage.stream.take().unwrap();
    stage.events.clear();
    stage.prompt("fresh").until("message_update");
    // The old run is only polled again now: it ends, and the new one keeps running.
    let ended = stage.clock.run(async { while futures::StreamExt::next(&mut old).await.is_some() {} });
    assert_eq!(ended, Ok(()));
    assert!(stage.agent.is_running());
    drop(old);
    assert!(stage.agent.is_running());
    stage.finish();
    assert_eq!(stage.history(), ["user: fresh", "assistant: done"]);
}

#[test]
fn waiting_for_idle_ends_when_the_end_was_told() {
    let mut stage = plain();
    stage.prompt("hi").until("turn_start");
    let idle = stage.agent.clone();
    let mut waits = Box::pin(async move { idle.wait_for_idle().await });
    assert_eq!((&mut waits).now_or_never(), None);
    stage.finish();
    assert_eq!((&mut waits).now_or_never(), Some(()));
}

#[test]
fn waiting_for_idle_ends_too_when_the_run_was_never_begun_or_is_dropped() {
    for begun in [false, true] {
        let mut stage = plain();
        stage.prompt("hi");
        if begun {
            stage.until("turn_start");
        }
        let idle = stage.agent.clone();
        let mut waits = Box::pin(async move { idle.wait_for_idle().await });
        let clock = stage.clock.clone();
        clock.at(10, move || drop(stage.stream.take()));
        assert_eq!(clock.run(&mut waits), Ok(()), "begun: {begun}");
    }
}

#[test]
fn letters_of_a_run_that_never_began_are_not_lost() {
    let mut stage = plain();
    drop(stage.agent.steer("early".into()));
    stage.prompt("never");
    stage.stream = None;
    stage.prompt("hi").finish().check();
    assert_eq!(stage.history(), ["user: hi", "assistant: done", "user: early", "assistant: done"]);
}

#[test]
fn receipts_are_settled_by_delivery_by_clearing_and_by_a_reset() {
    let mut stage = plain();
    let mut empty = stage.agent.steer("  ".into());
    let mut first = stage.agent.steer("first".into());
    stage.prompt("hi").finish();
    assert_eq!(empty.try_recv().unwrap(), Some(Receipt::Cleared));
    assert_eq!(first.try_recv().unwrap(), Some(Receipt::Delivered { turn_index: 1 }));
    let mut cleared = stage.agent.follow_up("second".into());
    stage.agent.clear_queues();
    assert_eq!(cleared.try_recv().unwrap(), Some(Receipt::Cleared));
    let mut in_a_run = stage.agent.follow_up("third".into());
    stage.prompt("again").until("turn_start");
    stage.agent.clear_queues();
    stage.finish();
    assert_eq!(in_a_run.try_recv().unwrap(), Some(Receipt::Cleared));
    let mut forgotten = stage.agent.steer("fourth".into());
    stage.agent.reset();
    assert_eq!(forgotten.try_recv().unwrap(), Some(Receipt::Cleared));
}

#[test]
fn letters_outlive_an_abort_and_an_error() {
    let mut stage = calling(&[("a", "deaf", "{}")], &|_| vec![deaf("deaf")]);
    stage.prompt("go").until("tool_execution_start");
    let mut receipt = stage.agent.steer("still there".into());
    stage.cancel.cancel("enough");
    stage.finish();
    assert_eq!(receipt.try_recv().unwrap(), None);
    stage.prompt("again").finish().check();
    assert_eq!(receipt.try_recv().unwrap(), Some(Receipt::Delivered { turn_index: 1 }));
}

#[test]
fn an_abort_between_runs_stops_nothing_that_has_the_same_token() {
    let mut stage = plain();
    stage.prompt("hi").finish();
    stage.agent.abort("too late");
    assert!(!stage.cancel.is_cancelled());
    stage.agent.reset();
    assert!(!stage.cancel.is_cancelled());
}

#[test]
fn usage_is_summed_over_runs_and_starts_anew_after_a_reset() {
    let clock = Clock::default();
    let mut answer = text("hi");
    let usage = turnwheel::message::Usage { input: 3, output: 2, ..Default::default() };
    if let Some(turnwheel::stream::AssistantMessageEvent::Done { usage: slot, .. }) = answer.last_mut() {
        *slot = Some(usage);
    }
    let config = config(&clock, answers(vec![answer.clone(), answer]), Vec::new());
    let mut stage = Stage::new(clock, config);
    stage.prompt("one").finish();
    stage.prompt("two").until("message_end");
    assert_eq!(stage.agent.usage().total, 10);
    stage.finish();
    assert_eq!(stage.agent.usage().total, 10);
    stage.agent.reset();
    assert_eq!(stage.agent.usage().total, 0);
}

#[test]
fn what_tools_share_outlives_a_run_and_not_a_reset() {
    let shares = tool(spec("t"), |context| {
        let before = context.state.get("k").is_some();
        context.state.set("k", true.into());
        std::future::ready(ToolOutcome::Completed(AgentToolResult::text(format!("{before}"))))
    });
    let clock = Clock::default();
    let calls = || calls(&[("a", "t", "{}")]);
    let given = vec![calls(), text("one"), calls(), text("two"), calls(), text("three")];
    let mut stage = Stage::new(clock.clone(), config(&clock, answers(given), vec![shares]));
    stage.prompt("one").finish();
    stage.prompt("two").finish();
    assert_eq!((&*stage.history()[2], &*stage.history()[6]), ("a: false", "a#2: true"));
    stage.agent.reset();
    stage.prompt("three").finish();
    assert_eq!(stage.history()[2], "a: false");
}

#[test]
fn continue_is_refused_where_there_is_nothing_to_answer() {
    let mut stage = plain();
    let refused = |stage: &Stage| {
        let refused = stage.agent.continue_run(context(), CancelToken::new());
        refused.err().map(|error| error.to_string())
    };
    assert_eq!(refused(&stage).as_deref(), Some("cannot continue with an empty message history"));
    stage.prompt("hi").finish();
    let tail = "cannot continue when the last message is an assistant message";
    assert_eq!(refused(&stage).as_deref(), Some(tail));
    drop(stage.agent.steer(" ".into()));
    assert_eq!(refused(&stage).as_deref(), Some(tail), "an empty text is no message");
    drop(stage.agent.follow_up("and then".into()));
    drop(stage.agent.steer("first this".into()));
    stage.resume().finish().check();
    assert_eq!(stage.history()[2..], ["user: first this", "user: and then", "assistant: done"]);
}

#[test]
fn an_empty_prompt_is_refused() {
    let stage = plain();
    assert!(stage.agent.prompt(Vec::<AgentMessage>::new(), context(), CancelToken::new()).is_err());
    assert!(!stage.agent.is_running());
}
