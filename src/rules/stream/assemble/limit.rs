//! How large an answer may become, whoever streams it: text, thinking, arguments, signatures, ids and everything else
//! that is kept of it, together.

use crate::data::room::{grow_text, has_room};
use crate::data::text;
use crate::words::error::{ErrorInfo, ErrorKind};

use super::super::event::AssistantMessageEvent as Event;
use super::{Assembler, Partial};

/// The default limit: the bytes that one answer may have, written as JSON. Several times the longest text that any model
/// gives, and little enough for a Worker with 128 MB: at its peak an answer takes some six times its bytes.
pub const MAX_ANSWER: usize = 8 << 20;

/// What a block costs besides what stands in it.
const BLOCK: usize = 256;

/// Why an answer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It is longer than this many bytes.
    Limit(usize),
    /// There is no memory for it.
    Memory,
}

impl Excess {
    /// Returns the error of the answer. It is final, because the next answer would be as long.
    #[cold]
    pub fn error(self) -> ErrorInfo {
        let message = match self {
            Excess::Limit(limit) => ["the answer is longer than ", &text::number(limit), " bytes"].concat(),
            Excess::Memory => "there is not enough memory for the answer".to_owned(),
        };
        ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Server, message) }
    }
}

impl Assembler {
    /// An assembler of an answer that may have this many bytes.
    pub fn with_limit(limit: usize) -> Self {
        Assembler { limit, ..Assembler::default() }
    }

    /// Counts an event and makes room for it. To be called before [`Assembler::push`]. What was taken back by a new
    /// start stays counted: it did come.
    ///
    /// # Errors
    /// If the answer becomes too long, or if there is no memory for it.
    pub fn admit(&mut self, event: &Event) -> Result<(), Excess> {
        let mut size = match event {
            Event::TextDelta { delta, .. }
            | Event::ThinkingDelta { delta, .. }
            | Event::ToolCallDelta { delta, .. } => delta.len(),
            other => size_of(other),
        };
        // Of a short text it does not matter how it is written as JSON.
        if self.bytes > BLOCK * BLOCK {
            size += escapes_of(event);
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limit {
            return Err(Excess::Limit(self.limit));
        }
        match event {
            Event::TextDelta { index, delta }
            | Event::ThinkingDelta { index, delta }
            | Event::ToolCallDelta { index, delta } => {
                let has_room = match self.block(*index) {
                    Some(Partial::Text(block)) => grow_text(&mut block.text, delta.len()),
                    Some(Partial::Thinking(block)) => grow_text(&mut block.thinking, delta.len()),
                    Some(Partial::Call(call)) => grow_text(&mut call.text, delta.len()),
                    _ => true,
                };
                if has_room { Ok(()) } else { Err(Excess::Memory) }
            }
            _ => Ok(()),
        }
    }

    /// Whether there is room to hand the message over, as JSON in a buffer that may have to be moved.
    pub(crate) fn can_be_handed_over(&self) -> bool {
        self.bytes < BLOCK * BLOCK || has_room(self.bytes.saturating_mul(2))
    }
}

fn size_of(event: &Event) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match event {
        Event::Start | Event::TextStart { .. } | Event::ThinkingStart { .. } => BLOCK,
        Event::ToolCallStart { call_id, tool_name, .. } => BLOCK + call_id.len() + tool_name.len(),
        Event::Raw { data, .. } => BLOCK + data.as_str().len(),
        Event::TextEnd { signature, .. } | Event::ThinkingEnd { signature, .. } => optional(signature),
        Event::ToolCallEnd { metadata, .. } => metadata.as_ref().map_or(0, |data| data.as_str().len()),
        _ => 0,
    }
}

/// How many bytes a piece of text needs as JSON, besides its own: a control character takes six.
fn escapes_of(event: &Event) -> usize {
    let (Event::TextDelta { delta, .. } | Event::ThinkingDelta { delta, .. }) = event else { return 0 };
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        ..b' ' => 5,
        _ => 0,
    };
    delta.bytes().map(escape).sum()
}
