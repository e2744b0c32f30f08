//! A steering message that cuts a streaming answer off: what stays, what is dropped, what the model reads next.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use futures::FutureExt;
use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Stage, StagedHook, config, model, quick, text};
use turnwheel::agent::Agent;
use turnwheel::config::{AgentLoopConfig, QueueMode, SteeringTime};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::machine::Receipt;
use turnwheel::message::{LlmMessage, MessageStopReason, Usage, text_of};
use turnwheel::policy::{PostTurn, PostTurnPolicy, Verdict};
use turnwheel::ports::{HookCall, HookStages};
use turnwheel::stream::AssistantMessageEvent as E;

type Seen = Rc<RefCell<Vec<Vec<String>>>>;

/// A run whose model gives these answers, in turn. One without an end never goes on. Also what the model was shown each time.
fn stage(answers: Vec<Vec<E>>, change: impl FnOnce(&mut AgentLoopConfig)) -> (Stage, Seen) {
    let clock = Clock::default();
    let seen = Seen::default();
    let never = quick("never");
    let mut config = config(&clock, hanging(answers, &seen), vec![quick("quick"), never]);
    change(&mut config);
    (Stage::new(clock, config), seen)
}

fn hanging(answers: Vec<Vec<E>>, seen: &Seen) -> turnwheel::config::Model {
    let (answers, seen) = (RefCell::new(VecDeque::from(answers)), seen.clone());
    model("m", move |request, _| {
        seen.borrow_mut().push(request.messages.iter().map(words).collect());
        match answers.borrow_mut().pop_front() {
            None => stream::iter(text("done")).boxed_local(),
            Some(answer) if answer.iter().any(|event| matches!(event, E::Done { .. } | E::Error(_))) => {
                stream::iter(answer).boxed_local()
            }
            Some(answer) => stream::iter(answer).chain(stream::pending()).boxed_local(),
        }
    })
}

fn words(message: &LlmMessage) -> String {
    match message {
        LlmMessage::User(user) => text_of(&user.content),
        LlmMessage::Assistant(answer) => answer.text(),
        LlmMessage::ToolResult(result) => result.text(),
    }
}

fn said(words: &str) -> Vec<E> {
    vec![E::Start, E::TextStart { index: 0 }, E::TextDelta { index: 0, delta: words.to_owned() }]
}

fn call(index: u32, id: &str, is_whole: bool) -> Vec<E> {
    let start = E::ToolCallStart { index, call_id: id.to_owned(), tool_name: "never".to_owned() };
    let delta = E::ToolCallDelta { index, delta: if is_whole { "{}" } else { "{\"a\": " }.to_owned() };
    let end = is_whole.then_some(E::ToolCallEnd { index, metadata: None });
    [Some(start), Some(delta), end].into_iter().flatten().collect()
}

fn thought(signature: Option<&str>) -> Vec<E> {
    let end = E::ThinkingEnd { index: 0, signature: signature.map(str::to_owned), redacted: false };
    vec![E::Start, E::ThinkingStart { index: 0 }, E::ThinkingDelta { index: 0, delta: "hm".to_owned() }, end]
}

#[test]
fn what_has_arrived_stays_and_the_model_reads_the_message() {
    let (mut stage, seen) = stage(vec![said("I will")], |_| {});
    stage.prompt("go").until("message_update").settle();
    let receipt = stage.agent.steer_when("stop".into(), SteeringTime::Now);
    stage.finish().check();
    assert_eq!(
        stage.lines(),
        [
            "run",
            "turn 0",
            "+I will",
            "assistant: I will (interrupted)",
            "turn ends steering_interrupt",
            "turn 1",
            "+done",
            "assistant: done",
            "turn ends complete",
            "run ends completed",
        ]
    );
    assert_eq!(seen.borrow()[1], ["go", "I will", "stop"]);
    assert_eq!(receipt.now_or_never().unwrap().unwrap(), Receipt::Delivered { turn_index: 1 });
    let cut = stage.answer(1);
    assert_eq!((cut.stop_reason, &cut.error), (MessageStopReason::Interrupted, &None));
}

#[test]
fn the_other_times_wait_for_the_answer() {
    for when in [SteeringTime::Immediate, SteeringTime::AfterTool, SteeringTime::AfterBatch] {
        let (mut stage, _) = stage(vec![said("I will")], |_| {});
        stage.prompt("go").until("message_update").settle();
        drop(stage.agent.steer_when("stop".into(), when));
        stage.settle();
        assert_eq!(stage.count("message_end"), 0, "{when:?}");
    }
}

#[test]
fn a_complete_call_gets_a_result_and_never_runs_and_one_that_was_cut_is_dropped() {
    let answer = [
        said("I will"),
        vec![E::TextEnd { index: 0, signature: None }],
        call(1, "a", true),
        call(2, "b", false),
    ];
    let (mut stage, seen) = stage(vec![answer.concat()], |_| {});
    stage.prompt("go").until("message_update").settle();
    drop(stage.agent.steer_when("stop".into(), SteeringTime::Now));
    stage.finish().check();
    assert_eq!(
        stage.history()[1..],
        [
            "assistant: I will[a] (interrupted)",
            "a!: tool call cancelled: user requested steering interrupt",
            "user: stop",
            "assistant: done"
        ]
    );
    assert_eq!(stage.count("tool_execution_start"), 0);
    assert_eq!(seen.borrow()[1].len(), 4);
}

#[test]
fn if_nothing_stays_the_model_is_asked_again_in_the_same_turn() {
    for (arrived, resets) in [(vec![], 0), (vec![E::Start], 0), (thought(None), 1), (call(0, "a", false), 1)]
    {
        let (mut stage, seen) = stage(vec![arrived.clone()], |_| {});
        stage.prompt("go").until("message_start").settle();
        let receipt = stage.agent.steer_when("stop".into(), SteeringTime::Now);
        stage.finish().check();
        assert_eq!(stage.history(), ["user: go", "user: stop", "assistant: done"], "{arrived:?}");
        assert_eq!((stage.count("turn_start"), stage.count("message_start")), (1, 1));
        assert_eq!(stage.count("message_reset"), resets, "{arrived:?}");
        assert_eq!(seen.borrow()[1], ["go", "stop"]);
        assert_eq!(receipt.now_or_never().unwrap().unwrap(), Receipt::Delivered { turn_index: 0 });
    }
}

#[test]
fn signed_thinking_stays() {
    let (mut stage, _) = stage(vec![thought(Some("s"))], |_| {});
    stage.prompt("go").until("message_update").settle();
    drop(stage.agent.steer_when("stop".into(), SteeringTime::Now));
    stage.finish().check();
    assert_eq!(stage.answer(1).content.len(), 1);
}

#[test]
fn what_the_answer_has_used_is_estimated_and_counted_once() {
    for (answer, whole) in [(said("one two three"), true), (thought(None), false)] {
        let (mut stage, _) = stage(vec![answer], |config| {
            config.rules.models.iter_mut().for_each(|model| model.estimates_usage = true);
        });
        stage.prompt("go").until("message_update").settle();
        drop(stage.agent.steer_when("stop".into(), SteeringTime::Now));
        stage.finish().check();
        let used = stage.result().usage;
        assert!(used.estimated && used.output > 0, "{used:?}");
        let cut: Usage = if whole { stage.answer(1).usage } else { Usage::default() };
        assert_eq!(cut.estimated, whole);
    }
}

#[test]
fn before_a_request_leaves_the_message_goes_into_it() {
    // While a hook before the call is waited for, and during the delay before another attempt.
    let (mut first, seen) = stage(vec![], |config| {
        let hook = StagedHook(HookStages { before_inference: true, ..HookStages::default() }, |_| async {
            futures::future::poll_fn(waits_once()).await;
            Ok(())
        });
        config.set_hooks(vec![Rc::new(hook)]);
    });
    first.prompt("go").until("message_start");
    drop(first.agent.steer_when("stop".into(), SteeringTime::Now));
    first.finish().check();
    assert_eq!(*seen.borrow(), [["go", "stop"]]);

    let failed = vec![E::Error(ErrorInfo::new(ErrorKind::Overloaded, "busy"))];
    let (mut second, seen) = stage(vec![failed], |_| {});
    second.prompt("go").until("retry_attempt");
    drop(second.agent.steer_when("stop".into(), SteeringTime::Now));
    second.finish().check();
    assert_eq!(*seen.borrow(), [vec!["go"], vec!["go", "stop"]]);
}

/// Pending once, then ready.
fn waits_once() -> impl FnMut(&mut std::task::Context<'_>) -> std::task::Poll<()> {
    let mut is_second = false;
    move |context| {
        if std::mem::replace(&mut is_second, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    }
}

#[test]
fn hooks_hear_of_the_cut_answer_and_nobody_waits_for_them() {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let told = heard.clone();
    let (mut stage, _) = stage(vec![said("I will")], |config| {
        let hook = StagedHook(HookStages { after_inference: true, ..HookStages::default() }, move |call| {
            let reason = match &call {
                HookCall::AfterInference { message, .. } => Some(message.stop_reason),
                _ => None,
            };
            told.borrow_mut().extend(reason);
            async move {
                if reason == Some(MessageStopReason::Interrupted) {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        });
        config.set_hooks(vec![Rc::new(hook)]);
    });
    stage.prompt("go").until("message_update").settle();
    drop(stage.agent.steer_when("stop".into(), SteeringTime::Now));
    stage.finish().check();
    assert_eq!(*heard.borrow(), [MessageStopReason::Interrupted, MessageStopReason::Stop]);
}

#[test]
fn one_at_a_time_what_waits_for_nothing_takes_those_before_it_along() {
    let (mut stage, seen) = stage(vec![said("I will")], |config| {
        config.rules.steering.delivery = QueueMode::OneAtATime;
    });
    stage.prompt("go").until("message_update").settle();
    drop(stage.agent.steer_when("patient".into(), SteeringTime::AfterBatch));
    drop(stage.agent.steer_when("now".into(), SteeringTime::Now));
    drop(stage.agent.steer_when("later".into(), SteeringTime::AfterBatch));
    stage.finish().check();
    assert_eq!(seen.borrow()[1], ["go", "I will", "patient", "now"]);
    assert_eq!(seen.borrow()[2], ["go", "I will", "patient", "now", "done", "later"]);
}

#[test]
fn policies_decide_about_the_cut_turn_and_a_checkpoint_there_goes_on() {
    struct Watches(Seen);
    impl PostTurnPolicy for Watches {
        fn evaluate(&self, turn: &PostTurn<'_>) -> Result<Verdict, String> {
            self.0.borrow_mut().push(vec![turn.message.text()]);
            Ok(Verdict::Continue)
        }
    }
    let decided = Seen::default();
    let setup = |config: &mut AgentLoopConfig| config.rules.post_turn.push(Rc::new(Watches(decided.clone())));
    let (mut first, _) = stage(vec![said("I will")], setup);
    first.prompt("go").until("message_update").settle();
    drop(first.agent.steer_when("stop".into(), SteeringTime::Now));
    first.until("message_end");
    let checkpoint = first.stream.as_mut().unwrap().checkpoint();
    assert!(decided.borrow().is_empty(), "the listeners receive the answer first");
    first.stream = None;
    decided.borrow_mut().clear();
    let seen = Seen::default();
    let mut again = config(&first.clock, hanging(vec![], &seen), vec![]);
    setup(&mut again);
    first.agent = Agent::restore(again, &checkpoint).unwrap();
    first.resume().finish();
    assert_eq!(*decided.borrow(), [["I will"], ["done"]]);
    assert_eq!(
        first.history(),
        ["user: go", "assistant: I will (interrupted)", "user: stop", "assistant: done"]
    );
}
