//! Plays a scenario on the native engine in virtual time and returns its trace.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};
use turnwheel::agent::Agent;
use turnwheel::approval::ApprovalMode;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, CacheHints, Model, QueueMode, ToolExecutionPolicy};
use turnwheel::driver::{AgentStream, agent_loop, agent_loop_continue};
use turnwheel::error::{AgentError, ErrorKind};
use turnwheel::event::AgentEvent;
use turnwheel::json::{Map, RawJson};
use turnwheel::message::{AgentMessage, Usage};
use turnwheel::ports::AgentRunContext;
use turnwheel::retry::{RetryConfig, RetryStrategy, RetryVerdict};
use turnwheel::tape::Recorder;
use turnwheel::tool::AgentTool;

use crate::clock::{BEGINNING, Hang};
use crate::ports::{
    Route, RunHandle, Script, ScriptedApprover, ScriptedModel, ScriptedPolicy, ScriptedTool,
    ScriptedTransform, World, message, raw,
};
use crate::scenario::{self, Driver, FailureKind, Mode, Scenario, Slot, Then, ToolExecution, Trigger};
use crate::{schema, second, trace};

/// Reads a scenario.
///
/// # Errors
/// If the scenario needs something that cannot be played.
pub fn read(text: &str) -> Result<Scenario, String> {
    let scenario: Scenario = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(keyword) =
        scenario.tools.iter().filter_map(|tool| tool.schema.as_ref()).find_map(schema::unknown_keyword)
    {
        return Err(format!("the JSON Schema keyword `{keyword}`"));
    }
    Ok(scenario)
}

/// Plays a scenario and returns its trace.
pub fn play(scenario: Scenario, route: Route) -> Value {
    play_in(World::new(Rc::new(scenario), route))
}

/// Like [`play`], but stops the run every minute of virtual time, so that none lasts longer.
pub fn play_bounded(scenario: Scenario, route: Route) -> Value {
    let world = World::new(Rc::new(scenario), route);
    bound(&world);
    play_in(world)
}

fn bound(world: &Rc<World>) {
    for minute in 1..=10 {
        let stopped = world.clone();
        world.clock.at(minute * 60_000, move || stopped.abort());
    }
}

/// Plays a scenario, and returns its trace and its tape.
pub fn play_recorded(scenario: Scenario, route: Route, is_bounded: bool) -> (Value, String) {
    let recorder = Recorder::new(BEGINNING);
    let world = World::recorded(Rc::new(scenario), route, Some(recorder.clone()));
    if is_bounded {
        bound(&world);
    }
    world.note(&crate::replay::description(&world.scenario, &initial_messages(&world.scenario)));
    let trace = play_in(world);
    recorder.stop();
    (trace, recorder.to_text())
}

fn play_in(world: Rc<World>) -> Value {
    let scenario = world.scenario.clone();
    world.set_alarms();
    let history = match scenario.driver {
        Driver::Loop => play_loop(&world),
        Driver::Agent => play_agent(&world),
    };
    // Ports and alarms hold the world, so it is only freed without its handles and alarms.
    world.handle.take();
    world.models.take();
    world.clock.clear();
    world.log.take().trace(&scenario.name, &scenario.divergences, &history)
}

fn initial_messages(scenario: &Scenario) -> Vec<AgentMessage> {
    let mut names = Vec::new();
    scenario.initial_messages.iter().map(|given| message(given, &mut names)).collect()
}

fn prompts(texts: &[String]) -> Vec<AgentMessage> {
    texts.iter().map(|text| AgentMessage::user(text.as_str())).collect()
}

fn context(run: usize) -> AgentRunContext {
    AgentRunContext::new(&format!("run-{run}"), "session")
}

fn play_loop(world: &Rc<World>) -> Vec<AgentMessage> {
    let scenario = &world.scenario;
    let (config, cancel) = (config(world), CancelToken::new());
    let history = initial_messages(scenario);
    let prompts = scenario.prompt.as_ref().map(|prompt| prompts(prompt.list())).unwrap_or_default();
    let stream = match scenario.mode {
        Mode::Continue => agent_loop_continue(history, config, context(1), cancel.clone()),
        Mode::Prompt if history.is_empty() => Ok(agent_loop(prompts, config, context(1), cancel.clone())),
        Mode::Prompt => Agent::new(config, history).prompt(prompts, context(1), cancel.clone()),
    };
    let stream = stream.map(|stream| match &world.recorder {
        Some(recorder) => stream.recorded(recorder),
        None => stream,
    });
    let stream = stream
        .and_then(|stream| second::with_run_options(world, stream, scenario.options.run_options.as_ref()));
    match stream {
        Ok(mut stream) => {
            *world.handle.borrow_mut() = Some(RunHandle::Run(stream.inbox(), cancel));
            world.fire(&Trigger::BeforeStart);
            watch(world, &mut stream, |world, event| write_down(world, event, true));
            stream.state().messages().to_vec()
        }
        Err(error) => {
            let call = if scenario.mode == Mode::Continue { "continue" } else { "prompt" };
            refused(world, call, &error);
            initial_messages(scenario)
        }
    }
}

fn play_agent(world: &Rc<World>) -> Vec<AgentMessage> {
    let scenario = world.scenario.clone();
    let agent = Agent::new(config(world), initial_messages(&scenario));
    if let Some(recorder) = &world.recorder {
        agent.record(recorder).expect("the agent is idle");
    }
    *world.handle.borrow_mut() = Some(RunHandle::Agent(agent.clone()));
    let recorder = world.clone();
    agent.subscribe(move |event| write_down(&recorder, event, false));
    if let Some(fails_on) = scenario.panicking_subscriber {
        let count = std::cell::Cell::new(0);
        agent.subscribe(move |_| {
            count.set(count.get() + 1);
            if count.get() == fails_on {
                std::panic::resume_unwind(Box::new("the subscriber crashed".to_owned()));
            }
        });
    }
    world.fire(&Trigger::BeforeStart);
    let mut runs = 0;
    let options = RefCell::new(scenario.options.run_options.clone());
    let mut run = |texts: Option<&[String]>, call: &str| {
        runs += 1;
        let cancel = CancelToken::new();
        let stream = match texts {
            Some(texts) => agent.prompt(prompts(texts), context(runs), cancel),
            None => agent.continue_run(context(runs), cancel),
        };
        let stream =
            stream.and_then(|stream| second::with_run_options(world, stream, options.borrow().as_ref()));
        match stream {
            Ok(mut stream) => {
                watch(world, &mut stream, |_, _| {});
                world.note(&json!({ "ran": call }));
                let outcome = stream.result().map_or_else(
                    || json!({ "call": call, "error": "no result" }),
                    |result| {
                        let shown = RunResult {
                            messages: result.messages.clone(),
                            usage: result.usage,
                            output: result.output.clone(),
                            error: result.error.as_ref().map(ToString::to_string),
                        };
                        outcome(call, &shown)
                    },
                );
                world.log.borrow_mut().outcomes.push(outcome);
            }
            Err(error) => refused(world, call, &error),
        }
    };
    match (&scenario.prompt, scenario.mode, &scenario.structured_output) {
        (Some(prompt), _, Some(_)) => run(Some(prompt.list()), "structured_output"),
        (Some(prompt), Mode::Prompt, None) => run(Some(prompt.list()), "prompt"),
        (_, Mode::Continue, _) => run(None, "continue"),
        (None, Mode::Prompt, _) => {}
    }
    if scenario.structured_output.is_some() {
        agent.configure(|config| config.rules.output = None);
    }
    for step in &scenario.then {
        match step {
            Then::Prompt(prompt) => run(Some(prompt.list()), "prompt"),
            Then::Continue => run(None, "continue"),
            Then::RunOptions(given) => *options.borrow_mut() = Some(given.clone()),
            Then::ClearQueues => {
                agent.clear_queues();
                did(world, json!({ "call": "clear_queues" }));
            }
            Then::Steer(text) => {
                world.steer(text);
                did(world, json!({ "call": "steer" }));
            }
            Then::FollowUp(text) => {
                world.follow_up(text);
                did(world, json!({ "call": "follow_up" }));
            }
            Then::Reset => {
                agent.reset();
                did(world, json!({ "call": "reset" }));
            }
        }
    }
    agent.messages()
}

/// Takes a run to its end.
fn watch(world: &Rc<World>, stream: &mut AgentStream, each: impl Fn(&Rc<World>, &AgentEvent)) {
    // Every event is awaited separately, with a waker of its own.
    loop {
        match world.clock.run(second::next_of_life(world, stream)) {
            Ok(Some(Some(event))) => each(world, &event),
            Ok(Some(None)) => return,
            Ok(None) => second::go_on(world, stream, || config(world)),
            Err(Hang) => {
                world.note(&json!({ "hangs": true }));
                return world.log.borrow_mut().events.push(json!({ "type": "oracle_hang" }));
            }
        }
    }
}

fn write_down(world: &Rc<World>, event: &AgentEvent, with_time: bool) {
    second::answer(world, event);
    let t = with_time.then(|| world.clock.elapsed() / 10 * 10);
    world.log.borrow_mut().event(event, t, world.scenario.options.metrics);
}

fn refused(world: &World, call: &str, error: &AgentError) {
    did(world, json!({ "call": call, "error": error.to_string() }));
}

/// Something happened between the runs.
fn did(world: &World, outcome: Value) {
    world.note(&json!({ "did": outcome }));
    world.log.borrow_mut().outcomes.push(outcome);
}

/// What a run came to, from its result.
pub(crate) fn outcome(call: &str, result: &RunResult) -> Value {
    if call == "structured_output" {
        return match &result.output {
            Some(output) => json!({ "call": call, "ok": trace::value_of(output) }),
            None => json!({ "call": call, "error": result.error }),
        };
    }
    let new =
        |message: &&AgentMessage| matches!(message, AgentMessage::Assistant(_) | AgentMessage::ToolResult(_));
    let last = result.messages.iter().rev().find_map(|message| match message {
        AgentMessage::Assistant(answer) => Some(answer.clone()),
        _ => None,
    });
    json!({
        "call": call,
        "new_message_count": result.messages.iter().filter(new).count(),
        "assistant_text": last.as_ref().map(|answer| answer.text()),
        "stop_reason": last.as_ref().map(|answer| answer.stop_reason.as_str()),
        "run_error": result.error,
        "usage": trace::usage(&result.usage),
    })
}

/// What is shown of a result.
pub(crate) struct RunResult {
    pub(crate) messages: Vec<AgentMessage>,
    pub(crate) usage: Usage,
    pub(crate) output: Option<RawJson>,
    pub(crate) error: Option<String>,
}

/// Returns the configuration for a scenario.
fn config(world: &Rc<World>) -> AgentLoopConfig {
    let scenario = &world.scenario;
    let options = &scenario.options;
    let mut config =
        AgentLoopConfig::new(model(world, "primary", &scenario.model), Rc::new(world.clock.clone()));
    let mut models = vec![model(world, "primary", &scenario.model)];
    for (at, calls) in scenario.fallback.iter().enumerate() {
        models.push(model(world, &format!("fallback-{}", at + 1), calls));
    }
    *world.models.borrow_mut() = models.clone();
    config.set_models(models);
    config.offer_tools(tools(world, &world.scenario.tools));
    set_policies(world, &mut config);
    if let Some(given) = &scenario.approval {
        config.set_approver(Rc::new(ScriptedApprover { world: world.clone(), given: given.clone() }));
    }
    if !options.api_keys.is_empty() {
        config.ports.keys = Some(world.clone());
    }
    if world.route == Route::Provider {
        config.set_message_provider(world.clone());
    }
    if let Some(given) = &scenario.async_transform {
        config.ports.transformer = Some(Rc::new(ScriptedTransform::new(world, given)));
    }
    let rules = &mut config.rules;
    rules.system_prompt = scenario.system_prompt.as_str().into();
    rules.max_turns = None;
    rules.include_requests = true;
    rules.retry = retry(options.retry.clone().unwrap_or_default());
    rules.approval.mode = match (options.approval_mode, &scenario.approval) {
        // Without an approver nobody is asked; in format 2, a person is.
        (mode, None) if scenario.shows_more() => second::approval_mode(mode),
        (_, None) | (Some(scenario::ApprovalMode::Bypassed), _) => ApprovalMode::Bypassed,
        (Some(scenario::ApprovalMode::Enabled), _) => ApprovalMode::Enabled,
        _ => ApprovalMode::Smart,
    };
    let default = if scenario.driver == Driver::Agent {
        scenario::QueueMode::OneAtATime
    } else {
        scenario::QueueMode::All
    };
    rules.steering.delivery = queue_mode(options.steering_mode.unwrap_or(default));
    rules.follow_up = queue_mode(options.follow_up_mode.unwrap_or(default));
    rules.tool_execution = match &options.tool_execution {
        None | Some(ToolExecution::Concurrent) => ToolExecutionPolicy::Concurrent,
        Some(ToolExecution::Sequential) => ToolExecutionPolicy::Sequential,
        Some(ToolExecution::Priority(_)) => ToolExecutionPolicy::Priority,
        Some(ToolExecution::Groups(groups)) => {
            let groups = groups.clone();
            ToolExecutionPolicy::Custom(Rc::new(move |_, _| Ok(groups.clone())))
        }
    };
    if let Some(given) = &scenario.transform {
        rules.transformers.push(Rc::new(ScriptedTransform::new(world, given)));
    }
    if !options.dynamic_system_prompts.is_empty() {
        let world = world.clone();
        rules.dynamic_system_prompt = Some(Rc::new(move |_| Ok(world.next_prompt())));
    }
    rules.validator = Some(Rc::new(|spec, call, _| {
        let (schema, arguments) =
            (trace::value_of(&spec.schema.parameters), trace::value_of(&call.arguments));
        let mut wrong = Vec::new();
        schema::violations(&schema, &arguments, "arguments", &mut wrong);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }));
    let state = options.session_state.iter().map(|(key, value)| (key.clone(), raw(value).to_value()));
    rules.session_state = state.collect::<Map>();
    rules.agent_name = options.agent_name.as_deref().unwrap_or_default().into();
    rules.transfer_chain = options.transfer_chain.clone();
    rules.max_transfer_depth = options.transfer_max_depth.unwrap_or(rules.max_transfer_depth);
    rules.output = scenario.structured_output.as_ref().map(raw);
    rules.output_retries = options.structured_output_max_retries.unwrap_or(rules.output_retries);
    rules.cache = options.cache.map(|hints| CacheHints {
        prefix: world.cached.clone(),
        ..CacheHints::new(hints.ttl_s * 1000, hints.min_tokens, hints.intervals)
    });
    second::configure(world, &mut config);
    config
}

fn model(world: &Rc<World>, id: &str, calls: &[scenario::ModelCall]) -> Model {
    Model {
        provider: "scripted".into(),
        id: id.into(),
        supports_tools: world.scenario.options.model_supports_tools.unwrap_or(true),
        context_window: None,
        number: 0,
        stream_fn: Rc::new(ScriptedModel {
            world: world.clone(),
            script: Script::Own(id.to_owned(), calls.to_vec()),
        }),
    }
}

/// The loop itself accepts any tools; only the public API refuses two with one name.
pub(crate) fn tools(world: &Rc<World>, given: &[scenario::Tool]) -> Vec<Rc<dyn AgentTool>> {
    let priorities = match &world.scenario.options.tool_execution {
        Some(ToolExecution::Priority(priorities)) => priorities.clone(),
        _ => Default::default(),
    };
    let tool = |given: &scenario::Tool| -> Rc<dyn AgentTool> {
        if let Some(child) = &given.agent {
            return second::sub_agent(world, &given.name, child);
        }
        let priority = priorities.get(&given.name).copied().unwrap_or(0);
        Rc::new(ScriptedTool::new(world, given, priority))
    };
    given.iter().map(tool).collect()
}

fn set_policies(world: &Rc<World>, config: &mut AgentLoopConfig) {
    for given in &world.scenario.policies {
        let policy = ScriptedPolicy::new(world, given);
        match given.slot {
            Slot::PreTurn => config.rules.pre_turn.push(policy),
            Slot::PreDispatch => config.rules.pre_dispatch.push(policy),
            Slot::PostTurn => config.rules.post_turn.push(policy),
            Slot::PostLoop => config.rules.post_loop.push(policy),
        }
    }
}

fn queue_mode(mode: scenario::QueueMode) -> QueueMode {
    match mode {
        scenario::QueueMode::All => QueueMode::All,
        scenario::QueueMode::OneAtATime => QueueMode::OneAtATime,
    }
}

/// Retries only the given kinds, after a constant delay.
struct Only(scenario::Retry);

impl RetryStrategy for Only {
    fn delay(&self, error: &turnwheel::error::ErrorInfo, attempt: u32, _: u32) -> RetryVerdict {
        let kind = match error.code {
            ErrorKind::Throttled => FailureKind::Throttled,
            ErrorKind::Network => FailureKind::Network,
            ErrorKind::ContextOverflow => FailureKind::Overflow,
            ErrorKind::Auth => FailureKind::Auth,
            ErrorKind::ContentFiltered => FailureKind::ContentFiltered,
            _ => FailureKind::Stream,
        };
        if attempt < self.0.max_attempts && self.0.only.contains(&kind) {
            RetryVerdict::Wait(self.0.base_delay_ms)
        } else {
            RetryVerdict::Stop
        }
    }
}

pub(crate) fn retry(given: scenario::Retry) -> Rc<dyn RetryStrategy> {
    if !given.only.is_empty() {
        return Rc::new(Only(given));
    }
    Rc::new(RetryConfig {
        max_attempts: given.max_attempts,
        initial_backoff_ms: given.base_delay_ms,
        max_backoff_ms: given.max_delay_ms,
        multiplier: given.multiplier,
        jitter: false,
        ..RetryConfig::default()
    })
}
