//! The cost of tokens. It uses integers throughout: sums are exact, and no floating-point code gets into
//! the Wasm file.

use crate::data::json::{ObjectWriter, Value, write_u64};
use crate::data::text::{split_once, without_end};
use crate::words::message::Usage;

/// An amount of money, in trillionths of the currency unit of the prices.
pub type Cost = u64;

/// The number of decimal places of a [`Cost`].
const PLACES: i32 = 12;

/// The number of decimal places of a price per million tokens, so that a token costs a whole [`Cost`].
const PRICE_PLACES: i32 = 6;

/// The price of a million tokens of each kind, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Price {
    /// Reads `{ input, output, cacheRead?, cacheWrite? }`: prices per million tokens. Without a price of
    /// their own, tokens read from or written to a cache cost as much as input. `None` if this is not a
    /// valid price.
    pub fn read(json: &Value) -> Option<Price> {
        let price = |key: &str| scaled(json.get(key)?, PRICE_PLACES);
        let input = price("input")?;
        Some(Price {
            input,
            output: price("output")?,
            cache_read: price("cacheRead").unwrap_or(input),
            cache_write: price("cacheWrite").unwrap_or(input),
        })
    }

    /// Writes it for a reader of the same engine: the price of a million tokens of each kind, in millionths.
    pub(crate) fn write_parts(&self, out: &mut String) {
        let Price { input, output, cache_read, cache_write } = self;
        let mut object = ObjectWriter::new(out);
        object.field("input", input).field("output", output);
        object.field("cacheRead", cache_read).field("cacheWrite", cache_write);
        object.end();
    }

    /// Reads what [`Price::write_parts`] has written.
    pub(crate) fn of_parts(parts: &Value) -> Price {
        let part = |key: &str| parts.number_at(key).unwrap_or_default();
        Price {
            input: part("input"),
            output: part("output"),
            cache_read: part("cacheRead"),
            cache_write: part("cacheWrite"),
        }
    }

    /// Returns the cost of a usage.
    pub fn of(&self, usage: &Usage) -> Cost {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        parts.iter().fold(0, |sum: Cost, (tokens, price)| sum.saturating_add(tokens.saturating_mul(*price)))
    }
}

/// Reads an amount.
pub(crate) fn read_cost(json: &Value) -> Option<Cost> {
    scaled(json, PLACES)
}

/// An amount as a member; none of it if the member is missing.
pub(crate) mod cost {
    use super::{Cost, ObjectWriter, Value, read_cost, write_cost};

    pub(crate) fn write(cost: &Cost, key: &str, object: &mut ObjectWriter<'_>) {
        write_cost(*cost, object.key(key));
    }

    pub(crate) fn read(value: &Value, key: &str) -> Cost {
        value.get(key).and_then(read_cost).unwrap_or_default()
    }
}

/// An amount as a member that is left out if there is none.
pub(crate) mod maybe_cost {
    use super::{Cost, ObjectWriter, Value, read_cost, write_cost};

    pub(crate) fn write(cost: &Option<Cost>, key: &str, object: &mut ObjectWriter<'_>) {
        if let Some(cost) = cost {
            write_cost(*cost, object.key(key));
        }
    }

    pub(crate) fn read(value: &Value, key: &str) -> Option<Cost> {
        value.get(key).and_then(read_cost)
    }
}

/// Writes an amount as a number.
pub(crate) fn write_cost(cost: Cost, out: &mut String) {
    const ONE: Cost = 1_000_000_000_000;
    write_u64(cost / ONE, out);
    let rest = cost % ONE;
    if rest == 0 {
        return;
    }
    let mut digits = String::new();
    // The leading one preserves the zeros.
    write_u64(ONE + rest, &mut digits);
    out.push_str(".");
    out.push_str(without_end(digits.get(1..).unwrap_or_default(), "0"));
}

/// Reads a non-negative number, shifted by this many decimal places and truncated.
fn scaled(json: &Value, places: i32) -> Option<u64> {
    let Value::Number(number) = json else { return None };
    let (mantissa, exponent) = number.as_str().split_once(['e', 'E']).unwrap_or((number.as_str(), "0"));
    let mut places = exponent.parse::<i32>().ok()?.saturating_add(places);
    let (whole, fraction) = split_once(mantissa, ".").unwrap_or((mantissa, ""));
    let mut value: u64 = 0;
    let mut append = |byte: u8| {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        value = value.checked_mul(10)?.checked_add(digit).filter(|_| digit < 10)?;
        Some(())
    };
    // With negative `places`, the last digits of the whole part are dropped.
    let kept = whole.len().saturating_sub(usize::try_from(-places.min(0)).unwrap_or(0));
    for byte in whole.bytes().take(kept) {
        append(byte)?;
    }
    let mut fraction = fraction.bytes();
    while places > 0 {
        append(fraction.next().unwrap_or(b'0'))?;
        places -= 1;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(json: &str) -> Option<Price> {
        Price::read(&Value::parse(json).unwrap())
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let price = price(r#"{"input":0.25,"output":2,"cacheRead":2.5e-2,"cacheWrite":0.3125}"#).unwrap();
        let usage = Usage { input: 1_000, output: 10, cache_read: 4, cache_write: 3, ..Usage::default() };
        let mut text = String::new();
        write_cost(price.of(&usage), &mut text);
        assert_eq!(text, "0.0002710375");
    }

    #[test]
    fn caches_cost_as_much_as_input_where_nothing_is_told() {
        let price = price(r#"{"input":3,"output":15}"#).unwrap();
        let usage = Usage { cache_read: 1_000_000, cache_write: 1_000_000, ..Usage::default() };
        let mut text = String::new();
        write_cost(price.of(&usage), &mut text);
        assert_eq!(text, "6");
    }

    #[test]
    fn what_is_no_price_is_none() {
        for json in
            ["null", "{}", r#"{"input":1}"#, r#"{"input":-1,"output":1}"#, r#"{"input":"1","output":1}"#]
        {
            assert_eq!(price(json), None, "{json}");
        }
        let huge = price(r#"{"input":18446744073709,"output":1e12}"#).unwrap();
        assert_eq!(huge.of(&Usage { input: u64::MAX, ..Usage::default() }), u64::MAX);
        assert_eq!(price(r#"{"input":1e13,"output":1e99}"#), None);
    }

    #[test]
    fn numbers_are_read_in_every_form() {
        let cases = [
            ("0", 0),
            ("1", 1_000_000_000_000),
            ("1.5", 1_500_000_000_000),
            ("1e-7", 100_000),
            ("1.25E-9", 1_250),
            ("12e-13", 1),
            ("1e-40", 0),
            ("0.0000000000019", 1),
        ];
        for (text, wanted) in cases {
            assert_eq!(read_cost(&Value::parse(text).unwrap()), Some(wanted), "{text}");
        }
    }
}
