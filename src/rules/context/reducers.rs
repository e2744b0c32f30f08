//! The stock reducers as transformers: set in `Rules::transformers`, they reduce what the model is shown in every turn.
//! The history stays as it is; what was left out is reported.
//!
//! ```
//! use std::rc::Rc;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::context::{KeepLast, PruneToolResults, Reducers, SlidingWindow};
//! use turnwheel::scripted;
//!
//! let mut config = AgentLoopConfig::new(scripted::model([]), scripted::clock());
//! let reducers = Reducers::new(vec![
//!     Rc::new(PruneToolResults { keep_last: 3 }),
//!     Rc::new(SlidingWindow { normal_budget: 50_000, overflow_budget: 25_000, anchor: 2 }),
//! ]);
//! config.rules.transformers.push(Rc::new(reducers));
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use super::budget::{BudgetTrim, TrimMemory};
use super::estimate_tokens;
use super::hygiene::KeepLast;
use super::passes::Reducible;
use super::window::SlidingWindow;
use crate::data::text;
use crate::rules::policy::{ContextTransformer, RunInfo, Transform};
use crate::words::event::CompactionReport;
use crate::words::message::AgentMessage;

impl ContextTransformer for SlidingWindow {
    /// Next to what the window keeps, the newest message of the user stays: without it the model would not know what
    /// to do.
    fn transform(&self, messages: &[AgentMessage], overflow_signal: bool) -> Result<Transform, String> {
        let Some(kept) = self.range(messages, overflow_signal) else { return Ok(Transform::Unchanged) };
        let is_user = |message: &AgentMessage| matches!(message, AgentMessage::User(_));
        let asked = messages.iter().rposition(is_user).filter(|at| !kept.contains(*at));
        let mut view = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate() {
            if kept.contains(at) || asked == Some(at) {
                view.push(message.clone());
            }
        }
        Ok(reduced(messages, view, "outside of the window"))
    }
}

impl ContextTransformer for KeepLast {
    fn transform(&self, messages: &[AgentMessage], _: bool) -> Result<Transform, String> {
        Ok(match self.apply(messages) {
            Some(view) => reduced(messages, view, "old results and answers"),
            None => Transform::Unchanged,
        })
    }
}

/// A stock transformer that replaces the contents of old tool results with a placeholder. Their calls stay, so that the
/// model knows what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneToolResults {
    /// How many of the newest results stay whole.
    pub keep_last: usize,
}

impl ContextTransformer for PruneToolResults {
    fn transform(&self, messages: &[AgentMessage], _: bool) -> Result<Transform, String> {
        let is_result = |message: &&AgentMessage| matches!(message, AgentMessage::ToolResult(_));
        let mut old = messages.iter().filter(is_result).count().saturating_sub(self.keep_last);
        let mut view = messages.to_vec();
        for message in &mut view {
            if old > 0 && is_result(&&*message) {
                old -= 1;
                message.trim();
            }
        }
        Ok(reduced(messages, view, "old tool results"))
    }
}

/// [`BudgetTrim`] as a transformer. Remembers what it has trimmed.
#[derive(Debug)]
pub struct BudgetTrimmer {
    trim: BudgetTrim,
    tool_tokens: u64,
    memory: RefCell<TrimMemory>,
}

impl BudgetTrimmer {
    /// Creates a transformer; `tool_tokens` is the tokens of the tools, see [`tool_tokens`](super::tool_tokens).
    pub fn new(trim: BudgetTrim, tool_tokens: u64) -> Self {
        BudgetTrimmer { trim, tool_tokens, memory: RefCell::default() }
    }
}

impl ContextTransformer for BudgetTrimmer {
    fn transform(&self, messages: &[AgentMessage], _: bool) -> Result<Transform, String> {
        Ok(match self.trim.apply(messages, self.tool_tokens, &mut self.memory.borrow_mut()) {
            Some(view) => reduced(messages, view, "old contents"),
            None => Transform::Unchanged,
        })
    }
}

/// Several transformers as one. Each is given what the one before it left; what they report is reported as one.
pub struct Reducers(Vec<Rc<dyn ContextTransformer>>);

impl Reducers {
    /// Puts transformers into a row.
    pub fn new(transformers: Vec<Rc<dyn ContextTransformer>>) -> Self {
        Reducers(transformers)
    }
}

impl ContextTransformer for Reducers {
    fn transform(&self, messages: &[AgentMessage], overflow_signal: bool) -> Result<Transform, String> {
        self.transform_in(&RunInfo::default(), messages, overflow_signal)
    }

    fn transform_in(
        &self,
        run: &RunInfo<'_>,
        messages: &[AgentMessage],
        overflow_signal: bool,
    ) -> Result<Transform, String> {
        let mut so_far = Transform::Unchanged;
        for transformer in &self.0 {
            let given = so_far.messages().unwrap_or(messages);
            let next = transformer.transform_in(run, given, overflow_signal)?;
            so_far = joined(so_far, next);
        }
        Ok(so_far)
    }
}

/// Joins the answers of two transformers, of which the second was given what the first left.
fn joined(first: Transform, next: Transform) -> Transform {
    let is_replaced = matches!(first, Transform::Replace { .. });
    let (before, after) = match (first, next) {
        (first, Transform::Unchanged) => return first,
        (first, next) => (parts(first), parts(next)),
    };
    let report = match (before.1, after.1) {
        (Some(before), Some(after)) => Some(CompactionReport {
            text: [before.text.as_str(), "; ", &after.text].concat(),
            dropped_count: before.dropped_count.saturating_add(after.dropped_count),
            tokens_before: before.tokens_before,
            ..after
        }),
        (before, after) => before.or(after),
    };
    match report {
        // What one of them replaces is replaced: a view of it would not be one of the history.
        report if is_replaced || after.2 => Transform::Replace { messages: after.0, report },
        Some(report) => Transform::Reduced { view: after.0, report },
        None => Transform::View(after.0),
    }
}

/// The messages, the report, and whether they replace the history.
fn parts(transform: Transform) -> (Vec<AgentMessage>, Option<CompactionReport>, bool) {
    match transform {
        Transform::Unchanged => (Vec::new(), None, false),
        Transform::View(view) => (view, None, false),
        Transform::Reduced { view, report } => (view, Some(report), false),
        Transform::Replace { messages, report } => (messages, report, true),
    }
}

/// A view with its report, unless it is the same as before. `what` names what was left out.
fn reduced(before: &[AgentMessage], view: Vec<AgentMessage>, what: &str) -> Transform {
    let left_out = before.len().saturating_sub(view.len());
    let changed = if left_out > 0 {
        left_out
    } else {
        before.iter().zip(&view).filter(|(before, after)| !before.is_same(after)).count()
    };
    if changed == 0 {
        return Transform::Unchanged;
    }
    let tokens = |list: &[AgentMessage]| list.iter().map(estimate_tokens).fold(0, u64::saturating_add);
    let report = CompactionReport {
        text: [&text::number(changed), " messages: ", what].concat(),
        dropped_count: u64::try_from(left_out).unwrap_or(u64::MAX),
        tokens_before: tokens(before),
        tokens_after: tokens(&view),
        overflow: false,
    };
    Transform::Reduced { view, report }
}
