//! Whether there is memory left. An allocation that fails ends the instance with all its runs, so what comes in from
//! outside is let in only while there is room for it, and for some more.

use std::cell::Cell;

use wasm_bindgen::prelude::*;

/// How much is asked for at once: small things are let in without a question until they add up to this.
const STEP: usize = 1 << 18;

/// Copies that are made of a text on its way: as it comes in, as it is kept, as it goes out again.
const COPIES: usize = 4;

/// What a small thing takes besides its bytes.
const OVERHEAD: usize = 1 << 10;

thread_local! {
    /// How much may still come in before memory is asked for again.
    static CREDIT: Cell<usize> = const { Cell::new(0) };
}

/// Whether so many bytes may come in.
pub(crate) fn is_left(bytes: usize) -> bool {
    let wanted = bytes.saturating_add(OVERHEAD).saturating_mul(COPIES);
    if let Some(left) = CREDIT.get().checked_sub(wanted) {
        CREDIT.set(left);
        return true;
    }
    CREDIT.set(0);
    let has_room = turnwheel::data::room::has_room(wanted.saturating_add(STEP));
    if has_room {
        CREDIT.set(STEP);
    }
    has_room
}

/// Whether a text of so many bytes may come in; asked before it does.
#[wasm_bindgen]
pub fn has_room(bytes: usize) -> bool {
    turnwheel::data::room::has_room(bytes)
}

/// Bytes that a value of a tree takes, about.
const NODE: usize = 64;

/// Whether a text of JSON may become a tree, which takes many times its bytes if its values are short.
pub(crate) fn has_room_for_tree(json: &str) -> bool {
    json.len() < STEP / NODE || {
        let values = json.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        is_left(json.len() + values * NODE)
    }
}
