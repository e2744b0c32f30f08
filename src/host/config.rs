//! The configuration of a run: [`Rules`] decide, synchronously; [`Ports`] do the asynchronous work.

use std::cell::Cell;
use std::rc::Rc;

use crate::data::json::{Map, RawJson};
use crate::host::ports::{
    AgentHook, Approver, AsyncContextTransformer, CompactionEngine, HookStages, KeySource, MessageProvider,
    StreamFn, Timer,
};
use crate::host::tool::{AgentTool, ToolSpec};
use crate::rules::approval::{ApprovalGate, ApprovalOptions};
use crate::rules::policy::{
    ContextTransformer, PostLoopPolicy, PostTurnPolicy, PreDispatchPolicy, PreTurnPolicy,
};
use crate::rules::retry::{RetryConfig, RetryStrategy};
use crate::rules::stream::{StreamOptions, ToolSchema};
use crate::words::error::{AgentError, ErrorKind};
use crate::words::message::{AgentMessage, LlmMessage, ToolCallBlock, ToolResultCause};

/// A model and how to call it.
#[derive(Clone)]
pub struct Model {
    /// The name of the provider, such as `openai`.
    pub provider: Rc<str>,
    /// The model's id, as the provider names it.
    pub id: Rc<str>,
    /// Whether the model is offered tools.
    pub supports_tools: bool,
    /// How many tokens the model takes. If this is known, room is made before a request would be longer.
    pub context_window: Option<u64>,
    /// Makes the calls.
    pub stream_fn: Rc<dyn StreamFn>,
}

impl Model {
    /// Creates a model that is offered tools.
    pub fn new(provider: &str, id: &str, stream_fn: Rc<dyn StreamFn>) -> Self {
        Model {
            provider: provider.into(),
            id: id.into(),
            supports_tools: true,
            context_window: None,
            stream_fn,
        }
    }
}

/// In which order the calls of a batch run.
#[derive(Clone, Default)]
pub enum ToolExecutionPolicy {
    /// All concurrently.
    #[default]
    Concurrent,
    /// One after the other.
    Sequential,
    /// By [`ToolSpec::priority`], higher first; calls of equal priority concurrently.
    Priority,
    /// In groups, one after the other: lists of indices into the calls that were allowed, each index exactly once.
    Custom(Rc<Partition>),
}

/// Divides the calls of a batch into groups.
pub type Partition = dyn Fn(&[ToolCallBlock]) -> Result<Vec<Vec<usize>>, String>;

/// How many of the waiting messages a poll takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// All.
    #[default]
    All,
    /// Only the oldest.
    OneAtATime,
}

/// When steering interrupts a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteeringTime {
    /// When the next tool has finished.
    #[default]
    AfterTool,
    /// Immediately.
    Immediate,
}

/// What happens to running tools when the user steers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlight {
    /// They are cancelled.
    #[default]
    Cancel,
    /// They may finish.
    Finish,
}

/// How steering works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteeringRules {
    /// When it interrupts a batch.
    pub when: SteeringTime,
    /// What happens to running tools.
    pub in_flight: InFlight,
    /// How many of the waiting messages a poll takes.
    pub delivery: Delivery,
    /// Whether the queue is also polled before the first model call of a run.
    pub before_first_call: bool,
}

/// Time limits in milliseconds; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of a model call to its first sign of life.
    pub first_chunk: Option<u64>,
    /// Between two signs of life of a model call.
    pub chunk: Option<u64>,
    /// For each call of a tool that has no limit of its own.
    pub tool: Option<u64>,
    /// For the whole run.
    pub total: Option<u64>,
}

/// The texts of results that no tool wrote, made from the cause, the call, and further details.
pub type ResultTexts = dyn Fn(ToolResultCause, &ToolCallBlock, &str) -> Option<String>;

/// Converts a message of the history for the model; `None` leaves it out. Called once per message.
pub type ConvertToLlm = dyn Fn(&AgentMessage) -> Result<Option<LlmMessage>, String>;

/// Checks arguments against a tool's schema. The model is shown the error.
pub type ArgumentValidator = dyn Fn(&ToolSpec, &ToolCallBlock) -> Result<(), String>;

/// Everything that is decided inside a step: plain values and synchronous functions.
#[derive(Clone)]
pub struct Rules {
    /// The names of the model and, after it, of the fallbacks in order.
    pub models: Vec<ModelName>,
    /// The system prompt; empty if there is none.
    pub system_prompt: Rc<str>,
    /// Options of every model call.
    pub stream_options: Rc<StreamOptions>,
    /// The tools, in the order in which they are offered.
    pub tools: Rc<[ToolSpec]>,
    /// The same tools as they are described to the model.
    pub schemas: Rc<[ToolSchema]>,
    /// How many turns may call the model; 100 by default.
    pub max_turns: Option<u32>,
    /// Returns any 32 random bits, for the jitter of retries.
    pub random: Rc<dyn Fn() -> u32>,
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
    pub follow_up: Delivery,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Evaluated once per turn: an extra user message at the front of the request, which is never stored.
    pub dynamic_system_prompt: Option<Rc<dyn Fn() -> Result<String, String>>>,
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
    /// How long the chain of transfers may become; 5 by default.
    pub max_transfer_depth: usize,
}

/// A model as rules and messages refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The name of the provider.
    pub provider: Rc<str>,
    /// The model's id.
    pub id: Rc<str>,
    /// Whether the model is offered tools.
    pub supports_tools: bool,
    /// How many tokens the model takes, if that is known.
    pub context_window: Option<u64>,
    /// See [`StreamFn::native_output`].
    pub native_output: bool,
}

impl ModelName {
    fn of(model: &Model) -> Self {
        ModelName {
            provider: model.provider.clone(),
            id: model.id.clone(),
            supports_tools: model.supports_tools,
            context_window: model.context_window,
            native_output: model.stream_fn.native_output(),
        }
    }
}

/// When the provider's prompt cache is written and when it is only read, by estimate.
#[derive(Clone, Debug)]
pub struct CacheHints {
    /// How long the provider keeps the cache, in milliseconds.
    pub ttl_ms: u64,
    /// How many tokens a conversation needs before caching is worthwhile.
    pub min_tokens: u64,
    /// The cache is written again after this many turns.
    pub intervals: u32,
    /// How many of the first messages are cached. Set by the engine, for transformers that should leave them alone.
    pub prefix: Rc<Cell<usize>>,
}

impl CacheHints {
    /// Hints for a cache that is kept for this many milliseconds.
    pub fn new(ttl_ms: u64, min_tokens: u64, intervals: u32) -> Self {
        CacheHints { ttl_ms, min_tokens, intervals, prefix: Rc::default() }
    }
}

/// Everything that acts: the asynchronous parts of the host.
#[derive(Clone)]
pub struct Ports {
    /// The model and, after it, the fallbacks in order.
    pub models: Vec<Model>,
    /// The tools, in the order of [`Rules::tools`].
    pub tools: Vec<Rc<dyn AgentTool>>,
    /// Provides API keys.
    pub keys: Option<Rc<dyn KeySource>>,
    /// The host's own queues of messages.
    pub messages: Option<Rc<dyn MessageProvider>>,
    /// Runs before the synchronous transformers.
    pub transformer: Option<Rc<dyn AsyncContextTransformer>>,
    /// Shortens a conversation that is too long.
    pub compaction: Option<Rc<dyn CompactionEngine>>,
    /// Decides about tool calls.
    pub approver: Option<Rc<dyn Approver>>,
    /// Called in order.
    pub hooks: Vec<Rc<dyn AgentHook>>,
    /// Clock and timers.
    pub timer: Rc<dyn Timer>,
}

/// The configuration of a run.
#[derive(Clone)]
pub struct AgentLoopConfig {
    /// The part that decides.
    pub rules: Rules,
    /// The part that acts.
    pub ports: Ports,
}

impl AgentLoopConfig {
    /// Creates a configuration with one model and defaults for everything else.
    #[inline(never)]
    pub fn new(model: Model, timer: Rc<dyn Timer>) -> Self {
        let name = ModelName::of(&model);
        AgentLoopConfig {
            rules: Rules {
                models: vec![name],
                system_prompt: "".into(),
                stream_options: Rc::default(),
                tools: Rc::new([]),
                schemas: Rc::new([]),
                max_turns: Some(100),
                random: Rc::new(|| u32::MAX / 2),
                retry: Rc::new(RetryConfig::default()),
                convert_to_llm: None,
                transformers: Vec::new(),
                pre_turn: Vec::new(),
                pre_dispatch: Vec::new(),
                post_turn: Vec::new(),
                post_loop: Vec::new(),
                approval: ApprovalOptions::default(),
                has_approver: false,
                tool_execution: ToolExecutionPolicy::Concurrent,
                max_concurrent_tools: None,
                hooks: HookStages::default(),
                gate: ApprovalGate::Batch,
                steering: SteeringRules::default(),
                follow_up: Delivery::All,
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
                max_transfer_depth: 5,
            },
            ports: Ports {
                models: vec![model],
                tools: Vec::new(),
                keys: None,
                messages: None,
                transformer: None,
                compaction: None,
                approver: None,
                hooks: Vec::new(),
                timer,
            },
        }
    }

    /// Sets the models: the first one, and its fallbacks in order.
    pub fn set_models(&mut self, models: Vec<Model>) {
        self.rules.models.clear();
        models.iter().for_each(|model| self.rules.models.push(ModelName::of(model)));
        self.ports.models = models;
    }

    /// Sets the approver.
    pub fn set_approver(&mut self, approver: Rc<dyn Approver>) {
        self.rules.has_approver = true;
        self.ports.approver = Some(approver);
    }

    /// Sets the hooks.
    pub fn set_hooks(&mut self, hooks: Vec<Rc<dyn AgentHook>>) {
        self.rules.hooks = hooks.iter().fold(HookStages::default(), |stages, hook| stages.or(hook.stages()));
        self.ports.hooks = hooks;
    }

    /// Sets the host's own queues of messages.
    pub fn set_message_provider(&mut self, messages: Rc<dyn MessageProvider>) {
        self.ports.messages = Some(messages);
    }

    /// Sets the tools.
    ///
    /// # Errors
    /// Misuse, if two tools have the same name, one has none, or its parameters are not a JSON Schema object.
    pub fn set_tools(&mut self, tools: Vec<Rc<dyn AgentTool>>) -> Result<(), AgentError> {
        let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
        let mut names = crate::data::table::Table::new();
        for spec in &specs {
            let name = spec.schema.name.as_ref();
            if name.is_empty() {
                return Err(AgentError::new(ErrorKind::Misuse, "a tool needs a name"));
            }
            if names.insert(name, ()).is_some() {
                let text = ["two tools are named `", name, "`; names must be unique"].concat();
                return Err(AgentError::new(ErrorKind::Misuse, text));
            }
            if !spec.schema.parameters.is_object() {
                let text = ["the parameters of tool `", name, "` must be a JSON Schema object"].concat();
                return Err(AgentError::new(ErrorKind::Misuse, text));
            }
        }
        self.offer_tools(tools);
        Ok(())
    }

    /// Sets the tools without checking them. If two have the same name, the first one runs and both are offered, which a
    /// provider may refuse; [`AgentLoopConfig::set_tools`] refuses it here.
    #[inline(never)]
    pub fn offer_tools(&mut self, tools: Vec<Rc<dyn AgentTool>>) {
        let mut specs: Vec<ToolSpec> = Vec::with_capacity(tools.len());
        let mut schemas = Vec::with_capacity(tools.len());
        for tool in &tools {
            let spec = tool.spec();
            schemas.push(spec.schema.clone());
            specs.push(spec.clone());
        }
        self.rules.schemas = schemas.into();
        self.rules.tools = specs.into();
        self.ports.tools = tools;
    }
}
