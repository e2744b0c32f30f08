//! How large an answer may become.

use crate::data::text;
use crate::rules::stream::MAX_ANSWER;
use crate::words::error::{ErrorInfo, ErrorKind};

use super::sse::MAX_LINE;

/// Limits on the size of an answer. An answer that exceeds one is an error that is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole answer: text, thinking, arguments, signatures and all else that is kept of it, written as
    /// JSON. What is sent besides (comments, names of events, whitespace) may be sixteen times as long.
    pub answer: usize,
    /// Bytes of one line of the stream.
    pub line: usize,
    /// Tool calls, and other blocks that are kept.
    pub calls: usize,
    /// Bytes of the arguments of all tool calls; the limit of the whole answer holds for them too.
    pub arguments: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { answer: MAX_ANSWER, line: MAX_LINE, calls: 10_000, arguments: 50_000_000 }
    }
}

impl Limits {
    /// How many bytes a response may have. A frame that holds a word of text is some two hundred bytes long; who asks
    /// for an answer that fills its limit word by word, and for log probabilities, raises the limit.
    pub(super) fn response(&self) -> u64 {
        u64::try_from(self.answer).unwrap_or(u64::MAX).saturating_mul(16)
    }
}

/// The error of an answer that exceeds a limit. It is final, because the next answer would exceed the limit
/// again.
pub(super) fn limit_error(before: &str, limit: usize, unit: &str) -> ErrorInfo {
    let message = [before, &text::number(limit), unit].concat();
    ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Server, message) }
}
