//! What is told of a budget.

use crate::data::json::{ObjectWriter, Value};
use crate::words::price::{read_cost, write_cost};

/// What a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKind {
    /// Money.
    Usd,
    /// Tokens.
    Tokens,
    /// Calls of tools.
    ToolCalls,
    /// Turns that call a model.
    Turns,
    /// Time.
    Ms,
}

impl BudgetKind {
    const WORDS: [(Self, &'static str); 5] = [
        (Self::Usd, "usd"),
        (Self::Tokens, "tokens"),
        (Self::ToolCalls, "toolCalls"),
        (Self::Turns, "turns"),
        (Self::Ms, "ms"),
    ];

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(kind, _)| *kind == self).map_or("tokens", |(_, word)| word)
    }

    /// Returns the kind for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(kind, _)| *kind)
    }
}

/// How it stands with a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetState {
    /// It is nearly used up.
    Warn,
    /// There is no room in it for the next call.
    Exceeded,
    /// A person has allowed more.
    Raised,
}

impl BudgetState {
    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            BudgetState::Warn => "warn",
            BudgetState::Exceeded => "exceeded",
            BudgetState::Raised => "raised",
        }
    }

    /// Returns the state for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [BudgetState::Warn, BudgetState::Exceeded, BudgetState::Raised];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

/// Writes an amount of a budget.
pub(crate) fn write_amount(key: &str, kind: BudgetKind, amount: u64, object: &mut ObjectWriter<'_>) {
    match kind {
        BudgetKind::Usd => write_cost(amount, object.key(key)),
        _ => drop(object.field(key, &amount)),
    }
}

/// Reads an amount of a budget.
pub(crate) fn read_amount(value: &Value, key: &str, kind: BudgetKind) -> u64 {
    match kind {
        BudgetKind::Usd => value.get(key).and_then(read_cost).unwrap_or_default(),
        _ => value.number_at(key).unwrap_or_default(),
    }
}
