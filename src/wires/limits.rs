//! How large an answer may become.

use crate::data::text;
use crate::words::error::{ErrorInfo, ErrorKind};

use super::sse::MAX_LINE;

/// Limits on the size of an answer. An answer that exceeds one is an error that is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line of the stream.
    pub line: usize,
    /// Tool calls, and other blocks that are kept.
    pub calls: usize,
    /// Bytes of the arguments of all tool calls.
    pub arguments: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { line: MAX_LINE, calls: 10_000, arguments: 50_000_000 }
    }
}

/// The error of an answer that exceeds a limit. It is final, because the next answer would exceed the limit
/// again.
pub(super) fn limit_error(before: &str, limit: usize, unit: &str) -> ErrorInfo {
    let message = [before, &text::number(limit), unit].concat();
    ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Server, message) }
}
