//! What the model sees of the history: hygiene before every call, and stock ways to shorten a long history.
//!
//! - [`hygiene`]: in the request only; pairs calls with results, removes what is empty or failed.
//! - [`SlidingWindow`]: keeps the first messages, and the newest ones that fit.
//! - [`KeepLast`]: keeps the newest results and answers, and traces of older ones.
//! - [`PruneToolResults`]: replaces old tool results with a placeholder.
//! - [`Reducers`]: several of them, one after the other.
//! - [`SummaryRules`]: what stays next to a summary; [`crate::stock::summarize`] has the summary written.
//! - [`BudgetTrim`]: replaces contents with a placeholder, up to a boundary that never moves back.
//!
//! Each is a [`ContextTransformer`](crate::policy::ContextTransformer): in
//! [`Rules::transformers`](crate::config::Rules::transformers) it reduces every request.
//!
//! The underlying passes are written once, over the small trait [`Reducible`]: in our history a tool result
//! is a message of its own, in others it is part of a message that may contain anything. [`AgentMessage`]
//! is one implementation; another is in the test suite, for golden vectors whose messages our types cannot
//! express.

mod budget;
mod hygiene;
mod length;
mod passes;
mod reducers;
mod summary;
#[cfg(test)]
mod tests;
mod weight;
mod window;

pub use budget::{
    BOUNDARY_KEY, BudgetTrim, TokenBudget, TrimMemory, boundary_in, set_boundary, trim_to_budget,
};
pub(crate) use hygiene::{CleanPrefix, is_empty_message, shown};
pub use hygiene::{KeepLast, SameRole, hygiene};
pub(crate) use length::ListLength;
pub use passes::{
    DanglingCalls, Link, PART_TRIMMED, Reducible, Role, TRUNCATED, dedup_results, keep_last_results,
    merge_same_role, reduce, remove_orphaned_results, shorten_old_answers, strip_dangling_calls,
};
pub use reducers::{BudgetTrimmer, PruneToolResults, Reducers};
pub use summary::{Split, SummaryRules};
pub use weight::{PartSize, tool_tokens, weight_of_parts, weight_of_text, with_margin};
pub use window::{SlidingWindow, Windowed};

use crate::words::message::{AgentMessage, AssistantMessage, ContentBlock, Usage};

/// The number of tokens assumed for an image.
const IMAGE_TOKENS: u64 = 1_200;
/// The number of tokens assumed for a custom message.
const CUSTOM_TOKENS: u64 = 100;

/// Estimates the tokens of a message: the bytes of its texts, thinking and arguments, divided by four.
pub fn estimate_tokens(message: &AgentMessage) -> u64 {
    match message {
        AgentMessage::User(message) => estimate_blocks(&message.content),
        AgentMessage::Assistant(message) => estimate_blocks(&message.content),
        AgentMessage::ToolResult(message) => estimate_blocks(&message.content),
        AgentMessage::Custom(_) => CUSTOM_TOKENS,
    }
}

/// Returns the tokens of a history: what the provider reported for the newest answer, plus an estimate for
/// what came after it.
pub fn context_tokens(messages: &[AgentMessage], count: &dyn Fn(&AgentMessage) -> u64) -> u64 {
    let reported = messages.iter().enumerate().rev().find_map(|(at, message)| match message {
        AgentMessage::Assistant(answer) => reported_tokens(answer).map(|tokens| (at + 1, tokens)),
        _ => None,
    });
    let (from, tokens) = reported.unwrap_or((0, 0));
    messages.iter().skip(from).map(count).fold(tokens, u64::saturating_add)
}

pub(crate) fn reported_tokens(answer: &AssistantMessage) -> Option<u64> {
    let Usage { input, output, cache_read, cache_write, .. } = answer.usage;
    let prompt = input.saturating_add(cache_read).saturating_add(cache_write);
    // Without prompt tokens, only the answer was counted, which says nothing about the whole history.
    if answer.is_cut() || prompt == 0 || answer.usage.estimated {
        None
    } else {
        Some(prompt.saturating_add(output))
    }
}

fn estimate_blocks(content: &[ContentBlock]) -> u64 {
    let mut bytes = 0;
    let mut tokens = 0;
    for block in content {
        match block {
            ContentBlock::Image(_) | ContentBlock::File(_) => tokens += IMAGE_TOKENS,
            _ => bytes += block_bytes(block),
        }
    }
    tokens + bytes / 4
}

/// Returns the bytes of text, thinking and arguments; 0 for images and files.
fn block_bytes(block: &ContentBlock) -> u64 {
    let length = match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::Thinking(block) => block.thinking.len(),
        ContentBlock::ToolCall(call) => call.arguments.as_str().len(),
        ContentBlock::Raw(data) => data.as_str().len(),
        ContentBlock::Image(_) | ContentBlock::File(_) => 0,
    };
    u64::try_from(length).unwrap_or(u64::MAX)
}
