//! One chunk of the stream, read in one pass without a tree: keys in any order, unknown fields skipped.

use std::borrow::Cow;

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_array, in_object, number, string};
use crate::wires::decoding::piece::Piece;
use crate::words::message::Usage;

use super::usage::read_usage;

/// What a chunk says.
#[derive(Default)]
pub(super) struct GeminiChunk<'a> {
    /// The candidate 0.
    pub(super) candidate: GeminiCandidate<'a>,
    pub(super) block_reason: Cow<'a, str>,
    pub(super) block_message: Cow<'a, str>,
    pub(super) usage: Option<Usage>,
    pub(super) is_error: bool,
    /// It has a field that belongs to an answer.
    pub(super) is_answer: bool,
}

/// One of several answers.
#[derive(Default)]
pub(super) struct GeminiCandidate<'a> {
    pub(super) parts: Vec<GeminiPart<'a>>,
    pub(super) finish_reason: Cow<'a, str>,
    pub(super) finish_message: Cow<'a, str>,
    /// `groundingMetadata` and `citationMetadata`, unread.
    pub(super) sources: [&'a str; 2],
}

/// A part of the content.
#[derive(Default)]
pub(super) struct GeminiPart<'a> {
    /// As it was written.
    pub(super) raw: &'a str,
    pub(super) text: Option<Piece<'a>>,
    pub(super) is_thought: bool,
    /// Empty if there is none.
    pub(super) signature: Cow<'a, str>,
    /// `functionCall`, unread.
    pub(super) call: Option<&'a str>,
    /// It has a field of another kind.
    pub(super) is_other: bool,
}

impl<'a> GeminiChunk<'a> {
    /// Reads a chunk.
    pub(super) fn read(&mut self, data: &'a str) -> ReadResult {
        let mut reader = Reader::new(data);
        reader.object(|reader, key| match key {
            "candidates" => {
                self.is_answer = true;
                in_array(reader, |reader, at| self.read_candidate(reader, at))
            }
            "promptFeedback" => {
                self.is_answer = true;
                in_object(reader, |reader, key| match key {
                    "blockReason" => string(reader, &mut self.block_reason),
                    "blockReasonMessage" => string(reader, &mut self.block_message),
                    _ => reader.pass_over(),
                })
            }
            "usageMetadata" => {
                self.is_answer = true;
                read_usage(reader, &mut self.usage)
            }
            "error" => {
                self.is_error = reader.skip()? != "null";
                Ok(())
            }
            _ => reader.pass_over(),
        })?;
        reader.end()
    }

    fn read_candidate(&mut self, reader: &mut Reader<'a>, at: usize) -> ReadResult {
        let mut index = None;
        let mut candidate = GeminiCandidate::default();
        in_object(reader, |reader, key| match key {
            "index" => number(reader, &mut index),
            "finishReason" => string(reader, &mut candidate.finish_reason),
            "finishMessage" => string(reader, &mut candidate.finish_message),
            "groundingMetadata" => reader.skip().map(|sources| candidate.sources[0] = sources),
            "citationMetadata" => reader.skip().map(|sources| candidate.sources[1] = sources),
            "content" => in_object(reader, |reader, key| match key {
                "parts" => in_array(reader, |reader, _| GeminiPart::read(reader, &mut candidate.parts)),
                _ => reader.pass_over(),
            }),
            _ => reader.pass_over(),
        })?;
        if index.map_or(at == 0, |index| index == 0) {
            self.candidate = candidate;
        }
        Ok(())
    }
}

impl<'a> GeminiPart<'a> {
    /// Reads a part into a list; anything but an object is skipped.
    fn read(reader: &mut Reader<'a>, list: &mut Vec<GeminiPart<'a>>) -> ReadResult {
        if reader.peek() != Some(b'{') {
            return reader.pass_over();
        }
        let start = reader.position();
        let mut part = GeminiPart::default();
        reader.object(|reader, key| match key {
            "text" => Piece::read(reader, &mut part.text),
            "thought" => {
                part.is_thought = reader.skip()? == "true";
                Ok(())
            }
            "thoughtSignature" | "thought_signature" => string(reader, &mut part.signature),
            "functionCall" => {
                part.call = Some(reader.skip()?).filter(|call| call.starts_with("{"));
                Ok(())
            }
            "partMetadata" | "videoMetadata" | "mediaResolution" => reader.pass_over(),
            _ => {
                part.is_other |= reader.skip()? != "null";
                Ok(())
            }
        })?;
        part.raw = reader.since(start);
        list.push(part);
        Ok(())
    }
}
