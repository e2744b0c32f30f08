//! What the decoders of all wires share: the progress of an answer, its limits, and the path from bytes to frames.

pub(super) mod blocks;
pub(super) mod fields;

use std::borrow::Cow;

use crate::data::json::{JsonError, Reader};
use crate::data::text::{self, is_same};
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{MessageStopReason, Usage};

use crate::wires::errors::{ended_early, error_in, in_stream_text, no_stream};
use crate::wires::sse::{END, Frame, MAX_LINE, SseParser, TooLong};
use crate::wires::{Decoder, Remarks};
use blocks::{Blocks, Kind, Piece, push_delta};

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

/// The answer that a wire builds from its frames.
pub(crate) trait Frames {
    /// Its progress.
    fn progress(&self) -> &Progress;

    /// Its progress, mutable.
    fn progress_mut(&mut self) -> &mut Progress;

    /// Takes a frame. Its data is not empty and has no whitespace around it.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<Event>);

    /// Takes a document that stood beside or in place of the frames: an error, or the whole answer of a server that
    /// cannot stream.
    fn document(&mut self, text: &str, out: &mut Vec<Event>);

    /// Whether everything that an answer needs has arrived, although no frame ended it.
    fn is_whole(&self) -> bool {
        self.progress().remarks.raw_stop_reason.is_some()
    }

    /// The last frame came again, with a different text.
    fn repeated(&mut self, _text: &str) {}

    /// The answer is whole. Not called where `is_whole` never holds.
    fn done(&mut self, _out: &mut Vec<Event>) {}

    /// The body has ended and no frame said that the answer is complete. `stray` is the text that stood beside the
    /// frames.
    fn end(&mut self, stray: &str, out: &mut Vec<Event>) {
        if let Some(at) = text::find_any(stray, "{[") {
            self.document(stray.get(at..).unwrap_or_default(), out);
        }
        if self.progress().is_ended {
            return;
        }
        if self.is_whole() {
            self.done(out);
        } else {
            self.progress_mut().ended_early(stray, out);
        }
    }
}

/// The decoder of every wire.
pub(crate) struct SseDecoder {
    sse: SseParser,
    answer: Box<dyn Frames>,
    template: FrameTemplate,
}

impl SseDecoder {
    #[inline(never)]
    pub(crate) fn new(mut answer: Box<dyn Frames>, limits: Limits) -> Box<Self> {
        answer.progress_mut().limits = limits;
        Box::new(SseDecoder { sse: SseParser::new(limits.line), answer, template: FrameTemplate::default() })
    }
}

impl Decoder for SseDecoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        let SseDecoder { sse, answer, template } = self;
        let begun = out.len();
        let each = |frame: Frame<'_>| {
            let frame = Frame { data: frame.data.trim_ascii(), ..frame };
            match template.text_of(&frame) {
                Some(text) => template.repeat(text, &mut **answer, out),
                None if frame.data.is_empty() => {}
                None => {
                    let known = out.len();
                    answer.progress_mut().see(&frame);
                    answer.frame(frame, out);
                    template.learn(&frame, answer.progress_mut(), out.get(known..).unwrap_or_default());
                }
            }
        };
        if let Err(error) = sse.feed(bytes, each) {
            answer.progress_mut().too_long(error, out);
        }
        if answer.progress().is_ended {
            truncate_after_end(begun, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.answer.progress_mut().is_over = true;
        self.feed(END, out);
        if !self.is_done() {
            let begun = out.len();
            self.answer.end(&self.sse.stray(), out);
            truncate_after_end(begun, out);
        }
    }

    fn is_done(&self) -> bool {
        self.answer.progress().is_ended
    }

    fn remarks(&self) -> Remarks {
        let Progress { remarks, blocks, .. } = self.answer.progress();
        Remarks { refusals: blocks.refusals.clone(), ..remarks.clone() }
    }
}

/// Removes events behind the end: a frame may exceed a limit after only some of its events.
fn truncate_after_end(begun: usize, out: &mut Vec<Event>) {
    let new = out.get(begun..).unwrap_or_default();
    if let Some(at) = new.iter().position(|event| matches!(event, Event::Done { .. } | Event::Error(_))) {
        out.truncate(begun + at + 1);
    }
}

/// The last frame without its piece of text, if that piece was all it said. Most frames of an answer differ from the
/// previous one only in their text and in members that carry no information: these are compared instead of parsed.
#[derive(Default)]
struct FrameTemplate {
    /// The last frame without its holes.
    fixed: String,
    /// The positions of the holes, in order, and whether each one held the text; empty if there is no frame to compare
    /// with.
    holes: Vec<(usize, bool)>,
    event: String,
    /// The block that the text was added to. Without a kind: the arguments of a call.
    index: u32,
    kind: Option<Kind>,
}

impl FrameTemplate {
    /// The text of a frame that otherwise equals the last one.
    fn text_of<'a>(&self, frame: &Frame<'a>) -> Option<Cow<'a, str>> {
        if self.holes.is_empty() || self.event != frame.event {
            return None;
        }
        let (mut text, mut rest, mut fixed, mut begun) = (Cow::Borrowed(""), frame.data, &*self.fixed, 0);
        for (end, is_text) in &self.holes {
            let (known, after) = fixed.split_at_checked(end - begun)?;
            let (head, value) = rest.split_at_checked(known.len())?;
            if !is_same(head, known) {
                return None;
            }
            let mut reader = Reader::new(value);
            if *is_text {
                let mut spare = String::new();
                let plain =
                    if value.starts_with("\"") { reader.text_into(&mut spare).ok()? } else { return None };
                text = plain.map_or(Cow::Owned(spare), Cow::Borrowed);
                // Half a character waits for the other half: that is for the decoder.
                if reader.mended {
                    return None;
                }
            } else {
                reader.pass_over().ok()?;
            }
            rest = value.get(reader.position()..)?;
            (fixed, begun) = (after, *end);
        }
        if !text.is_empty() && is_same(rest, fixed) { Some(text) } else { None }
    }

    fn repeat(&self, text: Cow<'_, str>, answer: &mut dyn Frames, out: &mut Vec<Event>) {
        if answer.progress().is_ended {
            return;
        }
        let length = text.len();
        answer.repeated(&text);
        push_delta(self.index, self.kind, text.into_owned(), out);
        if self.kind.is_none() {
            answer.progress_mut().count_bytes(length, out);
        }
    }

    /// Keeps a frame that produced one piece of text and nothing else.
    fn learn(&mut self, frame: &Frame<'_>, progress: &mut Progress, out: &[Event]) {
        self.holes.clear();
        let (Some(place), [event]) = (progress.blocks.piece_place.take(), out) else { return };
        let (index, kind) = match event {
            Event::TextDelta { index, .. } => (*index, Some(Kind::Text)),
            Event::ThinkingDelta { index, .. } => (*index, Some(Kind::Thinking)),
            Event::ToolCallDelta { index, .. } => (*index, None),
            _ => return,
        };
        self.fixed.clear();
        let [one, other] = progress.blocks.ignored_places;
        let (base, mut at) = (frame.data.as_ptr().addr(), 0);
        let is_ahead = |place: &&(usize, usize), at| place.1 > 0 && place.0 >= base + at;
        while let Some(hole) = [place, one, other].iter().filter(|place| is_ahead(place, at)).min() {
            let from = hole.0 - base;
            let Some(between) = frame.data.get(at..from) else { return self.holes.clear() };
            self.fixed.push_str(between);
            self.holes.push((self.fixed.len(), *hole == place));
            at = from + hole.1;
        }
        self.fixed.push_str(frame.data.get(at..).unwrap_or_default());
        frame.event.clone_into(&mut self.event);
        (self.index, self.kind) = (index, kind);
    }
}

/// The progress of an answer.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) limits: Limits,
    pub(crate) blocks: Blocks,
    pub(crate) usage: Option<Usage>,
    pub(crate) remarks: Remarks,
    is_started: bool,
    pub(crate) is_ended: bool,
    /// The body has ended: the last frame may be truncated.
    pub(crate) is_over: bool,
    calls: usize,
    argument_bytes: usize,
}

impl Progress {
    /// A frame came that was read.
    fn see(&mut self, frame: &Frame<'_>) {
        self.remarks.saw_done |= frame.data == "[DONE]";
    }

    /// The provider answered.
    pub(crate) fn start(&mut self, out: &mut Vec<Event>) {
        if !self.is_started {
            self.is_started = true;
            out.push(Event::Start);
        }
    }

    /// The provider starts over: everything it said before is void, including why it stopped.
    pub(crate) fn restart(&mut self, out: &mut Vec<Event>) {
        self.blocks = Blocks::default();
        self.remarks = Remarks::default();
        out.push(Event::Start);
    }

    /// Reports the usage so far, if it has changed.
    pub(crate) fn emit_usage(&mut self, usage: Usage, out: &mut Vec<Event>) {
        if !self.is_ended && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(Event::Usage(usage));
        }
    }

    /// Counts one more call, or block that is kept whole. `false` if there are too many, or the answer has ended.
    pub(crate) fn count_call(&mut self, out: &mut Vec<Event>) -> bool {
        self.calls += 1;
        if self.calls > self.limits.calls {
            let limit = text::number(self.limits.calls);
            let message = ["the answer holds more than ", &limit, " tool calls"].concat();
            self.fail(limit_error(message), out);
        }
        !self.is_ended
    }

    /// Counts bytes of arguments, and of blocks that are kept whole.
    pub(crate) fn count_bytes(&mut self, bytes: usize, out: &mut Vec<Event>) {
        self.argument_bytes = self.argument_bytes.saturating_add(bytes);
        if self.argument_bytes > self.limits.arguments {
            let limit = text::number(self.limits.arguments);
            let message = ["the arguments of the tool calls are longer than ", &limit, " bytes"].concat();
            self.fail(limit_error(message), out);
        }
    }

    /// Adds to the arguments of a call.
    pub(crate) fn arguments(&mut self, index: u32, piece: Piece<'_>, out: &mut Vec<Event>) {
        if !self.is_ended {
            let bytes = self.blocks.arguments(index, piece, out);
            self.count_bytes(bytes, out);
        }
    }

    /// The answer is whole.
    pub(crate) fn done(&mut self, stop_reason: MessageStopReason, out: &mut Vec<Event>) {
        if !self.is_ended {
            self.is_ended = true;
            out.push(Event::Done { stop_reason, usage: self.usage });
        }
    }

    /// The answer failed.
    pub(crate) fn fail(&mut self, error: ErrorInfo, out: &mut Vec<Event>) {
        if !self.is_ended {
            self.blocks.abandon(out);
            self.is_ended = true;
            out.push(Event::Error(error));
        }
    }

    /// Fails with the error that a document holds, if it is one.
    pub(crate) fn fail_if_error(&mut self, document: &str, out: &mut Vec<Event>) {
        if let Some(error) = error_in(document) {
            self.fail(error, out);
        }
    }

    /// The body has ended and the answer is not whole. `stray` is what stood beside the frames.
    pub(crate) fn ended_early(&mut self, stray: &str, out: &mut Vec<Event>) {
        let is_no_stream = !self.is_started && !stray.is_empty();
        self.fail(if is_no_stream { no_stream(stray) } else { ended_early(stray) }, out);
    }

    /// A frame is not JSON: the text of an error, the last frame of a connection that was cut, or the words that some
    /// proxies send to keep the connection alive.
    pub(crate) fn broken(&mut self, frame: &Frame<'_>, error: &JsonError, out: &mut Vec<Event>) {
        if frame.event == "error" {
            self.fail(in_stream_text(frame.data), out);
        } else if !self.is_over && frame.data.starts_with("{") {
            let message = ["a chunk of the stream is no JSON: ", &error.text()].concat();
            self.fail(ErrorInfo::new(ErrorKind::Server, message), out);
        }
    }

    fn too_long(&mut self, TooLong(limit): TooLong, out: &mut Vec<Event>) {
        let message = ["a line of the stream is longer than ", &text::number(limit), " bytes"].concat();
        self.fail(limit_error(message), out);
    }
}

/// A limit was exceeded: a retry would exceed it again.
fn limit_error(message: String) -> ErrorInfo {
    ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Server, message) }
}

/// Whether the next frame is compared with the last of these documents, which are one frame each.
#[cfg(test)]
pub(crate) fn is_compared(mut decoder: Box<SseDecoder>, documents: &[&str]) -> bool {
    for document in documents {
        decoder.feed(["data: ", document, "\n\n"].concat().as_bytes(), &mut Vec::new());
    }
    !decoder.template.holes.is_empty()
}
