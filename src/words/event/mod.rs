//! Events: what a run reports to its listeners, in order. The JSON form is the same as in the npm package, which adds
//! the `runId`.
//!
//! ```text
//! run     = (agent_start | run_resumed) turn* agent_end
//! turn    = turn_start message? tools turn_end
//! message = message_start (message_update | message_reset)* message_end
//! tools   = each call once: tool_execution_start? tool_execution_update* tool_execution_end
//! ```

mod budget;
mod delta;
mod read;
mod reasons;
mod text;
mod write;

pub use budget::{BudgetKind, BudgetState};
pub(crate) use budget::{read_amount, write_amount};
pub use delta::{Delta, DeltaKind};
pub use reasons::{DecisionSource, RunStopReason, TurnEndReason};
pub use write::write_usage;

use std::rc::Rc;

use crate::data::json::RawJson;

use super::error::ErrorInfo;
use super::message::{AgentMessage, AssistantMessage, LlmMessage, ToolCallBlock, ToolResultMessage, Usage};
use super::question::{Question, QuestionKind};

/// An event of a run. Cloning copies pointers, except for deltas. Those that begin or end something say when: see
/// [`AgentEvent::at`].
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The run begins.
    AgentStart {
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// A run that was restored from a checkpoint continues. This event replaces `agent_start` and comes in
    /// the middle of whatever the run was doing; the events that follow connect to those before the
    /// checkpoint.
    RunResumed {
        /// The current or the next turn, counted from 0.
        turn_index: u32,
        /// The part of an answer that had arrived. The answer is requested again.
        partial_message: Option<Rc<AssistantMessage>>,
        /// The open questions, of every kind.
        pending_approvals: Vec<Question>,
        /// Calls that were running. If the tool may run twice, the call runs again; the others get a result
        /// that says they were interrupted.
        running_tools: Vec<ToolCallBlock>,
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// The run is over. Nothing follows.
    AgentEnd {
        /// Every message appended since the start, including those a compaction has removed since.
        messages: Vec<AgentMessage>,
        /// Why the run ended.
        stop_reason: RunStopReason,
        /// The tokens used by the whole run.
        usage: Usage,
        /// The usage of the run without that of its sub-agents, if it had any.
        own_usage: Option<Usage>,
        /// The number of turns that called the model.
        turns: u32,
        /// The error, if the stop reason is error or aborted.
        error: Option<ErrorInfo>,
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// A turn begins.
    TurnStart {
        /// The turn, counted from 0.
        turn_index: u32,
        /// When, in milliseconds since 1970.
        at: u64,
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
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// The model has been called. Comes once per turn, regardless of the number of attempts.
    MessageStart {
        /// When, in milliseconds since 1970.
        at: u64,
    },
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
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// The model asks for tools.
    ToolCallsProposed {
        /// All calls of the answer.
        calls: Vec<ToolCallBlock>,
    },
    /// A call needs a decision.
    ToolApprovalRequested {
        /// The id of the question: a decision names it.
        id: String,
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments, as the policies left them.
        arguments: RawJson,
        /// When the question was asked, in milliseconds since 1970.
        asked_at: u64,
        /// The calls that led to the sub-agent that asks; empty for the agent itself.
        path: Vec<String>,
    },
    /// A call has been decided.
    ToolApprovalResolved {
        /// The id of the question.
        id: String,
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// Whether the tool may run, or the approver answered in its place.
        approved: bool,
        /// Who decided.
        by: DecisionSource,
        /// The calls that led to the sub-agent that asks; empty for the agent itself.
        path: Vec<String>,
    },
    /// A person is asked about something else than whether a call may run.
    QuestionAsked {
        /// The question.
        question: Box<Question>,
    },
    /// Such a question is closed.
    QuestionResolved {
        /// The id of the question.
        id: String,
        /// What it was about.
        kind: QuestionKind,
        /// The id of the call in which it was asked, if it was asked in one.
        call_id: Option<String>,
        /// Whether it was answered with more than a no.
        accepted: bool,
        /// Who closed it.
        by: DecisionSource,
        /// The calls that led to the sub-agent that asked; empty for the agent itself.
        path: Vec<String>,
    },
    /// A tool starts to run.
    ToolExecutionStart {
        /// The id of the call.
        call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments that the tool receives.
        arguments: RawJson,
        /// When, in milliseconds since 1970.
        at: u64,
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
        /// When, in milliseconds since 1970.
        at: u64,
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
        /// The id of the question that the command answered, if it named one.
        id: Option<String>,
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
        /// The calls that led to the agent that emitted it: this one, and those inside it.
        path: Vec<String>,
        /// The event.
        event: RawJson,
    },
    /// A budget is nearly used up, or has no room for the next call: once for each kind and state.
    Budget {
        /// How it stands with it.
        state: BudgetState,
        /// What it limits.
        kind: BudgetKind,
        /// What was used, calls in progress included: trillionths of the unit of the prices, a number, or milliseconds.
        used: u64,
        /// What may be used.
        limit: u64,
    },
    /// The history was taken back, between two runs.
    HistoryRewound {
        /// How many of its messages stayed.
        length: u64,
        /// How many were cut.
        cut: u64,
        /// How many came in their place.
        added: u64,
    },
    /// An event of the host's own.
    Custom {
        /// The host's name for the event.
        name: String,
        /// Any JSON.
        payload: RawJson,
    },
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

impl AgentEvent {
    /// Returns the name that JSON has in `type`.
    pub fn name(&self) -> &'static str {
        match self {
            AgentEvent::AgentStart { .. } => "agent_start",
            AgentEvent::RunResumed { .. } => "run_resumed",
            AgentEvent::AgentEnd { .. } => "agent_end",
            AgentEvent::TurnStart { .. } => "turn_start",
            AgentEvent::TurnEnd { .. } => "turn_end",
            AgentEvent::MessageStart { .. } => "message_start",
            AgentEvent::MessageUpdate(_) => "message_update",
            AgentEvent::MessageReset { .. } => "message_reset",
            AgentEvent::MessageEnd { .. } => "message_end",
            AgentEvent::ToolCallsProposed { .. } => "tool_calls_proposed",
            AgentEvent::ToolApprovalRequested { .. } => "tool_approval_requested",
            AgentEvent::ToolApprovalResolved { .. } => "tool_approval_resolved",
            AgentEvent::QuestionAsked { .. } => "question_asked",
            AgentEvent::QuestionResolved { .. } => "question_resolved",
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
            AgentEvent::Budget { .. } => "budget",
            AgentEvent::HistoryRewound { .. } => "history_rewound",
            AgentEvent::Custom { .. } => "custom",
        }
    }
}
