//! Writes events as JSON.

use crate::data::json::members::plain;
use crate::data::json::{ObjectWriter, RawJson, ToJson, members};

use crate::words::message::Usage;
use crate::words::question::{Question, QuestionKind};

use super::{AgentEvent, CompactionReport, write_amount};

impl AgentEvent {
    /// Appends the members of the event's JSON object, `type` first.
    pub fn write_members(&self, object: &mut ObjectWriter<'_>) {
        self.write_what(object);
        object.optional("at", &self.at());
    }

    /// Returns the event as JSON, with the id of its run.
    pub(crate) fn to_json_with(&self, run_id: &str) -> RawJson {
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        self.write_members(&mut object);
        object.field("runId", run_id);
        object.end();
        RawJson::parse(&text).unwrap_or_else(|_| RawJson::null())
    }

    /// Appends the members but the time.
    pub(crate) fn write_what(&self, object: &mut ObjectWriter<'_>) {
        object.field("type", self.name());
        match self {
            AgentEvent::AgentStart { .. } | AgentEvent::MessageStart { .. } => {}
            AgentEvent::RunResumed {
                turn_index, partial_message, pending_approvals, running_tools, ..
            } => {
                object.field("turnIndex", turn_index).optional("partialMessage", partial_message);
                write_questions(pending_approvals, object);
                object.field("runningTools", running_tools);
            }
            AgentEvent::AgentEnd { messages, stop_reason, usage, own_usage, turns, error, .. } => {
                object.field("messages", messages).field("stopReason", stop_reason.as_str());
                write_usage(usage, own_usage.as_ref(), object);
                object.field("turns", turns).optional("error", error);
            }
            AgentEvent::TurnStart { turn_index, .. } => drop(object.field("turnIndex", turn_index)),
            AgentEvent::TurnEnd { turn_index, message, tool_results, reason, .. } => {
                object.field("turnIndex", turn_index).field("message", message);
                object.field("toolResults", tool_results).field("reason", reason.as_str());
            }
            AgentEvent::MessageUpdate(delta) => drop(object.field("delta", delta)),
            AgentEvent::MessageReset { reason } => drop(object.field("reason", reason)),
            AgentEvent::MessageEnd { message, .. } => drop(object.field("message", message)),
            AgentEvent::ContextCompacted { report } => drop(object.field("report", report)),
            AgentEvent::BeforeLlmCall { system_prompt, messages, model } => {
                object.field("systemPrompt", system_prompt);
                object.field("messages", messages).field("model", model);
            }
            AgentEvent::RetryAttempt { attempt, delay_ms, reason, error } => {
                object.field("attempt", attempt).field("delayMs", delay_ms);
                object.field("reason", reason).field("error", error);
            }
            AgentEvent::ModelFallback { from, to } | AgentEvent::ModelSwitched { from, to } => {
                object.field("from", from).field("to", to);
            }
            AgentEvent::CommandRefused { id, call_id, reason } => {
                object.optional("id", id).optional("callId", call_id).field("reason", reason);
            }
            AgentEvent::StateChanged { changes } => drop(object.field("changes", changes)),
            AgentEvent::CacheAction { write, prefix_tokens } => {
                object.field("action", if *write { "write" } else { "read" });
                object.field("prefixTokens", prefix_tokens);
            }
            AgentEvent::TransferInitiated { to, reason } => {
                object.field("to", to).optional("reason", reason);
            }
            AgentEvent::SubagentEvent { call_id, path, event } => {
                object.field("callId", call_id).field("path", path).field("event", event);
            }
            AgentEvent::Budget { .. } => self.write_budget(object),
            AgentEvent::HistoryRewound { length, cut, added } => {
                object.field("length", length).field("cut", cut).field("added", added);
            }
            AgentEvent::Custom { name, payload } => {
                object.field("name", name).field("payload", payload);
            }
            _ => self.write_tool_members(object),
        }
    }

    fn write_budget(&self, object: &mut ObjectWriter<'_>) {
        let AgentEvent::Budget { state, kind, used, limit } = self else { return };
        object.field("state", state.as_str()).field("kind", kind.as_str());
        write_amount("used", *kind, *used, object);
        write_amount("limit", *kind, *limit, object);
    }

    fn write_tool_members(&self, object: &mut ObjectWriter<'_>) {
        match self {
            AgentEvent::ToolCallsProposed { calls } => drop(object.field("calls", calls)),
            AgentEvent::ToolApprovalRequested { id, call_id, tool_name, arguments, asked_at, path } => {
                object.field("id", id).field("callId", call_id).field("toolName", tool_name);
                object.field("arguments", arguments).field("askedAt", asked_at);
                write_path(path, object);
            }
            AgentEvent::ToolExecutionStart { call_id, tool_name, arguments, .. } => {
                object.field("callId", call_id).field("toolName", tool_name).field("arguments", arguments);
            }
            AgentEvent::ToolApprovalResolved { id, call_id, tool_name, approved, by, path } => {
                object.field("id", id).field("callId", call_id).field("toolName", tool_name);
                object.field("approved", approved).field("by", by.as_str());
                write_path(path, object);
            }
            AgentEvent::QuestionAsked { question } => question.write_members(object),
            AgentEvent::QuestionResolved { id, kind, call_id, accepted, by, path } => {
                object.field("id", id).field("kind", kind.as_str()).optional("callId", call_id);
                object.field("accepted", accepted).field("by", by.as_str()).field("path", path);
            }
            AgentEvent::ToolExecutionUpdate { call_id, tool_name, update } => {
                object.field("callId", call_id).field("toolName", tool_name).field("update", update);
            }
            AgentEvent::ToolExecutionEnd { result, .. } => {
                object.field("callId", &result.call_id).field("toolName", &result.tool_name);
                object.field("result", result).field("isError", &result.is_error);
            }
            _ => {}
        }
    }
}

/// Writes the usage of a run; `own` is what it is without that of its sub-agents.
pub fn write_usage(usage: &Usage, own: Option<&Usage>, object: &mut ObjectWriter<'_>) {
    let mut inner = ObjectWriter::new(object.key("usage"));
    usage.write_members(&mut inner);
    inner.optional("own", &own.copied());
    inner.end();
}

/// Writes the open questions: those about calls, and the others, if there are any.
fn write_questions(questions: &[Question], object: &mut ObjectWriter<'_>) {
    let of = |is_tool: bool| -> Vec<Question> {
        let is_wanted = |question: &&Question| (question.kind == QuestionKind::Tool) == is_tool;
        questions.iter().filter(is_wanted).cloned().collect()
    };
    object.field("pendingApprovals", &of(true));
    let others = of(false);
    if !others.is_empty() {
        object.field("pendingQuestions", &others);
    }
}

fn write_path(path: &Vec<String>, object: &mut ObjectWriter<'_>) {
    if !path.is_empty() {
        object.field("path", path);
    }
}

impl ToJson for AgentEvent {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        self.write_members(&mut object);
        object.end();
    }
}

members!(CompactionReport {
    "text" => text: plain,
    "droppedCount" => dropped_count: plain,
    "tokensBefore" => tokens_before: plain,
    "tokensAfter" => tokens_after: plain,
    "overflow" => overflow: plain,
});
