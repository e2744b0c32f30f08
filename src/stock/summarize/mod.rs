//! The stock [`CompactionEngine`]: the agent's own model summarizes the old messages, and the newest ones
//! stay.

mod notes;

use std::future::ready;
use std::rc::Rc;

use futures::future::LocalBoxFuture;

pub use notes::SUMMARY_HEAD;
use notes::Summarizing;

use crate::host::config::{AgentLoopConfig, Model, Timeouts};
use crate::host::ports::{AgentRunContext, Compaction, CompactionCall, CompactionEngine, KeySource, Timer};
use crate::rules::context::SummaryRules;
use crate::rules::retry::RetryStrategy;
use crate::rules::stream::StreamOptions;

/// The maximum tokens of a summary, including the model's thinking.
const SUMMARY_TOKENS: u64 = 8_192;

/// The compaction engine of this module. Its calls are retried like those of the agent. If a call fails, so
/// does the compaction.
#[derive(Clone)]
pub struct Summarizer {
    /// What stays, and how much one call is given.
    pub rules: SummaryRules,
    dependencies: Rc<Dependencies>,
}

/// What it takes from the configuration.
struct Dependencies {
    model: Model,
    keys: Option<Rc<dyn KeySource>>,
    options: Rc<StreamOptions>,
    retry: Rc<dyn RetryStrategy>,
    random: Rc<dyn Fn() -> u32>,
    timer: Rc<dyn Timer>,
    timeouts: Timeouts,
}

impl Summarizer {
    /// Creates an engine with the first model, the key, the retries and the time limits of a configuration.
    /// Create a new one when the model changes. Returns `None` if there is no model.
    pub fn of(config: &AgentLoopConfig) -> Option<Self> {
        let model = config.ports.models.first()?.clone();
        let mut rules = SummaryRules::default();
        let mut longest = SUMMARY_TOKENS;
        // A small window must hold the task, a part, and the notes twice: the current ones and the new
        // ones.
        if let Some(window) = model.context_window {
            longest = longest.min(window / 8).max(256);
            rules.keep_tokens = rules.keep_tokens.min(window / 4);
            rules.part_bytes = usize::try_from(window)
                .map_or(rules.part_bytes, |w| rules.part_bytes.min(w.saturating_mul(2)));
        }
        let mut options = config.rules.stream_options.as_ref().clone();
        options.max_tokens = Some(options.max_tokens.unwrap_or(longest).min(longest));
        options.tool_choice = None;
        options.parallel_tool_calls = None;
        options.stop.clear();
        let dependencies = Dependencies {
            model,
            keys: config.ports.keys.clone(),
            options: Rc::new(options),
            retry: config.rules.retry.clone(),
            random: config.rules.random.clone(),
            timer: config.ports.timer.clone(),
            timeouts: config.rules.timeouts,
        };
        Some(Summarizer { rules, dependencies: Rc::new(dependencies) })
    }
}

impl CompactionEngine for Summarizer {
    fn compact(
        &self,
        context: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        let Some(split) = self.rules.split(&call.messages) else {
            return Box::pin(ready(Err(
                "there is nothing to summarise: the newest messages alone are too long".to_owned(),
            )));
        };
        let key = match &self.dependencies.keys {
            Some(keys) => keys.key(&self.dependencies.model.provider),
            None => Box::pin(ready(Ok(None))),
        };
        Box::pin(Summarizing::new(self.clone(), context.clone(), call, split, key))
    }
}
