//! Events: what a run reports to its listeners, in order. The JSON form is the same as in the npm package.
//!
//! ```text
//! run     = (agent_start | run_resumed) turn* agent_end
//! turn    = turn_start message? tools turn_end
//! message = message_start (message_update | message_reset)* message_end
//! tools   = each call once: tool_execution_start? tool_execution_update* tool_execution_end
//! ```

mod read;
mod text;

use std::rc::Rc;

use crate::data::json::{ObjectWriter, RawJson, ToJson};
use crate::rules::stream::Delta;
use crate::words::error::ErrorInfo;
use crate::words::message::{
    AgentMessage, AssistantMessage, LlmMessage, ToolCallBlock, ToolResultMessage, Usage,
};

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEndReason {
    /// The model called no tools.
    Complete,
    /// Tools ran; the loop continues.
    ToolsExecuted,
    /// A steering message arrived while tools ran.
    SteeringInterrupt,
    /// The model call, a hook or a fatal tool failed.
    Error,
    /// The run was aborted.
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

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("error", |(_, word)| word)
    }

    /// Returns the reason for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStopReason {
    /// The model had nothing more to do.
    Completed,
    /// The turn limit was reached.
    MaxTurns,
    /// A policy stopped the run.
    PolicyStop,
    /// The conversation was handed over.
    Transfer,
    /// The run was aborted.
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

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("error", |(_, word)| word)
    }

    /// Returns the reason for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// A description in words.
    pub text: String,
    /// The number of messages removed.
    pub dropped_count: u64,
    /// The estimated number of tokens before.
    pub tokens_before: u64,
    /// The estimated number of tokens after.
    pub tokens_after: u64,
    /// Whether the model had refused the conversation as too long.
    pub overflow: bool,
}

/// Who decided about a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionSource {
    /// A rule or the approval mode.
    Rule,
    /// The approver.
    Callback,
    /// A command from the host.
    Command,
    /// Nobody: the call is no longer wanted.
    Abort,
}

impl DecisionSource {
    const WORDS: [(Self, &'static str); 4] = [
        (Self::Rule, "rule"),
        (Self::Callback, "callback"),
        (Self::Command, "command"),
        (Self::Abort, "abort"),
    ];

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(source, _)| *source == self).map_or("rule", |(_, word)| word)
    }

    /// Returns the source for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(source, _)| *source)
    }
}

/// An event of a run. Cloning copies pointers, except for deltas.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The run begins.
    AgentStart,
    /// A run that was restored from a checkpoint continues. This event replaces `agent_start` and comes in
    /// the middle of whatever the run was doing; the events that follow connect to those before the
    /// checkpoint.
    RunResumed {
        /// The current or the next turn, counted from 0.
        turn_index: u32,
        /// The part of an answer that had arrived. The answer is requested again.
        partial_message: Option<Rc<AssistantMessage>>,
        /// Calls that wait for a decision.
        pending_approvals: Vec<ToolCallBlock>,
        /// Calls that were running. If the tool may run twice, the call runs again; the others get a result
        /// that says they were interrupted.
        running_tools: Vec<ToolCallBlock>,
    },
    /// The run is over. Nothing follows.
    AgentEnd {
        /// Every message appended since the start, including those a compaction has removed since.
        messages: Vec<AgentMessage>,
        /// Why the run ended.
        stop_reason: RunStopReason,
        /// The tokens used by the whole run.
        usage: Usage,
        /// The number of turns that called the model.
        turns: u32,
        /// The error, if the stop reason is error or aborted.
        error: Option<ErrorInfo>,
    },
    /// A turn begins.
    TurnStart {
        /// The turn, counted from 0.
        turn_index: u32,
    },
    /// A turn is over.
    TurnEnd {
        /// The turn, counted from 0.
        turn_index: u32,
        /// The answer; `None` if the turn was stopped before its model call.
        message: Option<Rc<AssistantMessage>>,
        /// The results, in the order of the calls.
        tool_results: Vec<Rc<ToolResultMessage>>,
        /// Why the turn ended.
        reason: TurnEndReason,
    },
    /// The model has been called. Comes once per turn, regardless of the number of attempts.
    MessageStart,
    /// A piece of the answer.
    MessageUpdate(Delta),
    /// What was shown of the answer no longer counts; the answer starts again.
    MessageReset {
        /// Why the answer was reset.
        reason: String,
    },
    /// The answer is complete.
    MessageEnd {
        /// The message, as the model gave it.
        message: Rc<AssistantMessage>,
    },
    /// The model asks for tools.
    ToolCallsProposed {
        /// All calls of the answer.
        calls: Vec<ToolCallBlock>,
    },
    /// A call needs a decision.
    ToolApprovalRequested {
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments, as the policies left them.
        arguments: RawJson,
    },
    /// A call has been decided.
    ToolApprovalResolved {
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// Whether the tool may run, or the approver answered in its place.
        approved: bool,
        /// Who decided.
        by: DecisionSource,
    },
    /// A tool starts to run.
    ToolExecutionStart {
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments that the tool receives.
        arguments: RawJson,
    },
    /// A tool reports progress.
    ToolExecutionUpdate {
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// What the tool reported, as JSON.
        update: RawJson,
    },
    /// A call has its result.
    ToolExecutionEnd {
        /// The result.
        result: Rc<ToolResultMessage>,
    },
    /// The history has been compacted.
    ContextCompacted {
        /// What the compaction did.
        report: CompactionReport,
    },
    /// The model is about to be called. Emitted only on request.
    BeforeLlmCall {
        /// The system prompt.
        system_prompt: Rc<str>,
        /// The conversation, as the provider receives it.
        messages: Rc<Vec<LlmMessage>>,
        /// The model's id.
        model: Rc<str>,
    },
    /// An attempt failed. Another one follows after a delay.
    RetryAttempt {
        /// The number of the failed attempt, counted from 1.
        attempt: u32,
        /// The delay in milliseconds.
        delay_ms: u64,
        /// The reason in words.
        reason: String,
        /// The error.
        error: ErrorInfo,
    },
    /// The run falls back to the next model.
    ModelFallback {
        /// The id of the previous model.
        from: String,
        /// The id of the new model.
        to: String,
    },
    /// The host switched the model during the run.
    ModelSwitched {
        /// The id of the previous model.
        from: String,
        /// The id of the new model.
        to: String,
    },
    /// A command was refused; nothing has changed.
    CommandRefused {
        /// The id of the call that the command was about.
        call_id: Option<String>,
        /// Why the command was refused.
        reason: String,
    },
    /// Tools changed the session state.
    StateChanged {
        /// A JSON object with the latest value of each changed key; null if the key was deleted.
        changes: RawJson,
    },
    /// The prompt cache is written or read.
    CacheAction {
        /// `true` for write, `false` for read.
        write: bool,
        /// The length of the cached prefix, in tokens.
        prefix_tokens: u64,
    },
    /// A tool hands the conversation over.
    TransferInitiated {
        /// The recipient.
        to: String,
        /// Why the conversation is handed over.
        reason: Option<String>,
    },
    /// An event of a sub-agent that runs as a tool, as JSON.
    SubagentEvent {
        /// The id of the tool's call.
        call_id: String,
        /// The event.
        event: RawJson,
    },
    /// An event of the host's own.
    Custom {
        /// The host's name for the event.
        name: String,
        /// Any JSON.
        payload: RawJson,
    },
}

impl AgentEvent {
    /// Returns the name that JSON has in `type`.
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
