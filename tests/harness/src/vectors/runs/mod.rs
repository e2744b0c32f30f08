//! Whole runs: the case is played on the native engine in virtual time, the events are recorded in the
//! peer's terms, and both records are compared.

mod compare;
mod ports;
mod view;
mod world;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::StreamExt;
use turnwheel::agent::Agent;
use turnwheel::approval::{ApprovalGate, ApprovalOptions, RuleNames};
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, InFlight, QueueMode, SteeringRules, ToolExecutionPolicy};
use turnwheel::driver::{AgentLoopResult, AgentStream};
use turnwheel::json::{FromJson, Map, ToJson, Value};
use turnwheel::message::{
    AgentMessage, ContentBlock, LlmMessage, ToolCallBlock, ToolResultCause, UserMessage,
};
use turnwheel::ports::{AgentHook, AgentRunContext};
use turnwheel::retry::RetryConfig;
use turnwheel::stream::StreamOptions;
use turnwheel::tool::AgentTool;

use super::approval::policy;
use super::{Player, object, text_of};
use ports::{Observer, Reducer, RetryAll, ScriptedCompactor, ScriptedHook, ScriptedTool, offered};
use world::{RUN_ID, RunHandles, SESSION_ID, World, agent_messages};

pub(super) const PLAYER: Player =
    Player { set: "runs", play, meets: compare::meets, meets_recommendation: compare::gives_wanted };

/// A run with more events than this is taken to be endless.
const MAX_POLLS: usize = 5_000;

fn play(input: &Value) -> Result<Value, String> {
    let world = World::new(input);
    let played = play_in(&world);
    world.release();
    let faults = world.faults.take();
    if faults.is_empty() { played } else { Err(faults.join("; ")) }
}

fn play_in(world: &Rc<World>) -> Result<Value, String> {
    let history = initial_messages(world)?;
    let config = config(world)?;
    let agent = Agent::new(config, history);
    let recorder = world.clone();
    let subscription = agent.subscribe(move |event| {
        let entries = recorder.view().of(event);
        entries.into_iter().for_each(|entry| recorder.log(entry));
    });
    let user = match world.input.get("user_message") {
        Some(message) => agent_messages(std::slice::from_ref(message))?,
        None => vec![AgentMessage::user("go")],
    };
    let cancel = CancelToken::new();
    let context = AgentRunContext::new(RUN_ID, SESSION_ID);
    let run = agent.prompt(user, context, cancel.clone()).map_err(|error| error.to_string())?;
    world.attach(RunHandles { agent, inbox: run.inbox(), cancel, subscription });
    world.fire_triggers("before_run");
    let (result, blocked) = drive(world, run)?;
    Ok(record(world, &result, blocked))
}

/// Takes the run to its end. Whenever the engine has nothing left to do, the host does what the case
/// allows; otherwise time advances. If neither is possible, the run is ended. Returns the result, and if
/// the run had to be ended, whether it had a reason to wait.
fn drive(world: &World, mut run: AgentStream) -> Result<(AgentLoopResult, Option<bool>), String> {
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(flag.clone());
    let mut cx = Context::from_waker(&waker);
    let mut blocked = None;
    for _ in 0..MAX_POLLS {
        let mut polled = Poll::Pending;
        while flag.0.swap(false, Ordering::Relaxed) && polled.is_pending() {
            polled = run.poll_next_unpin(&mut cx);
        }
        match polled {
            Poll::Ready(Some(_)) => flag.0.store(true, Ordering::Relaxed),
            Poll::Ready(None) => {
                let result = run.result().cloned();
                return result
                    .map(|result| (result, blocked))
                    .ok_or_else(|| "the run ended in silence".to_owned());
            }
            Poll::Pending if world.run_idle_actions() || world.clock.advance() => {}
            Poll::Pending if blocked.is_none() => blocked = Some(world.unblock()),
            Poll::Pending => return Err("the run goes on waiting although it was cancelled".to_owned()),
        }
    }
    Err("the run does not end".to_owned())
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn record(world: &World, result: &AgentLoopResult, blocked: Option<bool>) -> Value {
    let error = result.error.as_ref().map(turnwheel::error::AgentError::info);
    let failure = world.view().failure(result.stop_reason, error).cloned();
    let metadata = world.metadata.borrow().clone();
    let outcome = match failure {
        Some(error) => {
            let kind = view::kind_of(&error).0;
            let message = view::whole(&error);
            ("err", object([("kind", kind.into()), ("message", message.into())]))
        }
        None => (
            "ok",
            object([
                ("total_turns", u64::from(result.turns).into()),
                ("total_usage", view::tokens(&result.usage)),
                ("stop_reason", view::stop_word(result.stop_reason).into()),
                ("messages", Value::Array(world.history())),
                ("metadata", metadata.clone()),
            ]),
        ),
    };
    let mut record = vec![
        ("trace".to_owned(), Value::Array(world.take_trace())),
        ("outcome".to_owned(), object([outcome])),
        ("metadata_after".to_owned(), metadata),
        ("on_error_called".to_owned(), world.on_error_called.get().into()),
    ];
    if let Some(had_reason) = blocked {
        record.push(("blocked".to_owned(), true.into()));
        record.push(("had_reason_to_wait".to_owned(), had_reason.into()));
    }
    Value::Object(record.into_iter().collect::<Map>())
}

/// The peer keeps the system prompt as the first message, unless the conversation has its own.
fn initial_messages(world: &World) -> Result<Vec<AgentMessage>, String> {
    let given = world.input.get("initial_messages").and_then(Value::as_array).unwrap_or_default();
    let is_system = |message: &Value| message.get("role").and_then(Value::as_str) == Some("system");
    let prompt = world.config("system_prompt").and_then(Value::as_str).unwrap_or_default();
    if !prompt.is_empty() && !given.iter().any(is_system) {
        *world.system.borrow_mut() = Some(object([("role", "system".into()), ("content", prompt.into())]));
    }
    agent_messages(given)
}

fn config(world: &Rc<World>) -> Result<AgentLoopConfig, String> {
    let number = |key: &str, default: u64| world.config(key).and_then(Value::as_u64).unwrap_or(default);
    let mut config = AgentLoopConfig::new(world.model(), Rc::new(world.clock.clone()));
    config.offer_tools(tools(world)?);
    let hooks = world.input.get("hooks").and_then(Value::as_array).unwrap_or_default();
    let mut hooks: Vec<Rc<dyn AgentHook>> = hooks
        .iter()
        .filter_map(Value::as_str)
        .map(|name| {
            Rc::new(ScriptedHook { world: world.clone(), name: name.to_owned() }) as Rc<dyn AgentHook>
        })
        .collect();
    hooks.push(Rc::new(Observer(world.clone())));
    config.set_hooks(hooks);
    config.ports.compaction = Some(Rc::new(ScriptedCompactor(world.clone())));
    let rules = &mut config.rules;
    rules.schemas = offered(world).iter().map(|tool| tool.spec().schema.clone()).collect();
    rules.max_turns = Some(u32::try_from(number("max_turns", 10)).map_err(|error| error.to_string())?);
    let max_tokens = number("max_output_tokens", 0);
    let options =
        StreamOptions { max_tokens: (max_tokens > 0).then_some(max_tokens), ..StreamOptions::default() };
    rules.stream_options = Rc::new(options);
    rules.retry = Rc::new(RetryAll(retry(world)?));
    let given = world.config("approval").cloned().unwrap_or_else(|| "all".into());
    rules.approval =
        ApprovalOptions { names: RuleNames::AnyServer, ..ApprovalOptions::from(policy(&given)?) };
    rules.gate = ApprovalGate::Prefix;
    rules.tool_execution = ToolExecutionPolicy::Sequential;
    rules.steering =
        SteeringRules { in_flight: InFlight::Finish, before_first_call: true, ..SteeringRules::default() };
    rules.follow_up = QueueMode::OneAtATime;
    let compacts = world.config("compaction").and_then(Value::as_bool) != Some(false);
    rules.max_recoveries_per_turn = if compacts { 3 } else { 0 };
    rules.result_texts =
        Some(Rc::new(|cause: ToolResultCause, _: &ToolCallBlock, _: &str, _| view::result_text(cause)));
    rules.transformers = vec![Rc::new(Reducer(world.clone()))];
    rules.convert_to_llm = Some(Rc::new(|message: &AgentMessage, _| match message {
        AgentMessage::Custom(custom) => system_message(&custom.data.to_value()).map(Some),
        message => Ok(message.as_llm()),
    }));
    Ok(config)
}

/// A system message in the middle of a conversation, which this provider accepts as it is.
fn system_message(message: &Value) -> Result<LlmMessage, String> {
    let texts = match message.get("content") {
        Some(Value::String(text)) => vec![ContentBlock::text(text.as_str())],
        Some(parts) => Vec::from_json(parts)?,
        None => Vec::new(),
    };
    let role = object([("message", object([("role", "system".into())]))]);
    Ok(LlmMessage::User(Rc::new(UserMessage {
        content: texts,
        timestamp: 0,
        id: None,
        foreign: Some(role.to_raw()),
    })))
}

fn retry(world: &World) -> Result<RetryConfig, String> {
    let given = world.config("retry").cloned().unwrap_or_default();
    let number = |key: &str, default: u64| given.get(key).and_then(Value::as_u64).unwrap_or(default);
    let multiplier = match given.get("multiplier") {
        Some(Value::Number(number)) => number.as_str().parse().map_err(|_| "`multiplier` is no number")?,
        _ => 2.0,
    };
    Ok(RetryConfig {
        max_attempts: u32::try_from(number("max_attempts", 3)).map_err(|error| error.to_string())?,
        initial_backoff_ms: number("initial_backoff_ms", 2_000),
        max_backoff_ms: number("max_backoff_ms", 30_000),
        multiplier,
        ..RetryConfig::default()
    })
}

/// Registers each tool that the model is offered or calls: the host's dispatcher accepts every name.
fn tools(world: &Rc<World>) -> Result<Vec<Rc<dyn AgentTool>>, String> {
    let mut tools: Vec<Rc<dyn AgentTool>> = Vec::new();
    let mut known = BTreeSet::new();
    for tool in offered(world) {
        known.insert(tool.spec().schema.name.as_ref().to_owned());
        tools.push(Rc::new(tool));
    }
    let answers = world.input.get("provider").and_then(Value::as_array).unwrap_or_default();
    for answer in answers.iter().chain(world.input.get("provider_then")) {
        for part in answer.get("content").and_then(Value::as_array).unwrap_or_default() {
            if part.get("type").and_then(Value::as_str) == Some("tool_call") {
                let name = text_of(part, "name")?;
                if known.insert(name.to_owned()) {
                    tools.push(Rc::new(ScriptedTool::new(world, &name.into())?));
                }
            }
        }
    }
    Ok(tools)
}
