//! Trimming to a budget, with a boundary that never moves back: what a provider has cached stays as it was.
//!
//! When the budget is passed, contents are replaced by a placeholder up to a boundary, well below the budget, so that
//! the boundary stands still for several turns. The boundary counts messages and stands in the run's metadata. After a
//! compaction it means nothing any more: reset it.

use super::block_bytes;
use super::passes::{Reducible, Role};
use crate::json::{Map, Value};
use crate::message::{AgentMessage, ContentBlock};

/// The key of the boundary in the metadata of a run.
pub const BOUNDARY_KEY: &str = "trimmed_up_to_message_index";

/// Tokens at which trimming begins, and down to which it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBudget {
    /// Above it trimming begins.
    pub threshold: u64,
    /// It goes on until so many are left.
    pub target: u64,
}

impl TokenBudget {
    /// The budget for a model: a fraction of its window, less the tokens that the answer needs; down to three
    /// quarters of that.
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

/// `f32` has no `From<u64>` and `u64` no `TryFrom<f32>`; the product is truncated and saturates.
fn fraction_of(window: u64, fraction: f32) -> u64 {
    (window as f32 * fraction) as u64
}

/// Five percent on top, rounded up: estimates are rather too small.
pub fn with_margin(tokens: u64) -> u64 {
    tokens.saturating_mul(21).div_ceil(20)
}

/// Tokens that a tool costs in every request; `bytes` of its name, description and schema together.
pub fn tool_tokens(bytes: u64) -> u64 {
    tokens_of(bytes.saturating_mul(6).div_ceil(5)) + PER_MESSAGE
}

/// What a part of a message is and how many bytes are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartSize {
    /// Text or thinking.
    Text(u64),
    /// A call: its name and arguments.
    Call(u64),
    /// A result.
    Result(u64),
    /// A picture or a file, whatever its size.
    Picture,
}

const PER_MESSAGE: u64 = 8;
const PER_PART: u64 = 3;
/// Bytes that a call and a result cost beyond what is in them.
const PER_LINK: u64 = 30;
const PICTURE: u64 = 2_000;

/// Roughly how many tokens a message of these parts is; rather too many than too few.
pub fn weight_of_parts(parts: impl IntoIterator<Item = PartSize>) -> u64 {
    parts.into_iter().fold(PER_MESSAGE, |sum, part| {
        let tokens = match part {
            PartSize::Text(bytes) => tokens_of(bytes),
            PartSize::Call(bytes) | PartSize::Result(bytes) => tokens_of(bytes.saturating_add(PER_LINK)),
            PartSize::Picture => PICTURE,
        };
        sum.saturating_add(tokens + PER_PART)
    })
}

/// As [`weight_of_parts`], for a message that is nothing but a text.
pub fn weight_of_text(bytes: u64) -> u64 {
    tokens_of(bytes) + PER_MESSAGE
}

/// Three and a half bytes are a token.
fn tokens_of(bytes: u64) -> u64 {
    bytes.saturating_mul(2).div_ceil(7)
}

pub(super) fn weight_of_blocks(content: &[ContentBlock]) -> u64 {
    if let [ContentBlock::Text(text)] = content {
        return weight_of_text(bytes(text.text.len()));
    }
    weight_of_parts(content.iter().map(|block| match block {
        ContentBlock::Image(_) | ContentBlock::File(_) => PartSize::Picture,
        ContentBlock::ToolCall(call) => {
            PartSize::Call(bytes(call.tool_name.len() + call.arguments.as_str().len()))
        }
        _ => PartSize::Text(block_bytes(block)),
    }))
}

/// Its pictures are parts of their own.
pub(super) fn weight_of_result(content: &[ContentBlock]) -> u64 {
    let pictures = content.iter().filter(|block| matches!(block, ContentBlock::Image(_)));
    let bytes = content.iter().map(block_bytes).fold(0, u64::saturating_add);
    weight_of_parts(pictures.map(|_| PartSize::Picture).chain([PartSize::Result(bytes)]))
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Trims old messages until the budget holds. `overhead` are the tokens of the tools, `keep_last` so many answers are
/// left alone as long as the budget lets them, `previous` is the boundary so far. Gives the new boundary, never below
/// the previous one; nothing if the budget held and nothing was ever trimmed.
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

/// Whether the message is of a kind that is trimmed.
fn trim_one<M: Reducible>(message: &mut M, tokens: &mut u64) -> bool {
    let is_trimmed = matches!(message.role(), Role::Assistant | Role::Tool);
    if is_trimmed {
        let before = message.weight();
        message.trim();
        *tokens = tokens.saturating_sub(before).saturating_add(message.weight());
    }
    is_trimmed
}

/// Where the last `n` answers begin: at the end for none, at 0 if there are not so many.
fn start_of_last_answers<M: Reducible>(messages: &[M], n: usize) -> usize {
    let Some(before) = n.checked_sub(1) else { return messages.len() };
    let answers = messages.iter().enumerate().rev().filter(|(_, message)| message.role() == Role::Assistant);
    answers.map(|(at, _)| at).nth(before).unwrap_or(0)
}

/// The boundary in a run's metadata; 0 where there is none or it is no whole number.
pub fn boundary_in(metadata: &Value) -> usize {
    match metadata.get(BOUNDARY_KEY) {
        Some(Value::Number(number)) => number.as_str().parse().unwrap_or(0),
        _ => 0,
    }
}

/// Writes the boundary into a run's metadata; what is no object is replaced by one. 0 resets it.
pub fn set_boundary(metadata: &mut Value, boundary: usize) {
    if !matches!(metadata, Value::Object(_)) {
        *metadata = Value::Object(Map::new());
    }
    if let Value::Object(map) = metadata {
        map.insert(BOUNDARY_KEY, Value::from(u64::try_from(boundary).unwrap_or(u64::MAX)));
    }
}

/// A stock transformer: old answers and results are trimmed when a fraction of the model's window is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetTrim {
    /// So many answers are left alone as long as the budget lets them.
    pub keep_last_answers: usize,
    /// The fraction of the window above which trimming begins.
    pub fraction: f32,
    /// The model's window, in tokens.
    pub context_window: u64,
    /// Tokens that the answer needs.
    pub max_output_tokens: u64,
}

/// What trimming remembers from call to call. The boundary alone must survive a restart; the rest is there so that a
/// message is trimmed once, and the same object from request to request.
#[derive(Clone, Debug, Default)]
pub struct TrimMemory {
    /// So many messages are trimmed.
    pub boundary: usize,
    trimmed: Vec<(AgentMessage, AgentMessage)>,
}

impl TrimMemory {
    /// What is known after a restart: so many messages were trimmed.
    pub fn restored(boundary: usize) -> Self {
        TrimMemory { boundary, trimmed: Vec::new() }
    }
}

impl BudgetTrim {
    /// A view for one request, or nothing where all fits and nothing was trimmed before. `tool_tokens` is what the
    /// tools cost. Where a message that was trimmed is not there any more, the history was compacted: the boundary means
    /// nothing, and trimming starts anew.
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
