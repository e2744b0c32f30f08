//! Ids and names in the characters and lengths that servers take.

use std::borrow::Cow;

use crate::data::text::Put;

/// Returns an id that a server accepts. It depends on our id alone, so that a call and its result always
/// agree: our id if it fits, and otherwise what fits of it with a digest. `is_allowed` must treat all
/// characters beyond ASCII alike.
pub(crate) fn fitting_id(call_id: &str, max_length: usize, is_allowed: fn(char) -> bool) -> Cow<'_, str> {
    if !call_id.is_empty()
        && call_id.len() <= max_length
        && call_id.bytes().all(|byte| is_allowed(byte.into()))
    {
        return Cow::Borrowed(call_id);
    }
    let mut id = String::new();
    call_id.chars().take(25).for_each(|c| id.put_char(if is_allowed(c) { c } else { '_' }));
    id.put("_");
    id.put(&digest(call_id, 11));
    Cow::Owned(id)
}

/// Whether the strictest servers allow a character in ids.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns a digest of a text, in letters and digits.
pub(crate) fn digest(text: &str, length: usize) -> String {
    in_digits(hash(text), ALPHANUMERIC, length)
}

const ALPHANUMERIC: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Hashes with FNV-1a and a final mixing step, so that all digits depend on all bytes.
fn hash(text: &str) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    state ^= state >> 33;
    state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^ (state >> 33)
}

fn in_digits(mut number: u64, digits: &str, length: usize) -> String {
    let mut text = String::with_capacity(length);
    for _ in 0..length {
        let at = usize::try_from(number % 62).unwrap_or(0);
        text.put(digits.get(at..=at).unwrap_or("0"));
        number /= 62;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_just_fits_is_kept() {
        let id = |id: &str| fitting_id(id, 12, is_plain).into_owned();
        assert_eq!(id("toolu-01_abc"), "toolu-01_abc");
        assert_eq!(id("toolu-01_abcd").get(..14), Some("toolu-01_abcd_"));
        assert_eq!(id("a.b").get(..4), Some("a_b_"));
        assert_eq!(id("").len(), 12);
    }
}
