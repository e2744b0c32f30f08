//! What is told of a budget.

use crate::data::json::{ObjectWriter, Value, words};
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

words!(BudgetKind { Usd = "usd", Tokens = "tokens", ToolCalls = "toolCalls", Turns = "turns", Ms = "ms" });

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

words!(BudgetState { Warn = "warn", Exceeded = "exceeded", Raised = "raised" });

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
