//! One chunk of the stream, read in one pass without a tree: keys in any order, unknown fields skipped.
//!
//! Nothing is acted on before the chunk is read to its end, because the index of a choice may come after its
//! delta.

use std::borrow::Cow;
use std::mem;

use crate::data::json::{JsonError, Reader};
use crate::data::text::is_same;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::fields::{ReadResult, in_array, in_object, string, text_or_json};
use crate::wires::decoding::piece::Piece;
use crate::words::message::Usage;

use super::details::ReasoningDetail;
use super::usage::read_usage;

/// What a chunk says.
#[derive(Default)]
pub(super) struct ChatChunk<'a> {
    /// The choice with index 0.
    pub(super) choice: Option<ChatChoice<'a>>,
    /// `choices` is there, and empty.
    pub(super) is_without_choice: bool,
    usage: Option<Usage>,
    /// The usage in a choice or in `x_groq`.
    usage_elsewhere: Option<Usage>,
    /// `search_results` or `citations`, unread: pages that a search found (Perplexity, xAI).
    pub(super) pages: Option<&'a str>,
    is_error: bool,
    /// It has fields that belong to an answer.
    is_answer: bool,
    /// It has one of the fields of errors that have no `error`.
    has_message: bool,
    /// `obfuscation`, unread: padding that hides the length of the text.
    pub(super) padding: &'a str,
}

/// One choice.
#[derive(Default)]
pub(super) struct ChatChoice<'a> {
    /// Thinking as a plain text, from the first field that has some.
    pub(super) reasoning: Option<Piece<'a>>,
    pub(super) details: Vec<ReasoningDetail<'a>>,
    pub(super) content: Option<Piece<'a>>,
    /// Content that is a list, in order.
    pub(super) parts: Vec<(BlockKind, Piece<'a>)>,
    pub(super) refusal: Option<Piece<'a>>,
    /// What the text refers to, unread; nothing if there is nothing in it.
    pub(super) annotations: Option<&'a str>,
    /// Pictures and sound; few answers have them.
    pub(super) media: Option<Box<ChatMedia<'a>>>,
    pub(super) calls: Vec<ChatCallPiece<'a>>,
    /// Empty if there is none.
    pub(super) finish_reason: Cow<'a, str>,
    pub(super) has_delta: bool,
    /// `message`, unread: the whole answer if the server does not stream, and a repetition if it does.
    pub(super) message: Option<&'a str>,
}

/// What a model shows and speaks.
#[derive(Default)]
pub(super) struct ChatMedia<'a> {
    /// Pictures, unread.
    pub(super) images: Vec<&'a str>,
    pub(super) audio: ChatAudio<'a>,
}

/// A piece of what the model speaks.
#[derive(Default)]
pub(super) struct ChatAudio<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) data: Cow<'a, str>,
    pub(super) transcript: Option<Piece<'a>>,
}

/// A piece of a tool call.
#[derive(Default)]
pub(super) struct ChatCallPiece<'a> {
    pub(super) index: Option<u64>,
    /// Empty if there is none.
    pub(super) id: Cow<'a, str>,
    /// Empty if there is none.
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Option<Piece<'a>>,
    /// `extra_content`, unread: Gemini keeps a signature in it.
    pub(super) extra: Option<&'a str>,
}

impl<'a> ChatChunk<'a> {
    /// Reads a chunk into an empty one, because returning it would move it, which costs as much as reading
    /// it. `head` is the beginning of the last chunk, up to the first member that mattered. Most chunks of an
    /// answer begin alike, and the same beginning is not read again.
    pub(super) fn read(&mut self, text: &'a str, head: &mut String) -> ReadResult {
        let mut reader = Reader::new(text);
        let is_known = |(start, rest): (&str, &str)| rest.starts_with(",") && is_same(start, head);
        let known = if text.split_at_checked(head.len()).is_some_and(is_known) { head.len() } else { 0 };
        let (mut is_tail, mut end) = (known > 0, 0);
        // The length comes first: most keys are unknown, and one comparison is enough to tell.
        let member =
            |reader: &mut Reader<'a>, key: &str| match (key.len(), key, mem::replace(&mut is_tail, true)) {
                (7, "choices", _) => self.read_choices(reader),
                (5, "usage", _) => read_usage(reader, &mut self.usage),
                (6, "x_groq", _) => in_object(reader, |reader, key| match key {
                    "usage" => read_usage(reader, &mut self.usage_elsewhere),
                    "error" => is_error(reader).map(|is| self.is_error |= is),
                    _ => reader.pass_over(),
                }),
                (5, "error", _) => is_error(reader).map(|is| self.is_error |= is),
                // MiniMax reports errors here, whatever the HTTP status.
                (9, "base_resp", _) => in_object(reader, |reader, key| {
                    let value = reader.skip()?;
                    self.is_error |= key == "status_code" && value != "0";
                    Ok(())
                }),
                (7, "message", _) | (6, "detail", _) | (6, "errors", _) => {
                    self.has_message = true;
                    reader.pass_over()
                }
                (14, "search_results", _) => self.read_pages(reader, true),
                (9, "citations", _) => self.read_pages(reader, false),
                (11, "obfuscation", _) => reader.skip().map(|padding| self.padding = padding),
                // In the native form of Workers AI, the answer is at the top level.
                (8, "response", _) => {
                    self.is_answer = true;
                    let choice = self.choice.get_or_insert_default();
                    choice.has_delta = true;
                    text_or_json(reader, &mut choice.content)?;
                    Ok(())
                }
                (10, "tool_calls", _) => {
                    self.is_answer = true;
                    let choice = self.choice.get_or_insert_default();
                    choice.has_delta = true;
                    choice.read_calls(reader)
                }
                (_, _, was_tail) => {
                    let value = reader.skip()?;
                    self.is_error |= key == "object" && value == "\"error\"";
                    if !was_tail {
                        is_tail = self.is_error;
                        end = reader.position();
                    }
                    Ok(())
                }
            };
        reader.object_after(known, member)?;
        if end > 0 {
            text.get(..end).unwrap_or_default().clone_into(head);
        }
        reader.end()
    }

    /// Whether it has a field that belongs to an answer.
    pub(super) fn is_answer(&self) -> bool {
        self.is_answer || self.usage().is_some()
    }

    /// Returns the usage.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.or(self.usage_elsewhere)
    }

    /// Whether it is an error.
    pub(super) fn is_failure(&self) -> bool {
        self.is_error || (self.has_message && !self.is_answer())
    }

    /// Pages with titles come before those without.
    fn read_pages(&mut self, reader: &mut Reader<'a>, has_titles: bool) -> ReadResult {
        let pages = Some(reader.skip()?).filter(|pages| pages.starts_with("[") && *pages != "[]");
        self.pages = if has_titles { pages.or(self.pages) } else { self.pages.or(pages) };
        Ok(())
    }

    fn read_choices(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        self.is_answer = true;
        if reader.peek() != Some(b'[') {
            return reader.pass_over();
        }
        self.is_without_choice = true;
        reader.array(|reader, _| {
            self.is_without_choice = false;
            if reader.peek() != Some(b'{') {
                return reader.pass_over();
            }
            let known = self.choice.take();
            let index = self.read_choice(reader)?;
            if known.is_some() {
                self.choice = known;
            } else if index != 0 {
                self.choice = None;
            }
            Ok(())
        })
    }

    /// Reads a choice. Returns its index.
    fn read_choice(&mut self, reader: &mut Reader<'a>) -> Result<u64, JsonError> {
        let mut index = 0;
        let choice = self.choice.get_or_insert_default();
        reader.object(|reader, key| match (key.len(), key) {
            (5, "delta") => choice.read_delta(reader),
            (5, "index") => {
                index = reader.optional_u64()?.unwrap_or(0);
                Ok(())
            }
            (13, "finish_reason") => string(reader, &mut choice.finish_reason),
            (7, "message") => {
                choice.message = Some(reader.skip()?);
                Ok(())
            }
            (5, "usage") => read_usage(reader, &mut self.usage_elsewhere),
            (5, "error") => is_error(reader).map(|is| self.is_error |= is),
            _ => reader.pass_over(),
        })?;
        Ok(index)
    }
}

impl<'a> ChatChoice<'a> {
    /// Reads `message` as if it were a delta.
    pub(super) fn read_message(&mut self, message: &'a str) -> ReadResult {
        self.read_delta(&mut Reader::new(message))
    }

    /// Whether it becomes part of a block.
    pub(super) fn has_content(&self) -> bool {
        self.has_text() || !self.calls.is_empty()
    }

    /// Whether it becomes part of a block of text or thinking.
    pub(super) fn has_text(&self) -> bool {
        let has = |piece: &Option<Piece<'_>>| piece.as_ref().is_some_and(|piece| !piece.is_empty());
        has(&self.content)
            || has(&self.reasoning)
            || has(&self.refusal)
            || self.parts.iter().any(|(_, piece)| !piece.is_empty())
            || !self.details.is_empty()
            || self.media.is_some()
    }

    fn read_delta(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        in_object(reader, |reader, key| {
            self.has_delta = true;
            match (key.len(), key) {
                (7, "content") => self.read_content(reader),
                (17, "reasoning_content") | (9, "reasoning") | (14, "reasoning_text") => {
                    // Some servers send the same text in both.
                    let mut piece = None;
                    Piece::read(reader, &mut piece)?;
                    self.reasoning = self.reasoning.take().or(piece.filter(|piece| !piece.is_empty()));
                    Ok(())
                }
                (17, "reasoning_details") => {
                    in_array(reader, |reader, _| ReasoningDetail::read(reader, &mut self.details))
                }
                (7, "refusal") => Piece::read(reader, &mut self.refusal),
                (11, "annotations") => {
                    let list = reader.skip()?.strip_prefix("[").and_then(|list| list.strip_suffix("]"));
                    self.annotations = list.map(str::trim_ascii).filter(|list| !list.is_empty());
                    Ok(())
                }
                (10, "tool_calls") => self.read_calls(reader),
                (6, "images") => self.read_images(reader),
                (5, "audio") => self.read_audio(reader),
                (13, "function_call") => self.read_call(reader),
                _ => reader.pass_over(),
            }
        })
    }

    fn media(&mut self) -> &mut ChatMedia<'a> {
        self.media.get_or_insert_default()
    }

    fn read_images(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        in_array(reader, |reader, _| {
            self.media().images.extend(Some(reader.skip()?).filter(|image| image.starts_with("{")));
            Ok(())
        })
    }

    fn read_audio(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        if reader.peek() != Some(b'{') {
            return reader.pass_over();
        }
        let audio = &mut self.media().audio;
        in_object(reader, |reader, key| match key {
            "id" => string(reader, &mut audio.id),
            "data" => string(reader, &mut audio.data),
            "transcript" => Piece::read(reader, &mut audio.transcript),
            _ => reader.pass_over(),
        })
    }

    fn read_content(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        if reader.peek() != Some(b'[') {
            return Piece::read(reader, &mut self.content);
        }
        reader.array(|reader, _| {
            if reader.peek() != Some(b'{') {
                return self.read_part(BlockKind::Text, reader);
            }
            let start = reader.position();
            let mut has_image = false;
            reader.object(|reader, key| match key {
                "image_url" | "image" => {
                    has_image = true;
                    reader.pass_over()
                }
                "text" => self.read_part(BlockKind::Text, reader),
                "refusal" => self.read_part(BlockKind::Refusal, reader),
                "thinking" => self.read_thinking(reader),
                _ => reader.pass_over(),
            })?;
            if has_image {
                self.media().images.push(reader.since(start));
            }
            Ok(())
        })
    }

    /// Reads a text, or a list of `{type: "text", text}`.
    fn read_thinking(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        if reader.peek() != Some(b'[') {
            return self.read_part(BlockKind::Thinking, reader);
        }
        reader.array(|reader, _| {
            in_object(reader, |reader, key| {
                if key != "text" {
                    return reader.pass_over();
                }
                self.read_part(BlockKind::Thinking, reader)
            })
        })
    }

    fn read_part(&mut self, kind: BlockKind, reader: &mut Reader<'a>) -> ReadResult {
        let mut piece = None;
        Piece::read(reader, &mut piece)?;
        self.parts.extend(piece.map(|piece| (kind, piece)));
        Ok(())
    }

    fn read_calls(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        in_array(reader, |reader, _| self.read_call(reader))
    }

    fn read_call(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        let mut call = ChatCallPiece::default();
        in_object(reader, |reader, key| match (key.len(), key) {
            (5, "index") => reader.optional_u64().map(|index| call.index = index),
            (2, "id") => call.read_id(reader),
            (13, "extra_content") => {
                call.extra = Some(reader.skip()?).filter(|extra| extra.starts_with("{"));
                Ok(())
            }
            (8, "function") => in_object(reader, |reader, key| call.read_function(reader, key)),
            _ => call.read_function(reader, key),
        })?;
        self.calls.push(call);
        Ok(())
    }
}

impl<'a> ChatCallPiece<'a> {
    /// Whether it says nothing of any call.
    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.as_ref().is_none_or(Piece::is_empty)
    }

    fn read_id(&mut self, reader: &mut Reader<'a>) -> ReadResult {
        // Some servers send a number.
        if matches!(reader.peek(), Some(b'0'..=b'9')) {
            reader.skip().map(|number| self.id = number.into())
        } else {
            string(reader, &mut self.id)
        }
    }

    /// Reads a member of `function`, or of a call without `function`.
    fn read_function(&mut self, reader: &mut Reader<'a>, key: &str) -> ReadResult {
        match (key.len(), key) {
            (4, "name") => string(reader, &mut self.name),
            (9, "arguments") => text_or_json(reader, &mut self.arguments),
            _ => reader.pass_over(),
        }
    }
}

/// Reads `error`, and returns whether it says anything.
fn is_error(reader: &mut Reader<'_>) -> Result<bool, JsonError> {
    Ok(!matches!(reader.skip()?, "null" | "\"\"" | "{}" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a chunk says, read behind a head.
    fn describe(text: &str, head: &mut String) -> Result<String, JsonError> {
        let mut chunk = ChatChunk::default();
        chunk.read(text, head)?;
        let content =
            chunk.choice.as_ref().and_then(|choice| choice.content.as_ref()).map(|piece| &*piece.text);
        Ok(format!("{:?} {:?} {} {}", content, chunk.usage(), chunk.is_failure(), chunk.is_answer()))
    }

    #[test]
    fn a_chunk_says_the_same_whatever_began_the_one_before() {
        let texts = [
            r#"{"id":"a","object":"chat.completion.chunk","choices":[{"delta":{"content":"x"}}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1}}"#,
            r#"{"id":"a","object":"chat.completion.chunk","error":{"message":"m"}}"#,
            r#"{"id":"a","object":"error","message":"m"}"#,
            r#"{"id":"a","object":"error"}"#,
            r#"{"id":"a"}"#,
            r#"{"id":"a","message":"m"}"#,
            r#"{"id":"a" ,"choices":[{"delta":{"content":"y"}}]}"#,
            r#"{"n":1,"choices":[{"delta":{"content":"z"}}]}"#,
            r#"{"n":12,"choices":[{"delta":{"content":"z"}}],"n":1}"#,
            r#"{"n":1}"#,
            r#"{"n":1,}"#,
            r#"{"n":1, "n":{"choices":[]},"detail":"d"}"#,
            r#"{"choices":[{"delta":{"content":"first"}}],"id":"a"}"#,
            r#"{"id":"a","object":"chat.completion.chunk""#,
            r#"{"id":"a","object":"chat.completion.chunk",,"choices":[]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","choices":[]}}"#,
            "{}",
            "",
        ];
        for before in texts {
            for text in texts {
                let mut head = String::new();
                let _ = describe(before, &mut head);
                let fresh = describe(text, &mut String::new());
                assert_eq!(describe(text, &mut head), fresh, "{text} behind {before}");
                assert_eq!(describe(text, &mut head), fresh, "{text} behind {before} and itself");
            }
        }
    }

    #[test]
    fn what_says_nothing_is_not_read_again() {
        let mut head = String::new();
        let text = r#"{"id":"a","created":1,"choices":[],"model":"m"}"#;
        assert!(describe(text, &mut head).is_ok());
        assert_eq!(head, r#"{"id":"a","created":1"#);
        // ReadResult, it would be an error.
        head = "{\"id".to_owned();
        assert!(describe("{\"id,\"choices\":[]}", &mut head).is_ok());
    }
}
