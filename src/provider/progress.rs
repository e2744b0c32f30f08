//! What the decoders of all wires share: how far an answer has come, its limits, and the way from bytes to frames.

use std::borrow::Cow;

use crate::error::{ErrorInfo, ErrorKind};
use crate::json::{JsonError, Reader};
use crate::message::{MessageStopReason, Usage};
use crate::stream::AssistantMessageEvent as Event;
use crate::text::{self, is_same};

use super::blocks::{Blocks, Kind, Piece, push_delta};
use super::error::{ended_early, no_stream};
use super::sse::{Frame, MAX_LINE, SseParser, TooLong};
use super::{Decoder, Remarks};

/// What an answer may not exceed. An answer that does is an error that is not retried.
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

/// The answer that one wire makes of its frames.
pub(super) trait Frames {
    /// How far it has come.
    fn progress(&self) -> &Progress;

    /// How far it has come, to be changed.
    fn progress_mut(&mut self) -> &mut Progress;

    /// Takes a frame.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<Event>);

    /// A document beside the frames, or in their place: an error, or the whole answer of a server that cannot stream.
    fn document(&mut self, text: &str, out: &mut Vec<Event>);

    /// Whether all came that an answer needs, though no frame ended it.
    fn is_whole(&self) -> bool {
        self.progress().remarks.raw_stop_reason.is_some()
    }

    /// The last frame came once more, with another text of so many bytes.
    fn repeated(&mut self, _length: usize) {}

    /// The answer is whole.
    fn done(&mut self, out: &mut Vec<Event>);

    /// The body has ended and no frame said that the answer is whole. `stray` is what stood beside the frames.
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
pub(super) struct SseDecoder {
    sse: SseParser,
    answer: Box<dyn Frames>,
    stencil: Stencil,
}

impl SseDecoder {
    pub(super) fn new(answer: Box<dyn Frames>) -> Self {
        SseDecoder { sse: SseParser::new(answer.progress().limits.line), answer, stencil: Stencil::default() }
    }
}

impl Decoder for SseDecoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        let SseDecoder { sse, answer, stencil } = self;
        let begun = out.len();
        let each = |frame: Frame<'_>| match stencil.text_of(&frame) {
            Some(text) => stencil.repeat(text, &mut **answer, out),
            None => {
                let known = out.len();
                #[cfg(not(target_os = "unknown"))]
                answer.progress_mut().see(&frame);
                answer.frame(frame, out);
                stencil.learn(&frame, answer.progress_mut(), out.get(known..).unwrap_or_default());
            }
        };
        if let Err(error) = sse.feed(bytes, each) {
            answer.progress_mut().too_long(error, out);
        }
        if answer.progress().is_ended {
            end_with_the_end(begun, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        let SseDecoder { sse, answer, .. } = self;
        let begun = out.len();
        answer.progress_mut().is_over = true;
        let last = |frame: Frame<'_>| {
            #[cfg(not(target_os = "unknown"))]
            answer.progress_mut().see(&frame);
            answer.frame(frame, out);
        };
        if let Err(error) = sse.finish(last) {
            answer.progress_mut().too_long(error, out);
        }
        if !answer.progress().is_ended {
            answer.end(&sse.stray(), out);
        }
        end_with_the_end(begun, out);
    }

    fn is_done(&self) -> bool {
        self.answer.progress().is_ended
    }

    #[cfg(not(target_os = "unknown"))]
    fn remarks(&self) -> Remarks {
        self.answer.progress().remarks.clone()
    }
}

/// Nothing follows the end: a limit may be broken in the middle of what a frame means.
fn end_with_the_end(begun: usize, out: &mut Vec<Event>) {
    let new = out.get(begun..).unwrap_or_default();
    if let Some(at) = new.iter().position(|event| matches!(event, Event::Done { .. } | Event::Error(_))) {
        out.truncate(begun + at + 1);
    }
}

/// What a frame said but for its piece of text, where the piece was all it said. Most frames of an answer differ from the
/// one before in their text alone, and in members that say nothing: they are compared and not read.
#[derive(Default)]
struct Stencil {
    /// The last frame without its holes.
    fixed: String,
    /// Where in it the holes are, in order, and whether the text stood there; none where there is no frame to compare with.
    holes: Vec<(usize, bool)>,
    event: String,
    /// What the text was added to; without a kind, to the arguments of a call.
    index: u32,
    kind: Option<Kind>,
}

impl Stencil {
    /// The text of a frame that differs from the last one in nothing else.
    fn text_of<'a>(&self, frame: &Frame<'a>) -> Option<Cow<'a, str>> {
        if self.holes.is_empty() || self.event != frame.event {
            return None;
        }
        let (mut text, mut rest, mut fixed, mut begun) = (Cow::Borrowed(""), frame.data, &*self.fixed, 0);
        for (end, is_text) in &self.holes {
            let (known, behind) = fixed.split_at_checked(end - begun)?;
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
            (fixed, begun) = (behind, *end);
        }
        if !text.is_empty() && is_same(rest, fixed) { Some(text) } else { None }
    }

    fn repeat(&self, text: Cow<'_, str>, answer: &mut dyn Frames, out: &mut Vec<Event>) {
        if answer.progress().is_ended {
            return;
        }
        let length = text.len();
        push_delta(self.index, self.kind, text.into_owned(), out);
        if self.kind.is_none() {
            answer.progress_mut().weigh(length, out);
        }
        answer.repeated(length);
    }

    /// Keeps a frame that meant one piece of text and nothing else.
    fn learn(&mut self, frame: &Frame<'_>, progress: &mut Progress, out: &[Event]) {
        self.holes.clear();
        let (Some(place), [event]) = (progress.blocks.plain.take(), out) else { return };
        let (index, kind) = match event {
            Event::TextDelta { index, .. } => (*index, Some(Kind::Text)),
            Event::ThinkingDelta { index, .. } => (*index, Some(Kind::Thinking)),
            Event::ToolCallDelta { index, .. } => (*index, None),
            _ => return,
        };
        self.fixed.clear();
        let [one, other] = progress.blocks.noise;
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

/// How far an answer has come.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) limits: Limits,
    pub(super) blocks: Blocks,
    pub(super) usage: Option<Usage>,
    pub(super) remarks: Remarks,
    is_started: bool,
    pub(super) is_ended: bool,
    /// The body has ended: what comes now may be cut.
    pub(super) is_over: bool,
    calls: usize,
    argument_bytes: usize,
}

impl Progress {
    /// A frame came that was read.
    #[cfg(not(target_os = "unknown"))]
    fn see(&mut self, frame: &Frame<'_>) {
        self.remarks.saw_done |= frame.data.trim_ascii() == "[DONE]";
    }

    /// The provider answered.
    pub(super) fn start(&mut self, out: &mut Vec<Event>) {
        if !self.is_started {
            self.is_started = true;
            out.push(Event::Start);
        }
    }

    /// The provider begins anew: what it said is void, also of how it stopped.
    pub(super) fn restart(&mut self, out: &mut Vec<Event>) {
        self.blocks = Blocks::default();
        self.remarks = Remarks::default();
        out.push(Event::Start);
    }

    /// What was used so far.
    pub(super) fn tell_usage(&mut self, usage: Usage, out: &mut Vec<Event>) {
        if !self.is_ended && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(Event::Usage(usage));
        }
    }

    /// One more call, or block that is kept whole. `false` if there are too many.
    pub(super) fn count(&mut self, out: &mut Vec<Event>) -> bool {
        self.calls += 1;
        if self.calls > self.limits.calls {
            let limit = text::number(self.limits.calls);
            let message = ["the answer holds more than ", &limit, " tool calls"].concat();
            self.fail(refusal(message), out);
        }
        !self.is_ended
    }

    /// Counts bytes of arguments, and of blocks that are kept whole.
    pub(super) fn weigh(&mut self, bytes: usize, out: &mut Vec<Event>) {
        self.argument_bytes = self.argument_bytes.saturating_add(bytes);
        if self.argument_bytes > self.limits.arguments {
            let limit = text::number(self.limits.arguments);
            let message = ["the arguments of the tool calls are longer than ", &limit, " bytes"].concat();
            self.fail(refusal(message), out);
        }
    }

    /// Adds to the arguments of a call.
    pub(super) fn arguments(&mut self, index: u32, piece: Piece<'_>, out: &mut Vec<Event>) {
        if !self.is_ended {
            let bytes = self.blocks.arguments(index, piece, out);
            self.weigh(bytes, out);
        }
    }

    /// The answer is whole.
    pub(super) fn done(&mut self, stop_reason: MessageStopReason, out: &mut Vec<Event>) {
        if !self.is_ended {
            self.is_ended = true;
            out.push(Event::Done { stop_reason, usage: self.usage });
        }
    }

    /// The answer failed.
    pub(super) fn fail(&mut self, error: ErrorInfo, out: &mut Vec<Event>) {
        if !self.is_ended {
            self.blocks.abandon(out);
            self.is_ended = true;
            out.push(Event::Error(error));
        }
    }

    /// The body has ended and the answer is not whole. `stray` is what stood beside the frames.
    pub(super) fn ended_early(&mut self, stray: &str, out: &mut Vec<Event>) {
        let is_no_stream = !self.is_started && !stray.is_empty();
        self.fail(if is_no_stream { no_stream(stray) } else { ended_early(stray) }, out);
    }

    /// A frame is no JSON. The last one of a connection that was cut may be so, and the words that some proxies send
    /// to keep it alive.
    pub(super) fn broken(&mut self, data: &str, error: &JsonError, out: &mut Vec<Event>) {
        if !self.is_over && data.starts_with("{") {
            let message = ["a chunk of the stream is no JSON: ", &error.text()].concat();
            self.fail(ErrorInfo::new(ErrorKind::Server, message), out);
        }
    }

    fn too_long(&mut self, TooLong(limit): TooLong, out: &mut Vec<Event>) {
        let message = ["a line of the stream is longer than ", &text::number(limit), " bytes"].concat();
        self.fail(refusal(message), out);
    }
}

/// A limit was broken: the same again would break it again.
fn refusal(message: String) -> ErrorInfo {
    ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Server, message) }
}

/// Whether the last of these documents, one frame each, is one to compare the next frame with.
#[cfg(test)]
pub(super) fn is_compared(mut decoder: SseDecoder, documents: &[&str]) -> bool {
    for document in documents {
        decoder.feed(["data: ", document, "\n\n"].concat().as_bytes(), &mut Vec::new());
    }
    !decoder.stencil.holes.is_empty()
}
