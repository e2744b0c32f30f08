//! What may be set for a single run or a single turn, in place of what the agent is set to.

use std::fmt;
use std::rc::Rc;

use super::{AgentLoopConfig, Model};
use crate::data::json::{FromJson, ObjectWriter, Value};
use crate::host::tool::{AgentTool, ToolSpec};
use crate::rules::budget::{Budget, BudgetScope};
use crate::rules::stream::{StreamOptions, ToolSchema};

/// What holds for one run or one turn. What is not set here is as the agent has it.
///
/// ```
/// use turnwheel::config::TurnOptions;
/// use turnwheel::stream::{StreamOptions, ToolChoice};
///
/// let tool_choice = Some(ToolChoice::Tool("search".to_owned()));
/// let options = TurnOptions {
///     stream_options: Some(StreamOptions { tool_choice, ..StreamOptions::default() }),
///     ..TurnOptions::default()
/// };
/// ```
#[derive(Clone, Default)]
pub struct TurnOptions {
    /// The model that is called first. The fallbacks stay.
    pub model: Option<Model>,
    /// What is set here counts in place of the agent's; headers and fields of the body by name.
    pub stream_options: Option<StreamOptions>,
    /// The names of the tools that are offered and may be called; the others are unknown.
    pub active_tools: Option<Vec<String>>,
    /// The system prompt.
    pub system_prompt: Option<Rc<str>>,
    /// The budget of a run, whatever its scope says; a checkpoint has it.
    pub budget: Option<Budget>,
}

impl TurnOptions {
    pub(crate) fn is_empty(&self) -> bool {
        let TurnOptions { model, stream_options, active_tools, system_prompt, budget } = self;
        let is_plain = stream_options.is_none() && active_tools.is_none() && system_prompt.is_none();
        is_plain && model.is_none() && budget.is_none()
    }

    /// These options, and where they say nothing, the others.
    pub(crate) fn over(self, others: TurnOptions) -> TurnOptions {
        TurnOptions {
            model: self.model.or(others.model),
            stream_options: match (self.stream_options, others.stream_options) {
                (Some(own), Some(others)) => Some(own.over(&others)),
                (own, others) => own.or(others),
            },
            active_tools: self.active_tools.or(others.active_tools),
            system_prompt: self.system_prompt.or(others.system_prompt),
            budget: self.budget.or(others.budget),
        }
    }

    /// What of these options counts if a checkpoint has them, whoever wrote it: which of the tools may be called, what
    /// `streamOptions` say of an answer, and the budget. The system prompt and the request are the host's alone.
    pub(crate) fn believable(self, tools: &[ToolSpec]) -> TurnOptions {
        let mut options = TurnOptions {
            stream_options: self.stream_options.map(without_request),
            active_tools: self.active_tools,
            budget: self.budget,
            ..TurnOptions::default()
        };
        options.forget_tools_but(tools);
        options
    }

    /// Leaves out the active tools that are none of these.
    pub(crate) fn forget_tools_but(&mut self, tools: &[ToolSpec]) {
        if let Some(names) = &mut self.active_tools {
            names.retain(|name| tools.iter().any(|tool| *tool.schema.name == **name));
        }
    }

    /// Writes what a checkpoint holds.
    pub(crate) fn write_checkpoint(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.optional("streamOptions", &self.stream_options.clone().map(without_request));
        object.optional("activeTools", &self.active_tools);
        object.optional("budget", &self.budget);
        object.end();
    }
}

/// Headers may be secret, and fields of the body are the request itself.
fn without_request(options: StreamOptions) -> StreamOptions {
    StreamOptions { headers: Vec::new(), body: Vec::new(), ..options }
}

impl FromJson for TurnOptions {
    /// Reads everything but the model.
    fn from_json(value: &Value) -> Result<Self, String> {
        let names = |list: &Value| {
            let name = |name: &Value| name.as_str().map(str::to_owned);
            list.as_array().into_iter().flatten().filter_map(name).collect()
        };
        Ok(TurnOptions {
            model: None,
            stream_options: value.get("streamOptions").map(StreamOptions::from_json).transpose()?,
            active_tools: value.get("activeTools").map(names),
            system_prompt: value.text_at("systemPrompt").map(Rc::from),
            budget: value.get("budget").map(Budget::from_json).transpose()?,
        })
    }
}

impl fmt::Debug for TurnOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut json = String::new();
        self.write_checkpoint(&mut json);
        f.debug_tuple("TurnOptions").field(&json).finish()
    }
}

impl AgentLoopConfig {
    /// Returns this configuration with the options of a run or a turn.
    ///
    /// # Errors
    /// If one of the active tools is none of the tools; the text names it.
    pub(crate) fn with_options(&self, options: &TurnOptions) -> Result<AgentLoopConfig, String> {
        let mut config = self.clone();
        if let Some(model) = &options.model {
            let mut models = vec![model.clone()];
            models.extend(config.ports.models.iter().skip(1).cloned());
            config.set_models(models);
        }
        if let Some(own) = &options.stream_options {
            config.rules.stream_options = Rc::new(own.clone().over(&config.rules.stream_options));
        }
        if let Some(prompt) = &options.system_prompt {
            config.rules.system_prompt = prompt.clone();
        }
        if let Some(budget) = options.budget {
            config.rules.budget = Some(Budget { scope: BudgetScope::Run, ..budget });
        }
        if let Some(names) = &options.active_tools {
            config.keep_tools(names)?;
        }
        Ok(config)
    }

    fn keep_tools(&mut self, names: &[String]) -> Result<(), String> {
        let of_name = |spec: &&ToolSpec, name: &str| spec.schema.name.as_ref() == name;
        let missing = names.iter().find(|name| !self.rules.tools.iter().any(|spec| of_name(&spec, name)));
        if let Some(missing) = missing {
            return Err(["`activeTools` names `", missing, "`, which is none of the tools"].concat());
        }
        let is_kept = |spec: &ToolSpec| names.iter().any(|name| of_name(&spec, name));
        let kept: Vec<bool> = self.rules.tools.iter().map(is_kept).collect();
        let specs: Vec<ToolSpec> = kept_of(&kept, &self.rules.tools);
        let schemas: Vec<ToolSchema> = kept_of(&kept, &self.rules.schemas);
        let tools: Vec<Rc<dyn AgentTool>> = kept_of(&kept, &self.ports.tools);
        (self.rules.tools, self.rules.schemas, self.ports.tools) = (specs.into(), schemas.into(), tools);
        Ok(())
    }
}

fn kept_of<T: Clone>(kept: &[bool], all: &[T]) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept).map(|(one, _)| one.clone()).collect()
}
