//! Random worlds for durable runs: models that answer from what they are shown, so that they may be asked again; tools that
//! count their beginnings; people who decide, steer and abort from outside.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use futures::stream::{Stream, StreamExt, unfold};
use rig::clock::Clock;
use rig::dice::Dice;
use rig::grammar::Grammar;
use rig::host::{Port, model, spec};
use turnwheel::agent::subagent::SubAgent;
use turnwheel::approval::{ApprovalGate, ToolDecision};
use turnwheel::config::{Model, SteeringTime};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::json::{ToJson, Value};
use turnwheel::message::{AgentMessage, LlmMessage, MessageStopReason, Usage};
use turnwheel::policy::Transform;
use turnwheel::retry::RetryConfig;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tape::Recorder;
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome, ToolSpec, tool};
use turnwheel::{Agent, AgentEvent, AgentLoopConfig, AgentRunContext, CancelToken};

use super::engines::{Engine, Life};

/// What a world is like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) steers: bool,
    pub(crate) aborts: bool,
    pub(crate) waits: bool,
    pub(crate) sleeps: bool,
    /// How many bytes a record may have.
    pub(crate) max_bytes: Option<usize>,
}

/// What outlives the lives of a run.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) clock: Clock,
    pub(crate) features: Features,
    pub(crate) begins: RefCell<BTreeMap<String, u32>>,
    failed: RefCell<BTreeSet<String>>,
    turns: Vec<Vec<&'static str>>,
    /// After how many stored steps people write a letter, or lose patience.
    letters: RefCell<Vec<usize>>,
    abort: Cell<Option<usize>>,
    has: BTreeMap<&'static str, bool>,
}

const KINDS: [(&str, u64); 13] = [
    ("failures", 33),
    ("fallback", 20),
    ("approvals", 50),
    ("approver", 30),
    ("hooks", 25),
    ("transform", 25),
    ("queue", 25),
    ("children", 50),
    ("narrow", 25),
    ("prefix", 33),
    ("timeouts", 25),
    ("keys", 25),
    ("elsewhere", 40),
];

impl World {
    pub(crate) fn new(seed: u64, features: Features) -> Rc<Self> {
        let dice = Dice::new(seed);
        let has: BTreeMap<_, _> = KINDS.iter().map(|(name, chance)| (*name, dice.chance(*chance))).collect();
        let names = ["pay", "look", "slow", if has["children"] { "research" } else { "look" }];
        let turns =
            (0..2 + dice.below(2)).map(|_| (0..1 + dice.below(3)).map(|_| *dice.pick(&names)).collect());
        let turns = turns.collect();
        let letters = if features.steers { vec![3 + dice.below(8), 8 + dice.below(12)] } else { Vec::new() };
        let abort = features.aborts.then(|| 2 + dice.below(14));
        Rc::new(World {
            seed,
            clock: Clock::default(),
            features,
            begins: RefCell::default(),
            failed: RefCell::default(),
            turns,
            letters: RefCell::new(letters),
            abort: Cell::new(abort),
            has,
            dice,
        })
    }

    fn has(&self, what: &str) -> bool {
        self.has[what]
    }

    fn pause(&self, most: usize) -> rig::clock::Pause {
        self.clock.pause(u64::try_from(self.dice.below(most)).unwrap())
    }

    fn answer(&self, request: &ModelRequest, level: usize, which: usize) -> Vec<E> {
        let turn =
            request.messages.iter().filter(|message| matches!(message, LlmMessage::Assistant(_))).count();
        if self.has("fallback") && which == 0 && turn == 1 {
            let error =
                ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Throttled, "no more of it") };
            return vec![E::Error(error)];
        }
        let key = format!("{level} {turn} {which} {}", request.messages.len());
        let is_seed = self.seed % 3 == u64::try_from(turn).unwrap();
        if self.has("failures") && is_seed && self.failed.borrow_mut().insert(key) {
            let index = 0;
            let delta = "half".to_owned();
            let error = E::Error(ErrorInfo::new(ErrorKind::Throttled, "slowly"));
            return vec![E::Start, E::TextStart { index }, E::TextDelta { index, delta }, error];
        }
        let plan = match level {
            0 => self.turns.get(turn).cloned(),
            1 if turn == 0 && self.seed % 2 == 1 => Some(vec!["look", "research"]),
            _ if turn == 0 => Some(vec!["pay", "slow"]),
            _ => None,
        };
        let mut events = vec![E::Start];
        let mut index = 0;
        if plan.is_none() || turn % 2 == 1 {
            events.push(E::TextStart { index });
            events.push(E::TextDelta { index, delta: format!("turn {turn}") });
            events.push(E::TextDelta { index, delta: " is over".to_owned() });
            events.push(E::TextEnd { index, signature: Some("signed".to_owned()) });
            index += 1;
        }
        let plan = plan.unwrap_or_default();
        for (place, name) in plan.iter().enumerate() {
            let (call_id, tool_name) = (format!("c{}", place % 2), (*name).to_owned());
            events.push(E::ToolCallStart { index, call_id, tool_name });
            events.push(E::ToolCallDelta {
                index,
                delta: format!("{{\"turn\":{turn},\"prompt\":\"p{place}\"}}"),
            });
            events.push(E::ToolCallEnd { index, metadata: None });
            index += 1;
        }
        let stop_reason = if plan.is_empty() { MessageStopReason::Stop } else { MessageStopReason::ToolUse };
        let usage = Usage { input: 10, output: 5, total: 15, ..Usage::default() };
        events.push(E::Done { stop_reason, usage: Some(usage) });
        events
    }

    fn model(self: &Rc<Self>, level: usize, which: usize) -> Model {
        let world = self.clone();
        model(&format!("m{which}"), move |request, _| {
            let events = world.answer(&request, level, which).into_iter();
            unfold((events, world.clone()), |(mut events, world)| async move {
                let event = events.next()?;
                if world.dice.chance(40) {
                    world.pause(8).await;
                }
                Some((event, (events, world)))
            })
            .boxed_local()
        })
    }

    async fn run_tool(self: Rc<Self>, name: &'static str, call: ToolContext) -> ToolOutcome {
        let key = format!("{name} {}/{}", call.run_id, call.call_id);
        *self.begins.borrow_mut().entry(key).or_insert(0) += 1;
        if self.dice.chance(20) {
            call.updates.text("working");
        }
        self.pause(10).await;
        let count = call.state.get(name).and_then(|count| count.as_u64()).unwrap_or_default();
        call.state.set(name, Value::from(count + 1));
        self.pause(if name == "slow" { 90 } else { 10 }).await;
        if call.call_id.ends_with('2') {
            return ToolOutcome::Failed(format!("{name} failed"));
        }
        ToolOutcome::Completed(AgentToolResult::text(format!("{name} {}", call.arguments.as_str())))
    }

    fn tool(self: &Rc<Self>, name: &'static str, spec: ToolSpec) -> Rc<dyn AgentTool> {
        let world = self.clone();
        tool(spec, move |call| world.clone().run_tool(name, call))
    }

    fn tools(self: &Rc<Self>, level: usize) -> Vec<Rc<dyn AgentTool>> {
        let asks = self.has("approvals") && level == 0;
        let requires_approval = if asks { ApprovalNeed::Always } else { ApprovalNeed::Never };
        let is_external = self.features.waits && self.has("elsewhere");
        let mut tools = vec![
            self.tool("pay", ToolSpec { requires_approval, ..spec("pay") }),
            self.tool("look", ToolSpec { idempotent: true, is_external, ..spec("look") }),
        ];
        let timeout_ms = self.has("timeouts").then_some(60);
        tools.push(self.tool("slow", ToolSpec { timeout_ms, ..spec("slow") }));
        if self.has("children") && level < 2 {
            let world = self.clone();
            tools.push(Rc::new(SubAgent::new("research", "", move || world.config(level + 1))));
        }
        tools
    }

    fn config(self: &Rc<Self>, level: usize) -> AgentLoopConfig {
        let mut config = AgentLoopConfig::new(self.model(level, 0), Rc::new(self.clock.clone()));
        config.set_models(vec![self.model(level, 0), self.model(level, 1)]);
        config.set_tools(self.tools(level)).unwrap();
        config.rules.retry = Rc::new(RetryConfig { initial_backoff_ms: 20, ..RetryConfig::default() });
        config.rules.max_concurrent_tools = self.has("narrow").then_some(2);
        if self.has("prefix") {
            config.rules.gate = ApprovalGate::Prefix;
        }
        if self.has("timeouts") {
            config.rules.timeouts.first_chunk = Some(50);
            config.rules.timeouts.total = self.seed.is_multiple_of(8).then_some(400);
        }
        if level > 0 {
            return config;
        }
        if self.has("approver") && !self.features.waits {
            let world = self.clone();
            config.set_approver(Rc::new(Port(move |_| {
                let pause = world.pause(40);
                async move {
                    pause.await;
                    Ok(ToolDecision::Accept)
                }
            })));
        }
        self.set_ports(&mut config);
        config
    }

    fn set_ports(self: &Rc<Self>, config: &mut AgentLoopConfig) {
        let (one, two, three, four) = (self.clone(), self.clone(), self.clone(), self.clone());
        if self.has("hooks") {
            config.set_hooks(vec![Rc::new(Port(move |_| {
                let pause = one.pause(8);
                async move {
                    pause.await;
                    Ok(())
                }
            }))]);
        }
        if self.has("transform") {
            config.ports.transformer = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>, _| {
                let pause = two.pause(8);
                async move {
                    pause.await;
                    Ok(Transform::View(messages.to_vec()))
                }
            })));
        }
        if self.has("queue") {
            config.set_message_provider(Rc::new(Port(move |_| {
                let pause = three.pause(8);
                async move {
                    pause.await;
                    Vec::new()
                }
            })));
        }
        if self.has("keys") {
            config.ports.keys = Some(Rc::new(Port(move |_: &str| {
                let pause = four.pause(4);
                async move {
                    pause.await;
                    Ok(Some("key".into()))
                }
            })));
        }
    }

    /// Lives the run to its end, or until the life is over.
    pub(crate) fn live(self: &Rc<Self>, life: &Rc<Life>) -> Lived {
        let mut config = self.config(0);
        config.ports.steps = Some(Rc::new(Engine(life.clone())));
        let agent = Agent::new(config, Vec::new());
        // A tape costs more than all the rest.
        let recorder = self.seed.is_multiple_of(16).then(|| Recorder::new(0));
        recorder.iter().for_each(|recorder| agent.record(recorder).unwrap());
        let who = AgentRunContext::new(&format!("run-{}", self.seed), "session");
        let mut run = agent.prompt(vec!["Go on.".into()], who, CancelToken::new()).unwrap();
        self.people(&agent, life, 2_000, BTreeSet::new());
        let mut events = Vec::new();
        let died = loop {
            let over = life.clone();
            let next = poll_fn(|cx| {
                let polled = Pin::new(&mut run).poll_next(cx);
                if over.is_over.get() { Poll::Ready(Err(())) } else { polled.map(Ok) }
            });
            match self.clock.run(next) {
                Ok(Ok(Some(event))) => events.push(event),
                Ok(Ok(None)) => break false,
                Ok(Err(())) => break true,
                Err(_) => panic!("seed {} hangs after {:?}", self.seed, names(&events)),
            }
        };
        if !died {
            let mut grammar = Grammar::default();
            events.iter().for_each(|event| grammar.take(event));
            let faults = grammar.finish(&agent.messages());
            let why = run.result().and_then(|result| result.error.clone());
            assert!(faults.is_empty(), "seed {}: {faults:?}, {why:?}", self.seed);
        }
        let error = run.result().and_then(|result| result.error.clone());
        let messages = agent.messages().iter().map(|message| message.to_json()).collect();
        drop(run);
        recorder.iter().for_each(Recorder::stop);
        // Nothing of this life goes on.
        self.clock.clear();
        self.clock.at(self.clock.elapsed() + 5, || {});
        self.clock.advance();
        Lived {
            died,
            messages,
            events,
            tape: recorder.map(|recorder| recorder.to_text()),
            error: error.map(|error| error.to_string()),
        }
    }

    /// What people do while a life lasts.
    fn people(self: &Rc<Self>, agent: &Agent, life: &Rc<Life>, left: u32, mut decided: BTreeSet<String>) {
        let (world, agent, life) = (self.clone(), agent.clone(), life.clone());
        let after = self.clock.elapsed() + 5 + u64::try_from(life.dice.below(20)).unwrap();
        self.clock.at(after, move || {
            if life.is_left_alone || life.is_over.get() || !agent.is_running() || left == 0 {
                return;
            }
            if !agent.is_replaying() {
                world.act(&agent, &life, &mut decided);
            }
            world.people(&agent, &life, left - 1, decided);
        });
    }

    fn act(&self, agent: &Agent, life: &Life, decided: &mut BTreeSet<String>) {
        if !life.waits {
            for question in agent.pending_questions() {
                if decided.insert(question.id.clone()) {
                    let accepts = !question.call_id().unwrap_or_default().ends_with('1');
                    let no = ToolDecision::Reject { reason: Some("no".to_owned()) };
                    agent.resolve(&question.id, if accepts { ToolDecision::Accept } else { no });
                }
            }
        }
        let stored = life.records.stored.borrow().len();
        let is_due = self.letters.borrow().first().is_some_and(|due| *due <= stored);
        if is_due {
            let due = self.letters.borrow_mut().remove(0);
            let when = [SteeringTime::AfterBatch, SteeringTime::AfterTool, SteeringTime::Immediate];
            drop(agent.steer_when(format!("letter {due}").as_str().into(), *self.dice.pick(&when)));
        }
        if self.abort.get().is_some_and(|due| due <= stored) {
            agent.abort("somebody had enough");
        }
    }
}

/// What a life has seen.
pub(crate) struct Lived {
    pub(crate) died: bool,
    pub(crate) messages: Vec<String>,
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) tape: Option<String>,
    pub(crate) error: Option<String>,
}

fn names(events: &[AgentEvent]) -> Vec<&'static str> {
    events.iter().map(AgentEvent::name).collect()
}

impl Lived {
    /// The events that come in every life: without pieces and progress. What was shown of the answer of a sub-agent that was
    /// cut is taken back, and so no part.
    pub(crate) fn whole(&self) -> Vec<String> {
        let pieces = ["message_update", "tool_execution_update", "message_reset"];
        let is_piece = |event: &&AgentEvent| match event {
            AgentEvent::MessageUpdate(_) | AgentEvent::ToolExecutionUpdate { .. } => true,
            AgentEvent::MessageReset { reason } => reason == "the provider began the answer anew",
            AgentEvent::SubagentEvent { event, .. } => {
                pieces.iter().any(|name| event.as_str().starts_with(&format!("{{\"type\":\"{name}\"")))
            }
            _ => false,
        };
        self.events.iter().filter(|event| !is_piece(event)).map(|event| event.to_json()).collect()
    }
}
