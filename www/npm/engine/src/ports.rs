//! Asynchronous ports implemented by the host. Each leaves an effect at the bridge, a JSON object with a
//! `kind`, and reads the answer. The JavaScript half is `www/npm/effects.js`.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::http::ModelCall;
use turnwheel::json::{FromJson, ObjectWriter, ToJson, Value};
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;
use turnwheel::ports::{
    AgentHook, AgentRunContext, ApprovalRequest, Approver, AsyncContextTransformer, Compaction,
    CompactionCall, CompactionEngine, HookCall, HookStages, KeySource, MessageProvider, StreamFn, Timer,
    TurnCall, TurnChoice, TurnPreparer,
};
use turnwheel::price::Price;
use turnwheel::stream::{AssistantMessageEvent, ModelRequest};
use turnwheel::summarize::Summarizer;
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec, Transfer};

use super::rules::{self, Cached, Host, read_refs, read_report, read_transform};
use crate::bridge::{self, HostEffect};
use crate::call::Call;
use crate::outbox::write_refs;
use crate::protocol::{EffectKind, HookStage, RuleName};
use crate::settings::{Models, turn_options};

/// Writes an effect as JSON.
pub(super) fn effect(kind: EffectKind, members: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut text = String::with_capacity(128);
    let mut object = ObjectWriter::new(&mut text);
    object.field("kind", kind.as_str());
    members(&mut object);
    object.end();
    text
}

/// Leaves an effect and reads the answer.
pub(super) fn ask<T: 'static>(
    effect: String,
    read: fn(&Value) -> Result<T, String>,
) -> LocalBoxFuture<'static, Result<T, String>> {
    Box::pin(HostAnswer { answer: bridge::ask(HostEffect::Json(effect), None), read })
}

struct HostAnswer<T> {
    answer: bridge::PendingAnswer,
    read: fn(&Value) -> Result<T, String>,
}

impl<T> Future for HostAnswer<T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let read = self.read;
        Pin::new(&mut self.answer).poll(cx).map(|answer| read(&answer?))
    }
}

/// A tool implemented by the host.
pub(super) struct JsTool(pub(super) ToolSpec);

impl AgentTool for JsTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let call = Call::of(&context);
        let answer = bridge::ask(HostEffect::Tool(context.tool_name, context.call_id), Some(call));
        Box::pin(async move {
            match answer.await {
                Err(text) => ToolOutcome::Failed(text),
                Ok(Value::String(text)) => ToolOutcome::Completed(AgentToolResult::text(text)),
                Ok(answer) => read_outcome(&answer),
            }
        })
    }
}

/// Reads `{ content, details?, isError?, transfer? }`, `{ failed }`, `{ invalid }`, `{ cancelled }` or `{ interrupted }`.
fn read_outcome(answer: &Value) -> ToolOutcome {
    let text = |key: &str| answer.owned_at(key);
    if let Some(text) = text("failed") {
        return ToolOutcome::Failed(text);
    }
    if let Some(text) = text("invalid") {
        return ToolOutcome::Invalid(text);
    }
    if answer.get("cancelled").is_some() {
        return ToolOutcome::Cancelled;
    }
    if answer.get("interrupted").is_some() {
        return ToolOutcome::Interrupted;
    }
    match answer.get("content").map(Vec::from_json) {
        Some(Ok(content)) => ToolOutcome::Completed(AgentToolResult {
            content,
            details: answer.get("details").map(ToJson::to_raw),
            is_error: answer.flag_at("isError").unwrap_or(false),
            transfer: answer.get("transfer").and_then(|transfer| {
                Some(Transfer {
                    to: transfer.get("to")?.as_str()?.to_owned(),
                    reason: transfer.owned_at("reason"),
                })
            }),
        }),
        Some(Err(text)) => ToolOutcome::Failed(["the result is no tool result: ", &text].concat()),
        None => ToolOutcome::Failed("the tool gave no result".to_owned()),
    }
}

/// A model that the host streams itself.
pub(super) struct JsModel {
    /// Its index among the host's models.
    pub(super) index: u32,
    pub(super) limit: usize,
    /// Whether it passes on what a provider told of the usage, so that what is missing was not told.
    pub(super) estimates: bool,
    pub(super) price: Option<Price>,
}

impl StreamFn for JsModel {
    fn estimates_usage(&self) -> bool {
        self.estimates
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn max_answer_bytes(&self) -> usize {
        self.limit
    }

    fn stream(
        &self,
        mut request: ModelRequest,
        context: &AgentRunContext,
        _cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let call = ModelCall::new(&mut request, context, None, self.price);
        let effect = effect(EffectKind::Stream, |object| {
            object.field("model", &self.index);
            write_request(&request, object.key("request"));
        });
        bridge::ask_stream(effect, call)
    }
}

/// Writes a request as a host's `streamFn` gets it; messages that JavaScript has are references.
pub(super) fn write_request(request: &ModelRequest, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    object.field("model", &request.model).field("systemPrompt", &request.system_prompt);
    let messages = object.key("messages");
    match bridge::current() {
        Some(bridge) => write_refs(&request.messages, &bridge.mirror.borrow(), messages),
        None => request.messages.write_json(messages),
    }
    object.field("tools", &*request.tools).field("options", &*request.options);
    object.optional("apiKey", &request.api_key).optional("output", &request.output);
    object.end();
}

/// `getApiKey`, or a model's own function.
pub(super) struct JsKeys;

impl KeySource for JsKeys {
    fn key(&self, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        self.key_of(0, provider)
    }

    fn is_by_model(&self) -> bool {
        true
    }

    fn key_of(&self, model: u32, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        let effect = effect(EffectKind::Key, |object| {
            object.field("provider", provider);
            object.field("model", &model);
        });
        ask(effect, |answer| Ok(answer.as_str().map(Rc::from)))
    }
}

/// `getSteeringMessages` and `getFollowUpMessages`.
pub(super) struct JsMessages {
    pub(super) host: Host,
    pub(super) steering: bool,
    pub(super) follow_up: bool,
}

impl JsMessages {
    /// Asks at once, so that messages that are already there count before another tool starts.
    /// Only a promise is awaited.
    fn poll(
        &self,
        rule: RuleName,
        kind: EffectKind,
        wanted: bool,
    ) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        if !wanted {
            return Box::pin(std::future::ready(Vec::new()));
        }
        match rules::call(&self.host, rule, "null") {
            Ok(promise @ Value::Number(_)) => {
                let effect = effect(kind, |object| {
                    object.field("promise", &promise);
                });
                let answer = ask(effect, Vec::from_json);
                Box::pin(async { answer.await.unwrap_or_default() })
            }
            answer => {
                let messages = answer.and_then(|list| Vec::from_json(&list)).unwrap_or_default();
                Box::pin(std::future::ready(messages))
            }
        }
    }
}

impl MessageProvider for JsMessages {
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        self.poll(RuleName::Steering, EffectKind::Steering, self.steering)
    }

    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        self.poll(RuleName::FollowUp, EffectKind::FollowUp, self.follow_up)
    }
}

/// `asyncTransformContext`.
pub(super) struct JsTransformer {
    pub(super) cached: Cached,
}

impl AsyncContextTransformer for JsTransformer {
    fn transform(
        &self,
        _messages: Rc<[AgentMessage]>,
        overflow_signal: bool,
        _cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        // JavaScript has the whole history: an effect starts only when everything
        // before it has been delivered.
        ask(
            effect(EffectKind::Transform, |object| {
                object.field("overflow", &overflow_signal).field("cached", &rules::count(&self.cached));
            }),
            read_transform,
        )
    }
}

/// `prepareTurn`.
pub(super) struct JsTurns {
    pub(super) models: Rc<Models>,
}

impl TurnPreparer for JsTurns {
    fn prepare(&self, turn: TurnCall) -> LocalBoxFuture<'static, Result<TurnChoice, String>> {
        let effect = effect(EffectKind::PrepareTurn, |object| {
            object.field("usage", &turn.usage);
        });
        let answer = ask(effect, |answer| Ok(answer.clone()));
        let models = self.models.clone();
        Box::pin(async move {
            let answer = answer.await?;
            let options = turn_options(&answer, &models).map_err(|error| error.info().message.clone())?;
            let messages = answer.get("messages").map(read_refs).transpose()?;
            Ok(TurnChoice { options, messages })
        })
    }
}

/// `compaction: "summarize"`: the effects of its calls are marked as such.
pub(super) struct Summaries(pub(super) Summarizer);

impl CompactionEngine for Summaries {
    fn compact(
        &self,
        context: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        let mut work = bridge::summing(|| self.0.compact(context, call));
        Box::pin(poll_fn(move |cx| bridge::summing(|| work.as_mut().poll(cx))))
    }
}

/// `compaction.engine`.
pub(super) struct JsCompaction;

impl CompactionEngine for JsCompaction {
    fn compact(
        &self,
        _context: &AgentRunContext,
        _call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        ask(effect(EffectKind::Compact, |_| {}), |answer| {
            Ok(Compaction {
                messages: read_refs(answer.get("messages").unwrap_or(&Value::Null))?,
                report: answer.get("report").filter(|report| !report.is_null()).map(read_report),
                ..Compaction::default()
            })
        })
    }
}

/// `approveTool`.
pub(super) struct JsApprover;

impl Approver for JsApprover {
    fn decide(
        &self,
        request: ApprovalRequest,
        _cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let effect = effect(EffectKind::Approve, |object| {
            object.field("id", &request.id).field("callId", &request.call_id);
            object.field("toolName", &request.tool_name).field("arguments", &request.arguments);
            object.field("requiresApproval", &request.requires_approval);
        });
        ask(effect, ToolDecision::from_json)
    }
}

/// All `hooks` of the host as one.
pub(super) struct JsHooks {
    pub(super) stages: HookStages,
    pub(super) wraps_models: bool,
}

impl AgentHook for JsHooks {
    fn stages(&self) -> HookStages {
        self.stages
    }

    fn wraps_models(&self) -> bool {
        self.wraps_models
    }

    fn call(
        &self,
        _context: &AgentRunContext,
        call: HookCall,
    ) -> LocalBoxFuture<'static, Result<(), String>> {
        let effect = effect(EffectKind::Hook, |object| match &call {
            HookCall::BeforeInference { turn_index, attempt, model, messages } => {
                object.field("stage", HookStage::BeforeInference.as_str()).field("turnIndex", turn_index);
                object.field("attempt", attempt).field("model", model);
                let out = object.key("messages");
                match bridge::current() {
                    Some(bridge) => write_refs(messages, &bridge.mirror.borrow(), out),
                    None => messages.write_json(out),
                }
            }
            HookCall::AfterInference { turn_index, attempt, model, message } => {
                object.field("stage", HookStage::AfterInference.as_str()).field("turnIndex", turn_index);
                object.field("attempt", attempt).field("model", model).field("message", message);
            }
            HookCall::BeforeToolExecution { call } => {
                object.field("stage", HookStage::BeforeToolExecution.as_str()).field("call", call);
            }
            HookCall::AfterToolExecution { call, result } => {
                object
                    .field("stage", HookStage::AfterToolExecution.as_str())
                    .field("call", call)
                    .field("result", result);
            }
            HookCall::OnError { error } => {
                object.field("stage", HookStage::OnError.as_str()).field("error", error);
            }
        });
        ask(effect, |_| Ok(()))
    }
}

/// The host's clock and timers. Every call from JavaScript passes the time; a delay is an effect like any other, so the
/// engine hands out no closure that could be called after it died.
pub(super) struct JsTimer;

impl Timer for JsTimer {
    fn now(&self) -> u64 {
        crate::instance::now()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        sleep(ms, false)
    }

    fn back_off(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        sleep(ms, true)
    }
}

fn sleep(ms: u64, is_back_off: bool) -> LocalBoxFuture<'static, ()> {
    let slept = ask(
        effect(EffectKind::Sleep, |object| {
            object.field("ms", &ms).optional("backOff", &is_back_off.then_some(true));
        }),
        |_| Ok(()),
    );
    Box::pin(async { drop(slept.await) })
}
