//! Asynchronous ports: each is an effect of the host.

use std::future::poll_fn;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, StreamExt};
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::config::TurnOptions;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::http::{HttpResponse, Transport};
use turnwheel::json::{FromJson, ToJson, Value};
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;
use turnwheel::ports::{
    AgentRunContext, ApprovalRequest, Approver, AsyncContextTransformer, Compaction, CompactionCall,
    CompactionEngine, KeySource, MessageProvider, StreamFn, Timer, TurnCall, TurnChoice, TurnPreparer,
};
use turnwheel::price::Price;
use turnwheel::stream::{AssistantMessageEvent, ModelRequest};
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec};
use turnwheel::wires::HttpRequest;

use crate::desk::{Call, Desk, Said, callback, effect, object};
use crate::rules::{Cached, read_messages, read_report, read_transform};

/// The host's functions, which answer when they like.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) desk: Rc<Desk>,
    pub(crate) cached: Cached,
}

impl Host {
    /// Calls a function of the host and reads its answer.
    fn call<T: 'static>(
        &self,
        name: &str,
        argument: &str,
        read: fn(&Value) -> Result<T, String>,
    ) -> LocalBoxFuture<'static, Result<T, String>> {
        let answer = self.desk.start(&callback(name, argument), None).done();
        Box::pin(async move { read(&answer.await?) })
    }

    /// Asks a queue of the host. Messages that are there count before another tool starts, so it answers at once.
    fn poll(&self, name: &str) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        let messages = self.desk.ask(name, "null").and_then(|list| Vec::from_json(&list));
        Box::pin(std::future::ready(messages.unwrap_or_default()))
    }
}

impl Timer for Host {
    fn now(&self) -> u64 {
        self.desk.now()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        let slept = self
            .desk
            .start(
                &effect("sleep", |object| {
                    object.field("ms", &ms);
                }),
                None,
            )
            .done();
        Box::pin(async { drop(slept.await) })
    }
}

impl Transport for Host {
    fn send(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, String>> {
        let body = String::from_utf8_lossy(&request.body);
        let effect = effect("fetch", |out| {
            out.field("method", "POST").field("url", &request.url);
            out.key("headers").push_str(&object(|headers| {
                request.headers.iter().for_each(|(name, value)| {
                    headers.field(name, value);
                });
            }));
            out.field("body", &*body);
        });
        let mut fetch = self.desk.start(&effect, None);
        Box::pin(async move {
            loop {
                match poll_fn(|cx| fetch.poll(cx)).await {
                    Said::Head { status, headers } => {
                        let body = stream::unfold(Some(fetch), |fetch| async move {
                            let mut fetch = fetch?;
                            match poll_fn(|cx| fetch.poll(cx)).await {
                                Said::Body(bytes) => Some((Ok(bytes), Some(fetch))),
                                Said::Failed(text) => Some((Err(text), None)),
                                _ => None,
                            }
                        });
                        return Ok(HttpResponse { status, headers, body: body.boxed_local() });
                    }
                    Said::Failed(text) => return Err(text),
                    Said::Done(_) => return Err("the response ended before its head".to_owned()),
                    Said::Body(_) | Said::Progress(_) => {}
                }
            }
        })
    }
}

/// A model that the host streams itself: the callback `streamModel`, whose progress are the events of the answer.
pub(crate) struct HostModel {
    pub(crate) host: Host,
    pub(crate) index: u64,
    pub(crate) price: Option<Price>,
    pub(crate) estimates: bool,
}

impl StreamFn for HostModel {
    fn estimates_usage(&self) -> bool {
        self.estimates
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn stream(
        &self,
        request: ModelRequest,
        context: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let argument = object(|out| {
            out.field("index", &self.index).field("runId", &context.run_id);
            out.key("request").push_str(&written(&request));
        });
        let effect = self.host.desk.start(&callback("streamModel", &argument), None);
        stream::unfold(Some(effect), |effect| async move {
            let mut effect = effect?;
            match poll_fn(|cx| effect.poll(cx)).await {
                Said::Progress(event) => {
                    let event = AssistantMessageEvent::from_json(&event).unwrap_or_else(|text| failed(&text));
                    Some((event, Some(effect)))
                }
                Said::Failed(text) => Some((failed(&text), None)),
                _ => None,
            }
        })
        .boxed_local()
    }
}

fn failed(text: &str) -> AssistantMessageEvent {
    AssistantMessageEvent::Error(ErrorInfo::new(ErrorKind::Unknown, text))
}

/// A request as the `streamFn` of the npm package gets it.
fn written(request: &ModelRequest) -> String {
    object(|out| {
        out.field("model", &request.model).field("systemPrompt", &request.system_prompt);
        out.field("messages", &**request.messages).field("tools", &*request.tools);
        out.field("options", &*request.options);
        out.optional("apiKey", &request.api_key).optional("output", &request.output);
    })
}

/// A tool that the host executes.
pub(crate) struct HostTool {
    pub(crate) host: Host,
    pub(crate) spec: ToolSpec,
}

impl AgentTool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let effect = effect("execute", |out| {
            out.field("tool", &context.tool_name).field("callId", &context.call_id);
            out.field("arguments", &context.arguments).field("runId", &context.run_id);
            out.field("sessionId", &context.session_id).field("turnIndex", &context.turn_index);
            out.field("state", &context.state.snapshot());
        });
        let call = Call { updates: context.updates.clone(), state: context.state.clone() };
        let result = self.host.desk.start(&effect, Some(call)).done();
        Box::pin(async { result.await.map_or_else(ToolOutcome::Failed, |answer| outcome(&answer)) })
    }
}

/// Reads `{ value }`, which is for the model and does nothing, or `{ result }`, which may have images and a transfer.
fn outcome(answer: &Value) -> ToolOutcome {
    if answer.flag_at("cancelled") == Some(true) {
        return ToolOutcome::Cancelled;
    }
    if let Some(result) = answer.get("result") {
        return match AgentToolResult::from_json(result) {
            Ok(result) => ToolOutcome::Completed(result),
            Err(text) => ToolOutcome::Failed(text),
        };
    }
    ToolOutcome::Completed(AgentToolResult::text(match answer.get("value") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_json(),
    }))
}

impl KeySource for Host {
    fn key(&self, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        let argument = object(|out| {
            out.field("provider", provider);
        });
        self.call("getApiKey", &argument, |answer| Ok(answer.as_str().map(Rc::from)))
    }
}

impl MessageProvider for Host {
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        self.poll("getSteeringMessages")
    }

    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        self.poll("getFollowUpMessages")
    }
}

impl AsyncContextTransformer for Host {
    fn transform(
        &self,
        messages: Rc<[AgentMessage]>,
        overflow: bool,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        let argument = crate::rules::transform_input(&messages, overflow, &self.cached);
        self.call("asyncTransformContext", &argument, read_transform)
    }
}

impl TurnPreparer for Host {
    fn prepare(&self, turn: TurnCall) -> LocalBoxFuture<'static, Result<TurnChoice, String>> {
        let argument = object(|out| {
            out.field("runId", &turn.context.run_id).field("turnIndex", &turn.turn_index);
            out.field("usage", &turn.usage).field("messages", &*turn.messages);
        });
        self.call("prepareTurn", &argument, |answer| {
            let messages = answer.get("messages").map(read_messages).transpose()?;
            Ok(TurnChoice { options: TurnOptions::from_json(answer)?, messages })
        })
    }
}

impl CompactionEngine for Host {
    fn compact(
        &self,
        _: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        let argument = object(|out| {
            out.field("model", &call.model).field("messages", &*call.messages);
        });
        self.call("compaction", &argument, |answer| {
            let messages = read_messages(answer.get("messages").unwrap_or(&Value::Null))?;
            let report = answer.get("report").filter(|report| !report.is_null()).map(read_report);
            Ok(Compaction { messages, report, ..Compaction::default() })
        })
    }
}

impl Approver for Host {
    fn decide(
        &self,
        request: ApprovalRequest,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let argument = object(|out| {
            out.field("id", &request.id).field("callId", &request.call_id);
            out.field("toolName", &request.tool_name).field("arguments", &request.arguments);
            out.field("requiresApproval", &request.requires_approval);
        });
        self.call("approveTool", &argument, ToolDecision::from_json)
    }
}
