//! The decoder of every wire, and the part of it that each wire writes itself.

use std::mem;

use crate::data::text;
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::limits::Limits;
use crate::wires::sse::{END, Frame, SseParser, TooLong};
use crate::wires::{Decoder, Remarks};

use super::answering::Answering;
use super::template::FrameTemplate;

/// A wire's own part of a decoder. It reads frames and reports to the [`Answering`] what they say; the
/// progress of the answer and its events belong to the caller.
pub(crate) trait Frames {
    /// Reads a frame of an answer that has not ended. Its data is not empty and has no whitespace around it.
    fn frame(&mut self, frame: Frame<'_>, answering: &mut Answering);

    /// Reads a frame that came after the end of the answer.
    fn late_frame(&mut self, _frame: Frame<'_>, _answering: &mut Answering) {}

    /// Reads a document that stood beside or in place of the frames: an error, or the whole answer of a
    /// server that cannot stream.
    fn document(&mut self, text: &str, answering: &mut Answering);

    /// The last frame came again with another text. It was not read, and the text is already an event.
    fn repeated(&mut self, _text: &str, _answering: &mut Answering) {}

    /// Whether everything that an answer needs has arrived, although no frame ended it.
    fn is_whole(&self, answering: &Answering) -> bool {
        answering.stop_word.is_some()
    }

    /// Ends the answer, because it is whole. Not called where `is_whole` never holds.
    fn finish(&mut self, _answering: &mut Answering) {}
}

/// The decoder of every wire.
pub(crate) struct SseDecoder {
    sse: SseParser,
    wire: Box<dyn Frames>,
    template: FrameTemplate,
    answering: Answering,
}

impl SseDecoder {
    pub(crate) fn new(wire: Box<dyn Frames>, limits: Limits) -> Box<Self> {
        let (sse, template) = (SseParser::new(limits.line), FrameTemplate::default());
        Box::new(SseDecoder { sse, wire, template, answering: Answering::new(limits) })
    }

    /// Lets `read` append to `out`.
    fn append_to(&mut self, out: &mut Vec<Event>, read: impl FnOnce(&mut Self)) {
        let begun = out.len();
        mem::swap(out, &mut self.answering.out);
        read(self);
        mem::swap(out, &mut self.answering.out);
        if self.answering.is_ended {
            truncate_after_end(begun, out);
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let SseDecoder { sse, wire, template, answering } = self;
        answering.count_received(bytes.len());
        let fed = sse.feed(bytes, |frame| {
            if !answering.has_room_for(frame.data.len()) {
                return;
            }
            let frame = Frame { data: frame.data.trim_ascii(), ..frame };
            match template.text_of(&frame) {
                Some(text) => template.repeat(text, &mut **wire, answering),
                None if frame.data.is_empty() => {}
                None => {
                    answering.remarks.saw_done |= frame.data == "[DONE]";
                    let known = answering.out.len();
                    if answering.is_ended {
                        wire.late_frame(frame, answering);
                    } else {
                        wire.frame(frame, answering);
                        if let Some(text) = answering.take_mended() {
                            wire.frame(Frame { data: &text, ..frame }, answering);
                            answering.holes.text = None;
                        }
                    }
                    template.learn(&frame, answering, known);
                }
            }
        });
        if let Err(TooLong(limit)) = fed {
            answering.exceed("a line of the stream is longer than ", limit, " bytes");
        }
    }

    /// The body has ended, and no frame said that the answer is complete.
    fn end(&mut self) {
        let SseDecoder { sse, wire, answering, .. } = self;
        let stray = sse.stray();
        if let Some(at) = text::find_any(&stray, "{[") {
            wire.document(stray.get(at..).unwrap_or_default(), answering);
        }
        if answering.is_ended {
            return;
        }
        if wire.is_whole(answering) {
            wire.finish(answering);
        } else {
            answering.fail_early(&stray);
        }
    }
}

impl Decoder for SseDecoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        self.append_to(out, |decoder| decoder.read(bytes));
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.append_to(out, |decoder| {
            decoder.answering.is_over = true;
            decoder.read(END);
            if !decoder.answering.is_ended {
                decoder.end();
            }
        });
    }

    fn is_done(&self) -> bool {
        self.answering.is_ended
    }

    fn remarks(&self) -> Remarks {
        self.answering.remarks()
    }
}

/// Removes the events after the end: a frame may exceed a limit when only some of its events are out.
fn truncate_after_end(begun: usize, out: &mut Vec<Event>) {
    let new = out.get(begun..).unwrap_or_default();
    if let Some(at) = new.iter().position(|event| matches!(event, Event::Done { .. } | Event::Error(_))) {
        out.truncate(begun + at + 1);
    }
}

/// Whether the next frame will be compared with the last of these documents, which are a frame each.
#[cfg(test)]
pub(crate) fn is_compared(mut decoder: Box<SseDecoder>, documents: &[&str]) -> bool {
    for document in documents {
        decoder.feed(["data: ", document, "\n\n"].concat().as_bytes(), &mut Vec::new());
    }
    decoder.template.is_known()
}
