//! What a message weighs: an estimate of its tokens, rather too high than too low.

use super::block_bytes;
use crate::words::message::ContentBlock;

/// Adds five percent, rounded up, because estimates tend to be too low.
pub fn with_margin(tokens: u64) -> u64 {
    tokens.saturating_mul(21).div_ceil(20)
}

/// Returns the tokens that a tool costs in every request. `bytes` is the total of its name, description and
/// schema.
pub fn tool_tokens(bytes: u64) -> u64 {
    tokens_of(bytes.saturating_mul(6).div_ceil(5)) + PER_MESSAGE
}

/// The kind of a message part, with its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartSize {
    /// Text or thinking.
    Text(u64),
    /// A call, with the size of its name and arguments.
    Call(u64),
    /// A result.
    Result(u64),
    /// An image or a file, regardless of its size.
    Picture,
}

const PER_MESSAGE: u64 = 8;

const PER_PART: u64 = 3;

/// The bytes that a call or a result costs in addition to its content.
const PER_LINK: u64 = 30;

const PICTURE: u64 = 2_000;

/// Estimates the tokens of a message with these parts; rather too high than too low.
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

/// Like [`weight_of_parts`], for a message that is only a text.
pub fn weight_of_text(bytes: u64) -> u64 {
    tokens_of(bytes) + PER_MESSAGE
}

/// Counts 3.5 bytes as one token.
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

/// Images and files in a result count as parts of their own.
pub(super) fn weight_of_result(content: &[ContentBlock]) -> u64 {
    let pictures =
        content.iter().filter(|block| matches!(block, ContentBlock::Image(_) | ContentBlock::File(_)));
    let bytes = content.iter().map(block_bytes).fold(0, u64::saturating_add);
    weight_of_parts(pictures.map(|_| PartSize::Picture).chain([PartSize::Result(bytes)]))
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
