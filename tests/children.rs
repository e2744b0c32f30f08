//! Agents inside agents: three levels deep, in parallel, put to sleep at every event, asked about, stopped, counted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use futures::StreamExt;
use futures::stream;
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::{AgentLoopConfig, Model, SteeringTime};
use turnwheel::driver::{AgentLoopResult, AgentStream};
use turnwheel::event::AgentEvent;
use turnwheel::json::{ToJson as _, Value};
use turnwheel::message::{ContentBlock, LlmMessage, MessageStopReason, Usage};
use turnwheel::ports::AgentRunContext;
use turnwheel::scripted::Clock;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{AgentTool, ApprovalNeed, ToolOutcome, ToolSpec, tool};

/// What the world outside of the agents has seen.
#[derive(Default)]
struct World {
    /// How often each piece of work was done.
    done: RefCell<Vec<String>>,
}

fn used() -> Usage {
    Usage { input: 10, output: 5, total: 15, ..Usage::default() }
}

fn says(text: &str) -> Vec<E> {
    vec![
        E::TextStart { index: 0 },
        E::TextDelta { index: 0, delta: text.into() },
        E::TextEnd { index: 0, signature: None },
        E::Done { stop_reason: MessageStopReason::Stop, usage: Some(used()) },
    ]
}

fn calls(calls: &[(&str, &str, &str)]) -> Vec<E> {
    let mut events = Vec::new();
    for (index, (call_id, name, prompt)) in (0..).zip(calls) {
        events.push(E::ToolCallStart { index, call_id: (*call_id).into(), tool_name: (*name).into() });
        events.push(E::ToolCallDelta { index, delta: format!(r#"{{"prompt":"{prompt}"}}"#) });
        events.push(E::ToolCallEnd { index, metadata: None });
    }
    events.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: Some(used()) });
    events
}

fn config(plan: impl Fn(&str) -> Vec<E> + 'static, tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
    let answer = move |request: ModelRequest, _: CancelToken| {
        let mut results = Vec::new();
        for message in request.messages.iter() {
            match message {
                LlmMessage::User(_) => results.clear(),
                LlmMessage::ToolResult(result) => results.push(result.text()),
                _ => {}
            }
        }
        let prompt = request.messages.iter().rev().find_map(|message| match message {
            LlmMessage::User(user) => user.content.iter().find_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            }),
            _ => None,
        });
        let events =
            if results.is_empty() { plan(&prompt.unwrap_or_default()) } else { says(&results.join("+")) };
        stream::iter(events).boxed_local()
    };
    let mut config = AgentLoopConfig::new(Model::new("own", "m", Rc::new(answer)), Rc::new(Clock::default()));
    let ids = Rc::new(Cell::new(0));
    config.rules.new_id = Rc::new(move || {
        ids.set(ids.get() + 1);
        format!("q{}-{}", ids.get(), fresh())
    });
    config.set_tools(tools).unwrap();
    config
}

thread_local! {
    static IDS: Cell<u64> = const { Cell::new(0) };
}

fn fresh() -> u64 {
    IDS.with(|ids| {
        ids.set(ids.get() + 1);
        ids.get()
    })
}

/// A tool that must be approved, and does its work once.
fn work(world: &Rc<World>) -> Rc<dyn AgentTool> {
    let mut spec = ToolSpec::parse("work", "", r#"{"type":"object"}"#).unwrap();
    spec.requires_approval = ApprovalNeed::Always;
    // A call whose start was announced may not have begun.
    spec.idempotent = true;
    let world = world.clone();
    tool(spec, move |call| {
        let world = world.clone();
        async move {
            let what = call.arguments.to_value().owned_at("prompt").unwrap_or_default();
            world.done.borrow_mut().push(what.clone());
            ToolOutcome::from(format!("did {what}"))
        }
    })
}

/// The root asks two `mid`s at once, each asks a `leaf`, each leaf works.
fn root(world: &Rc<World>) -> AgentLoopConfig {
    let plan = |_: &str| calls(&[("c1", "mid", "a"), ("c2", "mid", "b")]);
    let deep = world.clone();
    let mid = SubAgent::new("mid", "", move || {
        let deeper = deep.clone();
        let leaf = SubAgent::new("leaf", "", move || {
            config(|prompt| calls(&[("w", "work", prompt)]), vec![work(&deeper)])
        });
        config(|prompt| calls(&[("k", "leaf", prompt)]), vec![Rc::new(leaf)])
    });
    config(plan, vec![Rc::new(mid)])
}

fn who() -> AgentRunContext {
    AgentRunContext::new("r", "s")
}

/// A run with its agent, and what it has told.
struct Play {
    agent: Agent,
    stream: AgentStream,
    events: Vec<AgentEvent>,
}

impl Play {
    fn new(agent: Agent, stream: AgentStream) -> Self {
        Play { agent, stream, events: Vec::new() }
    }

    fn of(config: AgentLoopConfig) -> Self {
        let agent = Agent::new(config, Vec::new());
        let stream = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
        Play::new(agent, stream)
    }

    fn restored(config: AgentLoopConfig, checkpoint: &str) -> Self {
        let envelope = CheckpointEnvelopeV1::decode(checkpoint.as_bytes()).unwrap();
        let agent = Agent::restore(config, &envelope).unwrap();
        let stream = agent.continue_run(who(), CancelToken::new()).unwrap();
        Play::new(agent, stream)
    }

    /// The next event; `None` if nothing happens any more.
    fn next(&mut self) -> Option<AgentEvent> {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..50 {
            match Pin::new(&mut self.stream).poll_next(&mut cx) {
                Poll::Ready(event) => {
                    self.events.extend(event.clone());
                    return event;
                }
                Poll::Pending => {}
            }
        }
        None
    }

    /// Says yes to everything that is asked, and goes on to the end.
    fn approve_all(&mut self) {
        while let Some(event) = self.next() {
            self.approve(&event);
        }
    }

    fn approve(&self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolApprovalRequested { id, .. } => {
                self.agent.resolve(id, ToolDecision::Accept);
            }
            AgentEvent::RunResumed { pending_approvals, .. } => {
                for question in pending_approvals {
                    self.agent.resolve(&question.id, ToolDecision::Accept);
                }
            }
            _ => {}
        }
    }

    fn result(&self) -> AgentLoopResult {
        self.stream.result().unwrap_or_else(|| panic!("it hangs after {:?}", names(&self.events))).clone()
    }
}

/// The names of the events, with the paths of those inside.
fn names(events: &[AgentEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            AgentEvent::SubagentEvent { path, event, .. } => {
                let event = event.to_value();
                let reason = event.text_at("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{} {}{reason}", path.join("/"), event.text_at("type").unwrap())
            }
            AgentEvent::CommandRefused { reason, .. } => format!("command_refused: {reason}"),
            event => event.name().to_owned(),
        })
        .collect()
}

fn sorted(mut done: Vec<String>) -> Vec<String> {
    done.sort();
    done
}

#[test]
fn questions_of_agents_inside_are_those_of_the_parent_with_their_path() {
    let world = Rc::new(World::default());
    let mut play = Play::of(root(&world));
    while play.next().is_some() {}
    let questions = play.agent.pending_questions();
    let paths: Vec<String> = questions.iter().map(|question| question.path.join("/")).collect();
    assert_eq!(sorted(paths), ["c1/k", "c2/k"]);
    assert!(!play.agent.resolve_tool("w", ToolDecision::Accept), "two calls have this id");
    for question in &questions {
        assert!(play.agent.resolve(&question.id, ToolDecision::Accept));
        assert!(!play.agent.resolve(&question.id, ToolDecision::Accept), "once");
    }
    while play.next().is_some() {}
    assert_eq!(play.result().text, "did a+did b");
    assert!(play.agent.pending_questions().is_empty());
    let told = names(&play.events);
    assert_eq!(told.iter().filter(|name| *name == "tool_approval_requested").count(), 2);
    assert_eq!(told.iter().filter(|name| *name == "tool_approval_resolved").count(), 2);
    assert_eq!(told.iter().filter(|name| name.ends_with("k tool_approval_requested")).count(), 2);
}

#[test]
fn the_usage_of_agents_inside_counts_and_is_told_apart() {
    let world = Rc::new(World::default());
    let mut play = Play::of(root(&world));
    play.approve_all();
    let result = play.result();
    // Two answers of each of five agents.
    assert_eq!(result.usage.total, 10 * 15);
    assert_eq!(result.own_usage.unwrap().total, 2 * 15);
    assert_eq!(play.agent.usage().total, 10 * 15);
    let end = play.events.last().unwrap().to_json();
    assert_eq!(
        Value::parse(&end).unwrap().get("usage").unwrap().get("own").unwrap().number_at("total"),
        Some(30)
    );
}

#[test]
fn a_run_with_agents_inside_sleeps_at_every_event_and_nothing_is_lost_or_done_twice() {
    let mut length = 0;
    for kill in 0.. {
        let world = Rc::new(World::default());
        let mut play = Play::of(root(&world));
        let mut count = 0;
        while count <= kill {
            let Some(event) = play.next() else { break };
            // Whoever decides does so before the process ends, or after it.
            if kill % 2 == 0 {
                play.approve(&event);
            }
            count += 1;
        }
        if count <= kill && play.stream.result().is_some() {
            length = count;
            break;
        }
        let checkpoint = play.stream.checkpoint().encode();
        drop(play);
        let mut again = Play::restored(root(&world), &checkpoint);
        again.approve_all();
        let result = if again.stream.result().is_some() {
            again.result().text
        } else {
            panic!("killed after event {kill}, it hangs after {:?}\n{checkpoint}", names(&again.events))
        };
        let done = sorted(world.done.borrow().clone());
        assert_eq!(result, "did a+did b", "killed after event {kill}");
        assert_eq!(done, ["a", "b"], "killed after event {kill}");
        if !checkpoint.contains("\"kind\":\"ended\"") && again.events.len() > 1 {
            assert_eq!(again.result().usage.total, 150, "killed after event {kill}");
        }
    }
    assert!(length > 40, "{length}");
}

#[test]
fn it_sleeps_twice() {
    let world = Rc::new(World::default());
    for (first, second) in [(12, 3), (25, 7), (31, 1), (40, 12)] {
        world.done.borrow_mut().clear();
        let mut play = Play::of(root(&world));
        for _ in 0..first {
            play.next();
        }
        let mut again = Play::restored(root(&world), &play.stream.checkpoint().encode());
        for _ in 0..second {
            again.next();
        }
        let mut last = Play::restored(root(&world), &again.stream.checkpoint().encode());
        last.approve_all();
        assert_eq!(last.result().text, "did a+did b", "{first}, {second}");
        assert_eq!(sorted(world.done.borrow().clone()), ["a", "b"], "{first}, {second}");
        assert_eq!(last.result().usage.total, 150, "{first}, {second}");
    }
}

#[test]
fn a_checkpoint_that_waits_is_written_again_as_it_is() {
    let world = Rc::new(World::default());
    let mut play = Play::of(root(&world));
    while play.next().is_some() {}
    let envelope = play.stream.checkpoint();
    let again = Agent::restore(root(&world), &envelope).unwrap();
    assert_eq!(again.pending_questions().len(), 2);
    let children = |envelope: &CheckpointEnvelopeV1| envelope.own_state().unwrap().get("children").cloned();
    assert!(children(&envelope).is_some());
    assert_eq!(children(&envelope), children(&again.checkpoint(0)));
}

#[test]
fn stopping_the_parent_ends_those_inside_first() {
    let world = Rc::new(World::default());
    let cancel = CancelToken::new();
    let agent = Agent::new(root(&world), Vec::new());
    let stream = agent.prompt(vec!["Go.".into()], who(), cancel.clone()).unwrap();
    let mut play = Play::new(agent, stream);
    while play.next().is_some() {}
    let before = play.events.len();
    cancel.cancel("enough");
    while play.next().is_some() {}
    let told = names(&play.events[before..]);
    let place =
        |name: &str| told.iter().position(|told| told == name).unwrap_or_else(|| panic!("{name}: {told:?}"));
    for call in ["c1", "c2"] {
        assert!(
            place(&format!("{call}/k agent_end")) < place(&format!("{call} tool_execution_end")),
            "{told:?}"
        );
        assert!(place(&format!("{call} agent_end")) < place("tool_execution_end"), "{told:?}");
    }
    assert_eq!(told.iter().filter(|name| *name == "tool_approval_resolved").count(), 2, "{told:?}");
    assert_eq!(play.result().usage.total, 5 * 15);
}

#[test]
fn a_message_cancels_agents_that_wait_for_people_alone() {
    let world = Rc::new(World::default());
    let mut play = Play::of(root(&world));
    play.agent.configure(|config| config.rules.steering.when = SteeringTime::AfterTool);
    while play.next().is_some() {}
    drop(play.agent.steer("Leave it.".into()));
    while play.next().is_some() {}
    let told = names(&play.events);
    let place =
        |name: &str| told.iter().rposition(|told| told == name).unwrap_or_else(|| panic!("{name}: {told:?}"));
    let first_end = told.iter().position(|name| name == "tool_execution_end").unwrap();
    assert!(place("c1/k agent_end") < first_end && place("c1 agent_end") < first_end, "{told:?}");
    // The prompt of the turn after is the message; the plan is the same.
    assert!(told.iter().any(|name| name == "turn_end"));
    assert!(world.done.borrow().is_empty());
}

#[test]
fn a_tool_that_is_gone_leaves_what_had_been_said() {
    let world = Rc::new(World::default());
    let plan = |_: &str| calls(&[("c1", "mid", "a")]);
    let of = |world: &Rc<World>| {
        let world = world.clone();
        let mid = SubAgent::new("mid", "", move || {
            let plan = |prompt: &str| {
                let mut events = says("I looked at half of it.");
                events.pop();
                events.push(E::ToolCallStart { index: 1, call_id: "w".into(), tool_name: "work".into() });
                events.push(E::ToolCallDelta { index: 1, delta: format!(r#"{{"prompt":"{prompt}"}}"#) });
                events.push(E::ToolCallEnd { index: 1, metadata: None });
                events.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: None });
                events
            };
            config(plan, vec![work(&world)])
        });
        config(plan, vec![Rc::new(mid)])
    };
    let mut play = Play::of(of(&world));
    while play.next().is_some() {}
    let checkpoint = play.stream.checkpoint().encode();
    let other =
        tool(ToolSpec::parse("mid", "", "{}").unwrap(), async |_| ToolOutcome::from("never".to_owned()));
    let mut again = Play::restored(config(plan, vec![other]), &checkpoint);
    assert!(again.agent.pending_questions().is_empty());
    again.approve_all();
    let text = again.result().text;
    assert!(text.contains("interrupted") && text.contains("I looked at half of it."), "{text}");
}

#[test]
fn agents_are_nested_as_deep_as_the_outermost_allows() {
    fn nested() -> AgentLoopConfig {
        let inner = SubAgent::new("inner", "", nested);
        config(|_| calls(&[("c", "inner", "deeper")]), vec![Rc::new(inner)])
    }
    let mut config = nested();
    config.rules.max_depth = 3;
    let mut play = Play::of(config);
    play.approve_all();
    let text = play.result().text;
    assert!(text.contains("nested too deep") && text.contains('3'), "{text}");
    let deepest = play.events.iter().filter_map(|event| match event {
        AgentEvent::SubagentEvent { path, .. } => Some(path.len()),
        _ => None,
    });
    assert_eq!(deepest.max(), Some(3));
}

#[test]
fn questions_that_are_kept_stay_inside() {
    let world = Rc::new(World::default());
    let inner = {
        let world = world.clone();
        SubAgent::new("inner", "", move || config(|_| calls(&[("w", "work", "x")]), vec![work(&world)]))
    };
    let inner = Rc::new(inner.with_own_approvals());
    let middle = SubAgent::new("middle", "", move || {
        config(|_| calls(&[("k", "inner", "x")]), vec![inner.clone() as Rc<dyn AgentTool>])
    });
    let mut play = Play::of(config(|_| calls(&[("c", "middle", "x")]), vec![Rc::new(middle)]));
    play.approve_all();
    assert_eq!(play.result().text, "Sub-agent cancelled.");
    assert!(!names(&play.events).contains(&"tool_approval_requested".to_owned()));
    assert!(world.done.borrow().is_empty());
}

#[test]
fn checkpoints_inside_each_other_have_a_limit() {
    let world = Rc::new(World::default());
    let mut play = Play::of(root(&world));
    while play.next().is_some() {}
    let mut checkpoint = Value::parse(&play.stream.checkpoint().encode()).unwrap();
    let child = |checkpoint: &Value| -> Option<Value> {
        checkpoint.get("metadata")?.get("turnwheel")?.get("children")?.get("c1").cloned()
    };
    assert!(child(&checkpoint).is_some());
    for _ in 0..20 {
        let mut outer = play.stream.checkpoint();
        let mut own = outer.own_state().unwrap().clone();
        if let Value::Object(own) = &mut own
            && let Some(Value::Object(children)) = own.get("children").cloned()
        {
            let mut children = children;
            children.insert("c1", checkpoint.clone());
            own.insert("children", children.into());
        }
        outer.set_own_state(own);
        checkpoint = Value::parse(&outer.encode()).unwrap();
    }
    let envelope = CheckpointEnvelopeV1::from_value(checkpoint).unwrap();
    let refused = Agent::restore(root(&world), &envelope).err().unwrap();
    assert!(refused.to_string().contains("nested too deep"), "{refused}");
}
