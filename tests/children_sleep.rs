//! A family three levels deep that is put to sleep at every event: agents at once, a budget that asks, calls that are
//! asked about and tools that ask. It goes on through the bytes of its checkpoint.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use futures::StreamExt;
use futures::stream;
use rig::clock::Clock;
use rig::host::{calls, config, model, spec, text, tool};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::budget::{Amounts, Budget, OnExceed};
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::driver::{AgentLoopResult, AgentStream};
use turnwheel::event::{AgentEvent, BudgetState};
use turnwheel::json::{RawJson, Value};
use turnwheel::message::{LlmMessage, Usage};
use turnwheel::ports::AgentRunContext;
use turnwheel::question::QuestionKind;
use turnwheel::stream::{AssistantMessageEvent as E, StreamOptions};
use turnwheel::tool::{AgentTool, ApprovalNeed, Ask, ToolOutcome, ToolSpec};

/// What an answer of any of the models uses.
const USED: u64 = 15;

/// What is left when a process ends.
#[derive(Default)]
struct World {
    clock: Clock,
    ids: Cell<u64>,
    /// How many events were heard.
    heard: Cell<usize>,
    /// What the tools did.
    done: RefCell<Vec<String>>,
    /// The ids of the questions, and whether a budget was raised.
    asked: RefCell<BTreeSet<String>>,
    is_raised: Cell<bool>,
    /// The calls that have begun, with their paths.
    begun: RefCell<BTreeSet<String>>,
}

/// A model that calls what `plan` says for its prompt, and then repeats what came of it.
fn planned(plan: fn(&str) -> Vec<E>) -> Model {
    model("m", move |request, _| {
        let mut results = Vec::new();
        let mut prompt = String::new();
        for message in request.messages.iter() {
            match message {
                LlmMessage::User(user) => prompt = turnwheel::message::text_of(&user.content),
                LlmMessage::ToolResult(result) => results.push(result.text()),
                LlmMessage::Assistant(_) => {}
            }
        }
        let mut events = if results.is_empty() { plan(&prompt) } else { text(&results.join("+")) };
        for event in &mut events {
            if let E::Done { usage, .. } = event {
                *usage = Some(Usage { input: 10, output: 5, total: USED, ..Usage::default() });
            }
        }
        stream::iter(events).boxed_local()
    })
}

impl World {
    fn config(self: &Rc<Self>, plan: fn(&str) -> Vec<E>, tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
        let mut config = config(&self.clock, planned(plan), tools);
        let world = self.clone();
        config.rules.new_id = Rc::new(move || {
            world.ids.set(world.ids.get() + 1);
            format!("q{}", world.ids.get())
        });
        config.rules.stream_options =
            Rc::new(StreamOptions { max_tokens: Some(20), ..(*config.rules.stream_options).clone() });
        config
    }

    /// The root calls two agents at once, each calls another, each of those works and asks.
    fn root(self: &Rc<Self>, budget: Budget) -> AgentLoopConfig {
        let world = self.clone();
        let mid = SubAgent::new("mid", "", move || {
            let deeper = world.clone();
            let leaf = SubAgent::new("leaf", "", move || {
                let plan = |prompt: &str| {
                    let of = format!(r#"{{"of":"{prompt}"}}"#);
                    calls(&[("w", "work", &of), ("q", "ask", &of)])
                };
                deeper.config(plan, vec![deeper.work(), deeper.asks()])
            });
            let plan = |prompt: &str| calls(&[("k", "leaf", &format!(r#"{{"prompt":"{prompt}"}}"#))]);
            world.config(plan, vec![Rc::new(leaf)])
        });
        let plan = |_: &str| calls(&[("c1", "mid", r#"{"prompt":"a"}"#), ("c2", "mid", r#"{"prompt":"b"}"#)]);
        let mut config = self.config(plan, vec![Rc::new(mid)]);
        config.rules.budget = Some(budget);
        config
    }

    /// Must be approved. A call whose start was announced may not have begun.
    fn work(self: &Rc<Self>) -> Rc<dyn AgentTool> {
        let spec = ToolSpec { requires_approval: ApprovalNeed::Always, idempotent: true, ..spec("work") };
        self.tool(spec, false)
    }

    /// Asks, and asks anew when its process has ended.
    fn asks(self: &Rc<Self>) -> Rc<dyn AgentTool> {
        self.tool(ToolSpec { idempotent: true, ..spec("ask") }, true)
    }

    fn tool(self: &Rc<Self>, spec: ToolSpec, asks: bool) -> Rc<dyn AgentTool> {
        let world = self.clone();
        tool(spec, move |call| {
            let world = world.clone();
            async move {
                let of = call.arguments.to_value().owned_at("of").unwrap_or_default();
                if !asks {
                    world.done.borrow_mut().push(of.clone());
                    return ToolOutcome::from(format!("did {of}"));
                }
                let ask = Ask { message: "Which?".to_owned(), schema: None, id: None };
                match call.ask(ask).await {
                    Answer::Accept(this) => ToolOutcome::from(format!("{} for {of}", this.as_str())),
                    other => panic!("{other:?}"),
                }
            }
        })
    }

    fn answer(&self, agent: &Agent, id: &str, kind: QuestionKind) {
        let answer = self.yes(kind);
        assert!(agent.resolve(id, answer.clone()), "{id} is open");
        assert!(!agent.resolve(id, answer), "an answer counts once");
    }

    /// Takes note of an event, and answers what it asks, if anybody does.
    fn hear(&self, agent: &Agent, event: &AgentEvent, answers: bool) {
        match event {
            AgentEvent::QuestionAsked { question } => {
                let is_new = self.asked.borrow_mut().insert(question.id.clone());
                if question.kind == QuestionKind::Budget && is_new {
                    assert!(!self.is_raised.get(), "a budget that was raised is asked about again");
                }
                // It may be told after the list of a run that goes on.
                if answers && is_new {
                    self.answer(agent, &question.id, question.kind);
                }
            }
            AgentEvent::ToolApprovalRequested { id, .. } => {
                let is_new = self.asked.borrow_mut().insert(id.clone());
                if answers && is_new {
                    self.answer(agent, id, QuestionKind::Tool);
                }
            }
            AgentEvent::RunResumed { pending_approvals, .. } if answers => {
                for question in pending_approvals {
                    self.asked.borrow_mut().insert(question.id.clone());
                    self.answer(agent, &question.id, question.kind);
                }
            }
            AgentEvent::Budget { state: BudgetState::Raised, .. } => self.is_raised.set(true),
            AgentEvent::ToolExecutionStart { call_id, .. } => {
                self.begun.borrow_mut().insert(call_id.clone());
            }
            AgentEvent::SubagentEvent { path, event, .. } => self.hear_inside(path, &event.to_value()),
            _ => {}
        }
    }

    fn yes(&self, kind: QuestionKind) -> Answer {
        match kind {
            QuestionKind::Tool => ToolDecision::Accept.into(),
            QuestionKind::Budget => Answer::Raise(Amounts { tokens: 1_000, ..Amounts::default() }),
            _ => Answer::Accept(RawJson::parse("1").unwrap()),
        }
    }

    fn hear_inside(&self, path: &[String], event: &Value) {
        match event.text_at("type") {
            Some("budget") if event.text_at("state") == Some("raised") => self.is_raised.set(true),
            Some("tool_execution_start") => {
                let call = format!("{}/{}", path.join("/"), event.text_at("callId").unwrap());
                self.begun.borrow_mut().insert(call);
            }
            _ => {}
        }
    }

    /// Lives until so many events were heard, or until nothing happens any more. Returns the checkpoint, or the result.
    fn live(
        self: &Rc<Self>,
        config: AgentLoopConfig,
        from: Option<&str>,
        until: usize,
        answers: bool,
    ) -> Result<AgentLoopResult, String> {
        let who = || AgentRunContext::new("r", "s");
        let (agent, stream) = match from {
            None => {
                let agent = Agent::new(config, Vec::new());
                let stream = agent.prompt(vec!["Go.".into()], who(), CancelToken::new());
                (agent, stream)
            }
            Some(checkpoint) => {
                let envelope = CheckpointEnvelopeV1::decode(checkpoint.as_bytes()).unwrap();
                let agent = Agent::restore(config, &envelope).unwrap();
                let stream = agent.continue_run(who(), CancelToken::new());
                (agent, stream)
            }
        };
        let mut stream: AgentStream = stream.unwrap();
        for _ in 0..until {
            let Ok(Some(event)) = self.clock.run(stream.next()) else { break };
            self.heard.set(self.heard.get() + 1);
            self.hear(&agent, &event, answers);
        }
        match stream.result() {
            Some(result) => Ok(result.clone()),
            None => Err(stream.checkpoint().encode()),
        }
    }
}

/// Plays it with an end of the process after each event, with and without people before it, and checks what is left.
fn sleep_everywhere(budget: Budget, check: impl Fn(&World, &AgentLoopResult, &str)) {
    for answers_before in [true, false] {
        let mut count = 0;
        for kill in 1.. {
            let world = Rc::new(World::default());
            let first = match world.live(world.root(budget), None, kill, answers_before) {
                Ok(_) => break,
                Err(checkpoint) => checkpoint,
            };
            // Where nobody answers, nothing happens after some time.
            if world.heard.get() < kill {
                break;
            }
            // Once more, in the middle of going on.
            let second = world.live(world.root(budget), Some(&first), kill % 7, false);
            let checkpoint = match second {
                Ok(result) => {
                    check(&world, &result, &format!("killed after event {kill}"));
                    continue;
                }
                Err(checkpoint) => checkpoint,
            };
            let place = format!("killed after event {kill}, decided before: {answers_before}");
            match world.live(world.root(budget), Some(&checkpoint), usize::MAX, true) {
                Ok(result) => check(&world, &result, &place),
                Err(text) => panic!("{place}, it hangs\n{text}"),
            }
            count += 1;
        }
        assert!(count > 25, "{count}");
    }
}

#[test]
fn with_a_budget_that_asks_nothing_is_lost_or_done_twice() {
    let budget = Budget { tokens: Some(120), on_exceed: OnExceed::Ask, ..Budget::default() };
    sleep_everywhere(budget, |world, result, place| {
        assert_eq!(result.text, "did a+1 for a+did b+1 for b", "{place}");
        let mut done = world.done.borrow().clone();
        done.sort();
        assert_eq!(done, ["a", "b"], "{place}");
        assert!(world.is_raised.get(), "{place}");
        assert!(result.usage.total >= 10 * USED, "{place}: {:?}", result.usage);
        assert_eq!(world.begun.borrow().len(), 8, "{place}");
    });
}

/// How a checkpoint says of a call that its tool runs.
const RUNNING: &str = r#""status":"running""#;

#[test]
fn what_agents_inside_ask_stays_open_if_a_process_ends_before_they_go_on() {
    let budget = Budget { tokens: Some(120), on_exceed: OnExceed::Ask, ..Budget::default() };
    let world = Rc::new(World::default());
    let open_in = |checkpoint: &str| {
        let envelope = CheckpointEnvelopeV1::decode(checkpoint.as_bytes()).unwrap();
        let agent = Agent::restore(world.root(budget), &envelope).unwrap();
        agent.pending_questions().into_iter().map(|question| (question.id, question.path)).collect::<Vec<_>>()
    };
    let mut count = 0;
    for kill in 1.. {
        world.heard.set(0);
        let Err(first) = world.live(world.root(budget), None, kill, count == 0) else { break };
        if world.heard.get() < kill {
            break;
        }
        let open = open_in(&first);
        let (own, inside) = first.split_once(r#""children":"#).unwrap_or_default();
        if open.iter().any(|(_, path)| !path.is_empty()) && own.matches(RUNNING).count() == 2 {
            // The next process ends before the two calls begin again, as it may with letters that wait.
            let own = own.replace(RUNNING, r#""status":"ready","announced":true"#);
            let own = own.replace(r#""ready":[]"#, r#""ready":[0,1]"#);
            let second = [&own, r#""children":"#, inside].concat();
            assert_eq!(open_in(&second), open, "after event {kill}");
            count += 1;
        }
    }
    assert!(count > 3, "{count}");
}

#[test]
fn no_more_calls_begin_than_a_budget_allows_however_often_it_sleeps() {
    for calls in [3, 5, 7] {
        let budget = Budget { tool_calls: Some(calls), ..Budget::default() };
        sleep_everywhere(budget, |world, result, place| {
            let begun = world.begun.borrow().len();
            assert_eq!(begun, usize::try_from(calls).unwrap(), "{place}");
            let done = world.done.borrow();
            let once: BTreeSet<&String> = done.iter().collect();
            assert_eq!(once.len(), done.len(), "{place}");
            assert!(result.error.is_none(), "{place}");
        });
    }
}
