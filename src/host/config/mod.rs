//! The configuration of a run: [`Rules`] decide, synchronously; [`Ports`] do the asynchronous work.

mod choices;
mod model;
mod rules;
mod turn;

use std::cell::OnceCell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

pub use choices::{
    CacheHints, EarlyDecisions, InFlight, Partition, QueueMode, SteeringRules, SteeringTime, Timeouts,
    ToolExecutionPolicy,
};
pub use model::{Caller, Model, ModelName};
pub use rules::{ArgumentValidator, ConvertToLlm, DEEPEST_NESTING, DynamicPrompt, ResultTexts, Rules};
pub use turn::TurnOptions;

use crate::data::text;
#[cfg(feature = "durable")]
use crate::host::ports::Steps;
use crate::host::ports::{
    AgentHook, Approver, AsyncContextTransformer, CompactionEngine, HookStages, KeySource, Layers,
    MessageProvider, Timer, TurnPreparer,
};
use crate::host::tool::{AgentTool, ToolSpec};
use crate::words::error::{AgentError, ErrorKind};

/// Everything that acts: the asynchronous parts of the host.
#[derive(Clone)]
pub struct Ports {
    /// The model and, after it, the fallbacks in order.
    pub models: Vec<Model>,
    /// The tools, in the order of [`Rules::tools`].
    pub tools: Vec<Rc<dyn AgentTool>>,
    /// Chooses what holds for each turn, before it.
    pub turns: Option<Rc<dyn TurnPreparer>>,
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
    /// What stands around the execution of tools and models.
    pub layers: Layers,
    /// Stores what effects answer, so that another process can live the run again. Sub-agents use that of the agent around
    /// them.
    #[cfg(feature = "durable")]
    pub steps: Option<Rc<dyn Steps>>,
    /// Clock and timers.
    pub timer: Rc<dyn Timer>,
}

impl Ports {
    /// A model and a clock, and nothing else.
    fn of(model: Model, timer: Rc<dyn Timer>) -> Self {
        Ports {
            models: vec![model],
            tools: Vec::new(),
            turns: None,
            keys: None,
            messages: None,
            transformer: None,
            compaction: None,
            approver: None,
            hooks: Vec::new(),
            layers: Layers::default(),
            #[cfg(feature = "durable")]
            steps: None,
            timer,
        }
    }
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
    pub fn new(model: Model, timer: Rc<dyn Timer>) -> Self {
        AgentLoopConfig::with_ids(model, timer, Rc::new(random_id))
    }

    /// Like [`AgentLoopConfig::new`], for a host that has its own source of ids: [`Rules::new_id`].
    pub fn with_ids(model: Model, timer: Rc<dyn Timer>, new_id: Rc<dyn Fn() -> String>) -> Self {
        let name = ModelName::of(&model);
        AgentLoopConfig { rules: Rules::with_models(vec![name], new_id), ports: Ports::of(model, timer) }
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

    /// Sets who chooses what holds for each turn.
    pub fn set_turn_preparer(&mut self, turns: Rc<dyn TurnPreparer>) {
        self.rules.prepares_turns = true;
        self.ports.turns = Some(turns);
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
        self.rules.odd_names = OnceCell::new();
        self.ports.tools = tools;
    }
}

/// Returns 128 random bits, as two numbers.
pub(in crate::host) fn random_id() -> String {
    let half = || text::number(RandomState::new().build_hasher().finish());
    [&half(), "-", &half()].concat()
}
