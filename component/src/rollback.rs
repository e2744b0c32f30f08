//! Takes a step back. A rule of the host must answer inside a step, and a module without imports cannot call the host there. So
//! the step goes on without the answer, is undone with everything that it changed, and is made again when the answer is there.
//!
//! What a step changes lies in linear memory, above the stack: data and heap. They are copied before the step and copied back
//! after it. Only agents with such rules pay for that. What the allocator has taken from the system meanwhile stays taken, and
//! it does not know that.

use std::arch::wasm32::{memory_grow, memory_size};
use std::cell::Cell;

const PAGE: usize = 1 << 16;

#[expect(unsafe_code, reason = "the linker says where it is; only its address is used")]
unsafe extern "C" {
    /// Where the data begin; the stack is below, because rustc links with `--stack-first`.
    static __global_base: u8;
}

/// How many rooms there may be. Each is twice as large as the one before.
const MOST: usize = 20;

/// Where a copy lies: the address and the length. Nothing else does, and it is not copied itself.
#[derive(Clone, Copy)]
struct Room {
    at: usize,
    length: usize,
}

/// The rooms in the order of their addresses. The last one is used; the others have become too small.
#[derive(Clone, Copy)]
struct Rooms([Option<Room>; MOST]);

thread_local! {
    static ROOMS: Cell<Rooms> = const { Cell::new(Rooms([None; MOST])) };
}

impl Rooms {
    fn last(&self) -> Option<Room> {
        self.0.iter().flatten().last().copied()
    }

    /// Calls a function with each piece of memory that is no room, by address and length, and its place in a copy. Returns the
    /// length of all.
    fn each(&self, end: usize, mut act: impl FnMut(usize, usize, usize)) -> usize {
        let (mut at, mut place) = ((&raw const __global_base) as usize, 0);
        let behind = Room { at: end, length: 0 };
        for room in self.0.iter().flatten().chain([&behind]) {
            act(at, room.at - at, place);
            place += room.at - at;
            at = room.at + room.length;
        }
        place
    }

    /// Returns a room for so many bytes, made if there is none. Nothing, if there is no memory for it.
    fn make(&mut self, length: usize) -> Option<Room> {
        if let Some(room) = self.last().filter(|room| room.length >= length) {
            return Some(room);
        }
        let free = self.0.iter_mut().find(|room| room.is_none())?;
        let pages = length * 2 / PAGE + 1;
        let at = memory_grow(0, pages);
        if at == usize::MAX {
            return None;
        }
        let room = Room { at: at * PAGE, length: pages * PAGE };
        *free = Some(room);
        ROOMS.set(*self);
        Some(room)
    }
}

/// Memory as it was.
#[derive(Clone, Copy)]
pub(crate) struct Saved {
    rooms: Rooms,
    room: Room,
    end: usize,
    length: usize,
}

impl Saved {
    /// Copies the memory. Returns nothing if there is no room for the copy.
    pub(crate) fn take() -> Option<Saved> {
        let mut rooms = ROOMS.get();
        let used = rooms.each(memory_size(0) * PAGE, |_, _, _| {});
        // A text that comes back from the step lies behind the copy.
        let room = rooms.make(used + used / 2)?;
        let end = memory_size(0) * PAGE;
        let length = rooms.each(end, |at, length, place| copy(at, room.at + place, length));
        Some(Saved { rooms, room, end, length })
    }

    /// Copies the memory back. Everything that was made since is gone: nothing of it may be used or dropped. Returns the text,
    /// which was made since; one longer than half of the memory is cut off.
    pub(crate) fn undo(self, carried: String) -> String {
        let Saved { rooms, room, end, length } = self;
        let behind = room.at + length;
        let carries = carried.len().min(room.length - length);
        copy(carried.as_ptr() as usize, behind, carries);
        std::mem::forget(carried);
        rooms.each(end, |at, length, place| copy(room.at + place, at, length));
        let mut bytes = vec![0; carries];
        copy(behind, bytes.as_mut_ptr() as usize, carries);
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// Copies bytes between two places that do not overlap.
#[inline(never)]
#[expect(unsafe_code, reason = "the memory of the whole instance, by its addresses")]
fn copy(from: usize, to: usize, length: usize) {
    // SAFETY: both lie within the memory of the instance, and one of them in the room, where nothing else lies.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, length) }
}
