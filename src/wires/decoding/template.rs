//! Frames that repeat themselves. Most frames of an answer differ from the one before only in their text and
//! in members that carry no information. Such a frame is compared with the one before, which is several times
//! faster than parsing.

use std::borrow::Cow;

use crate::data::json::Reader;
use crate::data::text::is_same;
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::sse::Frame;

use super::answering::Answering;
use super::blocks::BlockKind;
use super::frames::Frames;

/// Where in memory a value is written, and how long it is.
pub(crate) type Span = (usize, usize);

/// Returns where a value is written.
pub(crate) fn span_of(written: &str) -> Span {
    (written.as_ptr().addr(), written.len())
}

/// The parts in which the next frame may differ from the one just read, without a need to parse it.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// The text, if it is all that the frame says. A decoder sets this only if it remembers nothing else of
    /// the frame, or learns of the repetition from [`Frames::repeated`].
    pub(crate) text: Option<Span>,
    /// Values that differ from frame to frame and carry no information.
    pub(crate) ignored: [Span; 2],
}

/// The last frame without its [`Holes`], if a piece of text was all that it said.
#[derive(Default)]
pub(crate) struct FrameTemplate {
    /// The JSON around the holes.
    fixed: String,
    /// The positions of the holes in `fixed`, in order, and whether each one held the text; empty if there is
    /// no frame to compare with.
    holes: Vec<(usize, bool)>,
    event: String,
    /// The block that the text was added to. No kind means the arguments of a call.
    index: u32,
    kind: Option<BlockKind>,
}

impl FrameTemplate {
    /// Returns the text of a frame that otherwise equals the last one.
    pub(super) fn text_of<'a>(&self, frame: &Frame<'a>) -> Option<Cow<'a, str>> {
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
                // Half a character waits for its other half, which is the business of `Answering`.
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

    /// Adds the text of a repeated frame to the block that the last one belonged to.
    pub(super) fn repeat(&self, text: Cow<'_, str>, wire: &mut dyn Frames, answering: &mut Answering) {
        if answering.is_ended {
            return;
        }
        let length = text.len();
        wire.repeated(&text, answering);
        answering.push_delta(self.index, self.kind, text.into_owned());
        if self.kind.is_none() {
            answering.count_bytes(length);
        }
    }

    /// Keeps a frame that became one piece of text and nothing else: its events are those after the first
    /// `known`.
    pub(super) fn learn(&mut self, frame: &Frame<'_>, answering: &mut Answering, known: usize) {
        self.holes.clear();
        let events = answering.out.get(known..).unwrap_or_default();
        let (Some(text), [event]) = (answering.holes.text.take(), events) else { return };
        let (index, kind) = match event {
            Event::TextDelta { index, .. } => (*index, Some(BlockKind::Text)),
            Event::ThinkingDelta { index, .. } => (*index, Some(BlockKind::Thinking)),
            Event::ToolCallDelta { index, .. } => (*index, None),
            _ => return,
        };
        self.fixed.clear();
        let [one, other] = answering.holes.ignored;
        let (base, mut at) = (frame.data.as_ptr().addr(), 0);
        let is_ahead = |span: &&Span, at| span.1 > 0 && span.0 >= base + at;
        while let Some(hole) = [text, one, other].iter().filter(|span| is_ahead(span, at)).min() {
            let from = hole.0 - base;
            let Some(between) = frame.data.get(at..from) else { return self.holes.clear() };
            self.fixed.push_str(between);
            self.holes.push((self.fixed.len(), *hole == text));
            at = from + hole.1;
        }
        self.fixed.push_str(frame.data.get(at..).unwrap_or_default());
        frame.event.clone_into(&mut self.event);
        (self.index, self.kind) = (index, kind);
    }

    /// Whether there is a frame to compare with.
    #[cfg(test)]
    pub(super) fn is_known(&self) -> bool {
        !self.holes.is_empty()
    }
}
