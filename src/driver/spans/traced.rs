//! With the feature `tracing`: a span for the run, for each answer and for each call of a tool, with the names of the GenAI
//! conventions. An agent inside a call is polled inside the call's span, so its run is under it.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use futures::stream::{LocalBoxStream, Stream, StreamExt};
use tracing::field::Empty;
use tracing::span::EnteredSpan;
use tracing::{Instrument, Span, info, info_span};

use crate::host::config::AgentLoopConfig;
use crate::host::ports::AgentRunContext;
use crate::words::event::{AgentEvent, RunStopReason};
use crate::words::message::{AssistantMessage, MessageStopReason, ToolResultCause, ToolResultMessage, Usage};

/// The spans of a run that are open. Each ends when the last of its handles is dropped: with this, at the latest.
#[derive(Default)]
pub(in crate::driver) struct Spans {
    run: Option<Span>,
    /// One answer, whatever attempts it takes.
    chat: Option<Span>,
    tools: HashMap<String, Span>,
}

impl Spans {
    /// The run begins, inside whatever span is current where it is polled.
    pub(in crate::driver) fn begin(&mut self, context: &AgentRunContext, config: &AgentLoopConfig) {
        let model = config.rules.models.first();
        let run = info_span!(
            "invoke_agent",
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.provider.name = model.map(|model| provider_name(&model.provider)),
            gen_ai.request.model = model.map(|model| &*model.id),
            gen_ai.conversation.id = &*context.session_id,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            "error.type" = Empty,
            turnwheel.run.id = &*context.run_id,
        );
        self.run = Some(run);
    }

    /// Enters the span of the run, for one poll.
    pub(in crate::driver) fn entered(&self) -> EnteredSpan {
        self.run.clone().unwrap_or_else(Span::none).entered()
    }

    pub(in crate::driver) fn event(&mut self, event: &AgentEvent, config: &AgentLoopConfig) {
        let Some(run) = &self.run else { return };
        match event {
            AgentEvent::MessageStart { .. } => self.chat = Some(chat(run, config)),
            AgentEvent::MessageEnd { message, .. } => end_chat(self.chat.take(), message),
            AgentEvent::ToolExecutionEnd { result, .. } => {
                end_tool(self.tools.remove(&result.call_id), run, result)
            }
            AgentEvent::AgentEnd { stop_reason, usage, own_usage, error, .. } => {
                run.record("gen_ai.response.finish_reasons", stop_reason.as_str());
                record_usage(run, own_usage.as_ref().unwrap_or(usage));
                match (stop_reason, error) {
                    (RunStopReason::Aborted, _) => fail(run, "aborted", false),
                    (_, Some(error)) => fail(run, error.code.as_str(), true),
                    (_, None) => {}
                }
                *self = Spans::default();
            }
            _ => self.tell(run, event),
        }
    }

    /// What happens on the way is an event of the span that it concerns.
    fn tell(&self, run: &Span, event: &AgentEvent) {
        let chat = self.chat.as_ref().unwrap_or(run);
        match event {
            AgentEvent::RunResumed { .. } => info!(parent: run, "turnwheel.run_resumed"),
            AgentEvent::RetryAttempt { attempt, delay_ms, error, .. } => info!(
                parent: chat,
                turnwheel.attempt = attempt,
                turnwheel.delay_ms = delay_ms,
                "error.type" = error.code.as_str(),
                "turnwheel.retry_attempt"
            ),
            AgentEvent::MessageReset { reason } => {
                info!(parent: chat, turnwheel.reason = reason, "turnwheel.message_reset");
            }
            AgentEvent::ModelFallback { from, to } => {
                info!(parent: chat, turnwheel.from = from, turnwheel.to = to, "turnwheel.model_fallback");
            }
            AgentEvent::ModelSwitched { from, to } => {
                info!(parent: run, turnwheel.from = from, turnwheel.to = to, "turnwheel.model_switched");
            }
            // A question of an agent inside a call is told by that agent.
            AgentEvent::ToolApprovalRequested { id, call_id, tool_name, path, .. } if path.is_empty() => {
                info!(
                    parent: run,
                    gen_ai.tool.name = tool_name,
                    gen_ai.tool.call.id = call_id,
                    turnwheel.question.id = id,
                    "turnwheel.tool_approval_requested"
                )
            }
            AgentEvent::ToolApprovalResolved { id, call_id, tool_name, approved, by, path }
                if path.is_empty() =>
            {
                info!(
                    parent: run,
                    gen_ai.tool.name = tool_name,
                    gen_ai.tool.call.id = call_id,
                    turnwheel.question.id = id,
                    turnwheel.approved = approved,
                    turnwheel.by = by.as_str(),
                    "turnwheel.tool_approval_resolved"
                );
            }
            AgentEvent::ContextCompacted { report } => info!(
                parent: run,
                turnwheel.tokens_before = report.tokens_before,
                turnwheel.tokens_after = report.tokens_after,
                "turnwheel.context_compacted"
            ),
            AgentEvent::TransferInitiated { to, .. } => {
                info!(parent: run, turnwheel.to = to, "turnwheel.transfer_initiated");
            }
            _ => {}
        }
    }

    /// Runs a tool inside a span of its own, which is current wherever the tool is polled.
    pub(in crate::driver) fn tool<T: 'static>(
        &mut self,
        call_id: &str,
        tool_name: &str,
        future: LocalBoxFuture<'static, T>,
    ) -> LocalBoxFuture<'static, T> {
        let Some(run) = &self.run else { return future };
        let span = info_span!(
            parent: run,
            "execute_tool",
            otel.name = format_args!("execute_tool {tool_name}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool_name,
            gen_ai.tool.call.id = call_id,
            "gen_ai.tool.type" = "function",
            "error.type" = Empty,
        );
        self.tools.insert(call_id.to_owned(), span.clone());
        Box::pin(future.instrument(span))
    }

    /// Lets the model be called inside the span of the answer.
    pub(in crate::driver) fn answer<T: 'static>(
        &self,
        stream: LocalBoxStream<'static, T>,
    ) -> LocalBoxStream<'static, T> {
        match &self.chat {
            Some(span) => InSpan { stream, span: span.clone() }.boxed_local(),
            None => stream,
        }
    }
}

/// A stream that is polled inside a span.
struct InSpan<T> {
    stream: LocalBoxStream<'static, T>,
    span: Span,
}

impl<T> Stream for InSpan<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let _entered = self.span.clone().entered();
        self.stream.as_mut().poll_next(cx)
    }
}

fn chat(run: &Span, config: &AgentLoopConfig) -> Span {
    let options = &config.rules.stream_options;
    let Some(model) = config.rules.models.first() else { return Span::none() };
    info_span!(
        parent: run,
        "chat",
        otel.name = format_args!("chat {}", model.id),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider_name(&model.provider),
        gen_ai.request.model = &*model.id,
        gen_ai.request.stream = true,
        gen_ai.request.max_tokens = options.max_tokens,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        "error.type" = Empty,
    )
}

fn end_chat(chat: Option<Span>, message: &AssistantMessage) {
    let Some(chat) = chat else { return };
    chat.record("gen_ai.response.model", &*message.model);
    chat.record("gen_ai.response.finish_reasons", finish_reason(message.stop_reason));
    record_usage(&chat, &message.usage);
    match (message.stop_reason, &message.error) {
        (MessageStopReason::Aborted, _) => fail(&chat, "aborted", false),
        (_, Some(error)) => fail(&chat, error.code.as_str(), true),
        (_, None) => {}
    }
}

fn end_tool(tool: Option<Span>, run: &Span, result: &ToolResultMessage) {
    let cause = result.cause.map_or("tool_error", ToolResultCause::as_str);
    match tool {
        Some(tool) if result.is_error => {
            let is_error =
                !matches!(result.cause, Some(ToolResultCause::Aborted | ToolResultCause::Steering));
            fail(&tool, cause, is_error);
        }
        Some(_) => {}
        // No tool ran: it is unknown, was rejected, or the like.
        None => info!(
            parent: run,
            gen_ai.tool.name = &*result.tool_name,
            gen_ai.tool.call.id = &*result.call_id,
            turnwheel.cause = cause,
            "turnwheel.tool_not_run"
        ),
    }
}

fn fail(span: &Span, problem: &str, is_error: bool) {
    span.record("error.type", problem);
    if is_error {
        span.record("otel.status_code", "ERROR");
    }
}

/// For the conventions, the input has what came from a cache.
fn record_usage(span: &Span, usage: &Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input + usage.cache_read + usage.cache_write);
    span.record("gen_ai.usage.output_tokens", usage.output);
    if usage.cache_read > 0 {
        span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read);
    }
    if usage.cache_write > 0 {
        span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_write);
    }
    if let Some(reasoning) = usage.reasoning {
        span.record("gen_ai.usage.reasoning.output_tokens", reasoning);
    }
}

/// What the conventions call a provider, where it is not our name.
fn provider_name(provider: &str) -> &str {
    match provider {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "azure" => "azure.ai.openai",
        other => other,
    }
}

/// What the conventions call the end of an answer.
fn finish_reason(reason: MessageStopReason) -> &'static str {
    match reason {
        MessageStopReason::ToolUse => "tool_call",
        MessageStopReason::Refusal => "content_filter",
        other => other.as_str(),
    }
}
