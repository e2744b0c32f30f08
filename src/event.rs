//! Events: what a run tells its listeners, in the order it happens. The JSON form is that of the npm package.
//!
//! ```text
//! run     = (agent_start | run_resumed) turn* agent_end
//! turn    = turn_start message? tools turn_end
//! message = message_start (message_update | message_reset)* message_end
//! tools   = each call once: tool_execution_start? tool_execution_update* tool_execution_end
//! ```

#[cfg(not(target_os = "unknown"))]
mod read;

use std::rc::Rc;

use crate::error::ErrorInfo;
use crate::json::{ObjectWriter, RawJson, ToJson};
use crate::message::{AgentMessage, AssistantMessage, LlmMessage, ToolCallBlock, ToolResultMessage, Usage};
use crate::stream::Delta;

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEndReason {
    /// No tool calls.
    Complete,
    /// Tools were run; the loop goes on.
    ToolsExecuted,
    /// The user steered while tools ran.
    SteeringInterrupt,
    /// The model call, a hook or a fatal tool failed.
    Error,
    /// Somebody stopped the run.
    Aborted,
    /// The conversation was handed over.
    Transfer,
}

impl TurnEndReason {
    const WORDS: [(Self, &'static str); 6] = [
        (Self::Complete, "complete"),
        (Self::ToolsExecuted, "tools_executed"),
        (Self::SteeringInterrupt, "steering_interrupt"),
        (Self::Error, "error"),
        (Self::Aborted, "aborted"),
        (Self::Transfer, "transfer"),
    ];

    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("error", |(_, word)| word)
    }

    /// The reason of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStopReason {
    /// The model had nothing more to do.
    Completed,
    /// The limit of turns was reached.
    MaxTurns,
    /// A policy stopped it.
    PolicyStop,
    /// The conversation was handed over.
    Transfer,
    /// Somebody stopped it.
    Aborted,
    /// Something failed.
    Error,
}

impl RunStopReason {
    const WORDS: [(Self, &'static str); 6] = [
        (Self::Completed, "completed"),
        (Self::MaxTurns, "max_turns"),
        (Self::PolicyStop, "policy_stop"),
        (Self::Transfer, "transfer"),
        (Self::Aborted, "aborted"),
        (Self::Error, "error"),
    ];

    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("error", |(_, word)| word)
    }

    /// The reason of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// In words.
    pub text: String,
    /// Messages that are gone.
    pub dropped_count: u64,
    /// Estimate before.
    pub tokens_before: u64,
    /// Estimate after.
    pub tokens_after: u64,
    /// Whether it was done because the model refused the conversation as too long.
    pub overflow: bool,
}

/// Who decided about a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionSource {
    /// A rule or the mode.
    Rule,
    /// The approver.
    Callback,
    /// A command.
    Command,
    /// Nobody: the call is not wanted any more.
    Abort,
}

impl DecisionSource {
    const WORDS: [(Self, &'static str); 4] = [
        (Self::Rule, "rule"),
        (Self::Callback, "callback"),
        (Self::Command, "command"),
        (Self::Abort, "abort"),
    ];

    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(source, _)| *source == self).map_or("rule", |(_, word)| word)
    }

    /// The source of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(source, _)| *source)
    }
}

/// One event of a run. Cloning it copies pointers, except for deltas.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The run begins.
    AgentStart,
    /// A run goes on that was read from a checkpoint. It comes in the place of `agent_start`, in the middle of whatever
    /// the run was at; what follows joins what was told before.
    RunResumed {
        /// The turn that is on, or comes next; from 0.
        turn_index: u32,
        /// What there was of an answer; it is asked for again.
        partial_message: Option<Rc<AssistantMessage>>,
        /// Calls that wait for somebody's decision.
        pending_approvals: Vec<ToolCallBlock>,
        /// Calls that ran. Those whose tool may run twice run again, the others get a result that says so.
        running_tools: Vec<ToolCallBlock>,
    },
    /// The run is over; nothing follows.
    AgentEnd {
        /// Everything appended since the start, also what a compaction has dropped since.
        messages: Vec<AgentMessage>,
        /// Why it ended.
        stop_reason: RunStopReason,
        /// Everything it used.
        usage: Usage,
        /// Turns that called the model.
        turns: u32,
        /// With stop reason error or aborted: why.
        error: Option<ErrorInfo>,
    },
    /// A turn begins.
    TurnStart {
        /// From 0.
        turn_index: u32,
    },
    /// A turn is over.
    TurnEnd {
        /// From 0.
        turn_index: u32,
        /// The answer; `None` where the turn was stopped before its model call.
        message: Option<Rc<AssistantMessage>>,
        /// In the order of the calls.
        tool_results: Vec<Rc<ToolResultMessage>>,
        /// Why it ended.
        reason: TurnEndReason,
    },
    /// The model was asked. One per turn, however many attempts.
    MessageStart,
    /// A piece of the answer.
    MessageUpdate(Delta),
    /// What was shown of the answer does not count; it comes again.
    MessageReset {
        /// Why.
        reason: String,
    },
    /// The answer is whole.
    MessageEnd {
        /// As the model gave it.
        message: Rc<AssistantMessage>,
    },
    /// The model asks for tools.
    ToolCallsProposed {
        /// All calls of the answer.
        calls: Vec<ToolCallBlock>,
    },
    /// Somebody has to decide about a call.
    ToolApprovalRequested {
        /// The call.
        call_id: String,
        /// Its tool.
        tool_name: String,
        /// As they stand after the policies.
        arguments: RawJson,
    },
    /// It is decided.
    ToolApprovalResolved {
        /// The call.
        call_id: String,
        /// Its tool.
        tool_name: String,
        /// Whether the tool may run (or the approver answered in its place).
        approved: bool,
        /// Who decided.
        by: DecisionSource,
    },
    /// A tool begins.
    ToolExecutionStart {
        /// The call.
        call_id: String,
        /// Its tool.
        tool_name: String,
        /// What the tool gets.
        arguments: RawJson,
    },
    /// Progress of a tool.
    ToolExecutionUpdate {
        /// The call.
        call_id: String,
        /// Its tool.
        tool_name: String,
        /// Whatever the tool said, as JSON.
        update: RawJson,
    },
    /// A call has its result.
    ToolExecutionEnd {
        /// The result.
        result: Rc<ToolResultMessage>,
    },
    /// The history was shortened.
    ContextCompacted {
        /// What was done.
        report: CompactionReport,
    },
    /// What the model is about to be asked; only on demand.
    BeforeLlmCall {
        /// The system prompt.
        system_prompt: Rc<str>,
        /// The conversation as the provider gets it.
        messages: Rc<Vec<LlmMessage>>,
        /// The model's id.
        model: Rc<str>,
    },
    /// An attempt failed; another follows after a wait.
    RetryAttempt {
        /// The failed one, from 1.
        attempt: u32,
        /// How long the wait is.
        delay_ms: u64,
        /// In words.
        reason: String,
        /// The error.
        error: ErrorInfo,
    },
    /// The next model is asked.
    ModelFallback {
        /// Its id before.
        from: String,
        /// Its id now.
        to: String,
    },
    /// The host changed the model in mid-run.
    ModelSwitched {
        /// Its id before.
        from: String,
        /// Its id now.
        to: String,
    },
    /// A command could not be obeyed; nothing was changed.
    CommandRefused {
        /// The call it was about.
        call_id: Option<String>,
        /// Why.
        reason: String,
    },
    /// Tools changed the session state.
    StateChanged {
        /// Key by key, the last value; null where a key was deleted. An object.
        changes: RawJson,
    },
    /// The prompt cache is written or read.
    CacheAction {
        /// `true` for write, `false` for read.
        write: bool,
        /// Length of the cached part.
        prefix_tokens: u64,
    },
    /// A tool hands the conversation over.
    TransferInitiated {
        /// To whom.
        to: String,
        /// Why.
        reason: Option<String>,
    },
    /// An event of a sub-agent that runs as a tool, as JSON.
    SubagentEvent {
        /// The call of the tool.
        call_id: String,
        /// The event.
        event: RawJson,
    },
    /// The host's own.
    Custom {
        /// The host's word for it.
        name: String,
        /// Any JSON.
        payload: RawJson,
    },
}

impl AgentEvent {
    /// The word that stands in `type`.
    pub fn name(&self) -> &'static str {
        match self {
            AgentEvent::AgentStart => "agent_start",
            AgentEvent::RunResumed { .. } => "run_resumed",
            AgentEvent::AgentEnd { .. } => "agent_end",
            AgentEvent::TurnStart { .. } => "turn_start",
            AgentEvent::TurnEnd { .. } => "turn_end",
            AgentEvent::MessageStart => "message_start",
            AgentEvent::MessageUpdate(_) => "message_update",
            AgentEvent::MessageReset { .. } => "message_reset",
            AgentEvent::MessageEnd { .. } => "message_end",
            AgentEvent::ToolCallsProposed { .. } => "tool_calls_proposed",
            AgentEvent::ToolApprovalRequested { .. } => "tool_approval_requested",
            AgentEvent::ToolApprovalResolved { .. } => "tool_approval_resolved",
            AgentEvent::ToolExecutionStart { .. } => "tool_execution_start",
            AgentEvent::ToolExecutionUpdate { .. } => "tool_execution_update",
            AgentEvent::ToolExecutionEnd { .. } => "tool_execution_end",
            AgentEvent::ContextCompacted { .. } => "context_compacted",
            AgentEvent::BeforeLlmCall { .. } => "before_llm_call",
            AgentEvent::RetryAttempt { .. } => "retry_attempt",
            AgentEvent::ModelFallback { .. } => "model_fallback",
            AgentEvent::ModelSwitched { .. } => "model_switched",
            AgentEvent::CommandRefused { .. } => "command_refused",
            AgentEvent::StateChanged { .. } => "state_changed",
            AgentEvent::CacheAction { .. } => "cache_action",
            AgentEvent::TransferInitiated { .. } => "transfer_initiated",
            AgentEvent::SubagentEvent { .. } => "subagent_event",
            AgentEvent::Custom { .. } => "custom",
        }
    }

    /// Appends the members of the event's JSON object, `type` first.
    pub fn write_members(&self, object: &mut ObjectWriter<'_>) {
        object.field("type", self.name());
        match self {
            AgentEvent::AgentStart | AgentEvent::MessageStart => {}
            AgentEvent::RunResumed { turn_index, partial_message, pending_approvals, running_tools } => {
                object.field("turnIndex", turn_index).optional("partialMessage", partial_message);
                object.field("pendingApprovals", pending_approvals).field("runningTools", running_tools);
            }
            AgentEvent::AgentEnd { messages, stop_reason, usage, turns, error } => {
                object.field("messages", messages).field("stopReason", stop_reason.as_str());
                object.field("usage", usage).field("turns", turns).optional("error", error);
            }
            AgentEvent::TurnStart { turn_index } => drop(object.field("turnIndex", turn_index)),
            AgentEvent::TurnEnd { turn_index, message, tool_results, reason } => {
                object.field("turnIndex", turn_index).field("message", message);
                object.field("toolResults", tool_results).field("reason", reason.as_str());
            }
            AgentEvent::MessageUpdate(delta) => drop(object.field("delta", delta)),
            AgentEvent::MessageReset { reason } => drop(object.field("reason", reason)),
            AgentEvent::MessageEnd { message } => drop(object.field("message", message)),
            AgentEvent::ToolCallsProposed { calls } => drop(object.field("calls", calls)),
            AgentEvent::ToolApprovalRequested { call_id, tool_name, arguments }
            | AgentEvent::ToolExecutionStart { call_id, tool_name, arguments } => {
                object.field("callId", call_id).field("toolName", tool_name).field("arguments", arguments);
            }
            AgentEvent::ToolApprovalResolved { call_id, tool_name, approved, by } => {
                object.field("callId", call_id).field("toolName", tool_name);
                object.field("approved", approved).field("by", by.as_str());
            }
            AgentEvent::ToolExecutionUpdate { call_id, tool_name, update } => {
                object.field("callId", call_id).field("toolName", tool_name).field("update", update);
            }
            AgentEvent::ToolExecutionEnd { result } => {
                object.field("callId", &result.call_id).field("toolName", &result.tool_name);
                object.field("result", result).field("isError", &result.is_error);
            }
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
            AgentEvent::CommandRefused { call_id, reason } => {
                object.optional("callId", call_id).field("reason", reason);
            }
            AgentEvent::StateChanged { changes } => drop(object.field("changes", changes)),
            AgentEvent::CacheAction { write, prefix_tokens } => {
                object.field("action", if *write { "write" } else { "read" });
                object.field("prefixTokens", prefix_tokens);
            }
            AgentEvent::TransferInitiated { to, reason } => {
                object.field("to", to).optional("reason", reason);
            }
            AgentEvent::SubagentEvent { call_id, event } => {
                object.field("callId", call_id).field("event", event);
            }
            AgentEvent::Custom { name, payload } => {
                object.field("name", name).field("payload", payload);
            }
        }
    }
}

impl ToJson for AgentEvent {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        self.write_members(&mut object);
        object.end();
    }
}

impl ToJson for CompactionReport {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("text", &self.text).field("droppedCount", &self.dropped_count);
        object.field("tokensBefore", &self.tokens_before).field("tokensAfter", &self.tokens_after);
        object.field("overflow", &self.overflow);
        object.end();
    }
}
