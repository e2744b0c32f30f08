//! The tokens that a call used.

use crate::data::json::members;
use crate::data::json::members::{maybe, plain, rare};
use crate::words::price::{Cost, maybe_cost};

/// Token counts. `input` excludes tokens read from or written to a cache; `output` includes reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens not covered by a cache.
    pub input: u64,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// The part of `output` spent on reasoning, if the provider reports it.
    pub reasoning: Option<u64>,
    /// All tokens.
    pub total: u64,
    /// The cost, if the host configured prices.
    pub cost: Option<Cost>,
    /// Whether some of it was estimated, because the provider did not tell it.
    pub estimated: bool,
}

impl Usage {
    /// Adds another usage; the sums saturate.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.total = self.total.saturating_add(other.total);
        self.estimated |= other.estimated;
        if let Some(reasoning) = other.reasoning {
            self.reasoning = Some(self.reasoning.unwrap_or(0).saturating_add(reasoning));
        }
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
    }

    /// What there is beyond another usage.
    #[must_use]
    pub fn beyond(&self, other: &Usage) -> Self {
        let beyond =
            |own: Option<u64>, other: Option<u64>| own.map(|own| own.saturating_sub(other.unwrap_or(0)));
        Usage {
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            reasoning: beyond(self.reasoning, other.reasoning),
            total: self.total.saturating_sub(other.total),
            cost: self.cost.map(|cost| cost.saturating_sub(other.cost.unwrap_or_default())),
            estimated: self.estimated,
        }
    }

    /// Returns the same usage, with `total` computed from the parts if it was not reported.
    #[must_use]
    pub fn totalled(mut self) -> Self {
        if self.total == 0 {
            let prompt = self.input.saturating_add(self.cache_read).saturating_add(self.cache_write);
            self.total = prompt.saturating_add(self.output);
        }
        self
    }
}

members!(Usage {
    "input" => input: plain,
    "output" => output: plain,
    "cacheRead" => cache_read: plain,
    "cacheWrite" => cache_write: plain,
    "reasoning" => reasoning: maybe,
    "total" => total: plain,
    "cost" => cost: maybe_cost,
    "estimated" => estimated: rare,
} then totalled);
