//! Finding a short text in another, and numbers as text. The equivalents in the standard library would add
//! 8 KB of general search, formatting and panics to the Wasm file.

use crate::data::json::write_u64;

/// Returns where a text first occurs in another. For short needles.
pub fn find(text: &str, wanted: &str) -> Option<usize> {
    let (wanted, first) = (wanted.as_bytes(), wanted.as_bytes().first());
    text.as_bytes().windows(wanted.len().max(1)).position(|part| part.first() == first && part == wanted)
}

/// The lowest bit of each of the eight bytes in a word.
pub const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns the position of the first byte of a kind, or the length, looking at eight bytes at a time.
/// `marks` sets the highest bit of such bytes in a word; its marks above the first such byte may be false.
#[allow(clippy::inline_always, reason = "each use marks other bytes")]
#[inline(always)]
pub fn first_of(bytes: &[u8], marks: impl Fn(u64) -> u64) -> usize {
    let mut at = 0;
    for word in bytes.as_chunks().0 {
        let marked = marks(u64::from_le_bytes(*word)) & (ONES * 0x80);
        if marked != 0 {
            return at + marked.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The last bytes, preceded by the bytes before them if there are any, and otherwise followed by zeros.
    let (from, last) = match bytes.last_chunk() {
        Some(word) => (bytes.len() - 8, u64::from_le_bytes(*word)),
        None => (0, bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))),
    };
    let marked = marks(last) & (ONES * 0x80);
    bytes.len().min(from + marked.trailing_zeros() as usize / 8)
}

/// Returns the length of a text in UTF-16: a character is one unit, one of four bytes is two.
pub fn utf16_length(text: &str) -> u32 {
    let (words, tail) = text.as_bytes().as_chunks();
    // Continuation bytes are one too many each, and the first bytes of four-byte characters are one too
    // few.
    let more = |word: u64| {
        let (behind, four) = (word >> 7 & !(word >> 6), word >> 7 & word >> 6 & word >> 5 & word >> 4);
        (four & ONES).count_ones().wrapping_sub((behind & ONES).count_ones())
    };
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let length = words.iter().fold(length, |sum, word| sum.wrapping_add(more(u64::from_le_bytes(*word))));
    tail.iter().fold(length, |sum, byte| sum.wrapping_add(more(u64::from(*byte))))
}

/// Whether a text occurs in another.
pub fn contains(text: &str, wanted: &str) -> bool {
    find(text, wanted).is_some()
}

/// Whether any of several texts, separated by `|`, occurs in another.
pub fn has_any(text: &str, wanted: &str) -> bool {
    split(wanted, "|").any(|wanted| contains(text, wanted))
}

/// Returns where the first of several ASCII characters occurs.
pub fn find_any(text: &str, marks: &str) -> Option<usize> {
    text.bytes().position(|byte| marks.as_bytes().contains(&byte))
}

/// Splits off the ASCII characters of a kind at the start of a text, and returns them and the rest.
pub fn split_while(text: &str, is: fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is(byte)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Converts bytes to a text, with U+FFFD for invalid ones.
pub fn lossy(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Err(error) = str::from_utf8(rest) {
        let (whole, broken) = rest.split_at_checked(error.valid_up_to()).unwrap_or_default();
        text.push_str(str::from_utf8(whole).unwrap_or_default());
        text.push('\u{fffd}');
        rest = error.error_len().and_then(|len| broken.get(len..)).unwrap_or_default();
    }
    text.push_str(str::from_utf8(rest).unwrap_or_default());
    text
}

/// Parses a text that consists only of decimal digits.
pub fn parse_u64(text: &str) -> Option<u64> {
    let mut number = if text.is_empty() { None } else { Some(0_u64) };
    for byte in text.bytes() {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        let tens = number?.wrapping_mul(10);
        number = tens.checked_add(digit).filter(|_| digit < 10 && number <= Some(u64::MAX / 10));
    }
    number
}

/// Returns what is before and after the last occurrence of an ASCII character.
pub fn rsplit_once(text: &str, mark: u8) -> Option<(&str, &str)> {
    let at = text.bytes().rposition(|byte| byte == mark)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Returns what is before and after the first occurrence of a text in another.
pub fn split_once<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let at = find(text, mark)?;
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
}

/// Returns what is between the occurrences of a text in another.
pub fn split<'a>(text: &'a str, mark: &'a str) -> Parts<'a> {
    Parts { rest: Some(text), mark }
}

/// See [`split`].
pub struct Parts<'a> {
    rest: Option<&'a str>,
    mark: &'a str,
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let Some((part, after)) = split_once(rest, self.mark) else { return Some(rest) };
        self.rest = Some(after);
        Some(part)
    }
}

/// Removes an ending from a text, as often as it occurs.
pub fn without_end<'a>(mut text: &'a str, end: &str) -> &'a str {
    while let Some(shorter) = text.strip_suffix(end).filter(|_| !end.is_empty()) {
        text = shorter;
    }
    text
}

/// Replaces every occurrence of a part with another text.
pub fn replace(text: &str, part: &str, by: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((before, after)) = split_once(rest, part).filter(|_| !part.is_empty()) {
        replaced.push_str(before);
        replaced.push_str(by);
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// Whether two texts are equal, comparing sixteen bytes at a time; in Wasm, the standard library compares
/// byte by byte.
pub fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same = |(a, b): (&[u8; 16], &[u8; 16])| u128::from_le_bytes(*a) == u128::from_le_bytes(*b);
    match (one.last_chunk(), other.last_chunk()) {
        // The ends differ most often.
        (Some(end), Some(other_end)) => {
            let words = one.as_chunks().0.iter().zip(other.as_chunks().0);
            one.len() == other.len() && same((end, other_end)) && words.into_iter().all(same)
        }
        _ => one == other,
    }
}

/// Appends without a copy of the code at every call site. As long as nothing else appends in another way,
/// the standard library's appending remains one function instead of two: `String::push` would be a second
/// one that allocates.
pub trait Put {
    fn put(&mut self, text: &str);
    fn put_char(&mut self, c: char);
}

impl Put for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }

    fn put_char(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }
}

/// Converts a whole number to text.
pub fn number(n: impl TryInto<u64>) -> String {
    decimal(n.try_into().unwrap_or(u64::MAX))
}

fn decimal(n: u64) -> String {
    let mut text = String::new();
    write_u64(n, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_where_it_first_stands() {
        assert_eq!(find("per minute per day", "per "), Some(0));
        assert_eq!(find("so ähnlich ä", "ä"), Some(3));
        assert_eq!(find("ab", "abc"), None);
        assert_eq!(split_once("https://a/b", "://"), Some(("https", "a/b")));
        assert!(!contains("", "a"));
        assert_eq!((find_any("a b/c?d", "?/"), find_any("ab", "c")), (Some(3), None));
        assert_eq!(rsplit_once("a/b/ä", b'/'), Some(("a/b", "ä")));
        assert_eq!(rsplit_once("a", b'/'), None);
        assert_eq!(split_while("12ä", |byte| byte.is_ascii_digit()), ("12", "ä"));
        let numbers = ["0", "18446744073709551615", "", "1a", "-1", "18446744073709551616"].map(parse_u64);
        assert_eq!(numbers, [Some(0), Some(u64::MAX), None, None, None, None]);
        assert_eq!(replace("key: k, k", "k", "[k]"), "[k]ey: [k], [k]");
        assert_eq!(split("a||b|", "|").collect::<Vec<_>>(), ["a", "", "b", ""]);
        assert_eq!((split("", " ").count(), without_end("a//", "/"), without_end("//", "/")), (1, "a", ""));
        assert_eq!(number(1_024_usize), "1024");
        let broken: [&[u8]; 6] =
            [b"", b"whole \xc3\xa4", b"\xff", b"a\xc3(b\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80\x80z"];
        assert!(broken.iter().all(|bytes| lossy(bytes) == String::from_utf8_lossy(bytes)));
        let mixed = "aß€😀bcdefg𝄞hijklmnop日本語qrstuvwxyzäöü😀";
        for (at, _) in mixed.char_indices() {
            let rest = mixed.get(at..).unwrap_or_default();
            assert_eq!(utf16_length(rest), u32::try_from(rest.encode_utf16().count()).unwrap());
        }
        let text = "0123456789abcdefg";
        let start = |n| text.get(..n).unwrap_or_default();
        assert!((0..=text.len()).all(|n| is_same(start(n), start(n))));
        assert!(!is_same(text, start(16)) && !is_same("0123456789", "0123x56789") && !is_same("ab", "ax"));
    }
}
