//! One event of the stream, read in one pass without a tree: keys in any order, unknown fields skipped. Items
//! are only read when they begin or end.

use std::borrow::Cow;

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_object, number, string, text_or_json};
use crate::wires::decoding::piece::Piece;
use crate::words::message::Usage;

use super::keys::ItemKeys;
use super::usage::read_usage;

/// What an event says.
#[derive(Default)]
pub(super) struct ResponsesEvent<'a> {
    /// Its type; empty if it has none.
    pub(super) kind: Cow<'a, str>,
    /// Which item it belongs to.
    pub(super) keys: ItemKeys<'a>,
    /// The name of a call, in the event that ends its arguments.
    pub(super) name: Cow<'a, str>,
    /// The part of the item.
    pub(super) part: Option<u64>,
    pub(super) delta: Option<Piece<'a>>,
    /// The whole of what the pieces were, in the event that ends them.
    pub(super) whole: Option<Piece<'a>>,
    /// Unread.
    pub(super) item: Option<&'a str>,
    pub(super) response: ResponseObject<'a>,
    /// `annotation`, unread.
    pub(super) annotation: Option<&'a str>,
    pub(super) has_error: bool,
    /// `sequence_number` and `obfuscation`, unread: they differ in every event and carry no information.
    pub(super) ignored: [&'a str; 2],
}

/// The whole answer, from the last event.
#[derive(Default)]
pub(super) struct ResponseObject<'a> {
    pub(super) status: Cow<'a, str>,
    /// Why it is incomplete.
    pub(super) reason: Cow<'a, str>,
    pub(super) usage: Option<Usage>,
    /// Unread.
    pub(super) error: Option<&'a str>,
    /// Unread.
    pub(super) output: Option<&'a str>,
    /// `object`, by which an answer without an event is recognised.
    pub(super) object: Cow<'a, str>,
}

impl<'a> ResponsesEvent<'a> {
    /// Reads an event.
    pub(super) fn read(&mut self, data: &'a str) -> ReadResult {
        let mut reader = Reader::new(data);
        reader.object(|reader, key| match key {
            "type" => string(reader, &mut self.kind),
            "output_index" => number(reader, &mut self.keys.index),
            "item_id" => string(reader, &mut self.keys.id),
            "call_id" => string(reader, &mut self.keys.call_id),
            "content_index" | "summary_index" => number(reader, &mut self.part),
            "delta" => Piece::read(reader, &mut self.delta),
            "text" | "refusal" | "arguments" | "input" => text_or_json(reader, &mut self.whole),
            "annotation" => {
                self.annotation = Some(reader.skip()?);
                Ok(())
            }
            "name" => string(reader, &mut self.name),
            "sequence_number" => reader.skip().map(|number| self.ignored[0] = number),
            "obfuscation" => reader.skip().map(|padding| self.ignored[1] = padding),
            "item" => {
                self.item = Some(reader.skip()?).filter(|item| item.starts_with("{"));
                Ok(())
            }
            "response" => in_object(reader, |reader, key| self.response.read(reader, key)),
            "error" => {
                self.has_error = reader.skip()? != "null";
                Ok(())
            }
            _ => reader.pass_over(),
        })?;
        reader.end()
    }
}

impl<'a> ResponseObject<'a> {
    /// Reads an answer that is a document of its own.
    pub(super) fn read_document(&mut self, text: &'a str) -> ReadResult {
        let mut reader = Reader::new(text);
        reader.object(|reader, key| self.read(reader, key))?;
        reader.end()
    }

    fn read(&mut self, reader: &mut Reader<'a>, key: &str) -> ReadResult {
        match key {
            "status" => string(reader, &mut self.status),
            "object" => string(reader, &mut self.object),
            "incomplete_details" => in_object(reader, |reader, key| match key {
                "reason" => string(reader, &mut self.reason),
                _ => reader.pass_over(),
            }),
            "usage" => read_usage(reader, &mut self.usage),
            "error" => {
                self.error = Some(reader.skip()?).filter(|error| *error != "null");
                Ok(())
            }
            "output" => {
                self.output = Some(reader.skip()?).filter(|output| output.starts_with("["));
                Ok(())
            }
            _ => reader.pass_over(),
        }
    }
}
