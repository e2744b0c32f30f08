//! Assembles an answer from indexed pieces, for hosts that do their own streaming and receive pieces in any
//! order. The wires of this crate use [`crate::rules::stream::Assembler`] instead, which requires them in order.

use std::collections::BTreeMap;
use std::fmt;

use crate::data::json::RawJson;
use crate::rules::call_ids::CallIds;
use crate::words::message::{ContentBlock, TextBlock, ThinkingBlock, ToolCallBlock};

/// One piece of the part at an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedPart {
    /// The index of the part. Gaps do not matter, only the order.
    pub index: u64,
    /// The piece.
    pub piece: PartPiece,
}

/// A piece of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartPiece {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A call begins.
    CallStart {
        /// The id of the call. Here and below, an empty id means "the call at this index".
        id: String,
        /// The tool's name. The first one that is not empty is used.
        name: String,
    },
    /// More of the text of a call's arguments.
    CallArguments {
        /// The id of the call.
        id: String,
        /// The added text.
        delta: String,
    },
    /// A call is complete.
    CallEnd {
        /// The id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments. They replace the pieces received before.
        arguments: RawJson,
        /// What the wire needs to get back.
        metadata: Option<RawJson>,
    },
}

/// Why the pieces cannot be assembled. No parts are returned then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAssemblyError {
    /// The part at this index changed its kind.
    ContentTypeMismatch(u64),
    /// The call at this index became a different call.
    ToolCallIdMismatch(u64),
    /// The arguments of a call are not exactly one JSON value.
    InvalidToolCallArguments {
        /// The id of the call.
        call_id: String,
        /// What is wrong with the arguments.
        reason: String,
    },
}

impl fmt::Display for StreamAssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContentTypeMismatch(index) => {
                f.write_str("content index ")?;
                f.write_str(&index.to_string())?;
                f.write_str(" changed slot type during streaming")
            }
            Self::ToolCallIdMismatch(index) => {
                f.write_str("tool call id mismatch at content index ")?;
                f.write_str(&index.to_string())
            }
            Self::InvalidToolCallArguments { call_id, reason } => {
                f.write_str("invalid tool call arguments for ")?;
                f.write_str(call_id)?;
                f.write_str(": ")?;
                f.write_str(reason)
            }
        }
    }
}

impl std::error::Error for StreamAssemblyError {}

/// Assembles parts from pieces, in the order of their index. Calls that share an id are given distinct ids.
/// Arguments may be any JSON value: whether they fit the tool is checked later.
///
/// # Errors
/// The first piece that contradicts an earlier one, or else the first call, by index, whose arguments are
/// not valid JSON.
pub fn assemble_parts(
    pieces: impl IntoIterator<Item = IndexedPart>,
) -> Result<Vec<ContentBlock>, StreamAssemblyError> {
    let mut slots: BTreeMap<u64, Slot> = BTreeMap::new();
    for IndexedPart { index, piece } in pieces {
        let slot = slots.entry(index).or_insert_with(|| Slot::of(&piece));
        slot.take(index, piece)?;
    }
    let mut ids = CallIds::default();
    slots.into_values().map(|slot| slot.finish(&mut ids)).collect()
}

enum Slot {
    Text(String),
    Thinking(String),
    Call(CallSlot),
}

#[derive(Default)]
struct CallSlot {
    id: String,
    name: String,
    text: String,
    arguments: Option<RawJson>,
    metadata: Option<RawJson>,
}

impl Slot {
    fn of(piece: &PartPiece) -> Slot {
        match piece {
            PartPiece::Text(_) => Slot::Text(String::new()),
            PartPiece::Thinking(_) => Slot::Thinking(String::new()),
            _ => Slot::Call(CallSlot::default()),
        }
    }

    fn take(&mut self, index: u64, piece: PartPiece) -> Result<(), StreamAssemblyError> {
        match (self, piece) {
            (Slot::Text(text), PartPiece::Text(delta))
            | (Slot::Thinking(text), PartPiece::Thinking(delta)) => text.push_str(&delta),
            (Slot::Call(call), PartPiece::CallStart { id, name }) => {
                call.identify(index, id)?;
                call.take_name(name);
            }
            (Slot::Call(call), PartPiece::CallArguments { id, delta }) => {
                call.identify(index, id)?;
                call.text.push_str(&delta);
            }
            (Slot::Call(call), PartPiece::CallEnd { id, name, arguments, metadata }) => {
                call.identify(index, id)?;
                call.take_name(name);
                call.arguments = Some(arguments);
                call.metadata = metadata;
            }
            _ => return Err(StreamAssemblyError::ContentTypeMismatch(index)),
        }
        Ok(())
    }

    fn finish(self, ids: &mut CallIds) -> Result<ContentBlock, StreamAssemblyError> {
        Ok(match self {
            Slot::Text(text) => ContentBlock::Text(TextBlock { text, signature: None }),
            Slot::Thinking(thinking) => {
                ContentBlock::Thinking(ThinkingBlock { thinking, signature: None, redacted: false })
            }
            Slot::Call(call) => {
                let mut call = call.finish()?;
                ids.make_distinct(&mut call);
                ContentBlock::ToolCall(call)
            }
        })
    }
}

impl CallSlot {
    fn identify(&mut self, index: u64, id: String) -> Result<(), StreamAssemblyError> {
        if self.id.is_empty() {
            self.id = id;
        } else if !id.is_empty() && id != self.id {
            return Err(StreamAssemblyError::ToolCallIdMismatch(index));
        }
        Ok(())
    }

    fn take_name(&mut self, name: String) {
        if self.name.is_empty() {
            self.name = name;
        }
    }

    fn finish(self) -> Result<ToolCallBlock, StreamAssemblyError> {
        let arguments = match self.arguments {
            Some(arguments) => arguments,
            None if self.text.trim().is_empty() => RawJson::empty_object(),
            None => {
                RawJson::parse(&self.text).map_err(|error| StreamAssemblyError::InvalidToolCallArguments {
                    call_id: self.id.clone(),
                    reason: error.to_string(),
                })?
            }
        };
        Ok(ToolCallBlock { call_id: self.id, tool_name: self.name, arguments, metadata: self.metadata })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: u64, piece: PartPiece) -> IndexedPart {
        IndexedPart { index, piece }
    }

    #[test]
    fn a_piece_without_an_id_belongs_to_the_call_at_its_index() {
        let blocks = assemble_parts([
            piece(3, PartPiece::CallStart { id: "t1".into(), name: "view".into() }),
            piece(3, PartPiece::CallArguments { id: String::new(), delta: "{\"a\":".into() }),
            piece(0, PartPiece::Text("look".into())),
            piece(3, PartPiece::CallArguments { id: String::new(), delta: "1}".into() }),
        ]);
        let call = ToolCallBlock {
            call_id: "t1".into(),
            tool_name: "view".into(),
            arguments: RawJson::parse("{\"a\":1}").unwrap(),
            metadata: None,
        };
        assert_eq!(blocks, Ok(vec![ContentBlock::text("look"), ContentBlock::ToolCall(call)]));
    }

    #[test]
    fn a_second_call_of_one_id_gets_its_own_and_keeps_the_old_one_in_its_metadata() {
        let start = |index| piece(index, PartPiece::CallStart { id: "t1".into(), name: "view".into() });
        let blocks = assemble_parts([start(0), start(1)]).unwrap();
        let [ContentBlock::ToolCall(first), ContentBlock::ToolCall(second)] = blocks.as_slice() else {
            panic!("two calls were expected");
        };
        assert_eq!((first.call_id.as_str(), second.call_id.as_str()), ("t1", "t1#2"));
        let metadata = second.metadata.as_ref().map(|metadata| metadata.as_str().to_owned());
        assert_eq!(metadata.as_deref(), Some("{\"originalCallId\":\"t1\"}"));
    }
}
