//! Numbers, which keep their text: read, asked for their value, and written.

use crate::data::text;

use super::JsonError;
use super::read::Reader;

/// A JSON number, kept as text so that nothing is rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(pub(super) Box<str>);

impl Number {
    /// Returns the number as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number if it is a non-negative whole number (`12`, `12.0`).
    pub fn as_u64(&self) -> Option<u64> {
        whole_number(&self.0)
    }
}

/// Parses a non-negative whole number (`12`, `12.0`).
fn whole_number(text: &str) -> Option<u64> {
    text::parse_u64(text).or_else(|| {
        let (whole, fraction) = text::split_once(text, ".")?;
        text::parse_u64(whole).filter(|_| fraction.bytes().all(|byte| byte == b'0'))
    })
}

/// Returns what is before the decimal point, and what is after it.
pub(super) fn parts(text: &str) -> (&str, &str) {
    text::split_once(text, ".").unwrap_or((text, "0"))
}

/// What a number is as a double, as which most readers take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Ordinary,
    /// It is too large, and becomes infinite.
    Infinite,
    /// It is `-0`, or a negative number so small that it becomes `-0`; JavaScript writes that as `0`.
    NegativeZero,
}

/// The first digits of the least number that becomes infinite, 2^1024 - 2^970, and its power of ten.
const INFINITE: (&[u8], i64) = (b"17976931348623158079", 308);
/// The first digits of the largest number that becomes zero, 2^-1075, and its power of ten.
const ZERO: (&[u8], i64) = (b"24703282292062327208", -324);

/// Tells what a number, as it is written in JSON, is as a double. There is no floating-point code for it: what begins with
/// as many digits as the bounds above counts as beyond them.
pub(super) fn extent(number: &str) -> Extent {
    let negative = number.strip_prefix('-');
    let is_short = number.len() <= 300 && !number.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    // Nearly all are of this kind: without an exponent, and neither very long nor `-0`.
    if is_short && !negative.is_some_and(|digits| digits.starts_with('0')) {
        return Extent::Ordinary;
    }
    extent_of(negative.unwrap_or(number), negative.is_some())
}

#[cold]
fn extent_of(number: &str, is_negative: bool) -> Extent {
    let (mut digits, mut power, mut is_fraction, mut exponent) = (Vec::new(), -1_i64, false, "");
    for (at, byte) in number.bytes().enumerate() {
        match byte {
            b'.' => is_fraction = true,
            b'e' | b'E' => {
                exponent = number.get(at + 1..).unwrap_or_default();
                break;
            }
            _ => {
                if byte != b'0' || !digits.is_empty() {
                    digits.push(byte);
                }
                // How far the first digit that is not 0 stands before the point, or after it.
                if is_fraction && digits.is_empty() {
                    power -= 1;
                } else if !is_fraction && !digits.is_empty() {
                    power += 1;
                }
            }
        }
    }
    let power = power.saturating_add(exponent_of(exponent));
    digits.truncate(INFINITE.0.len());
    let number = (power, digits.as_slice());
    if digits.is_empty() || number <= (ZERO.1, ZERO.0) {
        return if is_negative { Extent::NegativeZero } else { Extent::Ordinary };
    }
    if number >= (INFINITE.1, INFINITE.0) { Extent::Infinite } else { Extent::Ordinary }
}

/// Reads what follows the letter. As many digits as nobody needs count as the largest number.
fn exponent_of(text: &str) -> i64 {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = digits.bytes().fold(0_i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit.saturating_sub(b'0')))
    });
    if is_negative { -value } else { value }
}

impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Number(text::number(n).into())
    }
}

impl Reader<'_> {
    /// Reads a non-negative whole number. Anything else is skipped and gives `None`.
    ///
    /// # Errors
    /// If the value is malformed.
    pub fn optional_u64(&mut self) -> Result<Option<u64>, JsonError> {
        self.skip().map(whole_number)
    }

    pub(super) fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == b'-' {
            self.at += 1;
        }
        if self.byte() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if let b'e' | b'E' = self.byte() {
            self.at += 1;
            if let b'+' | b'-' = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !self.byte().is_ascii_digit() {
            return Err(self.error("a digit was expected"));
        }
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }
}

/// Appends a whole number.
pub fn write_u64(mut n: u64, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut from = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit += u8::try_from(n % 10).unwrap_or(0);
        from = at;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.push_str(digits.get(from..).and_then(|digits| str::from_utf8(digits).ok()).unwrap_or_default());
}
