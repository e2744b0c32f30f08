//! Reads events back from JSON. A checkpoint needs this if it was taken before all events of a step were
//! emitted. In the npm package the facade keeps those events, so this code is not in the Wasm file.

use std::rc::Rc;

use crate::data::json::{FromJson, RawJson, ToJson, Value};
use crate::words::error::ErrorInfo;
use crate::words::message::Usage;

use super::reasons::{DecisionSource, RunStopReason, TurnEndReason};
use super::{AgentEvent, CompactionReport, Delta};

impl FromJson for AgentEvent {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = |key: &str| value.text_at(key).unwrap_or_default().to_owned();
        let number = |key: &str| value.number_at(key).unwrap_or_default();
        let index = |key: &str| u32::try_from(number(key)).unwrap_or_default();
        let flag = |key: &str| value.flag_at(key).unwrap_or_default();
        let any = |key: &str| value.get(key).unwrap_or(&Value::Null);
        let raw = |key: &str| -> RawJson { any(key).to_raw() };
        let optional = |key: &str| value.owned_at(key);
        Ok(match text("type").as_str() {
            "agent_start" => AgentEvent::AgentStart,
            "run_resumed" => AgentEvent::RunResumed {
                turn_index: index("turnIndex"),
                partial_message: maybe(value, "partialMessage")?.map(Rc::new),
                pending_approvals: Vec::from_json(any("pendingApprovals"))?,
                running_tools: Vec::from_json(any("runningTools"))?,
            },
            "agent_end" => AgentEvent::AgentEnd {
                messages: Vec::from_json(any("messages"))?,
                stop_reason: RunStopReason::from_word(&text("stopReason")).unwrap_or(RunStopReason::Error),
                usage: Usage::from_json(any("usage"))?,
                turns: index("turns"),
                error: maybe(value, "error")?,
            },
            "turn_start" => AgentEvent::TurnStart { turn_index: index("turnIndex") },
            "turn_end" => AgentEvent::TurnEnd {
                turn_index: index("turnIndex"),
                message: maybe(value, "message")?.map(Rc::new),
                tool_results: Vec::from_json(any("toolResults"))?.into_iter().map(Rc::new).collect(),
                reason: TurnEndReason::from_word(&text("reason")).unwrap_or(TurnEndReason::Error),
            },
            "message_start" => AgentEvent::MessageStart,
            "message_update" => AgentEvent::MessageUpdate(Delta::from_json(any("delta"))?),
            "message_reset" => AgentEvent::MessageReset { reason: text("reason") },
            "message_end" => {
                AgentEvent::MessageEnd { message: Rc::new(FromJson::from_json(any("message"))?) }
            }
            "tool_calls_proposed" => AgentEvent::ToolCallsProposed { calls: Vec::from_json(any("calls"))? },
            "tool_approval_requested" => AgentEvent::ToolApprovalRequested {
                call_id: text("callId"),
                tool_name: text("toolName"),
                arguments: raw("arguments"),
            },
            "tool_approval_resolved" => AgentEvent::ToolApprovalResolved {
                call_id: text("callId"),
                tool_name: text("toolName"),
                approved: flag("approved"),
                by: DecisionSource::from_word(&text("by")).unwrap_or(DecisionSource::Abort),
            },
            "tool_execution_start" => AgentEvent::ToolExecutionStart {
                call_id: text("callId"),
                tool_name: text("toolName"),
                arguments: raw("arguments"),
            },
            "tool_execution_update" => AgentEvent::ToolExecutionUpdate {
                call_id: text("callId"),
                tool_name: text("toolName"),
                update: raw("update"),
            },
            "tool_execution_end" => {
                AgentEvent::ToolExecutionEnd { result: Rc::new(FromJson::from_json(any("result"))?) }
            }
            "context_compacted" => {
                let report = any("report");
                let count = |key: &str| report.number_at(key).unwrap_or_default();
                AgentEvent::ContextCompacted {
                    report: CompactionReport {
                        text: report.text_at("text").unwrap_or_default().to_owned(),
                        dropped_count: count("droppedCount"),
                        tokens_before: count("tokensBefore"),
                        tokens_after: count("tokensAfter"),
                        overflow: report.flag_at("overflow").unwrap_or_default(),
                    },
                }
            }
            "before_llm_call" => AgentEvent::BeforeLlmCall {
                system_prompt: text("systemPrompt").into(),
                messages: Rc::new(Vec::from_json(any("messages"))?),
                model: text("model").into(),
            },
            "retry_attempt" => AgentEvent::RetryAttempt {
                attempt: index("attempt"),
                delay_ms: number("delayMs"),
                reason: text("reason"),
                error: ErrorInfo::from_json(any("error"))?,
            },
            "model_fallback" => AgentEvent::ModelFallback { from: text("from"), to: text("to") },
            "model_switched" => AgentEvent::ModelSwitched { from: text("from"), to: text("to") },
            "command_refused" => {
                AgentEvent::CommandRefused { call_id: optional("callId"), reason: text("reason") }
            }
            "state_changed" => AgentEvent::StateChanged { changes: raw("changes") },
            "cache_action" => AgentEvent::CacheAction {
                write: text("action") == "write",
                prefix_tokens: number("prefixTokens"),
            },
            "transfer_initiated" => {
                AgentEvent::TransferInitiated { to: text("to"), reason: optional("reason") }
            }
            "subagent_event" => AgentEvent::SubagentEvent { call_id: text("callId"), event: raw("event") },
            "custom" => AgentEvent::Custom { name: text("name"), payload: raw("payload") },
            other => return Err(["unknown event `", other, "`"].concat()),
        })
    }
}

fn maybe<T: FromJson>(value: &Value, key: &str) -> Result<Option<T>, String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::from_json(value).map(Some),
    }
}
