//! One event of the stream, read in one pass without a tree: keys in any order, unknown fields skipped. Items are read
//! when they end.

use std::borrow::Cow;

use crate::data::json::{Reader, Value};
use crate::wires::decoding::blocks::Piece;
use crate::wires::decoding::fields::{Read, in_object, number, string};
use crate::words::message::Usage;

/// What an event says.
#[derive(Default)]
pub(super) struct WireEvent<'a> {
    /// Its type; empty if it has none.
    pub(super) kind: Cow<'a, str>,
    /// The number of the item. Ids of items change from event to event on some servers.
    pub(super) output_index: Option<u64>,
    /// The part of the item.
    pub(super) part: Option<u64>,
    pub(super) delta: Option<Piece<'a>>,
    /// Unread.
    pub(super) item: Option<&'a str>,
    pub(super) response: Response<'a>,
    pub(super) has_error: bool,
    /// `sequence_number` and `obfuscation`, unread: they differ in every event and carry no information.
    pub(super) ignored_places: [&'a str; 2],
}

/// The whole answer, from the last event.
#[derive(Default)]
pub(super) struct Response<'a> {
    pub(super) status: Cow<'a, str>,
    /// Why it is incomplete.
    pub(super) reason: Cow<'a, str>,
    pub(super) usage: Option<Usage>,
    /// Unread.
    pub(super) error: Option<&'a str>,
    /// Unread.
    pub(super) output: Option<&'a str>,
    /// `object`: a bare answer says what it is.
    pub(super) object: Cow<'a, str>,
}

impl<'a> WireEvent<'a> {
    /// Reads an event.
    pub(super) fn read(&mut self, data: &'a str) -> Read {
        let mut reader = Reader::new(data);
        reader.object(|reader, key| match key {
            "type" => string(reader, &mut self.kind),
            "output_index" => number(reader, &mut self.output_index),
            "content_index" | "summary_index" => number(reader, &mut self.part),
            "delta" => Piece::read(reader, &mut self.delta),
            "sequence_number" => reader.skip().map(|number| self.ignored_places[0] = number),
            "obfuscation" => reader.skip().map(|padding| self.ignored_places[1] = padding),
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

impl<'a> Response<'a> {
    /// Reads an answer that stands alone.
    pub(super) fn read_document(&mut self, text: &'a str) -> Read {
        let mut reader = Reader::new(text);
        reader.object(|reader, key| self.read(reader, key))?;
        reader.end()
    }

    fn read(&mut self, reader: &mut Reader<'a>, key: &str) -> Read {
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

/// Cached tokens are part of the input, reasoning is part of the output.
fn read_usage(reader: &mut Reader<'_>, slot: &mut Option<Usage>) -> Read {
    let (mut input, mut output, mut total) = (None, None, None);
    let (mut cached, mut written, mut reasoning) = (None, None, None);
    in_object(reader, |reader, key| match key {
        "input_tokens" => number(reader, &mut input),
        "output_tokens" => number(reader, &mut output),
        "total_tokens" => number(reader, &mut total),
        "input_tokens_details" => in_object(reader, |reader, key| match key {
            "cached_tokens" => number(reader, &mut cached),
            "cache_write_tokens" => number(reader, &mut written),
            _ => reader.pass_over(),
        }),
        "output_tokens_details" => in_object(reader, |reader, key| match key {
            "reasoning_tokens" => number(reader, &mut reasoning),
            _ => reader.pass_over(),
        }),
        _ => reader.pass_over(),
    })?;
    if input.is_none() && output.is_none() {
        return Ok(());
    }
    let (cache_read, cache_write) = (cached.unwrap_or(0), written.unwrap_or(0));
    let usage = Usage {
        input: input.unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
        output: output.unwrap_or(0),
        cache_read,
        cache_write,
        reasoning,
        total: total.unwrap_or(0),
        cost: None,
    };
    *slot = Some(usage.totalled());
    Ok(())
}

/// The texts of the parts of an item, by the field they stand in.
pub(super) fn texts<'v>(item: &'v Value, list: &str, field: &str) -> Vec<&'v str> {
    let parts = item.list_at(list);
    parts.iter().filter_map(|part| part.text_at(field)).collect()
}
