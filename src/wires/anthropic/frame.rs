//! One event of the stream, read in one pass without a tree: keys in any order, unknown fields skipped.

use std::borrow::Cow;

use crate::data::json::Reader;
use crate::wires::decoding::blocks::Piece;
use crate::wires::decoding::fields::{Read, in_object, number, string, text};
use crate::words::message::Usage;

/// What an event says.
#[derive(Default)]
pub(super) struct WireEvent<'a> {
    /// Its type; empty if it has none.
    pub(super) kind: Cow<'a, str>,
    /// The number of the block.
    pub(super) index: Option<u64>,
    /// `content_block`, unread.
    pub(super) block: Option<&'a str>,
    pub(super) delta: Delta<'a>,
    /// The id in `message`.
    pub(super) message_id: Cow<'a, str>,
    /// `message.content`, unread: empty in a stream.
    pub(super) content: Option<&'a str>,
    pub(super) tokens: Tokens,
    pub(super) is_error: bool,
}

/// A piece of a block, or the end of a message.
#[derive(Default)]
pub(super) struct Delta<'a> {
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

/// The usage. What was not reported is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    thinking: Option<u64>,
    /// The sum over the steps that the provider ran itself.
    pub(super) billed: Option<Usage>,
}

/// The beginning of a block.
#[derive(Default)]
pub(super) struct Start<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) text: Option<Piece<'a>>,
    pub(super) signature: Cow<'a, str>,
    pub(super) data: Cow<'a, str>,
    /// Unread.
    pub(super) input: Option<&'a str>,
}

impl<'a> WireEvent<'a> {
    /// Reads an event.
    pub(super) fn read(&mut self, data: &'a str) -> Read {
        let mut reader = Reader::new(data);
        self.read_members(&mut reader)?;
        reader.end()
    }

    fn read_members(&mut self, reader: &mut Reader<'a>) -> Read {
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

    /// A field of a message, which a server that cannot stream sends bare.
    fn read_message(&mut self, reader: &mut Reader<'a>, key: &str) -> Read {
        match key {
            "usage" => in_object(reader, |reader, key| self.tokens.read(reader, key)),
            "content" => {
                self.content = Some(reader.skip()?).filter(|content| content.starts_with("["));
                Ok(())
            }
            "stop_reason" | "stop_sequence" | "stop_details" => self.delta.read(reader, key),
            _ => reader.pass_over(),
        }
    }
}

impl<'a> Delta<'a> {
    fn read(&mut self, reader: &mut Reader<'a>, key: &str) -> Read {
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

impl Tokens {
    fn read(&mut self, reader: &mut Reader<'_>, key: &str) -> Read {
        match key {
            "input_tokens" => number(reader, &mut self.input),
            "output_tokens" => number(reader, &mut self.output),
            "cache_read_input_tokens" => number(reader, &mut self.cache_read),
            "cache_creation_input_tokens" => number(reader, &mut self.cache_write),
            "output_tokens_details" => in_object(reader, |reader, key| match key {
                "thinking_tokens" => number(reader, &mut self.thinking),
                _ => reader.pass_over(),
            }),
            "iterations" => self.read_steps(reader),
            _ => reader.pass_over(),
        }
    }

    /// The steps that the provider ran itself. Those of an adviser have another price and are left out.
    fn read_steps(&mut self, reader: &mut Reader<'_>) -> Read {
        let mut steps = 0;
        let mut billed = Usage::default();
        crate::wires::decoding::fields::in_array(reader, |reader, _| {
            let mut step = Tokens::default();
            let mut is_other_model = false;
            in_object(reader, |reader, key| match key {
                "type" => {
                    is_other_model = reader.skip()? == "\"advisor_message\"";
                    Ok(())
                }
                // A step has no steps.
                "iterations" => reader.pass_over(),
                _ => step.read(reader, key),
            })?;
            steps += 1;
            if !is_other_model {
                billed.add(&step.usage());
            }
            Ok(())
        })?;
        self.billed = if steps > 1 { Some(billed) } else { None };
        Ok(())
    }

    /// Whether nothing was reported.
    pub(super) fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }

    /// Later values replace earlier ones, field by field: they are totals.
    pub(super) fn merge(&mut self, later: &Tokens) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cache_read = later.cache_read.or(self.cache_read);
        self.cache_write = later.cache_write.or(self.cache_write);
        self.thinking = later.thinking.or(self.thinking);
        {
            self.billed = later.billed.or(self.billed);
        }
    }

    /// The usage. On this wire, cached tokens are not part of the input.
    pub(super) fn usage(&self) -> Usage {
        let usage = Usage {
            input: self.input.unwrap_or(0),
            output: self.output.unwrap_or(0),
            cache_read: self.cache_read.unwrap_or(0),
            cache_write: self.cache_write.unwrap_or(0),
            reasoning: self.thinking,
            total: 0,
            cost: None,
        };
        usage.totalled()
    }
}

impl<'a> Start<'a> {
    /// Reads `content_block`.
    pub(super) fn read(block: &'a str) -> Start<'a> {
        let mut start = Start::default();
        // The text was read before, as a part of its event.
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
