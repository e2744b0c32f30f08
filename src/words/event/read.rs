//! Reads events back from JSON. A checkpoint needs this if it was taken before all events of a step were
//! emitted. In the npm package the facade keeps those events, so this code is not in the Wasm file.

use std::rc::Rc;

use crate::data::json::{FromJson, RawJson, ToJson, Value};
use crate::words::error::ErrorInfo;
use crate::words::message::Usage;
use crate::words::question::{Question, QuestionKind};

use super::reasons::{DecisionSource, RunStopReason, TurnEndReason};
use super::{AgentEvent, BudgetKind, BudgetState, CompactionReport, Delta, read_amount};

impl FromJson for AgentEvent {
    fn from_json(value: &Value) -> Result<Self, String> {
        let (event, kind) = (Members(value), value.text_at("type").unwrap_or_default());
        if let Some(known) = run_event(kind, event)? {
            return Ok(known);
        }
        if let Some(known) = tool_event(kind, event)? {
            return Ok(known);
        }
        other_event(kind, event)?.ok_or_else(|| ["unknown event `", kind, "`"].concat())
    }
}

/// Reads what begins and ends: runs, turns, messages.
fn run_event(kind: &str, event: Members<'_>) -> Result<Option<AgentEvent>, String> {
    let at = event.number("at");
    Ok(Some(match kind {
        "agent_start" => AgentEvent::AgentStart { at },
        "run_resumed" => AgentEvent::RunResumed {
            turn_index: event.index("turnIndex"),
            partial_message: event.maybe("partialMessage")?.map(Rc::new),
            pending_approvals: event.questions()?,
            running_tools: Vec::from_json(event.any("runningTools"))?,
            at,
        },
        "agent_end" => AgentEvent::AgentEnd {
            messages: Vec::from_json(event.any("messages"))?,
            stop_reason: RunStopReason::from_word(&event.text("stopReason")).unwrap_or(RunStopReason::Error),
            usage: Usage::from_json(event.any("usage"))?,
            own_usage: event.any("usage").get("own").map(Usage::from_json).transpose()?,
            turns: event.index("turns"),
            error: event.maybe("error")?,
            at,
        },
        "turn_start" => AgentEvent::TurnStart { turn_index: event.index("turnIndex"), at },
        "turn_end" => AgentEvent::TurnEnd {
            turn_index: event.index("turnIndex"),
            message: event.maybe("message")?.map(Rc::new),
            tool_results: Vec::from_json(event.any("toolResults"))?.into_iter().map(Rc::new).collect(),
            reason: TurnEndReason::from_word(&event.text("reason")).unwrap_or(TurnEndReason::Error),
            at,
        },
        "message_start" => AgentEvent::MessageStart { at },
        "message_update" => AgentEvent::MessageUpdate(Delta::from_json(event.any("delta"))?),
        "message_reset" => AgentEvent::MessageReset { reason: event.text("reason") },
        "message_end" => {
            AgentEvent::MessageEnd { message: Rc::new(FromJson::from_json(event.any("message"))?), at }
        }
        _ => return Ok(None),
    }))
}

/// Reads what happens to calls.
fn tool_event(kind: &str, event: Members<'_>) -> Result<Option<AgentEvent>, String> {
    Ok(Some(match kind {
        "tool_calls_proposed" => AgentEvent::ToolCallsProposed { calls: Vec::from_json(event.any("calls"))? },
        "tool_approval_requested" => AgentEvent::ToolApprovalRequested {
            id: event.text("id"),
            call_id: event.text("callId"),
            tool_name: event.text("toolName"),
            arguments: event.raw("arguments"),
            asked_at: event.number("askedAt"),
            path: event.path(),
        },
        "tool_approval_resolved" => AgentEvent::ToolApprovalResolved {
            id: event.text("id"),
            call_id: event.text("callId"),
            tool_name: event.text("toolName"),
            approved: event.flag("approved"),
            by: DecisionSource::from_word(&event.text("by")).unwrap_or(DecisionSource::Abort),
            path: event.path(),
        },
        "question_asked" => AgentEvent::QuestionAsked { question: Box::new(Question::from_json(event.0)?) },
        "question_resolved" => AgentEvent::QuestionResolved {
            id: event.text("id"),
            kind: QuestionKind::from_word(&event.text("kind")).unwrap_or(QuestionKind::Tool),
            call_id: event.optional("callId"),
            accepted: event.flag("accepted"),
            by: DecisionSource::from_word(&event.text("by")).unwrap_or(DecisionSource::Abort),
            path: event.path(),
        },
        "tool_execution_start" => AgentEvent::ToolExecutionStart {
            call_id: event.text("callId"),
            tool_name: event.text("toolName"),
            arguments: event.raw("arguments"),
            at: event.number("at"),
        },
        "tool_execution_update" => AgentEvent::ToolExecutionUpdate {
            call_id: event.text("callId"),
            tool_name: event.text("toolName"),
            update: event.raw("update"),
        },
        "tool_execution_end" => AgentEvent::ToolExecutionEnd {
            result: Rc::new(FromJson::from_json(event.any("result"))?),
            at: event.number("at"),
        },
        _ => return Ok(None),
    }))
}

/// Reads what may stand anywhere in a run.
fn other_event(kind: &str, event: Members<'_>) -> Result<Option<AgentEvent>, String> {
    Ok(Some(match kind {
        "context_compacted" => {
            AgentEvent::ContextCompacted { report: CompactionReport::from_json(event.any("report"))? }
        }
        "before_llm_call" => AgentEvent::BeforeLlmCall {
            system_prompt: event.text("systemPrompt").into(),
            messages: Rc::new(Vec::from_json(event.any("messages"))?),
            model: event.text("model").into(),
        },
        "retry_attempt" => AgentEvent::RetryAttempt {
            attempt: event.index("attempt"),
            delay_ms: event.number("delayMs"),
            reason: event.text("reason"),
            error: ErrorInfo::from_json(event.any("error"))?,
        },
        "model_fallback" => AgentEvent::ModelFallback { from: event.text("from"), to: event.text("to") },
        "model_switched" => AgentEvent::ModelSwitched { from: event.text("from"), to: event.text("to") },
        "command_refused" => AgentEvent::CommandRefused {
            id: event.optional("id"),
            call_id: event.optional("callId"),
            reason: event.text("reason"),
        },
        "state_changed" => AgentEvent::StateChanged { changes: event.raw("changes") },
        "cache_action" => AgentEvent::CacheAction {
            write: event.text("action") == "write",
            prefix_tokens: event.number("prefixTokens"),
        },
        "transfer_initiated" => {
            AgentEvent::TransferInitiated { to: event.text("to"), reason: event.optional("reason") }
        }
        "history_rewound" => AgentEvent::HistoryRewound {
            length: event.number("length"),
            cut: event.number("cut"),
            added: event.number("added"),
        },
        "subagent_event" => AgentEvent::SubagentEvent {
            call_id: event.text("callId"),
            path: event.path(),
            event: event.raw("event"),
        },
        "budget" => {
            let kind = BudgetKind::from_word(&event.text("kind")).unwrap_or(BudgetKind::Tokens);
            let amount = |key: &str| read_amount(event.0, key, kind);
            AgentEvent::Budget {
                state: BudgetState::from_word(&event.text("state")).unwrap_or(BudgetState::Warn),
                kind,
                used: amount("used"),
                limit: amount("limit"),
            }
        }
        "custom" => AgentEvent::Custom { name: event.text("name"), payload: event.raw("payload") },
        _ => return Ok(None),
    }))
}

/// The members of an event's JSON object.
#[derive(Clone, Copy)]
struct Members<'a>(&'a Value);

impl Members<'_> {
    fn any(&self, key: &str) -> &Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    fn text(&self, key: &str) -> String {
        self.0.text_at(key).unwrap_or_default().to_owned()
    }

    fn optional(&self, key: &str) -> Option<String> {
        self.0.owned_at(key)
    }

    fn number(&self, key: &str) -> u64 {
        self.0.number_at(key).unwrap_or_default()
    }

    fn index(&self, key: &str) -> u32 {
        u32::try_from(self.number(key)).unwrap_or_default()
    }

    fn flag(&self, key: &str) -> bool {
        self.0.flag_at(key).unwrap_or_default()
    }

    fn path(&self) -> Vec<String> {
        self.0.list_at("path").iter().filter_map(|call_id| call_id.as_str().map(str::to_owned)).collect()
    }

    fn raw(&self, key: &str) -> RawJson {
        self.any(key).to_raw()
    }

    /// The open questions, of every kind.
    fn questions(&self) -> Result<Vec<Question>, String> {
        let mut questions = Vec::from_json(self.any("pendingApprovals"))?;
        if let Some(others) = self.0.get("pendingQuestions") {
            questions.append(&mut Vec::from_json(others)?);
        }
        Ok(questions)
    }

    fn maybe<T: FromJson>(&self, key: &str) -> Result<Option<T>, String> {
        match self.any(key) {
            Value::Null => Ok(None),
            value => T::from_json(value).map(Some),
        }
    }
}
