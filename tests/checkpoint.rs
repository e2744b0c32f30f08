//! Puts a run to sleep at random events and continues it elsewhere, through the bytes of its checkpoint:
//! the history comes out the same, and no tool runs more often than it may. Also: no input that is read
//! as a checkpoint breaks anything.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use futures::StreamExt;
use futures::stream;
use rig::clock::Clock;
use rig::dice::Dice;
use rig::grammar::Grammar;
use rig::host::{Port, ScriptedAnswer, brief, calls, config, context, model, spec, text, tool};
use turnwheel::agent::Agent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::{AgentLoopConfig, ToolExecutionPolicy};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::AgentEvent;
use turnwheel::json::ToJson;
use turnwheel::message::{AgentMessage, ToolResultCause};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PostTurn, Verdict};
use turnwheel::question::{Question, QuestionKind};
use turnwheel::stream::AssistantMessageEvent;
use turnwheel::tape::{Recorder, Seeker, Tape};
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolOutcome, external_tool};

/// What the model says, by the number of answers so far: so it continues the same way in any process.
fn script(turn: usize) -> ScriptedAnswer {
    match turn {
        0 => calls(&[("a1", "look", "{\"at\":1}"), ("a2", "look", "{\"at\":2}"), ("a3", "slow", "{}")]),
        1 => calls(&[("b1", "pay", "{\"amount\":5}"), ("b2", "look", "{\"at\":3}")]),
        2 => calls(&[("c1", "slow", "{\"n\":1}"), ("c2", "slow", "{\"n\":2}")]),
        3 => calls(&[("d1", "pay", "{\"amount\":7}")]),
        _ => text("all done"),
    }
}

/// One process: its clock, its dice, and what its tools did.
struct World {
    clock: Clock,
    dice: Dice,
    ran: Rc<RefCell<Vec<String>>>,
    sequential: bool,
    approver: bool,
    /// Whether the results of one tool come from elsewhere.
    elsewhere: bool,
}

impl World {
    fn config(&self) -> AgentLoopConfig {
        let (clock, dice) = (self.clock.clone(), self.dice.clone());
        let model = model("m", move |request, _| {
            let answers =
                request.messages.iter().filter(|m| matches!(m, turnwheel::message::LlmMessage::Assistant(_)));
            let answer = script(answers.count());
            let mut events = Vec::new();
            for event in answer {
                events.push((clock.clone(), dice.below(3) as u64, event));
            }
            if dice.chance(20) {
                let error = ErrorInfo::new(ErrorKind::Overloaded, "busy");
                events.insert(
                    dice.below(events.len()),
                    (clock.clone(), 1, AssistantMessageEvent::Error(error)),
                );
            }
            let paused = |(clock, ms, event): (Clock, u64, AssistantMessageEvent)| async move {
                clock.pause(ms).await;
                event
            };
            stream::iter(events).then(paused).boxed_local()
        });
        let mut config =
            config(&self.clock, model, vec![self.tool("look"), self.tool("slow"), self.tool("pay")]);
        config.rules.random = Rc::new(|| 7);
        config.rules.pre_dispatch.push(Rc::new(|_: &mut DispatchCall<'_>| Ok(DispatchVerdict::Continue)));
        config.rules.post_turn.push(Rc::new(|_: &PostTurn<'_>| Ok(Verdict::Continue)));
        config.rules.retry =
            Rc::new(turnwheel::retry::RetryConfig { max_attempts: 50, ..Default::default() });
        if self.sequential {
            config.rules.tool_execution = ToolExecutionPolicy::Sequential;
        }
        if self.approver {
            let (clock, dice) = (self.clock.clone(), self.dice.clone());
            config.set_approver(Rc::new(Port(move |_| {
                let pause = clock.pause(dice.below(9) as u64);
                async move {
                    pause.await;
                    Ok(ToolDecision::Accept)
                }
            })));
        }
        config
    }

    fn tool(&self, name: &str) -> Rc<dyn AgentTool> {
        let mut spec = spec(name);
        spec.idempotent = name != "pay";
        if name == "pay" {
            spec.requires_approval = ApprovalNeed::Always;
        }
        if name == "slow" && self.elsewhere {
            return external_tool(spec);
        }
        let (ran, clock, dice) = (self.ran.clone(), self.clock.clone(), self.dice.clone());
        tool(spec, move |given| {
            ran.borrow_mut().push(given.call_id.to_string());
            let pause = clock.pause(dice.below(12) as u64);
            async move {
                given.state.set(&given.call_id, true.into());
                pause.await;
                ToolOutcome::Completed(AgentToolResult::text(given.arguments.as_str()))
            }
        })
    }
}

/// Gives a call its result: what its tool gives where it has one.
fn give_result(agent: &Agent, question: &Question) {
    if question.kind == QuestionKind::ToolCall {
        let arguments = question.call.as_ref().map_or("", |call| call.arguments.as_str()).to_owned();
        // Where the event of the question comes only after the restore, it was answered there.
        agent.resolve(&question.id, Answer::output(arguments));
    }
}

/// Lives until some event, or the end. Returns the checkpoint, if it sleeps, and the history.
fn live(
    world: &World,
    from: Option<&[u8]>,
    until: usize,
    trace: &mut Vec<AgentEvent>,
) -> (Option<Vec<u8>>, Vec<AgentMessage>) {
    let agent = match from {
        None => Agent::new(world.config(), Vec::new()),
        Some(bytes) => Agent::restore(world.config(), &CheckpointEnvelopeV1::decode(bytes).unwrap()).unwrap(),
    };
    let run = match agent.resumable() {
        Some(context) => agent.continue_run(context, CancelToken::new()),
        None => agent.prompt(vec![AgentMessage::user("go")], context(), CancelToken::new()),
    };
    let mut run = run.unwrap();
    for question in agent.pending_questions() {
        give_result(&agent, &question);
    }
    if !world.approver {
        for call in agent.pending_approvals() {
            agent.resolve_tool(call.call_id, ToolDecision::Accept);
        }
    }
    let mut count = 0;
    while let Some(event) = world.clock.run(run.next()).unwrap() {
        count += 1;
        if let (AgentEvent::ToolApprovalRequested { call_id, .. }, false) = (&event, world.approver) {
            agent.resolve_tool(call_id.clone(), ToolDecision::Accept);
        }
        if let AgentEvent::QuestionAsked { question, .. } = &event
            && count != until
        {
            give_result(&agent, question);
        }
        let is_end = matches!(event, AgentEvent::AgentEnd { .. });
        trace.push(event);
        if count == until && !is_end {
            return (Some(run.checkpoint().to_json().into_bytes()), agent.messages());
        }
    }
    (None, agent.messages())
}

fn world(seed: u64, life: u64) -> World {
    World {
        clock: Clock::default(),
        dice: Dice::new(seed * 1_000 + life),
        ran: Rc::default(),
        sequential: seed.is_multiple_of(3),
        approver: seed.is_multiple_of(2),
        elsewhere: seed.is_multiple_of(4),
    }
}

/// The history as text, without what may differ.
fn comparable(history: &[AgentMessage], interrupted: &BTreeSet<String>) -> Vec<String> {
    let brief = |message: &AgentMessage| match message {
        AgentMessage::ToolResult(result) if interrupted.contains(&result.call_id) => result.call_id.clone(),
        other => brief(other),
    };
    history.iter().map(brief).collect()
}

#[test]
fn over_a_thousand_schedules_the_run_comes_to_the_same_end() {
    let (_, whole) = live(&world(1, 0), None, usize::MAX, &mut Vec::new());
    assert_eq!(whole.len(), 14);
    let (mut slept, mut cut) = (0, 0);
    for seed in 0..1_200 {
        let dice = Dice::new(seed);
        let (mut trace, mut ran, mut interrupted) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut bytes: Option<Vec<u8>> = None;
        let mut history = Vec::new();
        for life in 0..30 {
            let world = world(seed, life);
            let until = if life == 29 { usize::MAX } else { 1 + dice.below(25) };
            let mut events = Vec::new();
            let (saved, messages) = live(&world, bytes.as_deref(), until, &mut events);
            ran.append(&mut world.ran.borrow_mut());
            for event in events {
                if let AgentEvent::RunResumed { running_tools, partial_message, .. } = &event {
                    interrupted.extend(
                        running_tools.iter().filter(|c| c.tool_name == "pay").map(|c| c.call_id.clone()),
                    );
                    cut += usize::from(partial_message.is_some());
                }
                trace.push(event);
            }
            history = messages;
            bytes = saved;
            if bytes.is_none() {
                break;
            }
            slept += 1;
        }
        assert_eq!(comparable(&history, &interrupted), comparable(&whole, &interrupted), "seed {seed}");
        let mut grammar = Grammar::default();
        trace.iter().for_each(|event| grammar.take(event));
        assert_eq!(grammar.finish(&history), Vec::<String>::new(), "seed {seed}");
        for id in ["b1", "d1"] {
            assert!(ran.iter().filter(|other| *other == id).count() <= 1, "seed {seed}: {id} ran twice");
        }
        for message in &history {
            if let AgentMessage::ToolResult(result) = message {
                let is_interrupted = result.cause == Some(ToolResultCause::Interrupted);
                assert!(!is_interrupted || interrupted.contains(&result.call_id), "seed {seed}");
            }
        }
    }
    assert!(slept > 3_000 && cut > 30, "slept {slept} times, {cut} answers were cut");
}

#[test]
fn whatever_is_read_as_a_checkpoint_breaks_nothing() {
    let mut saved = Vec::new();
    for until in (1..80).step_by(3) {
        saved.extend(live(&world(4, 0), None, until, &mut Vec::new()).0);
        saved.extend(live(&world(5, 0), None, until, &mut Vec::new()).0);
    }
    assert!(saved.len() > 20);
    let runs = std::env::var("TURNWHEEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(30_000_u64);
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..runs {
        let dice = Dice::new(seed);
        let mut bytes = dice.pick(&saved).clone();
        for _ in 0..=dice.below(3) {
            mutate(&mut bytes, &dice);
        }
        let Ok(envelope) = CheckpointEnvelopeV1::decode(&bytes) else {
            refused += 1;
            continue;
        };
        let world = world(4, seed);
        let Ok(agent) = Agent::restore(world.config(), &envelope) else {
            refused += 1;
            continue;
        };
        taken += 1;
        // A checkpoint that was accepted continues, ends or waits for somebody; in
        // any case it can be stopped.
        let cancel = CancelToken::new();
        let Ok(mut run) = agent.continue_run(agent.resumable().unwrap_or_else(context), cancel.clone())
        else {
            continue;
        };
        for _ in 0..dice.below(40) {
            let Ok(Some(_)) = world.clock.run(run.next()) else { break };
        }
        run.checkpoint();
        cancel.cancel("enough");
        let mut left = 0;
        while let Ok(Some(_)) = world.clock.run(run.next()) {
            left += 1;
            assert!(left < 200, "seed {seed}: it does not end");
        }
        assert!(run.result().is_some(), "seed {seed}: it cannot be stopped");
    }
    assert!(taken > runs / 50 && refused > runs / 50, "{taken} taken, {refused} refused");
}

/// Changes a byte, removes a piece, or replaces a value by another.
fn mutate(bytes: &mut Vec<u8>, dice: &Dice) {
    let at = dice.below(bytes.len());
    match dice.below(4) {
        0 => bytes[at] = *dice.pick(b"{}[]\",:0x1e-"),
        1 => {
            let end = (at + dice.below(20)).min(bytes.len());
            bytes.drain(at..end);
        }
        _ => {
            let values: [&[u8]; 8] = [b"null", b"0", b"7", b"4294967296", b"true", b"\"\"", b"[]", b"{}"];
            let Some(colon) = bytes[at..].iter().position(|b| *b == b':').map(|found| at + found + 1) else {
                return;
            };
            let end = bytes[colon..]
                .iter()
                .position(|b| matches!(b, b',' | b'}'))
                .map_or(bytes.len(), |n| colon + n);
            bytes.splice(colon..end, dice.pick(&values).iter().copied());
        }
    }
}

/// Records a life from its beginning to its end. Returns the tape, the events, and the history after each of them.
fn recorded(world: &World) -> (Tape, Vec<AgentEvent>, Vec<Vec<String>>) {
    let recorder = Recorder::new(0);
    let agent = Agent::new(world.config(), Vec::new());
    agent.record(&recorder).unwrap();
    let mut run = agent.prompt(vec![AgentMessage::user("go")], context(), CancelToken::new()).unwrap();
    let (mut events, mut histories) = (Vec::new(), vec![Vec::new()]);
    while let Some(event) = world.clock.run(run.next()).unwrap() {
        if let (AgentEvent::ToolApprovalRequested { call_id, .. }, false) = (&event, world.approver) {
            agent.resolve_tool(call_id.clone(), ToolDecision::Accept);
        }
        if let AgentEvent::QuestionAsked { question, .. } = &event {
            give_result(&agent, question);
        }
        events.push(event);
        histories.push(agent.messages().iter().map(brief).collect());
    }
    recorder.stop();
    (Tape::parse(&recorder.to_text()).unwrap(), events, histories)
}

#[test]
fn at_every_event_of_fifty_tapes_a_run_goes_on_elsewhere() {
    let mut forks = 0;
    for seed in 0..50 {
        let (tape, events, histories) = recorded(&world(seed, 0));
        let whole = histories.last().unwrap();
        let mut moments = Seeker::new(&tape);
        for n in 0..=events.len() {
            let frame = moments.frame(n as u64).unwrap();
            let prefix: Vec<String> = frame.messages.iter().map(brief).collect();
            assert_eq!(prefix, histories[n], "seed {seed}, event {n}");
            if n == 0 || n == events.len() {
                continue;
            }
            let world = world(seed, n as u64);
            let mut trace = events[..n].to_vec();
            let bytes = frame.checkpoint.encode();
            let (_, history) = live(&world, Some(bytes.as_bytes()), usize::MAX, &mut trace);
            let mut grammar = Grammar::default();
            trace.iter().for_each(|event| grammar.take(event));
            assert_eq!(grammar.finish(&history), Vec::<String>::new(), "seed {seed}, event {n}");
            let interrupted: BTreeSet<String> = history
                .iter()
                .filter_map(|message| match message {
                    AgentMessage::ToolResult(result)
                        if result.cause == Some(ToolResultCause::Interrupted) =>
                    {
                        Some(result.call_id.clone())
                    }
                    _ => None,
                })
                .collect();
            let same = |text: &&String| !interrupted.iter().any(|id| text.contains(id.as_str()));
            let ended: Vec<String> = history.iter().map(brief).collect();
            assert_eq!(
                ended.iter().filter(same).collect::<Vec<_>>(),
                whole.iter().filter(same).collect::<Vec<_>>(),
                "seed {seed}, event {n}"
            );
            // What had a result does not run again.
            for message in &frame.messages {
                if let AgentMessage::ToolResult(result) = message {
                    assert!(!world.ran.borrow().contains(&result.call_id), "seed {seed}, event {n}");
                }
            }
            forks += 1;
        }
    }
    assert!(forks > 1_500, "only {forks} forks");
}

#[test]
fn moments_are_found_backwards_as_well_as_forwards() {
    let (tape, events, histories) = recorded(&world(2, 0));
    let mut moments = Seeker::new(&tape);
    let dice = Dice::new(1);
    for _ in 0..60 {
        let n = dice.below(events.len() + 1);
        let frame = moments.frame(n as u64).unwrap();
        assert_eq!(frame.n, n as u64);
        assert_eq!(frame.messages.iter().map(brief).collect::<Vec<_>>(), histories[n], "event {n}");
    }
    let beyond = moments.frame(events.len() as u64 + 1).unwrap_err();
    assert!(beyond.to_string().contains("a tape of"), "{beyond}");
}
