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
