//! JSON without building a tree on the hot path: a pull [`Reader`], a [`Value`] for data that is inspected,
//! a [`RawJson`] for data that only passes through, and writers that append to a string.
//!
//! Written for this crate because it is at the core of its work: a chunk of a stream is read in one pass,
//! numbers keep their text (no floating-point code in the Wasm file), and a lone surrogate becomes U+FFFD
//! instead of losing a frame.

mod arguments;
mod map;
pub(crate) mod members;
mod mend;
mod numbers;
mod raw;
mod read;
mod serde;
mod strings;
mod template;
mod typed;
mod value;
mod write;

use std::fmt;

use crate::data::text;

pub use map::Map;
pub(crate) use members::{Member, members, words};
pub(crate) use mend::{escaped_controls, mended_object};
pub use numbers::{Number, write_u64};
pub use raw::RawJson;
pub use read::Reader;
pub(crate) use serde::{deserialize_as_json, serde_as_json, serde_as_word, serialize_as_json};
pub(crate) use strings::hex;
pub use strings::write_str;
pub(crate) use template::{fill, without_comma};
pub use typed::MisfitError;
pub use value::{FromJson, Value};
pub(crate) use write::bool_text;
pub use write::{ObjectWriter, ToJson, write_list};

/// The maximum nesting depth of arrays and objects.
const MAX_DEPTH: u32 = 128;

/// How many values a tree may hold that a stranger wrote. A value takes many times the bytes that it is written with.
const MAX_NODES: u32 = 65_536;

/// The message of the error of JSON that holds too much.
const TOO_LARGE: &str = "too many values";

/// Why a text is not the expected JSON: a message in lower case, and the byte where reading stopped. It is
/// a single pointer, because every reading function passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(Box<(&'static str, usize)>);

impl JsonError {
    /// What was found, and what was expected.
    pub fn message(&self) -> &str {
        self.0.0
    }

    /// Returns the byte offset in the text.
    pub fn offset(&self) -> usize {
        self.0.1
    }

    /// Whether the JSON is well-formed as far as it was read, but holds too much.
    pub(crate) fn is_too_large(&self) -> bool {
        self.message() == TOO_LARGE
    }

    /// Returns both as one text.
    pub(crate) fn text(&self) -> String {
        [self.message(), " at byte ", &text::number(self.offset())].concat()
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for JsonError {}

#[cfg(test)]
mod tests;
