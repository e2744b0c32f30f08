//! The engine's events under the peer's names.

use std::rc::Rc;

use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{AgentEvent, RunStopReason, TurnEndReason};
use turnwheel::json::Value;
use turnwheel::message::{
    AssistantMessage, MessageStopReason, ToolCallBlock, ToolResultCause, ToolResultMessage, Usage,
};
use turnwheel::stream::{Delta, DeltaKind};

use super::super::object;

/// What the view remembers between events.
#[derive(Default)]
pub(super) struct View {
    turn: u64,
    /// The last answer: the peer reports it once its hooks have been called.
    answer: Option<Rc<AssistantMessage>>,
    /// Whether the provider itself ended the answer with an error, which the peer
    /// treats like any other end.
    pub(super) finished_with_error: bool,
    /// Why the model refused the conversation as too long; the peer reports the reason.
    pub(super) overflow: String,
}

/// The peer's texts for results that no tool wrote.
pub(super) fn result_text(cause: ToolResultCause) -> Option<String> {
    use ToolResultCause as C;
    let text = match cause {
        C::Steering | C::Skipped => "{\"skipped\":\"Skipped due to steering update\"}",
        C::Aborted => "TOOL_CALL_CANCELLED",
        C::Rejected | C::Denied => "Tool call rejected by user",
        _ => return None,
    };
    Some(text.to_owned())
}

impl View {
    /// Returns what the peer reports in place of an event, in order.
    pub(super) fn of(&mut self, event: &AgentEvent) -> Vec<Value> {
        let mut entries = Vec::new();
        if let Some(answer) = self.answer.take() {
            if !answer.text().is_empty() {
                entries.push(named("TextComplete", [("text", answer.text().into())]));
            }
            let usage = tokens(&answer.usage);
            entries.push(named("UsageReport", [("turn", self.turn.into()), ("usage", usage)]));
        }
        self.add_entries(event, &mut entries);
        entries
    }

    fn add_entries(&mut self, event: &AgentEvent, entries: &mut Vec<Value>) {
        match event {
            AgentEvent::AgentStart { .. } => entries.push(named("RunStarted", [])),
            AgentEvent::TurnStart { turn_index, .. } => {
                self.turn = u64::from(*turn_index) + 1;
                entries.push(named("TurnStarted", [("turn", self.turn.into())]));
            }
            AgentEvent::MessageUpdate(Delta { kind, text, .. }) => match kind {
                DeltaKind::Text => entries.push(named("TextDelta", [("delta", text.as_str().into())])),
                DeltaKind::Thinking => {
                    entries.push(named("ThinkingDelta", [("delta", text.as_str().into())]))
                }
                DeltaKind::ToolCall { .. } => {}
            },
            AgentEvent::MessageEnd { message, .. } if !message.is_cut() || self.finished_with_error => {
                self.answer = Some(message.clone());
            }
            AgentEvent::ToolCallsProposed { calls } => {
                let ids = calls.iter().map(|call| call.call_id.as_str().into()).collect();
                let calls = calls.iter().map(proposed).collect();
                entries.push(named("ToolCallsProposed", [("tool_calls", Value::Array(calls))]));
                entries.push(named("WaitingForToolApproval", [("pending_tool_call_ids", Value::Array(ids))]));
            }
            AgentEvent::ToolExecutionStart { call_id, tool_name, .. } => {
                entries.push(of_call("ToolExecutionStarted", call_id, tool_name, []));
            }
            AgentEvent::ToolExecutionEnd { result, .. } => entries.push(ended(result)),
            AgentEvent::TurnEnd { message, reason, .. } => {
                if let Some(word) = self.finish_word(message.as_deref(), *reason) {
                    let word = word.into();
                    entries
                        .push(named("TurnCompleted", [("turn", self.turn.into()), ("finish_reason", word)]));
                }
            }
            AgentEvent::ContextCompacted { report } => {
                let members = [
                    ("tokens_before", report.tokens_before.into()),
                    ("tokens_after", report.tokens_after.into()),
                    ("truncated", (report.text == "truncated").into()),
                ];
                entries.push(named("CompactionCompleted", members));
                // The same turn continues; the peer announces it again.
                entries.push(named("TurnStarted", [("turn", self.turn.into())]));
            }
            AgentEvent::RetryAttempt { attempt, delay_ms, reason, .. } => {
                let attempt = u64::from(*attempt).into();
                let reason = reason.as_str().into();
                let members = [("attempt", attempt), ("delay_ms", (*delay_ms).into()), ("reason", reason)];
                entries.push(named("RetryAttempt", members));
            }
            AgentEvent::AgentEnd { stop_reason, usage, turns, error, .. } => {
                entries.push(self.end(*stop_reason, usage, *turns, error.as_ref()));
            }
            _ => {}
        }
    }

    /// How a turn ended. A failed call, hook or tool ends the run but no turn; so does a call that was
    /// stopped before it answered.
    fn finish_word(&self, message: Option<&AssistantMessage>, reason: TurnEndReason) -> Option<&'static str> {
        let message = message?;
        Some(match reason {
            TurnEndReason::Error if self.finished_with_error => "error",
            TurnEndReason::Error => return None,
            TurnEndReason::Aborted if message.content.is_empty() => return None,
            TurnEndReason::Aborted => "cancelled",
            TurnEndReason::Complete if message.stop_reason == MessageStopReason::Length => {
                "max_output_tokens"
            }
            TurnEndReason::Complete => "stop",
            _ => "tool_calls",
        })
    }

    fn end(&self, reason: RunStopReason, usage: &Usage, turns: u32, error: Option<&ErrorInfo>) -> Value {
        if let Some(error) = self.failure(reason, error) {
            // The run is over: nothing in it will be retried.
            return named("RunError", [("error", bare(error).into()), ("retryable", false.into())]);
        }
        let members = [
            ("total_turns", u64::from(turns).into()),
            ("total_usage", tokens(usage)),
            ("stop_reason", stop_word(reason).into()),
        ];
        named("RunCompleted", members)
    }

    /// Returns the error that ended the run, unless the peer treats it as an ordinary end.
    pub(super) fn failure<'e>(
        &self,
        reason: RunStopReason,
        error: Option<&'e ErrorInfo>,
    ) -> Option<&'e ErrorInfo> {
        error.filter(|_| reason == RunStopReason::Error && !self.finished_with_error)
    }
}

pub(super) fn stop_word(reason: RunStopReason) -> &'static str {
    match reason {
        RunStopReason::Aborted => "cancelled",
        reason => reason.as_str(),
    }
}

pub(super) fn tokens(usage: &Usage) -> Value {
    object([
        ("prompt_tokens", usage.input.into()),
        ("completion_tokens", usage.output.into()),
        ("total_tokens", usage.total.into()),
    ])
}

/// Returns the peer's word for a kind of error, and the prefix that it writes before the text.
pub(super) fn kind_of(error: &ErrorInfo) -> (&'static str, &'static str) {
    match (error.code, error.phase.as_deref()) {
        (ErrorKind::Hook, _) => ("hook", "hook failed: "),
        (ErrorKind::Tool, _) => ("tool_execution", "tool execution failed: "),
        (_, Some("compaction")) => ("compaction", "compaction failed: "),
        _ => ("inference", "inference failed: "),
    }
}

/// Returns the text of an error without the engine's own prefix.
pub(super) fn bare(error: &ErrorInfo) -> &str {
    let text = error.message.as_str();
    match kind_of(error).0 {
        "hook" => text.strip_prefix("a hook failed: ").unwrap_or(text),
        "tool_execution" | "compaction" => text.split_once(" failed: ").map_or(text, |(_, text)| text),
        _ => text,
    }
}

pub(super) fn whole(error: &ErrorInfo) -> String {
    [kind_of(error).1, bare(error)].concat()
}

fn named<const N: usize>(event: &str, members: [(&str, Value); N]) -> Value {
    let name = ("event".to_owned(), event.into());
    let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(std::iter::once(name).chain(members).collect())
}

fn of_call<const N: usize>(event: &str, id: &str, tool: &str, more: [(&str, Value); N]) -> Value {
    let first = named(event, [("tool_call_id", id.into()), ("tool_name", tool.into())]);
    let more = more.into_iter().map(|(key, value)| (key.to_owned(), value));
    let first = first.as_object().cloned().unwrap_or_default();
    Value::Object(first.into_iter().chain(more).collect())
}

fn proposed(call: &ToolCallBlock) -> Value {
    let mut members = vec![
        ("id".to_owned(), call.call_id.as_str().into()),
        ("name".to_owned(), call.tool_name.as_str().into()),
        ("arguments".to_owned(), call.arguments.to_value()),
    ];
    members.extend(call.metadata.as_ref().map(|metadata| ("metadata".to_owned(), metadata.to_value())));
    Value::Object(members.into_iter().collect())
}

fn ended(result: &ToolResultMessage) -> Value {
    use ToolResultCause as C;
    let reason = match result.cause {
        Some(C::Steering | C::Skipped) => {
            let text = Value::parse(&result.text()).ok();
            text.and_then(|text| text.get("skipped").cloned()).or_else(|| Some(result.text().into()))
        }
        Some(C::Rejected | C::Denied) => Some(result.text().into()),
        _ => None,
    };
    match reason {
        Some(reason) => of_call("ToolRejected", &result.call_id, &result.tool_name, [("reason", reason)]),
        None => {
            let members = [("result", result.text().into()), ("is_error", result.is_error.into())];
            of_call("ToolExecutionCompleted", &result.call_id, &result.tool_name, members)
        }
    }
}
