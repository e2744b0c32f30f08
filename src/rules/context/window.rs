//! The sliding window: the first messages, the newest ones that fit, and nothing in between.

use super::estimate_tokens;
use crate::words::message::AgentMessage;

/// A stock transformer. By default it keeps 100,000 tokens, 50,000 after an overflow, and an anchor of two
/// messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// The tokens that may stay.
    pub normal_budget: u64,
    /// The tokens that may stay after the model has refused the conversation as too long.
    pub overflow_budget: u64,
    /// The number of messages at the start that stay, together with the results of their calls.
    pub anchor: usize,
}

impl Default for SlidingWindow {
    fn default() -> Self {
        SlidingWindow { normal_budget: 100_000, overflow_budget: 50_000, anchor: 2 }
    }
}

/// The result of applying a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windowed {
    /// The messages that stay, in order.
    pub messages: Vec<AgentMessage>,
    /// The number of messages removed.
    pub dropped_count: usize,
    /// The estimated tokens before.
    pub tokens_before: u64,
    /// The estimated tokens after.
    pub tokens_after: u64,
}

impl SlidingWindow {
    /// Returns what stays, or `None` if everything does. The first `protected` messages always stay,
    /// because the provider has cached them. Results never lose their calls, and the newest exchange stays
    /// even if it does not fit.
    ///
    /// Where the newest results of an exchange fit and the rest of it does not, it stays as a whole if there was room left.
    pub fn apply(&self, messages: &[AgentMessage], overflow: bool, protected: usize) -> Option<Windowed> {
        self.apply_counted(messages, overflow, protected, &estimate_tokens)
    }

    /// Like [`SlidingWindow::apply`], with a token counter provided by the host.
    pub fn apply_counted(
        &self,
        messages: &[AgentMessage],
        overflow: bool,
        protected: usize,
        count: &dyn Fn(&AgentMessage) -> u64,
    ) -> Option<Windowed> {
        let tokens: Vec<u64> = messages.iter().map(count).collect();
        let kept = self.range_of(messages, &tokens, overflow, protected)?;
        let dropped = tokens.get(kept.anchor..kept.tail).unwrap_or_default();
        let tokens_before = sum(&tokens);
        let stay = messages.iter().take(kept.anchor).chain(messages.iter().skip(kept.tail));
        Some(Windowed {
            messages: stay.cloned().collect(),
            dropped_count: dropped.len(),
            tokens_before,
            tokens_after: tokens_before.saturating_sub(sum(dropped)),
        })
    }

    /// Returns which messages stay, or `None` if all do.
    pub(super) fn range(&self, messages: &[AgentMessage], overflow: bool) -> Option<Kept> {
        let tokens: Vec<u64> = messages.iter().map(estimate_tokens).collect();
        self.range_of(messages, &tokens, overflow, 0)
    }

    fn range_of(
        &self,
        messages: &[AgentMessage],
        tokens: &[u64],
        overflow: bool,
        protected: usize,
    ) -> Option<Kept> {
        let budget = if overflow { self.overflow_budget } else { self.normal_budget };
        if sum(tokens) <= budget {
            return None;
        }
        let anchor = anchor_end(messages, self.anchor.max(protected));
        let left = budget.saturating_sub(sum(tokens.get(..anchor).unwrap_or_default()));
        let tail = whole_exchange(messages, tokens, left).max(anchor);
        (tail > anchor).then_some(Kept { anchor, tail })
    }
}

/// The messages that stay: those before the anchor's end, and those from the tail's beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    anchor: usize,
    tail: usize,
}

impl Kept {
    pub(super) fn contains(self, at: usize) -> bool {
        at < self.anchor || at >= self.tail
    }
}

fn sum(tokens: &[u64]) -> u64 {
    tokens.iter().copied().fold(0, u64::saturating_add)
}

/// Returns where the anchor ends: after the results of its last calls.
fn anchor_end(messages: &[AgentMessage], anchor: usize) -> usize {
    let anchor = anchor.min(messages.len());
    let results = messages.iter().skip(anchor).take_while(|message| is_result(message));
    anchor + results.count()
}

/// Like [`tail_start`], but keeps the whole exchange if its newest results fit and there was room left for a part of the
/// rest: dropping all of it would leave out far more than was too much.
fn whole_exchange(messages: &[AgentMessage], tokens: &[u64], budget: u64) -> usize {
    let start = fit_start(tokens, budget);
    let kept = sum(tokens.get(start..).unwrap_or_default());
    let is_split = messages.get(start).is_some_and(is_result);
    let call = messages.iter().take(start).rposition(|message| !is_result(message));
    match call.filter(|_| is_split && kept < budget) {
        Some(call) => call,
        None => tail_start(messages, tokens, budget),
    }
}

/// Returns where the newest messages that fit together begin.
fn fit_start(tokens: &[u64], budget: u64) -> usize {
    let mut left = budget;
    let fit = tokens.iter().rev().take_while(|tokens| {
        let fits = **tokens <= left;
        left = left.saturating_sub(**tokens);
        fits
    });
    tokens.len() - fit.count()
}

/// Returns where the newest messages that fit together begin. Never at a result.
pub(super) fn tail_start(messages: &[AgentMessage], tokens: &[u64], budget: u64) -> usize {
    let start = fit_start(tokens, budget);
    let orphans = messages.iter().skip(start).take_while(|message| is_result(message));
    let start = start + orphans.count();
    if start < messages.len() {
        return start;
    }
    // Not even the newest exchange fits. It stays, because without it the model would not know what to do.
    let last = messages.iter().rposition(|message| !is_result(message));
    last.unwrap_or(messages.len())
}

pub(super) fn is_result(message: &AgentMessage) -> bool {
    matches!(message, AgentMessage::ToolResult(_))
}
