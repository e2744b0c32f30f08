//! The configuration of a run: [`Rules`] decide and are synchronous, [`Ports`] act and are not.

use std::cell::Cell;
use std::rc::Rc;

use crate::approval::{ApprovalGate, ApprovalOptions};
use crate::error::{AgentError, ErrorKind};
use crate::json::{Map, RawJson};
use crate::message::{AgentMessage, LlmMessage, ToolCallBlock, ToolResultCause};
use crate::policy::{ContextTransformer, PostLoopPolicy, PostTurnPolicy, PreDispatchPolicy, PreTurnPolicy};
use crate::ports::{
    AgentHook, Approver, AsyncContextTransformer, CompactionEngine, HookStages, KeySource, MessageProvider,
    StreamFn, Timer,
};
use crate::retry::{RetryConfig, RetryStrategy};
use crate::stream::{StreamOptions, ToolSchema};
use crate::tool::{AgentTool, ToolSpec};

/// A model and how it is reached.
#[derive(Clone)]
pub struct Model {
    /// The name of the provider, such as `openai`.
    pub provider: Rc<str>,
    /// The model's id.
    pub id: Rc<str>,
    /// `false`: tools are not offered.
    pub supports_tools: bool,
    /// Tokens that it can take. Where that is known, room is made before a request is longer.
    pub context_window: Option<u64>,
    /// Asks it.
    pub stream_fn: Rc<dyn StreamFn>,
}

impl Model {
    /// A model that is offered tools.
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

/// How the calls of a batch are put in order.
#[derive(Clone, Default)]
pub enum ToolExecutionPolicy {
    /// All at once.
    #[default]
    Concurrent,
    /// One after the other.
    Sequential,
    /// By [`ToolSpec::priority`], higher first; equal ones together.
    Priority,
    /// Groups of indices into the calls left after preprocessing; each index exactly once.
    Custom(Rc<Partition>),
}

/// Groups calls.
pub type Partition = dyn Fn(&[ToolCallBlock]) -> Result<Vec<Vec<usize>>, String>;

/// How many waiting messages a poll takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// All.
    #[default]
    All,
    /// The oldest.
    OneAtATime,
}

/// When steering acts on a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteeringTime {
    /// When a tool has finished.
    #[default]
    AfterTool,
    /// At once.
    Immediate,
}

/// What steering does with running tools.
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
    /// When it acts on a batch.
    pub when: SteeringTime,
    /// What it does with running tools.
    pub in_flight: InFlight,
    /// How many messages a poll takes.
    pub delivery: Delivery,
    /// Whether it is polled before the first model call of a run.
    pub before_first_call: bool,
}

/// Time limits in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first sign of life of a model call.
    pub first_chunk: Option<u64>,
    /// Between two signs of life.
    pub chunk: Option<u64>,
    /// For tools that set none themselves.
    pub tool: Option<u64>,
    /// For the whole run.
    pub total: Option<u64>,
}

/// The words of results that no tool wrote: cause, call, and what more there is to say.
pub type ResultTexts = dyn Fn(ToolResultCause, &ToolCallBlock, &str) -> Option<String>;

/// Turns a message of the history into one for the model; `None` leaves it out. Called once per message.
pub type ConvertToLlm = dyn Fn(&AgentMessage) -> Result<Option<LlmMessage>, String>;

/// Checks arguments against a tool's schema; the error is shown to the model.
pub type ArgumentValidator = dyn Fn(&ToolSpec, &ToolCallBlock) -> Result<(), String>;

/// Everything that is decided inside a step: plain values and synchronous functions.
#[derive(Clone)]
pub struct Rules {
    /// The model and, after it, the fallbacks in order: provider and id.
    pub models: Vec<ModelName>,
    /// The system prompt; empty for none.
    pub system_prompt: Rc<str>,
    /// Options of every model call.
    pub stream_options: Rc<StreamOptions>,
    /// The tools.
    pub tools: Rc<[ToolSpec]>,
    /// The same tools as the model is told of them.
    pub schemas: Rc<[ToolSchema]>,
    /// Turns that may call the model.
    pub max_turns: Option<u32>,
    /// Any 32 random bits, for jitter.
    pub random: Rc<dyn Fn() -> u32>,
    /// When a failed call is repeated.
    pub retry: Rc<dyn RetryStrategy>,
    /// See [`ConvertToLlm`]; without it custom messages are left out.
    pub convert_to_llm: Option<Rc<ConvertToLlm>>,
    /// In order.
    pub transformers: Vec<Rc<dyn ContextTransformer>>,
    /// In order.
    pub pre_turn: Vec<Rc<dyn PreTurnPolicy>>,
    /// In order.
    pub pre_dispatch: Vec<Rc<dyn PreDispatchPolicy>>,
    /// In order.
    pub post_turn: Vec<Rc<dyn PostTurnPolicy>>,
    /// In order.
    pub post_loop: Vec<Rc<dyn PostLoopPolicy>>,
    /// Who is asked about which call.
    pub approval: ApprovalOptions,
    /// Whether there is somebody to ask; without, what must be asked waits for a command.
    pub has_approver: bool,
    /// See [`ToolExecutionPolicy`].
    pub tool_execution: ToolExecutionPolicy,
    /// How many tools may run at once.
    pub max_concurrent_tools: Option<usize>,
    /// The stages that some hook wants.
    pub hooks: HookStages,
    /// When a call may start.
    pub gate: ApprovalGate,
    /// How steering works.
    pub steering: SteeringRules,
    /// How many follow-ups a poll takes.
    pub follow_up: Delivery,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Evaluated once per turn; an extra user message in front of the request, never stored.
    pub dynamic_system_prompt: Option<Rc<dyn Fn() -> Result<String, String>>>,
    /// See [`ArgumentValidator`]; without it only "is it an object" is checked.
    pub validator: Option<Rc<ArgumentValidator>>,
    /// See [`ResultTexts`]; what it leaves out has a stock text.
    pub result_texts: Option<Rc<ResultTexts>>,
    /// Context overflows that may be recovered from in one turn.
    pub max_recoveries_per_turn: u32,
    /// Whether `before_llm_call` comes out.
    pub include_requests: bool,
    /// JSON Schema of a structured answer.
    pub output: Option<RawJson>,
    /// Answers that do not fit and are followed by another try.
    pub output_retries: u32,
    /// Whether and when `cache_action` comes out.
    pub cache: Option<CacheHints>,
    /// The session state at the start.
    pub session_state: Map,
    /// Names this agent in a chain of hand-overs.
    pub agent_name: Rc<str>,
    /// Who handed the conversation over before, oldest first.
    pub transfer_chain: Vec<String>,
    /// How long the chain may grow.
    pub max_transfer_depth: usize,
}

/// A model as rules and messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The name of the provider.
    pub provider: Rc<str>,
    /// The model's id.
    pub id: Rc<str>,
    /// `false`: tools are not offered.
    pub supports_tools: bool,
    /// Tokens that it can take.
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

/// When the provider's prompt cache is written, and when it is only read.
#[derive(Clone, Debug)]
pub struct CacheHints {
    /// How long the provider keeps it, in milliseconds.
    pub ttl_ms: u64,
    /// Shorter conversations are not worth it.
    pub min_tokens: u64,
    /// It is written every so many turns.
    pub intervals: u32,
    /// How many of the first messages stand in it: set by the engine, for transformers that shall leave them alone.
    pub prefix: Rc<Cell<usize>>,
}

impl CacheHints {
    /// Hints for a cache that is kept so long.
    pub fn new(ttl_ms: u64, min_tokens: u64, intervals: u32) -> Self {
        CacheHints { ttl_ms, min_tokens, intervals, prefix: Rc::default() }
    }
}

/// Everything that acts.
#[derive(Clone)]
pub struct Ports {
    /// The model and, after it, the fallbacks in order.
    pub models: Vec<Model>,
    /// In the order of [`Rules::tools`].
    pub tools: Vec<Rc<dyn AgentTool>>,
    /// Gives keys.
    pub keys: Option<Rc<dyn KeySource>>,
    /// The host's own queue.
    pub messages: Option<Rc<dyn MessageProvider>>,
    /// Runs ahead of the synchronous transformers.
    pub transformer: Option<Rc<dyn AsyncContextTransformer>>,
    /// Shortens what is too long.
    pub compaction: Option<Rc<dyn CompactionEngine>>,
    /// Decides about calls.
    pub approver: Option<Rc<dyn Approver>>,
    /// In order.
    pub hooks: Vec<Rc<dyn AgentHook>>,
    /// Clock and timers.
    pub timer: Rc<dyn Timer>,
}

/// The configuration of a run.
#[derive(Clone)]
pub struct AgentLoopConfig {
    /// What decides.
    pub rules: Rules,
    /// What acts.
    pub ports: Ports,
}

impl AgentLoopConfig {
    /// A configuration with one model and nothing else.
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

    /// Puts the models in place: the first one, and the fallbacks in order.
    pub fn set_models(&mut self, models: Vec<Model>) {
        self.rules.models.clear();
        models.iter().for_each(|model| self.rules.models.push(ModelName::of(model)));
        self.ports.models = models;
    }

    /// Puts the approver in place.
    pub fn set_approver(&mut self, approver: Rc<dyn Approver>) {
        self.rules.has_approver = true;
        self.ports.approver = Some(approver);
    }

    /// Puts the hooks in place.
    pub fn set_hooks(&mut self, hooks: Vec<Rc<dyn AgentHook>>) {
        self.rules.hooks = hooks.iter().fold(HookStages::default(), |stages, hook| stages.or(hook.stages()));
        self.ports.hooks = hooks;
    }

    /// Puts the host's own queue in place.
    pub fn set_message_provider(&mut self, messages: Rc<dyn MessageProvider>) {
        self.ports.messages = Some(messages);
    }

    /// Puts the tools in place.
    ///
    /// # Errors
    /// Misuse, where two have the same name, one has none, or its parameters are no JSON Schema object.
    pub fn set_tools(&mut self, tools: Vec<Rc<dyn AgentTool>>) -> Result<(), AgentError> {
        let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
        let mut names = crate::table::Table::new();
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

    /// Puts the tools in place as they are. Of two with the same name the first runs, and both are offered: a provider
    /// may refuse that, so [`AgentLoopConfig::set_tools`] does.
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
