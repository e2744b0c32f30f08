//! Memory that a stranger can use up. In WebAssembly an allocation that fails ends the instance with all its runs, so
//! buffers that a stranger fills grow through here: where there is no room, the answer is refused.

use std::hint::black_box;

/// How much stays free for everybody else when a large buffer grows.
const SPARE: usize = 1 << 20;

/// Buffers below this size grow without a question.
const SMALL: usize = 1 << 16;

/// Whether so many bytes could be allocated now, in one piece, and some more for everybody else.
pub fn has_room(bytes: usize) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let is_there = probe.try_reserve_exact(bytes.saturating_add(SPARE)).is_ok();
    // The compiler may leave out an allocation that nobody uses.
    black_box(&mut probe);
    is_there
}

/// Makes room for more bytes at the end of a buffer. Returns whether there is.
pub fn grow(buffer: &mut Vec<u8>, more: usize) -> bool {
    if buffer.capacity() - buffer.len() >= more {
        return true;
    }
    let extra = growth(buffer.len(), more);
    extra > 0 && buffer.try_reserve_exact(extra).is_ok()
}

/// Makes room for more bytes at the end of a text. Returns whether there is. A long one grows by a quarter.
pub fn grow_text(text: &mut String, more: usize) -> bool {
    if text.capacity() - text.len() >= more {
        return true;
    }
    let extra = growth(text.len(), more);
    extra > 0 && text.try_reserve_exact(extra).is_ok()
}

/// By how much a buffer grows: a short one doubles. Nothing if there is no room.
fn growth(length: usize, more: usize) -> usize {
    let extra = more.max(if length < SMALL { length } else { length / 4 }).max(8);
    let next = length.saturating_add(extra);
    if next < SMALL || has_room(next) { extra } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_refused_and_nothing_is_lost() {
        assert!(has_room(1 << 20));
        assert!(!has_room(usize::MAX));
        let mut text = String::from("kept");
        assert!(!grow_text(&mut text, isize::MAX as usize));
        assert!(grow_text(&mut text, 1 << 20));
        let mut bytes = b"kept".to_vec();
        assert!(!grow(&mut bytes, isize::MAX as usize));
        assert!(grow(&mut bytes, 1 << 20));
        assert_eq!((&*text, &*bytes), ("kept", &b"kept"[..]));
    }
}
