//! Base64, in both alphabets.

use super::unit::folded;
use crate::data::text::without_end;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the letters that a text has wherever this many bytes, or three or six more, stand before it. The first of all
/// letters hold bits of what stands before, and the last may hold bits of what follows: they are left out.
pub(super) fn encode(text: &str, before: usize) -> String {
    let (mut bits, mut held, mut skip) = (0_u32, 8 * before, (8 * before).div_ceil(6));
    let mut letters = String::new();
    for byte in text.bytes() {
        bits = bits << 8 | u32::from(byte);
        held += 8;
        while held >= 6 {
            held -= 6;
            if skip > 0 {
                skip -= 1;
            } else if let Some(letter) = LETTERS.get((bits >> held & 63) as usize) {
                letters.push(char::from(*letter));
            }
        }
    }
    letters
}

/// Returns what is encoded; nothing if it is no text.
pub(super) fn decode(encoded: &str) -> Option<String> {
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for byte in without_end(encoded, "=").bytes() {
        let is_letter =
            |letter: &u8| *letter == byte || (!letter.is_ascii_alphabetic() && *letter == folded(byte));
        bits = bits << 6 | u32::try_from(LETTERS.iter().position(is_letter)?).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 255) as u8);
        }
    }
    String::from_utf8(bytes).ok()
}
