//! Writes the lines of a tape.

use std::cell::{Cell, RefCell};

use crate::data::json::{ObjectWriter, write_u64};
use crate::machine::EffectId;
use crate::rules::stream::AssistantMessageEvent;

use super::redact::Redactor;

/// Where lines are written.
pub(super) struct Pen {
    pub(super) text: RefCell<String>,
    pub(super) redactor: Option<Redactor>,
    pub(super) events: Cell<u64>,
    pub(super) starts: Cell<u64>,
    /// The time of the line before.
    pub(super) now: Cell<u64>,
    /// The model call whose pieces the last line has, while more can be added to it, and the events before the last piece.
    pub(super) pieces: Cell<Option<(EffectId, u64)>>,
    /// The block that the last piece adds to, if it adds to one.
    pub(super) block: Cell<Option<(PieceKind, u32)>>,
    /// The model call that began last, and its name.
    pub(super) call: RefCell<Option<(EffectId, String)>>,
}

impl Pen {
    /// Writes a line.
    pub(super) fn line(&self, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.close_pieces();
        let mut text = self.text.borrow_mut();
        let from = text.len();
        // In its place at once: a line is too short for a text of its own to be worth it.
        let mut object = ObjectWriter::new(&mut text);
        write(&mut object);
        object.end();
        match self.redactor.as_ref().filter(|redactor| redactor.looks_at(text.len() - from)) {
            None => text.push_str("\n"),
            Some(redactor) => {
                let line = text.split_off(from);
                // The host is asked, which may look at the tape.
                drop(text);
                self.append(&redactor.line(line));
            }
        }
    }

    pub(super) fn append(&self, line: &str) {
        let mut text = self.text.borrow_mut();
        text.push_str(line);
        text.push_str("\n");
    }

    pub(super) fn close_pieces(&self) {
        if self.pieces.take().is_some() {
            let mut text = self.text.borrow_mut();
            text.push_str("]}\n");
            if let Some(redactor) = self.redactor.as_ref().filter(|redactor| redactor.sees_texts()) {
                // Texts of one block are seen as one, so that nothing hides across the pieces.
                let from =
                    text.get(..text.len() - 1).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
                let line = text.split_off(from);
                text.push_str(&redactor.pieces(line.trim_end()));
                text.push_str("\n");
            }
        }
    }

    /// Writes the answer of a rule.
    pub(super) fn answer(&self, rule: &str, place: usize, write: impl FnOnce(&mut String)) {
        self.line(|line| {
            let out = line.raw("\"ask\":\"");
            // The name of a rule is no text of the host.
            out.push_str(rule);
            out.push_str("\"");
            if place > 0 {
                line.field("of", &u64::try_from(place).unwrap_or(u64::MAX));
            }
            write(line.raw("\"answer\":"));
        });
    }

    /// Writes when something happened: the time, the events before it, and the effects that have started.
    pub(super) fn when(&self, now: u64, line: &mut ObjectWriter<'_>) {
        self.now.set(now);
        let out = line.raw("\"at\":");
        write_u64(now, out);
        out.push_str(",\"to\":[");
        write_u64(self.events.get(), out);
        out.push_str(",");
        write_u64(self.starts.get(), out);
        out.push_str("]");
    }
}

/// What a piece adds to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Text,
    Thinking,
    Arguments,
}

pub(super) fn delta_of(event: &AssistantMessageEvent) -> Option<(PieceKind, u32, &str)> {
    use AssistantMessageEvent as E;
    match event {
        E::TextDelta { index, delta } => Some((PieceKind::Text, *index, delta)),
        E::ThinkingDelta { index, delta } => Some((PieceKind::Thinking, *index, delta)),
        E::ToolCallDelta { index, delta } => Some((PieceKind::Arguments, *index, delta)),
        _ => None,
    }
}
