//! Trimming to a budget, with a boundary that never moves back, so that what a provider has cached does not
//! change.
//!
//! Once the budget is exceeded, contents are replaced with a placeholder up to a boundary, well below the
//! budget, so that the boundary stays in place for several turns. The boundary is a number of messages,
//! stored in the run's metadata. A compaction invalidates it: reset it then.

use super::passes::{Reducible, Role};
use super::weight::with_margin;
use crate::data::json::{Map, Value};
use crate::words::message::AgentMessage;

/// The key of the boundary in a run's metadata.
pub const BOUNDARY_KEY: &str = "trimmed_up_to_message_index";

/// The number of tokens at which trimming begins, and the number at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBudget {
    /// Trimming begins above this number of tokens.
    pub threshold: u64,
    /// Trimming continues until this number of tokens is left.
    pub target: u64,
}

impl TokenBudget {
    /// Returns the budget for a model. The threshold is a fraction of its context window, minus the tokens
    /// that the answer needs; the target is three quarters of that.
    pub fn new(context_window: u64, max_output_tokens: u64, fraction: f32) -> Self {
        let window = context_window.saturating_sub(max_output_tokens);
        let threshold = fraction_of(window, fraction);
        TokenBudget { threshold, target: threshold / 4 * 3 + threshold % 4 * 3 / 4 }
    }

    fn holds(&self, tokens: u64, overhead: u64) -> bool {
        with_margin(tokens).saturating_add(overhead) <= self.threshold
    }

    fn is_met(&self, tokens: u64, overhead: u64) -> bool {
        with_margin(tokens).saturating_add(overhead) <= self.target
    }
}

/// `f32` has no `From<u64>` and `u64` no `TryFrom<f32>`. The product is truncated and saturates.
fn fraction_of(window: u64, fraction: f32) -> u64 {
    (window as f32 * fraction) as u64
}

/// Trims old messages until they fit the budget. `overhead` is the tokens of the tools; the last
/// `keep_last` answers are left alone as long as the budget permits; `previous` is the boundary so far.
/// Returns the new boundary, which is never below the previous one, or `None` if the messages fit and
/// nothing was ever trimmed.
pub fn trim_to_budget<M: Reducible>(
    messages: &mut [M],
    budget: TokenBudget,
    overhead: u64,
    keep_last: usize,
    previous: usize,
) -> Option<usize> {
    let mut tokens = messages.iter().map(Reducible::weight).fold(0, u64::saturating_add);
    if previous == 0 && budget.holds(tokens, overhead) {
        return None;
    }
    for message in messages.iter_mut().take(previous) {
        trim_one(message, &mut tokens);
    }
    if budget.holds(tokens, overhead) {
        return Some(previous);
    }
    let kept_from = start_of_last_answers(messages, keep_last);
    for message in messages.iter_mut().take(kept_from).skip(previous) {
        trim_one(message, &mut tokens);
    }
    let mut boundary = kept_from;
    let scan_from = if kept_from == 0 { previous } else { kept_from };
    for (at, message) in messages.iter_mut().enumerate().skip(scan_from) {
        if budget.is_met(tokens, overhead) {
            break;
        }
        if trim_one(message, &mut tokens) {
            boundary = at + 1;
        }
    }
    Some(boundary.max(previous))
}

/// Trims the message. Returns whether it is of a kind that is trimmed.
fn trim_one<M: Reducible>(message: &mut M, tokens: &mut u64) -> bool {
    let is_trimmed = matches!(message.role(), Role::Assistant | Role::Tool);
    if is_trimmed {
        let before = message.weight();
        message.trim();
        *tokens = tokens.saturating_sub(before).saturating_add(message.weight());
    }
    is_trimmed
}

/// Returns where the last `n` answers begin: at the end if `n` is 0, at 0 if there are fewer.
fn start_of_last_answers<M: Reducible>(messages: &[M], n: usize) -> usize {
    let Some(before) = n.checked_sub(1) else { return messages.len() };
    let answers = messages.iter().enumerate().rev().filter(|(_, message)| message.role() == Role::Assistant);
    answers.map(|(at, _)| at).nth(before).unwrap_or(0)
}

/// Returns the boundary in a run's metadata; 0 if there is none, or if it is not a whole number.
pub fn boundary_in(metadata: &Value) -> usize {
    match metadata.get(BOUNDARY_KEY) {
        Some(Value::Number(number)) => number.as_str().parse().unwrap_or(0),
        _ => 0,
    }
}

/// Writes the boundary into a run's metadata. Metadata that is not an object is replaced with one. 0 resets
/// the boundary.
pub fn set_boundary(metadata: &mut Value, boundary: usize) {
    if !matches!(metadata, Value::Object(_)) {
        *metadata = Value::Object(Map::new());
    }
    if let Value::Object(map) = metadata {
        map.insert(BOUNDARY_KEY, Value::from(u64::try_from(boundary).unwrap_or(u64::MAX)));
    }
}

/// A stock transformer that trims old answers and results once a fraction of the model's context window is
/// used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetTrim {
    /// The number of answers that are left alone as long as the budget permits.
    pub keep_last_answers: usize,
    /// The fraction of the context window above which trimming begins.
    pub fraction: f32,
    /// The model's context window, in tokens.
    pub context_window: u64,
    /// The tokens that the answer needs.
    pub max_output_tokens: u64,
}

/// What trimming remembers between calls. Only the boundary must survive a restart; the rest ensures that a
/// message is trimmed once, and remains the same object from request to request.
#[derive(Clone, Debug, Default)]
pub struct TrimMemory {
    /// The number of messages that are trimmed.
    pub boundary: usize,
    trimmed: Vec<(AgentMessage, AgentMessage)>,
}

impl TrimMemory {
    /// Restores what is known after a restart: the number of trimmed messages.
    pub fn restored(boundary: usize) -> Self {
        TrimMemory { boundary, trimmed: Vec::new() }
    }
}

impl BudgetTrim {
    /// Returns a view for one request, or `None` if everything fits and nothing was trimmed before.
    /// `tool_tokens` is the tokens of the tools. If a trimmed message is no longer there, the history was
    /// compacted: the boundary is then invalid, and trimming starts over.
    pub fn apply(
        &self,
        messages: &[AgentMessage],
        tool_tokens: u64,
        memory: &mut TrimMemory,
    ) -> Option<Vec<AgentMessage>> {
        let known = memory.trimmed.iter().zip(messages);
        let mut known = known.take_while(|((original, _), message)| original.is_same(message)).count();
        if known < memory.trimmed.len() || memory.boundary > messages.len() {
            *memory = TrimMemory::default();
            known = 0;
        }
        let trimmed = memory.trimmed.iter().map(|(_, trimmed)| trimmed);
        let mut view: Vec<AgentMessage> = trimmed.chain(messages.iter().skip(known)).cloned().collect();
        let budget = TokenBudget::new(self.context_window, self.max_output_tokens, self.fraction);
        let boundary =
            trim_to_budget(&mut view, budget, tool_tokens, self.keep_last_answers, memory.boundary)?;
        memory.boundary = boundary;
        let newly_trimmed = messages.iter().zip(&view).take(boundary).skip(known);
        memory.trimmed.extend(newly_trimmed.map(|(message, trimmed)| (message.clone(), trimmed.clone())));
        Some(view)
    }
}
