//! The tool calls of an answer, which arrive in pieces that servers number, name and repeat in many ways.

use crate::data::json::{RawJson, Reader, fill};
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::piece::Piece;
use crate::words::message::MessageStopReason;

use super::frame::ChatCallPiece;

/// The calls so far.
#[derive(Default)]
pub(super) struct ChatCalls {
    calls: Vec<ChatCall>,
    /// The highest index of a call: a higher one need not be looked for.
    highest_index: Option<u64>,
    /// How many of them have begun, or cannot begin yet because they have no name.
    begun: usize,
}

#[derive(Default)]
struct ChatCall {
    index: Option<u64>,
    id: String,
    name: String,
    /// Its block. It has none before its name is whole, which the next piece tells: some servers send names in pieces.
    block: Option<u32>,
    /// Arguments that came before the block began, and those of calls without an id, whose repetition must be
    /// recognised.
    text: String,
    length: usize,
    /// `extra_content`, which must be sent back.
    extra: Option<RawJson>,
}

impl ChatCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes one of the `count` pieces of a chunk.
    pub(super) fn take(
        &mut self,
        piece: ChatCallPiece<'_>,
        position: usize,
        count: usize,
        answering: &mut Answering,
    ) {
        if answering.is_ended {
            return;
        }
        let at = match self.position_of(&piece, position, count) {
            Some(at) => at,
            // The last delta of some servers is made of nulls and belongs to no call.
            None if piece.is_empty() => return,
            None => {
                if !answering.count_call() {
                    return;
                }
                self.highest_index = self.highest_index.max(piece.index);
                self.calls.push(ChatCall { index: piece.index, ..ChatCall::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        let has_more_of_name = call.block.is_none() && call.name_goes_on(&piece.name);
        let has_arguments = piece.arguments.as_ref().is_some_and(|arguments| !arguments.is_empty());
        let is_known = count == 1 && call.block.is_some() && !call.id.is_empty() && piece.extra.is_none();
        let span = piece.arguments.as_ref().and_then(Piece::span);
        answering.holes.text = span.filter(|_| is_known);
        let bytes = call.take(piece, answering);
        answering.count_bytes(bytes);
        // Arguments that are whole, or go on without a piece of the name, end the name.
        let is_named = call.block.is_none()
            && has_arguments
            && !call.name.is_empty()
            && (!has_more_of_name || is_whole_object(&call.text));
        if is_named {
            self.begin_up_to(at + 1, answering);
        }
    }

    /// Begins the calls that wait for the rest of their name: something else follows.
    pub(super) fn begin_waiting(&mut self, answering: &mut Answering) {
        if self.begun < self.calls.len() {
            self.begin_up_to(self.calls.len(), answering);
        }
    }

    /// Begins the calls before a position, in the order in which they came. Those without a name wait for it.
    fn begin_up_to(&mut self, end: usize, answering: &mut Answering) {
        // Those before have begun, or have no name: a call costs the same however many came before it.
        let from = self.begun.min(end.saturating_sub(1));
        for call in self.calls.get_mut(from..end).unwrap_or_default() {
            if !call.name.is_empty() {
                call.begin(answering);
            }
        }
        self.begun = self.begun.max(end);
    }

    /// Returns the position of the call that a piece belongs to; `None` if the piece begins one. Looks for
    /// the index, then for the id, then for the position in the list, and otherwise takes the last call.
    fn position_of(&self, piece: &ChatCallPiece<'_>, position: usize, count: usize) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let at = match piece.index {
            Some(index) if Some(index) > self.highest_index => return None,
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            None if !piece.id.is_empty() => {
                let known = self.calls.iter().rposition(|call| call.id == piece.id);
                // A new id without a name begins nothing.
                known.or(if piece.name.is_empty() { last } else { None })?
            }
            None if !piece.name.is_empty() => {
                // A server that gives ids gives one to each call.
                let goes_on = |call: &ChatCall| {
                    call.name == piece.name || (call.block.is_none() && !call.id.is_empty() && count == 1)
                };
                last.filter(|at| self.calls.get(*at).is_some_and(goes_on))?
            }
            None if count > 1 && position < self.calls.len() => position,
            None => last?,
        };
        let is_another = self.calls.get(at).is_some_and(|call| call.is_other_than(piece));
        if is_another { None } else { Some(at) }
    }

    /// Ends the calls that are whole. This wire marks no end of a call: in a message that was cut, the last
    /// call is cut too, unless something began after it. `members` are written into the metadata of the first
    /// call.
    pub(super) fn end(
        &mut self,
        stop_reason: MessageStopReason,
        mut members: String,
        answering: &mut Answering,
    ) {
        for call in &mut self.calls {
            call.begin(answering);
        }
        let is_cut = stop_reason == MessageStopReason::Length || stop_reason.forbids_calls();
        let cut = answering.last_block().filter(|_| is_cut);
        for call in &self.calls {
            if let Some(index) = call.block.filter(|index| Some(*index) != cut) {
                if let Some(extra) = &call.extra {
                    fill(",\"extra_content\":#", &[extra.as_str()], &mut members);
                }
                answering.end_call(index, RawJson::object_of(&members));
                members.clear();
            }
        }
    }
}

impl ChatCall {
    /// Whether a piece at this call's position belongs to another call. Ollama gives every call the index 0.
    fn is_other_than(&self, piece: &ChatCallPiece<'_>) -> bool {
        if piece.name.is_empty() {
            return false;
        }
        if !self.id.is_empty() && !piece.id.is_empty() {
            return self.id != piece.id;
        }
        // Without ids, two calls can be told from the pieces of one only if the arguments were complete
        // before more came.
        let has_arguments = piece.arguments.as_ref().is_some_and(|arguments| !arguments.is_empty());
        has_arguments && self.id.is_empty() && is_whole_object(&self.text)
    }

    /// Takes a piece of this call. Returns the number of bytes.
    fn take(&mut self, piece: ChatCallPiece<'_>, answering: &mut Answering) -> usize {
        if self.block.is_none() && self.id.is_empty() {
            self.id = piece.id.into_owned();
        }
        if let Some(extra) = piece.extra {
            self.extra = RawJson::parse(extra).ok();
        }
        if self.block.is_none() && self.name_goes_on(&piece.name) {
            // Some servers repeat what they sent of the name before the rest of it.
            let rest = piece.name.strip_prefix(self.name.as_str()).unwrap_or(&piece.name);
            answering.hold(&mut self.name, rest);
        }
        let Some(arguments) = piece.arguments else {
            return 0;
        };
        // Groq writes `null` for no arguments.
        if self.length == 0 && arguments.text == "null" {
            return 0;
        }
        let length = arguments.text.len();
        self.length += length;
        if self.block.is_none() || self.id.is_empty() {
            answering.hold(&mut self.text, &arguments.text);
        }
        if let Some(index) = self.block {
            answering.push_arguments(index, arguments);
        }
        length
    }

    /// Whether a piece of a name adds to the name. Kimi and Fireworks repeat the whole name.
    fn name_goes_on(&self, piece: &str) -> bool {
        !piece.is_empty() && piece != self.name
    }

    /// Begins the block, unless it has begun.
    fn begin(&mut self, answering: &mut Answering) {
        if self.block.is_some() {
            return;
        }
        let index = answering.begin_call(&self.id, &self.name);
        answering.push_arguments(index, self.text.as_str().into());
        self.block = Some(index);
    }
}

fn is_whole_object(json: &str) -> bool {
    let mut reader = Reader::new(json);
    reader.peek() == Some(b'{') && reader.skip().is_ok() && reader.end().is_ok()
}
