//! Hooks: who observes a run while it waits.

use std::rc::Rc;

use futures::future::LocalBoxFuture;

use super::AgentRunContext;
use crate::words::error::ErrorInfo;
use crate::words::message::{AssistantMessage, LlmMessage, ToolCallBlock, ToolResultMessage};

/// A stage of a run at which hooks are called.
#[derive(Clone, Debug)]
pub enum HookCall {
    /// The model is about to be called.
    BeforeInference {
        /// The turn, counted from 0.
        turn_index: u32,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The model's id.
        model: Rc<str>,
        /// The conversation, as the provider receives it.
        messages: Rc<Vec<LlmMessage>>,
    },
    /// An attempt is over, whatever became of it. Comes once for each attempt that began.
    AfterInference {
        /// The turn, counted from 0.
        turn_index: u32,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The model's id.
        model: Rc<str>,
        /// The answer. If the attempt failed or was aborted, what there is of it, with the error.
        message: Rc<AssistantMessage>,
    },
    /// A tool is about to run.
    BeforeToolExecution {
        /// The call, with the arguments that the tool receives.
        call: ToolCallBlock,
    },
    /// A tool has run, and its result is in the history. If it failed or took too long, the result has the cause.
    AfterToolExecution {
        /// The call.
        call: ToolCallBlock,
        /// The result.
        result: Rc<ToolResultMessage>,
    },
    /// The run ends with an error.
    OnError {
        /// The error.
        error: ErrorInfo,
    },
}

impl HookCall {
    /// The name of the stage, as [`HookStages`] has it.
    pub fn stage(&self) -> &'static str {
        match self {
            HookCall::BeforeInference { .. } => "before_inference",
            HookCall::AfterInference { .. } => "after_inference",
            HookCall::BeforeToolExecution { .. } => "before_tool_execution",
            HookCall::AfterToolExecution { .. } => "after_tool_execution",
            HookCall::OnError { .. } => "on_error",
        }
    }
}

/// A set of stages, returned by [`AgentHook::stages`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookStages {
    /// Includes [`HookCall::BeforeInference`].
    pub before_inference: bool,
    /// Includes [`HookCall::AfterInference`].
    pub after_inference: bool,
    /// Includes [`HookCall::BeforeToolExecution`].
    pub before_tool_execution: bool,
    /// Includes [`HookCall::AfterToolExecution`].
    pub after_tool_execution: bool,
    /// Includes [`HookCall::OnError`].
    pub on_error: bool,
}

impl HookStages {
    /// All stages.
    pub const ALL: HookStages = HookStages {
        before_inference: true,
        after_inference: true,
        before_tool_execution: true,
        after_tool_execution: true,
        on_error: true,
    };

    /// Returns the stages that are in either set.
    #[must_use]
    pub fn or(self, other: HookStages) -> HookStages {
        HookStages {
            before_inference: self.before_inference || other.before_inference,
            after_inference: self.after_inference || other.after_inference,
            before_tool_execution: self.before_tool_execution || other.before_tool_execution,
            after_tool_execution: self.after_tool_execution || other.after_tool_execution,
            on_error: self.on_error || other.on_error,
        }
    }

    /// Whether the set includes the stage of this call.
    pub fn has(self, call: &HookCall) -> bool {
        match call {
            HookCall::BeforeInference { .. } => self.before_inference,
            HookCall::AfterInference { .. } => self.after_inference,
            HookCall::BeforeToolExecution { .. } => self.before_tool_execution,
            HookCall::AfterToolExecution { .. } => self.after_tool_execution,
            HookCall::OnError { .. } => self.on_error,
        }
    }
}

/// Observes a run. The run waits until the hook has finished.
pub trait AgentHook {
    /// Returns the stages at which this hook is called.
    fn stages(&self) -> HookStages {
        HookStages::ALL
    }

    /// Whether it does something around each attempt to call a model, from `BeforeInference` to `AfterInference`. Then a durable run
    /// calls the hooks of these two stages in each process that replays the attempt: they are no steps.
    fn wraps_models(&self) -> bool {
        false
    }

    /// Called for one hook after the other, in registration order. An error ends the run, except in
    /// `OnError`, where it is ignored.
    fn call(&self, context: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>>;
}
