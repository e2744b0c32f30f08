//! The host's side: a provider, tools, hooks, a compactor and a reducer, each as scripted by the case.

use std::future::ready;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, StreamExt};
use turnwheel::cancel::CancelToken;
use turnwheel::context::{
    DanglingCalls, TokenBudget, boundary_in, dedup_results, merge_same_role, reduce, remove_orphaned_results,
    set_boundary, strip_dangling_calls, tool_tokens, trim_to_budget,
};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::CompactionReport;
use turnwheel::json::{ToJson, Value};
use turnwheel::message::{AgentMessage, MessageStopReason, Usage};
use turnwheel::policy::{ContextTransformer, Transform};
use turnwheel::ports::{
    AgentHook, AgentRunContext, Compaction, CompactionCall, CompactionEngine, HookCall, HookStages, StreamFn,
};
use turnwheel::retry::{RetryConfig, RetryStrategy, RetryVerdict};
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest, ToolSchema};
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec};

use super::super::peer_message::PeerMessage;
use super::super::{list_of, object, text_of};
use super::view;
use super::world::{World, agent_messages, roles, sent, stakai};

/// Returns the n-th entry of a script, or what it says for all later ones.
fn scripted<'a>(world: &'a World, script: &str, n: usize) -> Option<&'a Value> {
    let list = world.input.get(script).and_then(Value::as_array).unwrap_or_default();
    list.get(n - 1).or_else(|| world.input.get(&format!("{script}_then")))
}

/// The model: the n-th call gets the n-th answer.
pub(super) struct ScriptedModel(pub(super) Rc<World>);

impl StreamFn for ScriptedModel {
    fn stream(
        &self,
        request: ModelRequest,
        context: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, E> {
        let world = self.0.clone();
        world.check_ids(&context.run_id, &context.session_id);
        // Like any provider, it receives the request when the call is sent, which is when
        // its stream is first polled.
        let answer = async move {
            let n = world.count("inference");
            log_request(&world, n, &request);
            world.fire_triggers(&format!("inference:{n}"));
            let events = match scripted(&world, "provider", n) {
                Some(answer) => answer_events(&world, answer),
                None => Err(format!("the script has no answer for inference {n}")),
            };
            stream::iter(events.unwrap_or_else(|fault| {
                world.faults.borrow_mut().push(fault.clone());
                vec![E::Error(ErrorInfo::new(ErrorKind::InvalidRequest, fault))]
            }))
        };
        stream::once(answer).flatten().boxed_local()
    }
}

/// Logs the request as this provider sends it: the results of one answer are in one message if a
/// reducer has put them there.
fn log_request(world: &World, n: usize, request: &ModelRequest) {
    let mut messages = world.with_system(stakai(&sent(&request.messages)));
    if !is_identity(world) {
        messages = with_results_joined(messages);
    }
    let mut entry = vec![
        ("inference".to_owned(), Value::from(u64::try_from(n).unwrap_or(0))),
        ("model".to_owned(), request.model.as_ref().into()),
        ("messages".to_owned(), Value::Array(messages)),
        ("at_ms".to_owned(), world.clock.elapsed().into()),
    ];
    if let Some(max_tokens) = request.options.max_tokens {
        entry.push(("max_tokens".to_owned(), max_tokens.into()));
    }
    if !request.tools.is_empty() {
        entry.push(("tools".to_owned(), Value::Array(request.tools.iter().map(offer).collect())));
    }
    world.log(Value::Object(entry.into_iter().collect()));
}

fn offer(tool: &ToolSchema) -> Value {
    object([
        ("name", tool.name.as_ref().into()),
        ("description", tool.description.as_ref().into()),
        ("parameters", tool.parameters.to_value()),
    ])
}

fn with_results_joined(messages: Vec<Value>) -> Vec<Value> {
    let is_tool = |message: &Value| message.get("role").and_then(Value::as_str) == Some("tool");
    let mut joined: Vec<Value> = Vec::new();
    for mut message in messages {
        let next_to_results = joined.last().is_some_and(is_tool) && is_tool(&message);
        match joined.last_mut().and_then(|last| last.get_mut("content")) {
            Some(Value::Array(parts)) if next_to_results => {
                if let Value::Array(more) = message.take("content") {
                    parts.extend(more);
                }
            }
            _ => joined.push(message),
        }
    }
    joined
}

fn answer_events(world: &World, answer: &Value) -> Result<Vec<E>, String> {
    if let Some(error) = answer.get("error") {
        return Ok(vec![E::Error(failure(world, error)?)]);
    }
    let mut events = vec![E::Start];
    for (index, part) in (0..).zip(list_of(answer, "content")?) {
        match text_of(part, "type")? {
            "text" => events.extend([
                E::TextStart { index },
                E::TextDelta { index, delta: text_of(part, "text")?.to_owned() },
                E::TextEnd { index, signature: None },
            ]),
            "reasoning" => events.extend([
                E::ThinkingStart { index },
                E::ThinkingDelta { index, delta: text_of(part, "reasoning")?.to_owned() },
                E::ThinkingEnd { index, signature: None, redacted: false },
            ]),
            "tool_call" => events.extend([
                E::ToolCallStart {
                    index,
                    call_id: text_of(part, "id")?.to_owned(),
                    tool_name: text_of(part, "name")?.to_owned(),
                },
                E::ToolCallDelta {
                    index,
                    delta: part.get("arguments").map(ToJson::to_json).unwrap_or_default(),
                },
                E::ToolCallEnd { index, metadata: part.get("metadata").map(ToJson::to_raw) },
            ]),
            other => return Err(format!("unknown part `{other}`")),
        }
    }
    let stop_reason = match answer.get("finish").and_then(Value::as_str) {
        None | Some("stop" | "other") => MessageStopReason::Stop,
        Some("tool_calls") => MessageStopReason::ToolUse,
        Some("length") => MessageStopReason::Length,
        Some("content_filter") => MessageStopReason::ContentFilter,
        Some("error") => {
            world.view().finished_with_error = true;
            MessageStopReason::Error
        }
        Some(other) => return Err(format!("unknown finish `{other}`")),
    };
    let tokens = answer.get("usage").and_then(Value::as_array);
    let tokens = |at: usize, default: u64| match tokens {
        Some(list) => list.get(at).and_then(Value::as_u64).unwrap_or(0),
        None => default,
    };
    let usage = Usage { input: tokens(0, 10), output: tokens(1, 5), ..Usage::default() }.totalled();
    events.push(E::Done { stop_reason, usage: Some(usage) });
    Ok(events)
}

/// The provider names the kinds of errors; one that it does not name is classified by its text.
fn failure(world: &World, error: &Value) -> Result<ErrorInfo, String> {
    let message = text_of(error, "message")?;
    let (code, message) = match text_of(error, "kind")? {
        "rate_limit" => (ErrorKind::Throttled, format!("Rate limit exceeded: {message}")),
        "provider" => (ErrorKind::Unknown, format!("Provider error: {message}")),
        _ => (ErrorKind::Unknown, message.to_owned()),
    };
    world.view().overflow.clone_from(&message);
    Ok(ErrorInfo::new(code, message))
}

/// One tool of the host's dispatcher; its behaviour is scripted per call.
pub(super) struct ScriptedTool {
    world: Rc<World>,
    spec: ToolSpec,
}

impl ScriptedTool {
    pub(super) fn new(world: &Rc<World>, given: &Value) -> Result<Self, String> {
        let name = given.as_str().map_or_else(|| text_of(given, "name"), Ok)?;
        let description = given.get("description").and_then(Value::as_str).unwrap_or_default();
        let schema = ["parameters", "input_schema", "schema"].iter().find_map(|key| given.get(key));
        let schema = schema.cloned().unwrap_or_else(|| object([("type", "object".into())]));
        let mut spec = ToolSpec::new(name, description, schema.to_raw());
        // In the peer, a tool that fails ends the run, unlike one that returns an error.
        spec.fatal = true;
        Ok(ScriptedTool { world: world.clone(), spec })
    }
}

impl AgentTool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let (world, name) = (self.world.clone(), self.spec.schema.name.clone());
        world.check_ids(&context.run_id, &context.session_id);
        Box::pin(async move {
            let id = context.call_id.as_ref();
            let arguments = context.arguments.to_value();
            world.log(object([
                ("tool_begin", id.into()),
                ("name", name.as_ref().into()),
                ("arguments", arguments),
            ]));
            let end = ToolEnd(world.clone(), id.to_owned());
            world.fire_triggers(&format!("tool:{id}"));
            let given = world.input.path(&["tools", id]);
            let flag =
                |key: &str| given.and_then(|given| given.get(key)).and_then(Value::as_bool) == Some(true);
            if flag("wait_cancel") {
                context.cancel.cancelled().await;
                return ToolOutcome::Cancelled;
            }
            drop(end);
            if flag("cancelled") {
                return ToolOutcome::Cancelled;
            }
            let text = |key: &str| given.and_then(|given| given.get(key)).and_then(Value::as_str);
            if let Some(error) = text("error") {
                return ToolOutcome::Failed(error.to_owned());
            }
            let result =
                AgentToolResult::text(text("result").map_or_else(|| format!("ran {id}"), str::to_owned));
            ToolOutcome::Completed(AgentToolResult { is_error: flag("is_error"), ..result })
        })
    }
}

/// Records the end of a tool: when it answers, and also when the engine drops it.
struct ToolEnd(Rc<World>, String);

impl Drop for ToolEnd {
    fn drop(&mut self) {
        self.0.log(object([("tool_end", self.1.as_str().into())]));
    }
}

/// A hook that records at once that it was called, and fails if the case says so.
pub(super) struct ScriptedHook {
    pub(super) world: Rc<World>,
    pub(super) name: String,
}

impl AgentHook for ScriptedHook {
    fn call(&self, context: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>> {
        let (world, name) = (&self.world, self.name.as_str());
        if matches!(&call, HookCall::AfterInference { message, .. } if message.error.is_some()) {
            // The peer's hooks hear only of answers that are complete.
            return Box::pin(ready(Ok(())));
        }
        world.check_ids(&context.run_id, &context.session_id);
        let (stage, more) = hook_entry(world, call);
        let first = [("hook".to_owned(), name.into()), ("stage".to_owned(), stage.into())];
        world.log(Value::Object(first.into_iter().chain(more).collect()));
        let n = world.count(&format!("hook:{name}:{stage}"));
        world.fire_triggers(&format!("hook:{name}:{stage}:{n}"));
        let failures = world.input.get("hook_failures").and_then(Value::as_array).unwrap_or_default();
        let fails = failures.iter().any(|failure| {
            let is = |key: &str, wanted: &str| failure.get(key).and_then(Value::as_str) == Some(wanted);
            let nth = failure.get("nth").and_then(Value::as_u64);
            is("hook", name) && is("stage", stage) && nth.is_none_or(|nth| usize::try_from(nth) == Ok(n))
        });
        let answer = if fails { Err(format!("{name} refused {stage}")) } else { Ok(()) };
        Box::pin(ready(answer))
    }
}

fn hook_entry(world: &World, call: HookCall) -> (&'static str, Vec<(String, Value)>) {
    let roles_now = || ("roles".to_owned(), roles(&world.history()));
    let named = |key: &str, text: &str| (key.to_owned(), Value::from(text));
    match call {
        HookCall::BeforeInference { model, messages, .. } => {
            let mut messages = world.with_system(stakai(&sent(&messages)));
            if !is_identity(world) {
                messages = with_results_joined(messages);
            }
            ("before_inference", vec![named("model", &model), ("roles".to_owned(), roles(&messages))])
        }
        HookCall::AfterInference { model, .. } => {
            ("after_inference", vec![named("model", &model), roles_now()])
        }
        HookCall::BeforeToolExecution { call } => {
            ("before_tool_execution", vec![named("tool_call_id", &call.call_id), roles_now()])
        }
        HookCall::AfterToolExecution { call, .. } => {
            ("after_tool_execution", vec![named("tool_call_id", &call.call_id), roles_now()])
        }
        HookCall::OnError { error } => ("on_error", vec![named("error", &view::whole(&error)), roles_now()]),
    }
}

/// Records whether an error would have been reported to anybody.
pub(super) struct Observer(pub(super) Rc<World>);

impl AgentHook for Observer {
    fn stages(&self) -> HookStages {
        HookStages { on_error: true, ..HookStages::default() }
    }

    fn call(&self, _: &AgentRunContext, _: HookCall) -> LocalBoxFuture<'static, Result<(), String>> {
        self.0.on_error_called.set(true);
        Box::pin(ready(Ok(())))
    }
}

/// The peer's retry: every error is retried, without jitter, ignoring the server's delays.
pub(super) struct RetryAll(pub(super) RetryConfig);

impl RetryStrategy for RetryAll {
    fn delay(&self, _: &ErrorInfo, attempt: u32, _: u32) -> RetryVerdict {
        if attempt < self.0.max_attempts {
            RetryVerdict::Wait(self.0.backoff_ms(attempt))
        } else {
            RetryVerdict::Stop
        }
    }
}

pub(super) struct ScriptedCompactor(pub(super) Rc<World>);

impl CompactionEngine for ScriptedCompactor {
    fn compact(
        &self,
        context: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        let world = self.0.clone();
        world.check_ids(&context.run_id, &context.session_id);
        Box::pin(async move {
            let CompactionCall { messages, model, .. } = call;
            let n = world.count("compact");
            let given = world.with_system(stakai(&messages));
            let reason = world.view().overflow.clone();
            world.log(object([("event", "CompactionStarted".into()), ("reason", reason.into())]));
            world.log(object([
                ("compact", u64::try_from(n).unwrap_or(0).into()),
                ("model", model.as_ref().into()),
                ("roles", roles(&given)),
            ]));
            world.fire_triggers(&format!("compact:{n}"));
            let script = scripted(&world, "compactor", n).cloned().unwrap_or_default();
            if let Some(error) = script.get("error") {
                let text = error.as_str().or_else(|| error.get("message").and_then(Value::as_str));
                return Err(text.unwrap_or_default().to_owned());
            }
            if script.get("messages").is_none() {
                let word_count = word_count(&given);
                return Ok(compaction(messages.to_vec(), word_count, word_count, false));
            }
            let number = |key: &str, default: u64| script.get(key).and_then(Value::as_u64).unwrap_or(default);
            let truncated = script.get("truncated").and_then(Value::as_bool) == Some(true);
            let kept = keep_system(&world, list_of(&script, "messages")?);
            let (before, after) = (number("tokens_before", 1_000), number("tokens_after", 100));
            // Positions in the old history are meaningless now.
            if world.metadata.borrow().get(turnwheel::context::BOUNDARY_KEY).is_some() {
                set_boundary(&mut world.metadata.borrow_mut(), 0);
            }
            Ok(compaction(agent_messages(&kept)?, before, after, truncated))
        })
    }
}

/// What the compactor leaves of the system prompt applies from now on.
fn keep_system(world: &World, messages: &[Value]) -> Vec<Value> {
    let is_system = |message: &Value| message.get("role").and_then(Value::as_str) == Some("system");
    let mut kept = messages.to_vec();
    let first = kept.first().filter(|first| is_system(first)).cloned();
    if world.system.borrow().is_some() {
        if first.is_some() {
            kept.remove(0);
        }
        *world.system.borrow_mut() = first;
    }
    kept
}

fn compaction(messages: Vec<AgentMessage>, before: u64, after: u64, truncated: bool) -> Compaction {
    let report = CompactionReport {
        text: if truncated { "truncated" } else { "" }.to_owned(),
        tokens_before: before,
        tokens_after: after,
        ..CompactionReport::default()
    };
    Compaction { messages, report: Some(report), ..Compaction::default() }
}

/// Counts like the peer's own compactor, which changes nothing.
fn word_count(messages: &[Value]) -> u64 {
    let in_part =
        |part: &Value| part.get("text").and_then(Value::as_str).map_or(0, |t| t.split_whitespace().count());
    let count = messages.iter().map(|message| match message.get("content") {
        Some(Value::String(text)) => text.split_whitespace().count(),
        Some(Value::Array(parts)) => parts.iter().map(in_part).sum(),
        _ => 0,
    });
    u64::try_from(count.sum::<usize>()).unwrap_or(0)
}

fn is_identity(world: &World) -> bool {
    world.config("reducer").and_then(Value::as_str) == Some("identity")
}

/// A reducer of the host: this crate's passes over messages in the peer's form.
pub(super) struct Reducer(pub(super) Rc<World>);

impl ContextTransformer for Reducer {
    fn transform(&self, messages: &[AgentMessage], _: bool) -> Result<Transform, String> {
        let world = &self.0;
        if is_identity(world) {
            return Ok(Transform::Unchanged);
        }
        let given = world.with_system(stakai(messages));
        let mut messages = given.iter().map(PeerMessage::read).collect::<Result<Vec<_>, _>>()?;
        match world.config("reducer").and_then(|reducer| reducer.get("budget")) {
            Some(budget) => trim(world, &mut messages, budget)?,
            None => {
                let keep =
                    world.config("reducer").and_then(|reducer| reducer.path(&["default", "keep_last"]));
                let keep = keep.map_or(Some(64), |keep| match keep {
                    Value::String(_) => Some(u64::MAX),
                    number => number.as_u64(),
                });
                reduce(
                    &mut messages,
                    keep.and_then(|keep| usize::try_from(keep).ok()).ok_or("no `keep_last`")?,
                );
            }
        }
        let mut reduced: Vec<Value> = messages.into_iter().map(PeerMessage::write).collect();
        if world.system.borrow().is_some() && !reduced.is_empty() {
            reduced.remove(0);
        }
        agent_messages(&reduced).map(Transform::View)
    }
}

fn trim(world: &Rc<World>, messages: &mut Vec<PeerMessage>, budget: &Value) -> Result<(), String> {
    let number = |key: &str| world.config(key).and_then(Value::as_u64).unwrap_or(0);
    let Some(Value::Number(fraction)) = budget.get("threshold") else {
        return Err("no `threshold`".to_owned());
    };
    let fraction = fraction.as_str().parse().map_err(|_| "`threshold` is no number")?;
    let keep_last = budget.get("keep_last_n_assistant").and_then(Value::as_u64).unwrap_or(0);
    let budget = TokenBudget::new(number("model_context"), number("max_output_tokens"), fraction);
    merge_same_role(messages);
    dedup_results(messages);
    strip_dangling_calls(messages, DanglingCalls::StripAll);
    remove_orphaned_results(messages);
    let overhead = offered(world).iter().map(|tool| tool_tokens(bytes(&tool.spec))).sum();
    let previous = boundary_in(&world.metadata.borrow());
    let keep_last = usize::try_from(keep_last).unwrap_or(usize::MAX);
    if let Some(boundary) = trim_to_budget(messages, budget, overhead, keep_last, previous) {
        set_boundary(&mut world.metadata.borrow_mut(), boundary);
    }
    Ok(())
}

fn bytes(spec: &ToolSpec) -> u64 {
    let schema = &spec.schema;
    (schema.name.len() + schema.description.len() + schema.parameters.as_str().len()) as u64
}

/// Returns the tools that the model is offered.
pub(super) fn offered(world: &Rc<World>) -> Vec<ScriptedTool> {
    let tools = world.config("tools").and_then(Value::as_array).unwrap_or_default();
    tools.iter().filter_map(|tool| ScriptedTool::new(world, tool).ok()).collect()
}
