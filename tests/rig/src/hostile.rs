//! The whole engine, including driver and agent, with a port of the host wherever there is one, all of
//! them random. Every call of the host is counted, so that something can happen in any of them: an
//! abort, a message, a panic.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::pending;
use std::panic::resume_unwind;
use std::rc::Rc;

use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{StreamExt, unfold};
use turnwheel::agent::{Agent, Receipt};
use turnwheel::approval::{ApprovalGate, ApprovalMode, ToolDecision};
use turnwheel::cancel::CancelToken;
use turnwheel::config::{
    AgentLoopConfig, CacheHints, InFlight, Model, QueueMode, SteeringTime, Timeouts, ToolExecutionPolicy,
};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{AgentEvent, CompactionReport, RunStopReason};
use turnwheel::json::{RawJson, Value};
use turnwheel::machine::OUTPUT_TOOL;
use turnwheel::message::{AgentMessage, AssistantMessage, ContentBlock, MessageStopReason, text_of};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::ports::{Compaction, HookCall, HookStages, Timer};
use turnwheel::retry::{RetryConfig, RetryStrategy, RetryVerdict};
use turnwheel::stream::AssistantMessageEvent as E;
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome, Transfer};

use crate::clock::{Clock, Hang};
use crate::dice::Dice;
use crate::grammar::Grammar;
use crate::host::{self, Port, StagedHook};

/// What happens inside a call of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The run is stopped.
    Abort,
    /// The run is steered.
    Steer,
    /// A follow-up is queued.
    FollowUp,
    /// The host's code panics.
    Panic,
}

/// The outcome of a world.
#[derive(Default)]
pub struct Played {
    /// The faults found.
    pub faults: Vec<String>,
    /// The calls of the host, in order.
    pub host_calls: Vec<&'static str>,
    /// The names of all events.
    pub events: Vec<&'static str>,
}

/// Every kind of call of the host.
pub const CALLS: [&str; 37] = [
    "listener",
    "pre_turn",
    "pre_dispatch",
    "post_turn",
    "post_loop",
    "partition",
    "retry",
    "random",
    "validator",
    "dynamic_system_prompt",
    "convert_to_llm",
    "transformer",
    "result_texts",
    "requires_approval",
    "approver",
    "approver answers",
    "async transformer",
    "async transformer answers",
    "compaction",
    "compaction answers",
    "key",
    "key answers",
    "steering poll",
    "follow-up poll",
    "poll answers",
    "before_inference",
    "after_inference",
    "before_tool_execution",
    "after_tool_execution",
    "on_error",
    "hook answers",
    "model",
    "model speaks",
    "tool",
    "tool answers",
    "sleep",
    "sleep is over",
];

/// The message that is steered or queued.
const QUEUED_TEXT: &str = "a letter";

/// Plays the world of a seed. With `at`, something happens inside the host call of
/// that number, counted from 0.
pub fn play(seed: u64, at: Option<(usize, Act)>) -> Played {
    let world = World::new(seed, at);
    let agent = Agent::new(world.config(), history(&world.dice));
    *world.agent.borrow_mut() = Some(agent.clone());
    let recorder = world.clone();
    agent.subscribe(move |event| {
        recorder.record(event);
        recorder.host_call("listener");
    });
    for minute in 1..=20 {
        // An abort every minute ends whatever would wait for ever.
        let stopped = agent.clone();
        world.clock.at(minute * 60_000, move || stopped.abort("it takes too long"));
    }
    world.run("go");
    if world.dice.chance(30) {
        world.run("again");
    }
    world.finish(&agent)
}

struct World {
    dice: Dice,
    clock: Clock,
    at: Option<(usize, Act)>,
    agent: RefCell<Option<Agent>>,
    receipt: RefCell<Option<futures::channel::oneshot::Receiver<Receipt>>>,
    /// When the run was stopped, by the clock.
    stopped: Cell<Option<u64>>,
    turns_since_stop: Cell<usize>,
    grammar: RefCell<Grammar>,
    played: RefCell<Played>,
    /// The texts that the runs appended.
    appended: RefCell<Vec<String>>,
    scripts: RefCell<usize>,
}

impl World {
    fn new(seed: u64, at: Option<(usize, Act)>) -> Rc<Self> {
        Rc::new(World {
            dice: Dice::new(seed),
            clock: Clock::default(),
            at,
            agent: RefCell::default(),
            receipt: RefCell::default(),
            stopped: Cell::default(),
            turns_since_stop: Cell::default(),
            grammar: RefCell::default(),
            played: RefCell::default(),
            appended: RefCell::default(),
            scripts: RefCell::default(),
        })
    }

    fn fault(&self, text: impl Into<String>) {
        self.played.borrow_mut().faults.push(text.into());
    }

    /// Counts a call of the host, and lets something happen in it.
    fn host_call(&self, what: &'static str) {
        let n = {
            let mut played = self.played.borrow_mut();
            played.host_calls.push(what);
            played.host_calls.len() - 1
        };
        if self.stopped.get().is_some() && BEGINNINGS.contains(&what) {
            self.fault(format!("{what} begins after the abort"));
        }
        let Some((_, act)) = self.at.filter(|(at, _)| *at == n) else { return };
        let Some(agent) = self.agent.borrow().clone() else { return };
        match act {
            Act::Abort => {
                if agent.is_running() {
                    self.stopped.set(Some(self.clock.elapsed()));
                }
                agent.abort("somebody stopped it");
            }
            Act::Steer => *self.receipt.borrow_mut() = Some(agent.steer(AgentMessage::user(QUEUED_TEXT))),
            Act::FollowUp => {
                *self.receipt.borrow_mut() = Some(agent.follow_up(AgentMessage::user(QUEUED_TEXT)))
            }
            Act::Panic => resume_unwind(Box::new("the host crashed".to_owned())),
        }
    }

    fn record(&self, event: &AgentEvent) {
        self.played.borrow_mut().events.push(event.name());
        self.grammar.borrow_mut().take(event);
        if let AgentEvent::AgentEnd { messages, stop_reason, .. } = event {
            let texts = messages.iter().filter_map(|message| match message {
                AgentMessage::User(user) => Some(text_of(&user.content)),
                _ => None,
            });
            self.appended.borrow_mut().extend(texts);
            if let Some(at) = self.stopped.take() {
                if self.clock.elapsed() != at {
                    self.fault(format!("aborted at {at}, ended at {}", self.clock.elapsed()));
                }
                if *stop_reason == RunStopReason::Completed {
                    self.fault("it completes although it was aborted");
                }
            }
        }
        if self.stopped.get().is_none() {
            return self.turns_since_stop.set(0);
        }
        match event {
            AgentEvent::TurnStart { .. } => {
                self.turns_since_stop.set(self.turns_since_stop.get() + 1);
                if self.turns_since_stop.get() > 1 {
                    self.fault("two turns after the abort");
                }
            }
            AgentEvent::ToolExecutionStart { tool_name, .. } if tool_name != OUTPUT_TOOL => {
                self.fault("a tool starts after the abort");
            }
            AgentEvent::MessageUpdate(_) => self.fault("more of the answer is shown after the abort"),
            _ => {}
        }
    }

    fn run(self: &Rc<Self>, text: &str) {
        let Some(agent) = self.agent.borrow().clone() else { return };
        let prompts = vec![AgentMessage::user(text)];
        let mut stream = match agent.prompt(prompts, host::context(), CancelToken::new()) {
            Ok(stream) => stream,
            Err(error) => return self.fault(format!("it cannot be prompted: {error}")),
        };
        // Now and then a run is dropped before its end.
        let mut left = if self.dice.chance(4) { 1 + self.dice.below(30) } else { usize::MAX };
        while left > 0 {
            left -= 1;
            match self.clock.run(stream.next()) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(Hang) => {
                    self.fault("it hangs");
                    break;
                }
            }
        }
        drop(stream);
        self.stopped.set(None);
        if agent.is_running() {
            self.fault("the agent still runs");
        }
    }

    fn finish(&self, agent: &Agent) -> Played {
        let grammar = std::mem::take(&mut *self.grammar.borrow_mut());
        let panicked_listener = self.at.is_some_and(|(at, act)| {
            act == Act::Panic && self.played.borrow().host_calls.get(at) == Some(&"listener")
        });
        // A listener that was removed did not see the end.
        let faults = grammar.finish(&agent.messages());
        if !panicked_listener {
            faults.into_iter().for_each(|fault| self.fault(fault));
        }
        if let Some(receipt) = self.receipt.take() {
            self.check_receipt(agent, receipt, panicked_listener);
        }
        self.agent.take();
        self.clock.clear();
        self.played.take()
    }

    /// A letter is delivered once, or waits until the queues are cleared.
    fn check_receipt(
        &self,
        agent: &Agent,
        mut receipt: futures::channel::oneshot::Receiver<Receipt>,
        is_listener_removed: bool,
    ) {
        let mut delivery = receipt.try_recv().ok().flatten();
        let delivered = self.appended.borrow().iter().filter(|text| *text == QUEUED_TEXT).count();
        if delivery.is_none() {
            agent.clear_queues();
            delivery = receipt.try_recv().ok().flatten();
        }
        let times = match delivery {
            Some(Receipt::Delivered { .. }) => 1,
            Some(Receipt::Cleared) => 0,
            None => return self.fault("the letter is lost"),
        };
        if !is_listener_removed && delivered != times {
            self.fault(format!("the letter stands {delivered} times in the history and is {delivery:?}"));
        }
    }

    /// Lets the host take its time, or wait for ever.
    fn answer_later<T: 'static>(
        self: &Rc<Self>,
        what: &'static str,
        then: &'static str,
        answer: impl FnOnce(&World) -> T + 'static,
    ) -> LocalBoxFuture<'static, T> {
        self.host_call(what);
        let (world, pause) = (self.clone(), self.dice.below(60));
        async move {
            match pause {
                0 => pending().await,
                1..20 => world.clock.pause(pause as u64).await,
                _ => {}
            }
            world.host_call(then);
            answer(&world)
        }
        .boxed_local()
    }

    fn config(self: &Rc<Self>) -> AgentLoopConfig {
        let dice = &self.dice;
        let mut config =
            AgentLoopConfig::new(self.model("m"), Rc::new(CountingTimer(self.clone())) as Rc<dyn Timer>);
        config.set_models((0..1 + dice.below(3)).map(|n| self.model(["m", "n", "o"][n])).collect());
        config.offer_tools(["t", "u", "asks", "fatal"].iter().map(|name| self.tool(name)).collect());
        self.set_rules(&mut config);
        self.set_policies(&mut config);
        self.set_functions(&mut config);
        self.set_ports(&mut config);
        config
    }

    fn set_rules(self: &Rc<Self>, config: &mut AgentLoopConfig) {
        let (dice, rules) = (&self.dice, &mut config.rules);
        let limit = |chance| dice.chance(chance).then(|| 5 + 10 * dice.below(10) as u64);
        rules.max_turns = Some(1 + dice.below(6) as u32);
        rules.approval.mode =
            *dice.pick(&[ApprovalMode::Smart, ApprovalMode::Enabled, ApprovalMode::Bypassed]);
        rules.max_concurrent_tools = dice.chance(20).then(|| 1 + dice.below(2));
        rules.gate = *dice.pick(&[ApprovalGate::Batch, ApprovalGate::Prefix]);
        rules.steering.when = *dice.pick(&SteeringTime::ALL);
        rules.steering.in_flight = *dice.pick(&[InFlight::Cancel, InFlight::Finish]);
        rules.steering.delivery = *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]);
        rules.steering.before_first_call = dice.chance(20);
        rules.follow_up = *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]);
        rules.timeouts = Timeouts {
            first_chunk: limit(15),
            chunk: limit(15),
            tool: limit(15),
            total: limit(5),
            model: None,
        };
        rules.max_recoveries_per_turn = if dice.chance(20) { 0 } else { 1 + dice.below(2) as u32 };
        rules.output = dice.chance(10).then(RawJson::empty_object);
        rules.output_retries = 1;
        rules.cache = dice.chance(15).then(|| CacheHints::new(500, 3, 2));
        rules.include_requests = dice.chance(15);
        let this = self.clone();
        rules.tool_execution = match dice.below(5) {
            0 => ToolExecutionPolicy::Sequential,
            1 => ToolExecutionPolicy::Priority,
            2 => ToolExecutionPolicy::Custom(Rc::new(move |calls, _| {
                this.host_call("partition");
                Ok(match this.dice.below(4) {
                    0 => vec![vec![0], vec![0]],
                    1 => vec![(0..calls.len()).rev().collect()],
                    _ => (0..calls.len()).map(|at| vec![at]).collect(),
                })
            })),
            _ => ToolExecutionPolicy::Concurrent,
        };
    }

    fn set_policies(self: &Rc<Self>, config: &mut AgentLoopConfig) {
        let rules = &mut config.rules;
        let verdict = |world: &Rc<World>, what: &'static str| {
            let world = world.clone();
            move || {
                world.host_call(what);
                match world.dice.below(30) {
                    0 => Ok(Verdict::Stop("enough".to_owned())),
                    1 => Ok(Verdict::Inject(vec![AgentMessage::user("a note")])),
                    2 => Err("no policy".to_owned()),
                    _ => Ok(Verdict::Continue),
                }
            }
        };
        if self.dice.chance(50) {
            let decide = verdict(self, "pre_turn");
            rules.pre_turn.push(Rc::new(move |_: &PolicyContext<'_>| decide()));
        }
        if self.dice.chance(50) {
            let decide = verdict(self, "post_loop");
            rules.post_loop.push(Rc::new(move |_: &PolicyContext<'_>| decide()));
        }
        if self.dice.chance(50) {
            let (decide, world) = (verdict(self, "post_turn"), self.clone());
            rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
                if world.dice.chance(10) {
                    let mut other: AssistantMessage = (**turn.message).clone();
                    other
                        .content
                        .retain(|block| matches!(block, ContentBlock::ToolCall(_)) || world.dice.chance(50));
                    return decide().map(|_| Verdict::Inject(vec![other.into()]));
                }
                decide()
            }));
        }
        if self.dice.chance(50) {
            let world = self.clone();
            rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
                call.arguments = raw("{\"n\":2}");
                world.host_call("pre_dispatch");
                Ok(match world.dice.below(25) {
                    0 => DispatchVerdict::Stop("enough".to_owned()),
                    1 => DispatchVerdict::Skip("not this one".to_owned()),
                    2 => DispatchVerdict::Inject(vec![AgentMessage::user("a note")]),
                    3 => return Err("no policy".to_owned()),
                    _ => DispatchVerdict::Continue,
                })
            }));
        }
    }

    fn set_functions(self: &Rc<Self>, config: &mut AgentLoopConfig) {
        let (dice, rules) = (&self.dice, &mut config.rules);
        rules.retry = Rc::new(RandomRetry(self.clone()));
        let world = self.clone();
        rules.random = Rc::new(move || {
            world.host_call("random");
            0
        });
        if dice.chance(30) {
            let world = self.clone();
            rules.validator = Some(Rc::new(move |_, _, _| {
                world.host_call("validator");
                if world.dice.chance(10) { Err("does not fit".to_owned()) } else { Ok(()) }
            }));
        }
        if dice.chance(30) {
            let world = self.clone();
            rules.dynamic_system_prompt = Some(Rc::new(move |_| {
                world.host_call("dynamic_system_prompt");
                if world.dice.chance(5) { Err("no prompt".to_owned()) } else { Ok("now".to_owned()) }
            }));
        }
        if dice.chance(30) {
            let world = self.clone();
            rules.convert_to_llm = Some(Rc::new(move |message, _| {
                world.host_call("convert_to_llm");
                Ok(message.as_llm().filter(|_| !world.dice.chance(3)))
            }));
        }
        if dice.chance(30) {
            let world = self.clone();
            rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
                world.host_call("transformer");
                Ok(transform(&world.dice, messages, overflow))
            }));
        }
        if dice.chance(30) {
            let world = self.clone();
            rules.result_texts = Some(Rc::new(move |_, _, _, _| {
                world.host_call("result_texts");
                Some("mine".to_owned())
            }));
        }
    }

    fn set_ports(self: &Rc<Self>, config: &mut AgentLoopConfig) {
        let dice = &self.dice;
        if dice.chance(50) {
            let world = self.clone();
            config.set_approver(Rc::new(Port(move |_| {
                world.answer_later("approver", "approver answers", |world| decision(&world.dice))
            })));
        }
        if dice.chance(30) {
            let world = self.clone();
            config.ports.transformer = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>, overflow| {
                let answer = move |world: &World| Ok(transform(&world.dice, &messages, overflow));
                world.answer_later("async transformer", "async transformer answers", answer)
            })));
        }
        if dice.chance(80) {
            let world = self.clone();
            config.ports.compaction = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>| {
                let answer = move |world: &World| compact(&world.dice, &messages);
                world.answer_later("compaction", "compaction answers", answer)
            })));
        }
        if dice.chance(30) {
            let world = self.clone();
            config.ports.keys = Some(Rc::new(Port(move |_: &str| {
                world.answer_later("key", "key answers", |world| {
                    if world.dice.chance(5) { Err("no key".to_owned()) } else { Ok(None) }
                })
            })));
        }
        if dice.chance(30) {
            let world = self.clone();
            config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
                let what = if follow_up { "follow-up poll" } else { "steering poll" };
                world.answer_later(what, "poll answers", |world| {
                    let some = world.dice.chance(10);
                    if some { vec![AgentMessage::user("polled")] } else { Vec::new() }
                })
            })));
        }
        let hooks = (0..dice.below(3)).map(|_| {
            let world = self.clone();
            let stages = HookStages {
                before_inference: dice.chance(30),
                after_inference: dice.chance(30),
                before_tool_execution: dice.chance(30),
                after_tool_execution: dice.chance(30),
                on_error: dice.chance(50),
            };
            Rc::new(StagedHook(stages, move |call: HookCall| {
                world.answer_later(call.stage(), "hook answers", |world| {
                    if world.dice.chance(3) { Err("the hook failed".to_owned()) } else { Ok(()) }
                })
            })) as Rc<dyn turnwheel::ports::AgentHook>
        });
        config.set_hooks(hooks.collect());
    }

    fn model(self: &Rc<Self>, id: &str) -> Model {
        let world = self.clone();
        let aside = self.dice.aside();
        let context_window = aside.chance(25).then(|| u64::try_from(aside.below(40)).unwrap_or(0));
        let model = host::model(id, move |_, _| {
            world.host_call("model");
            *world.scripts.borrow_mut() += 1;
            let script = script(&world.dice, *world.scripts.borrow());
            unfold((world.clone(), script), |(world, mut script)| async move {
                loop {
                    match script.pop_front()? {
                        ScriptStep::Event(event) => {
                            world.host_call("model speaks");
                            return Some((event, (world, script)));
                        }
                        ScriptStep::Pause(ms) => world.clock.pause(ms).await,
                        ScriptStep::Silence => pending().await,
                    }
                }
            })
            .boxed_local()
        });
        Model { context_window, ..model }
    }

    fn tool(self: &Rc<Self>, name: &str) -> Rc<dyn AgentTool> {
        let (dice, mut spec) = (&self.dice, host::spec(name));
        spec.fatal = name == "fatal";
        spec.priority = dice.below(3) as i32;
        spec.timeout_ms = dice.chance(10).then_some(30);
        spec.max_result_bytes = dice.chance(10).then_some(3);
        if name == "asks" {
            let world = self.clone();
            spec.requires_approval = ApprovalNeed::Depends(Rc::new(move |_, _| {
                world.host_call("requires_approval");
                Ok(true)
            }));
        }
        let world = self.clone();
        host::tool(spec, move |context| world.clone().work(context))
    }

    async fn work(self: Rc<Self>, context: ToolContext) -> ToolOutcome {
        self.host_call("tool");
        let dice = self.dice.clone();
        if dice.chance(20) {
            context.updates.text("working");
        }
        match dice.below(30) {
            0 => pending().await,
            1 => context.cancel.cancelled().await,
            2..15 => self.clock.pause(dice.below(60) as u64).await,
            _ => {}
        }
        self.host_call("tool answers");
        if dice.chance(20) {
            context.state.set("seen", Value::from("yes"));
        }
        outcome(&dice)
    }
}

/// Calls of the host that begin something. None may come after an abort, except for tools that were
/// announced before. Hooks that run after something are called all the same.
const BEGINNINGS: [&str; 10] = [
    "model",
    "key",
    "approver",
    "async transformer",
    "compaction",
    "steering poll",
    "follow-up poll",
    "before_inference",
    "before_tool_execution",
    "sleep",
];

/// A clock whose timers count as calls of the host.
struct CountingTimer(Rc<World>);

impl Timer for CountingTimer {
    fn now(&self) -> u64 {
        self.0.clock.now()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        self.0.host_call("sleep");
        let world = self.0.clone();
        async move {
            world.clock.pause(ms).await;
            world.host_call("sleep is over");
        }
        .boxed_local()
    }
}

struct RandomRetry(Rc<World>);

impl RetryStrategy for RandomRetry {
    fn delay(&self, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        self.0.host_call("retry");
        match self.0.dice.below(10) {
            0 => RetryVerdict::StopNaming(90_000),
            _ => {
                RetryConfig { initial_backoff_ms: 20, ..RetryConfig::default() }.delay(error, attempt, random)
            }
        }
    }
}

enum ScriptStep {
    Event(E),
    Pause(u64),
    Silence,
}

/// Makes up what a model says in one call.
fn script(dice: &Dice, n: usize) -> VecDeque<ScriptStep> {
    let mut script = VecDeque::new();
    // The conversation must come to an end.
    let blocks = if n > 12 { 0 } else { dice.below(5) };
    let mut say = |event| {
        match dice.below(60) {
            0 => script.push_back(ScriptStep::Silence),
            1..4 => script.push_back(ScriptStep::Pause(10 * dice.below(8) as u64)),
            _ => {}
        }
        script.push_back(ScriptStep::Event(event));
    };
    say(E::Start);
    for index in 0..blocks as u32 {
        match dice.below(6) {
            0 => {
                say(E::ThinkingStart { index });
                say(E::ThinkingDelta { index, delta: "hm".to_owned() });
                say(E::ThinkingEnd { index, signature: None, redacted: false });
            }
            1 | 2 => {
                say(E::TextStart { index });
                say(E::TextDelta { index, delta: "so".to_owned() });
                say(E::TextEnd { index, signature: None });
            }
            _ => {
                let call_id = (*dice.pick(&["a", "b", "c", ""])).to_owned();
                let tool_name =
                    (*dice.pick(&["t", "t", "u", "u", "asks", "fatal", "ghost", OUTPUT_TOOL])).to_owned();
                say(E::ToolCallStart { index, call_id, tool_name });
                let delta = (*dice.pick(&["{}", "{}", "{\"n\":1}", "[1]", "oops", ""])).to_owned();
                say(E::ToolCallDelta { index, delta });
                if !dice.chance(5) {
                    say(E::ToolCallEnd { index, metadata: None });
                }
            }
        }
    }
    use MessageStopReason as S;
    match dice.below(20) {
        0 => {}
        1..6 => say(E::Error(error(dice))),
        6 => say(E::Done {
            stop_reason: *dice.pick(&[S::Pause, S::Refusal, S::Error, S::Aborted]),
            usage: None,
        }),
        7 => say(E::Done { stop_reason: S::Length, usage: None }),
        _ => say(E::Done { stop_reason: S::Stop, usage: None }),
    }
    script
}

fn error(dice: &Dice) -> ErrorInfo {
    use ErrorKind as K;
    let kinds = [
        K::Throttled,
        K::Network,
        K::ContextOverflow,
        K::ContextOverflow,
        K::ContextOverflow,
        K::Auth,
        K::Unknown,
        K::Aborted,
    ];
    ErrorInfo::new(*dice.pick(&kinds), "it failed")
}

fn decision(dice: &Dice) -> Result<ToolDecision, String> {
    match dice.below(12) {
        0 => Err("no".to_owned()),
        1 => Ok(ToolDecision::Reject { reason: None }),
        2 => Ok(ToolDecision::AcceptWith(raw("{\"n\":3}"))),
        3 => Ok(ToolDecision::Result {
            content: vec![ContentBlock::text("mine")],
            details: None,
            is_error: false,
        }),
        _ => Ok(ToolDecision::Accept),
    }
}

fn outcome(dice: &Dice) -> ToolOutcome {
    match dice.below(25) {
        0 => ToolOutcome::Failed("it broke".to_owned()),
        1 => ToolOutcome::Cancelled,
        2 => ToolOutcome::Invalid("not like this".to_owned()),
        3 => ToolOutcome::Completed(AgentToolResult {
            transfer: Some(Transfer { to: "other".to_owned(), reason: None }),
            ..AgentToolResult::default()
        }),
        4 => ToolOutcome::Completed(AgentToolResult::error("no")),
        _ => ToolOutcome::Completed(AgentToolResult::text("done")),
    }
}

fn transform(dice: &Dice, messages: &[AgentMessage], overflow: bool) -> Transform {
    match dice.below(if overflow { 4 } else { 12 }) {
        0 => Transform::Replace { messages: shortened(messages), report: Some(CompactionReport::default()) },
        1 => Transform::View(shortened(messages)),
        2 => Transform::Replace { messages: messages.to_vec(), report: None },
        _ => Transform::Unchanged,
    }
}

fn compact(dice: &Dice, messages: &[AgentMessage]) -> Result<Compaction, String> {
    if dice.chance(20) {
        return Err("no room".to_owned());
    }
    Ok(Compaction {
        messages: shortened(messages),
        report: dice.chance(50).then(CompactionReport::default),
        ..Compaction::default()
    })
}

/// Returns the messages from the last user message on.
fn shortened(messages: &[AgentMessage]) -> Vec<AgentMessage> {
    let from = messages.iter().rposition(|message| matches!(message, AgentMessage::User(_)));
    messages.get(from.unwrap_or(0)..).unwrap_or_default().to_vec()
}

fn history(dice: &Dice) -> Vec<AgentMessage> {
    if dice.chance(70) { Vec::new() } else { vec![AgentMessage::user("before")] }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).expect("JSON")
}
