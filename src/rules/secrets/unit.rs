//! The forms in which a text may hold a byte: as it is, or escaped as in JSON, in an address or in HTML, also several
//! times over.

/// What the start of a text is for a wanted byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// This many bytes stand for it.
    Fits(usize),
    /// The text ends in the middle of what may stand for it.
    Cut,
    /// Something else stands here.
    Differs,
}

/// The longest form of a single byte.
pub(super) const LONGEST: usize = 16;
/// The longest entity of HTML, with its semicolon.
const ENTITY: usize = 8;

/// With what an escape may begin, and what may stand second in it. Behind a backslash any byte may, as itself; here is what
/// may be more than that.
pub(super) const ESCAPES: [(u8, &[u8]); 3] =
    [(b'%', b"0123456789abcdefABCDEF"), (b'\\', b"ux%\\&"), (b'&', b"#aqlg")];

/// Whether an escape may begin with a byte.
pub(super) fn is_mark(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Makes equal what counts as equal: small letters and capitals, and the two forms of the last letters of base64.
pub(super) fn folded(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        _ => byte.to_ascii_lowercase(),
    }
}

/// The bytes that [`folded`] makes a byte of, which is folded.
pub(super) fn unfolded(byte: u8) -> [u8; 2] {
    match byte {
        b'+' => *b"+-",
        b'/' => *b"/_",
        _ => [byte, byte.to_ascii_uppercase()],
    }
}

/// Compares the start of a text with a wanted byte, which is folded. What begins an escape may stand for itself, or for
/// the same byte escaped once, or twice: `other` says how many of these to pass over.
pub(super) fn unit(text: &[u8], wanted: u8, mut other: usize) -> Unit {
    let Some(&first) = text.first() else { return Unit::Cut };
    if folded(first) == wanted {
        if other == 0 {
            return Unit::Fits(1);
        }
        other -= 1;
    }
    let (mut mark, mut at) = (first, 1);
    while is_mark(mark) && at < LONGEST {
        match escaped(mark, text.get(at..).unwrap_or_default()) {
            Ok((code, length)) => {
                at += length;
                if folded(code) == wanted {
                    if other == 0 {
                        return Unit::Fits(at);
                    }
                    other -= 1;
                }
                // What was escaped may itself begin an escape.
                mark = code;
            }
            Err(is_cut) => return if is_cut { Unit::Cut } else { Unit::Differs },
        }
    }
    Unit::Differs
}

/// Reads what stands behind a mark: the byte, and the length. The error is whether the text ended too early.
pub(super) fn escaped(mark: u8, rest: &[u8]) -> Result<(u8, usize), bool> {
    let first = *rest.first().ok_or(true)?;
    match (mark, first) {
        (b'%', _) => number(rest, 0, 2, 16),
        (b'\\', b'u') => number(rest, 1, 5, 16),
        (b'\\', b'x') => number(rest, 1, 3, 16),
        (b'\\', other) => Ok((other, 1)),
        _ => {
            let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'#';
            let end = rest.iter().take(ENTITY).position(is_end).ok_or(rest.len() < ENTITY)?;
            if rest.get(end) != Some(&b';') {
                return Err(false);
            }
            let (code, _) = match rest {
                [b'#', b'x' | b'X', ..] => number(rest, 2, end, 16)?,
                [b'#', ..] => number(rest, 1, end, 10)?,
                [b'a', b'm', b'p', b';', ..] => (b'&', 0),
                [b'q', b'u', b'o', b't', ..] => (b'"', 0),
                [b'a', b'p', b'o', b's', ..] => (b'\'', 0),
                [b'l', b't', b';', ..] => (b'<', 0),
                [b'g', b't', b';', ..] => (b'>', 0),
                _ => return Err(false),
            };
            Ok((code, end + 1))
        }
    }
}

/// Reads the code of a byte from digits.
fn number(text: &[u8], from: usize, to: usize, base: u32) -> Result<(u8, usize), bool> {
    let mut number = 0_u32;
    for at in from..to {
        let digit = char::from(*text.get(at).ok_or(true)?).to_digit(base).ok_or(false)?;
        number = number.wrapping_mul(base).wrapping_add(digit);
    }
    Ok((u8::try_from(number).map_err(|_| false)?, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unfolds_to_a_byte_is_what_folds_to_it() {
        for wanted in (0..=u8::MAX).filter(|byte| folded(*byte) == *byte) {
            let all: Vec<u8> = (0..=u8::MAX).filter(|byte| folded(*byte) == wanted).collect();
            let mut made = unfolded(wanted).to_vec();
            made.sort_unstable();
            made.dedup();
            assert_eq!(made, all, "of {wanted}");
        }
    }
}
