//! Traces in the golden format: the events of a run, and what its world saw.

use serde_json::{Map, Value, json};
use turnwheel::event::AgentEvent;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, MessageStopReason, ToolResultMessage, Usage,
};
use turnwheel::stream::DeltaKind;

use crate::grammar::Grammar;
use crate::second;

/// What the callbacks of a world saw.
#[derive(Default)]
pub struct Log {
    pub events: Vec<Value>,
    pub model_calls: Vec<Value>,
    pub executions: Vec<Value>,
    pub approvals: Vec<Value>,
    pub policy_log: Vec<Value>,
    pub transforms: Vec<Value>,
    pub metrics: Vec<Value>,
    pub outcomes: Vec<Value>,
    pub hooks: Vec<Value>,
    pub around: Vec<Value>,
    pub receipts: Vec<Value>,
    /// Whether the trace is one of format 2.
    pub shows_more: bool,
    pub grammar: Grammar,
    batch: u64,
    started: Vec<String>,
}

impl Log {
    /// Records an event, and the metrics that a host computes at the end of a turn.
    pub fn event(&mut self, event: &AgentEvent, t: Option<u64>, with_metrics: bool) {
        self.grammar.take(event);
        let Some(mut shown) = shown(event) else { return };
        if self.shows_more {
            second::show_more(event, &mut shown);
        }
        match event {
            AgentEvent::TurnStart { .. } => {
                self.batch += 1;
                self.started.clear();
            }
            AgentEvent::ToolExecutionStart { call_id, .. } => self.started.push(call_id.clone()),
            AgentEvent::TurnEnd { turn_index, message: Some(message), tool_results, .. } if with_metrics => {
                self.measure(*turn_index, message, tool_results);
            }
            _ => {}
        }
        if let Some(id) = shown.get("id").cloned() {
            shown.insert("group".into(), self.batch.into());
            shown.insert("lane".into(), id);
        }
        if let Some(t) = t {
            shown.insert("t".into(), t.into());
        }
        self.events.push(Value::Object(shown));
    }

    fn measure(
        &mut self,
        turn_index: u32,
        message: &AssistantMessage,
        results: &[std::rc::Rc<ToolResultMessage>],
    ) {
        let cut = message.stop_reason == MessageStopReason::Error
            || (message.stop_reason == MessageStopReason::Aborted && results.is_empty());
        if cut {
            return;
        }
        let ran = results.iter().filter(|result| self.started.contains(&result.call_id));
        let tools: Vec<Value> = ran.map(|r| json!({ "name": r.tool_name, "success": !r.is_error })).collect();
        let usage_total = message.usage.total;
        self.metrics.push(json!({ "turn_index": turn_index, "tools": tools, "usage_total": usage_total }));
    }

    /// Returns the whole trace, with the faults where the grammar was broken.
    pub fn trace(self, name: &str, divergences: &[String], history: &[AgentMessage]) -> Value {
        let faults = if self.events.is_empty() { Vec::new() } else { self.grammar.finish(history) };
        let mut trace = Map::new();
        trace.insert("name".into(), name.into());
        if self.shows_more {
            trace.insert("format".into(), 2.into());
        }
        trace.insert("divergences".into(), divergences.into());
        trace.insert("events".into(), self.events.into());
        trace.insert("final_messages".into(), messages(history).into());
        trace.insert("model_calls".into(), self.model_calls.into());
        trace.insert("executions".into(), self.executions.into());
        if !faults.is_empty() {
            trace.insert("faults".into(), faults.into());
        }
        for (key, entries) in [
            ("approvals", self.approvals),
            ("policy_log", self.policy_log),
            ("transforms", self.transforms),
            ("metrics", self.metrics),
            ("outcomes", self.outcomes),
            ("hooks", self.hooks),
            ("around", self.around),
            ("receipts", self.receipts),
        ] {
            if !entries.is_empty() {
                trace.insert(key.into(), entries.into());
            }
        }
        Value::Object(trace)
    }
}

pub(crate) fn shown(event: &AgentEvent) -> Option<Map<String, Value>> {
    let value = match event {
        AgentEvent::AgentStart { .. }
        | AgentEvent::RunResumed { .. }
        | AgentEvent::MessageStart { .. }
        | AgentEvent::TurnStart { .. } => {
            json!({ "type": event.name() })
        }
        AgentEvent::AgentEnd { messages, .. } => {
            json!({ "type": "agent_end", "message_count": messages.len() })
        }
        AgentEvent::TurnEnd { turn_index, message, tool_results, reason, .. } => {
            let results: Vec<Value> = tool_results.iter().map(|r| result(r)).collect();
            let mut end = json!({ "type": "turn_end", "reason": reason.as_str(), "turn_index": turn_index });
            if let (Some(message), Value::Object(end)) = (message, &mut end) {
                end.extend(answer(message));
            }
            end["tool_results"] = results.into();
            end
        }
        AgentEvent::MessageUpdate(delta) => json!({
            "type": "message_update",
            "kind": match delta.kind {
                DeltaKind::Text => "text",
                DeltaKind::Thinking => "thinking",
                DeltaKind::ToolCall { .. } => "tool_call",
            },
            "index": delta.content_index,
            "delta": delta.text,
        }),
        AgentEvent::MessageReset { reason } => json!({ "type": "message_reset", "reason": reason }),
        AgentEvent::MessageEnd { message, .. } => {
            let mut end = json!({ "type": "message_end" });
            if let Value::Object(end) = &mut end {
                end.extend(answer(message));
            }
            end
        }
        AgentEvent::ToolExecutionStart { call_id, tool_name, arguments, .. }
        | AgentEvent::ToolApprovalRequested { call_id, tool_name, arguments, .. } => {
            json!({ "type": event.name(), "id": call_id, "name": tool_name, "arguments": value_of(arguments) })
        }
        AgentEvent::ToolApprovalResolved { call_id, tool_name, approved, .. } => {
            json!({ "type": event.name(), "id": call_id, "name": tool_name, "approved": approved })
        }
        AgentEvent::QuestionAsked { question } => json!({
            "type": event.name(),
            "kind": question.kind.as_str(),
            "call": question.call_id(),
            "message": question.message,
            "path": question.path,
        }),
        AgentEvent::QuestionResolved { kind, call_id, accepted, by, .. } => json!({
            "type": event.name(), "kind": kind.as_str(), "call": call_id, "accepted": accepted, "by": by.as_str()
        }),
        AgentEvent::ToolExecutionUpdate { call_id, tool_name, update } => {
            let update = value_of(update);
            let text = update.as_str().map_or_else(|| update.to_string(), str::to_owned);
            json!({ "type": event.name(), "id": call_id, "name": tool_name, "text": text })
        }
        AgentEvent::ToolExecutionEnd { result, .. } => json!({
            "type": "tool_execution_end",
            "id": result.call_id,
            "name": result.tool_name,
            "text": result.text(),
            "is_error": result.is_error,
        }),
        AgentEvent::ContextCompacted { report } => json!({
            "type": "context_compacted",
            "dropped_count": report.dropped_count,
            "overflow": report.overflow,
        }),
        AgentEvent::BeforeLlmCall { messages, .. } => {
            json!({ "type": "before_llm_call", "message_count": messages.len() })
        }
        AgentEvent::RetryAttempt { attempt, delay_ms, .. } => {
            json!({ "type": "retry_attempt", "attempt": attempt, "delay_ms": delay_ms })
        }
        AgentEvent::ModelFallback { from, to } | AgentEvent::ModelSwitched { from, to } => {
            json!({ "type": event.name(), "from": from, "to": to })
        }
        AgentEvent::StateChanged { changes } => {
            json!({ "type": "state_changed", "changes": value_of(changes) })
        }
        AgentEvent::CacheAction { write, prefix_tokens } => json!({
            "type": "cache_action",
            "action": if *write { "write" } else { "read" },
            "prefix_tokens": prefix_tokens,
        }),
        AgentEvent::HistoryRewound { length, cut, added } => {
            json!({ "type": "history_rewound", "length": length, "cut": cut, "added": added })
        }
        AgentEvent::TransferInitiated { to, reason } => {
            json!({ "type": "transfer_initiated", "target": to, "reason": reason })
        }
        AgentEvent::CommandRefused { call_id, reason, .. } => {
            json!({ "type": "command_refused", "call": call_id, "reason": reason })
        }
        AgentEvent::SubagentEvent { call_id, path, event: inner } => {
            let inner = value_of(inner);
            // The pieces of an answer come as they are read.
            if inner["type"] == "message_update" {
                return None;
            }
            json!({ "type": event.name(), "call": call_id, "path": path, "event": inner["type"] })
        }
        AgentEvent::Budget { .. } => value_of(&event.to_raw()),
        AgentEvent::ToolCallsProposed { .. } | AgentEvent::Custom { .. } => return None,
    };
    match value {
        Value::Object(shown) => Some(shown),
        _ => None,
    }
}

/// Parses JSON text.
pub fn value_of(raw: &RawJson) -> Value {
    serde_json::from_str(raw.as_str()).unwrap_or_default()
}

/// Returns the same value with the keys of every object sorted.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> =
                map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn answer(message: &AssistantMessage) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("text".into(), message.text().into());
    let thinking: String = message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Thinking(block) => Some(block.thinking.as_str()),
            _ => None,
        })
        .collect();
    if !thinking.is_empty() {
        shown.insert("thinking".into(), thinking.into());
    }
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| json!({ "id": call.call_id, "name": call.tool_name, "arguments": value_of(&call.arguments) }))
        .collect();
    if !calls.is_empty() {
        shown.insert("tool_calls".into(), calls.into());
    }
    shown.insert("stop_reason".into(), message.stop_reason.as_str().into());
    if let Some(error) = &message.error {
        shown.insert("error".into(), error.message.clone().into());
    }
    shown
}

fn result(result: &ToolResultMessage) -> Value {
    json!({ "id": result.call_id, "text": result.text(), "is_error": result.is_error })
}

/// Writes the messages of a history.
pub fn messages(history: &[AgentMessage]) -> Vec<Value> {
    history.iter().map(message).collect()
}

/// Writes the messages of a request.
pub fn request_messages(request: &[LlmMessage]) -> Vec<Value> {
    request.iter().map(|message_of_request| message(&message_of_request.clone().into())).collect()
}

fn message(message: &AgentMessage) -> Value {
    match message {
        AgentMessage::User(user) => {
            json!({ "role": "user", "text": turnwheel::message::text_of(&user.content) })
        }
        AgentMessage::Assistant(message) => {
            let mut shown = Map::new();
            shown.insert("role".into(), "assistant".into());
            shown.extend(answer(message));
            Value::Object(shown)
        }
        AgentMessage::ToolResult(result) => json!({
            "role": "tool_result",
            "tool_call_id": result.call_id,
            "text": result.text(),
            "is_error": result.is_error,
        }),
        AgentMessage::Custom(custom) => json!({ "role": "custom", "text": value_of(&custom.data) }),
    }
}

/// Writes token counts as outcomes show them.
pub fn usage(usage: &Usage) -> Value {
    json!({ "input": usage.input, "output": usage.output, "total": usage.total })
}
