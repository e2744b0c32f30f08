//! What is told of a budget.

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
}

impl BudgetState {
    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            BudgetState::Warn => "warn",
            BudgetState::Exceeded => "exceeded",
        }
    }

    /// Returns the state for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        [BudgetState::Warn, BudgetState::Exceeded].into_iter().find(|state| state.as_str() == word)
    }
}
