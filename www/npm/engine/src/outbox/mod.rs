//! What leaves the instance: one batch per call, consisting of a table and one text.
//!
//! The control block is four `u32`: the address of the table, its length in numbers, the address of the
//! text, and its length in bytes. The table has three numbers per entry: the kind, a number whose
//! meaning depends on the kind, and the length of the entry's text in UTF-16 units. JavaScript decodes
//! the text once and slices it. A message is sent once; later entries refer to it. `www/npm/boundary/engine.js`
//! reads what is written here.

mod events;
mod history;
mod sent;

use turnwheel::agent::Receipt;
use turnwheel::data::text::utf16_length;
use turnwheel::event::AgentEvent;
use turnwheel::json::{RawJson, ToJson, write_u64};

use crate::bridge::{HostEffect, SlotId};
use crate::protocol::EntryKind;

pub(crate) use history::write_refs;
pub(crate) use sent::Sent;

/// What the outbox keeps of its memory from one batch to the next.
const LARGE: usize = 1 << 20;

/// The batch under construction.
pub(crate) struct Outbox {
    control: Box<[u32; 4]>,
    table: Vec<u32>,
    text: String,
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox { control: Box::new([0; 4]), table: Vec::new(), text: String::new() }
    }
}

impl Outbox {
    pub(crate) fn control(&self) -> *const u32 {
        self.control.as_ptr()
    }

    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.text.clear();
        // After one long message the room is everybody's again.
        if self.text.capacity() > LARGE {
            self.text = String::new();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Fills in the control block. Nothing may be added afterwards.
    pub(crate) fn publish(&mut self) {
        let address = |pointer: usize| u32::try_from(pointer).unwrap_or(0);
        *self.control = [
            address(self.table.as_ptr() as usize),
            address(self.table.len()),
            address(self.text.as_ptr() as usize),
            address(self.text.len()),
        ];
    }

    /// Adds an entry whose text `write` appends.
    pub(super) fn entry(&mut self, kind: EntryKind, number: u32, write: impl FnOnce(&mut String)) {
        let from = self.text.len();
        write(&mut self.text);
        self.close(kind, number, from);
    }

    /// Adds the entry whose text begins at `from`.
    pub(super) fn close(&mut self, kind: EntryKind, number: u32, from: usize) {
        let written = self.text.get(from..).unwrap_or_default();
        self.table.extend_from_slice(&[kind as u32, number, utf16_length(written)]);
    }

    /// Says of what time the next entries are.
    #[cfg(feature = "server")]
    pub(crate) fn time(&mut self, ms: u64) {
        self.entry(EntryKind::Time, 0, |out| write_u64(ms, out));
    }

    /// Adds an entry without a text.
    pub(super) fn empty_entry(&mut self, kind: EntryKind, number: u32) {
        self.close(kind, number, self.text.len());
    }

    /// Adds an entry with the given text.
    pub(super) fn text_entry(&mut self, kind: EntryKind, number: u32, text: &str) {
        self.entry(kind, number, |out| out.push_str(text));
    }

    /// Adds strings for the next entry.
    pub(super) fn strings<'a>(&mut self, strings: impl IntoIterator<Item = &'a str>) {
        for string in strings {
            self.text_entry(EntryKind::String, 0, string);
        }
    }

    /// Adds an event as JSON.
    pub(super) fn plain(&mut self, event: &AgentEvent) {
        self.entry(EntryKind::Event, 0, |text| event.write_json(text));
    }

    pub(crate) fn end(&mut self, output: Option<&RawJson>) {
        self.text_entry(EntryKind::End, 0, output.map_or("", RawJson::as_str));
    }

    pub(crate) fn receipt(&mut self, id: u32, receipt: Receipt) {
        self.entry(EntryKind::Receipt, id, |text| {
            if let Receipt::Delivered { turn_index } = receipt {
                write_u64(u64::from(turn_index), text);
            }
        });
    }

    pub(crate) fn effect(&mut self, slot: SlotId, effect: &HostEffect) {
        match effect {
            HostEffect::Json(json) => self.text_entry(EntryKind::Effect, slot, json),
            HostEffect::Http(json) => self.text_entry(EntryKind::Http, slot, json),
            HostEffect::Tool(name, call_id) => {
                self.strings([&**name]);
                self.text_entry(EntryKind::Tool, slot, call_id);
            }
        }
    }

    pub(crate) fn cancel(&mut self, slot: SlotId) {
        self.empty_entry(EntryKind::Cancel, slot);
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
