//! The part of a configuration that decides.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{CacheHints, EarlyDecisions, ModelName, QueueMode, SteeringRules, Timeouts, ToolExecutionPolicy};
use crate::data::json::{Map, RawJson};
use crate::host::ports::HookStages;
use crate::host::tool::ToolSpec;
use crate::rules::approval::{ApprovalGate, ApprovalOptions};
use crate::rules::budget::Budget;
use crate::rules::policy::{
    ContextTransformer, PostLoopPolicy, PostTurnPolicy, PreDispatchPolicy, PreTurnPolicy, RunInfo,
};
use crate::rules::retry::{RetryConfig, RetryStrategy};
use crate::rules::stream::{StreamOptions, ToolSchema};
use crate::wires::has_odd_names;
use crate::words::message::{AgentMessage, LlmMessage, ToolCallBlock, ToolResultCause};

/// The texts of results that no tool wrote, made from the cause, the call, and further details.
pub type ResultTexts = dyn Fn(ToolResultCause, &ToolCallBlock, &str, &RunInfo<'_>) -> Option<String>;

/// Converts a message of the history for the model; `None` leaves it out. Called once per message.
pub type ConvertToLlm = dyn Fn(&AgentMessage, &RunInfo<'_>) -> Result<Option<LlmMessage>, String>;

/// Checks arguments against a tool's schema. The model is shown the error.
pub type ArgumentValidator = dyn Fn(&ToolSpec, &ToolCallBlock, &RunInfo<'_>) -> Result<(), String>;

/// Makes the dynamic system prompt of a turn.
pub type DynamicPrompt = dyn Fn(&RunInfo<'_>) -> Result<String, String>;

/// How deep sub-agents may be nested at most: a checkpoint that holds them must be one that readers of JSON accept.
pub const DEEPEST_NESTING: usize = 16;

/// Everything that is decided inside a step: plain values and synchronous functions.
#[derive(Clone)]
pub struct Rules {
    /// The names of the model and, after it, of the fallbacks in order.
    pub models: Vec<ModelName>,
    /// The system prompt; empty if there is none.
    pub system_prompt: Rc<str>,
    /// Options of every model call.
    pub stream_options: Rc<StreamOptions>,
    /// Whether a tool choice that forces a call holds for every turn. Otherwise it holds for the first call of a run, and then
    /// the model decides: a model that must call a tool never comes to an end.
    pub repeats_tool_choice: bool,
    /// Whether somebody is asked before each turn what holds for it.
    pub prepares_turns: bool,
    /// The tools, in the order in which they are offered.
    pub tools: Rc<[ToolSpec]>,
    /// The same tools as they are described to the model.
    pub schemas: Rc<[ToolSchema]>,
    /// Whether a schema of these tools has names that some providers do not take; found out by the first call.
    pub(crate) odd_names: OnceCell<bool>,
    /// How many turns may call the model; 100 by default.
    pub max_turns: Option<u32>,
    /// Returns any 32 random bits, for the jitter of retries.
    pub random: Rc<dyn Fn() -> u32>,
    /// Returns an id that nothing else ever has, for a question. By default it is made of the randomness of the standard
    /// library, which has none on `wasm32-unknown-unknown`: set it there.
    pub new_id: Rc<dyn Fn() -> String>,
    /// When a failed model call is repeated, and after what delay.
    pub retry: Rc<dyn RetryStrategy>,
    /// See [`ConvertToLlm`]. Without it, custom messages are left out.
    pub convert_to_llm: Option<Rc<ConvertToLlm>>,
    /// Called in order before each turn's model call.
    pub transformers: Vec<Rc<dyn ContextTransformer>>,
    /// Called in order before the model call.
    pub pre_turn: Vec<Rc<dyn PreTurnPolicy>>,
    /// Called in order for each call of a batch.
    pub pre_dispatch: Vec<Rc<dyn PreDispatchPolicy>>,
    /// Called in order after each turn.
    pub post_turn: Vec<Rc<dyn PostTurnPolicy>>,
    /// Called in order when the run would end.
    pub post_loop: Vec<Rc<dyn PostLoopPolicy>>,
    /// Which calls need approval.
    pub approval: ApprovalOptions,
    /// What becomes of a decision about a call that is not asked about yet.
    pub early_decisions: EarlyDecisions,
    /// Whether there is an approver. Without one, calls that need approval wait for a command.
    pub has_approver: bool,
    /// See [`ToolExecutionPolicy`].
    pub tool_execution: ToolExecutionPolicy,
    /// How many tools may run at the same time; no limit by default.
    pub max_concurrent_tools: Option<usize>,
    /// The stages for which there is a hook.
    pub hooks: HookStages,
    /// When an approved call may start.
    pub gate: ApprovalGate,
    /// How steering works.
    pub steering: SteeringRules,
    /// How many of the waiting follow-ups a poll takes.
    pub follow_up: QueueMode,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Evaluated once per turn: an extra user message at the front of the request, which is never stored.
    pub dynamic_system_prompt: Option<Rc<DynamicPrompt>>,
    /// See [`ArgumentValidator`]. Without it, arguments only have to be an object.
    pub validator: Option<Rc<ArgumentValidator>>,
    /// See [`ResultTexts`]. Where it returns nothing, the built-in text is used.
    pub result_texts: Option<Rc<ResultTexts>>,
    /// How many context overflows one turn may recover from; 1 by default.
    pub max_recoveries_per_turn: u32,
    /// Whether `before_llm_call` events are emitted.
    pub include_requests: bool,
    /// The JSON Schema of a structured answer.
    pub output: Option<RawJson>,
    /// How many answers that do not fit the schema are followed by another attempt; 3 by default.
    pub output_retries: u32,
    /// Whether and when `cache_action` events are emitted.
    pub cache: Option<CacheHints>,
    /// The session state at the start of a conversation.
    pub session_state: Map,
    /// This agent's name in a chain of transfers.
    pub agent_name: Rc<str>,
    /// The agents that transferred the conversation before, oldest first.
    pub transfer_chain: Vec<String>,
    /// How much may be used.
    pub budget: Option<Budget>,
    /// How deep sub-agents may be nested: 8 by default, at most [`DEEPEST_NESTING`]. The outermost run says so.
    pub max_depth: u32,
    /// How long the chain of transfers may become; 5 by default.
    pub max_transfer_depth: usize,
}

impl Rules {
    /// Whether a schema of a tool has names that some providers do not take.
    pub(crate) fn has_odd_names(&self) -> bool {
        *self.odd_names.get_or_init(|| self.looks_for_odd_names())
    }

    #[cold]
    fn looks_for_odd_names(&self) -> bool {
        self.tools.iter().any(|tool| has_odd_names(tool.schema.parameters.as_str()))
    }

    /// Defaults for everything but the models and the source of ids.
    pub(crate) fn with_models(models: Vec<ModelName>, new_id: Rc<dyn Fn() -> String>) -> Self {
        Rules {
            models,
            system_prompt: "".into(),
            stream_options: Rc::default(),
            repeats_tool_choice: false,
            prepares_turns: false,
            tools: Rc::new([]),
            schemas: Rc::new([]),
            odd_names: OnceCell::new(),
            max_turns: Some(100),
            random: Rc::new(|| u32::MAX / 2),
            new_id,
            retry: Rc::new(RetryConfig::default()),
            convert_to_llm: None,
            transformers: Vec::new(),
            pre_turn: Vec::new(),
            pre_dispatch: Vec::new(),
            post_turn: Vec::new(),
            post_loop: Vec::new(),
            approval: ApprovalOptions::default(),
            early_decisions: EarlyDecisions::default(),
            has_approver: false,
            tool_execution: ToolExecutionPolicy::Concurrent,
            max_concurrent_tools: None,
            hooks: HookStages::default(),
            gate: ApprovalGate::Batch,
            steering: SteeringRules::default(),
            follow_up: QueueMode::All,
            timeouts: Timeouts::default(),
            dynamic_system_prompt: None,
            validator: None,
            result_texts: None,
            max_recoveries_per_turn: 1,
            include_requests: false,
            output: None,
            output_retries: 3,
            cache: None,
            session_state: Map::new(),
            agent_name: "".into(),
            transfer_chain: Vec::new(),
            budget: None,
            max_depth: 8,
            max_transfer_depth: 5,
        }
    }
}
