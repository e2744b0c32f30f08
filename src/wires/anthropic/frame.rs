//! One event of the stream, read in one pass without a tree: keys in any order, unknown fields skipped.

use std::borrow::Cow;

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_object, number, string, text};
use crate::wires::decoding::piece::Piece;

use super::usage::AnthropicUsage;

/// What an event says.
#[derive(Default)]
pub(super) struct AnthropicEvent<'a> {
    /// Its type; empty if it has none.
    pub(super) kind: Cow<'a, str>,
    /// The number of the block.
    pub(super) index: Option<u64>,
    /// `content_block`, unread.
    pub(super) block: Option<&'a str>,
    pub(super) delta: AnthropicDelta<'a>,
    /// The id in `message`.
    pub(super) message_id: Cow<'a, str>,
    /// `message.content`, unread: empty in a stream.
    pub(super) content: Option<&'a str>,
    pub(super) usage: AnthropicUsage,
    pub(super) is_error: bool,
}

/// A piece of a block, or the end of a message.
#[derive(Default)]
pub(super) struct AnthropicDelta<'a> {
    pub(super) kind: Cow<'a, str>,
    /// Text, thinking, arguments, or content of a block that is kept whole, depending on the kind.
    pub(super) piece: Option<Piece<'a>>,
    /// The signature, or the encrypted content of a block that is kept whole.
    pub(super) signature: Option<Cow<'a, str>>,
    /// `citation`, unread.
    pub(super) citation: Option<&'a str>,
    pub(super) stop_reason: Cow<'a, str>,
    pub(super) stop_sequence: Option<Cow<'a, str>>,
    /// Unread.
    pub(super) stop_details: Option<&'a str>,
}

/// The beginning of a block.
#[derive(Default)]
pub(super) struct BlockStart<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) text: Option<Piece<'a>>,
    pub(super) signature: Cow<'a, str>,
    pub(super) data: Cow<'a, str>,
    /// Unread.
    pub(super) input: Option<&'a str>,
}

impl<'a> AnthropicEvent<'a> {
    /// Reads an event.
    pub(super) fn read(&mut self, data: &'a str) -> ReadResult {
        let mut reader = Reader::new(data);
        self.read_members(&mut reader)?;
        reader.end()
    }

    fn read_members(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        reader.object(|reader, key| match key {
            "type" => string(reader, &mut self.kind),
            "index" => number(reader, &mut self.index),
            "content_block" => {
                self.block = Some(reader.skip()?).filter(|block| block.starts_with("{"));
                Ok(())
            }
            "delta" => in_object(reader, |reader, key| self.delta.read(reader, key)),
            "message" => in_object(reader, |reader, key| match key {
                "id" => string(reader, &mut self.message_id),
                _ => self.read_message(reader, key),
            }),
            "id" => string(reader, &mut self.message_id),
            "error" => {
                self.is_error |= reader.skip()? != "null";
                Ok(())
            }
            _ => self.read_message(reader, key),
        })
    }

    /// Reads a field of a message, which a server that cannot stream sends without an event around it.
    fn read_message(&mut self, reader: &mut Reader<'a>, key: &str) -> ReadResult {
        match key {
            "usage" => in_object(reader, |reader, key| self.usage.read(reader, key)),
            "content" => {
                self.content = Some(reader.skip()?).filter(|content| content.starts_with("["));
                Ok(())
            }
            "stop_reason" | "stop_sequence" | "stop_details" => self.delta.read(reader, key),
            _ => reader.pass_over(),
        }
    }
}

impl<'a> AnthropicDelta<'a> {
    fn read(&mut self, reader: &mut Reader<'a>, key: &str) -> ReadResult {
        match key {
            "type" => string(reader, &mut self.kind),
            "text" | "thinking" | "partial_json" | "content" => Piece::read(reader, &mut self.piece),
            "signature" | "encrypted_content" => text(reader).map(|text| self.signature = text),
            "citation" => {
                self.citation = Some(reader.skip()?);
                Ok(())
            }
            "stop_reason" => string(reader, &mut self.stop_reason),
            "stop_sequence" => text(reader).map(|word| self.stop_sequence = word),
            "stop_details" => {
                self.stop_details = Some(reader.skip()?).filter(|details| *details != "null");
                Ok(())
            }
            _ => reader.pass_over(),
        }
    }
}

impl<'a> BlockStart<'a> {
    /// Reads `content_block`.
    pub(super) fn read(block: &'a str) -> BlockStart<'a> {
        let mut start = BlockStart::default();
        // It cannot fail: the text was skipped before, as a part of its event.
        let _ = Reader::new(block).object(|reader, key| match key {
            "type" => string(reader, &mut start.kind),
            "id" => string(reader, &mut start.id),
            "name" => string(reader, &mut start.name),
            "text" | "thinking" => Piece::read(reader, &mut start.text),
            "signature" => string(reader, &mut start.signature),
            "data" => string(reader, &mut start.data),
            "input" => {
                start.input = Some(reader.skip()?).filter(|input| !matches!(*input, "null" | "\"\""));
                Ok(())
            }
            _ => reader.pass_over(),
        });
        start
    }
}
