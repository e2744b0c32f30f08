//! JSON without building a tree on the hot path: a pull [`Reader`], a [`Value`] for data that is inspected,
//! a [`RawJson`] for data that only passes through, and writers that append to a string.
//!
//! Written for this crate because it is at the core of its work: a chunk of a stream is read in one pass,
//! numbers keep their text (no floating-point code in the Wasm file), and a lone surrogate becomes U+FFFD
//! instead of losing a frame.

mod read;
mod serde;
mod value;
mod write;

use std::fmt;

use crate::data::text;

pub use read::Reader;
pub(crate) use serde::{deserialize_as_json, serde_as_json, serde_as_word, serialize_as_json};
pub use value::{FromJson, Map, Number, RawJson, Value};
pub use write::{ObjectWriter, ToJson, write_list, write_str, write_u64};
pub(crate) use write::{bool_text, fill, hex, without_comma};

/// The maximum nesting depth of arrays and objects.
const MAX_DEPTH: u32 = 128;

/// Why a text is not the expected JSON: a message in lower case, and the byte where reading stopped. It is
/// a single pointer, because every reading function passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(Box<(&'static str, usize)>);

impl JsonError {
    /// What was found, and what was expected.
    pub fn message(&self) -> &str {
        self.0.0
    }

    /// Returns the byte offset in the text.
    pub fn offset(&self) -> usize {
        self.0.1
    }

    /// Returns both as one text.
    #[inline(never)]
    pub(crate) fn text(&self) -> String {
        [self.message(), " at byte ", &text::number(self.offset())].concat()
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for JsonError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        for text in [
            r#"{"a":1,"b":[true,false,null],"c":"x\ny\"\\"}"#,
            "[]",
            "{}",
            "-1.5e+10",
            "12345678901234567890123",
            r#""\u0001""#,
        ] {
            assert_eq!(Value::parse(text).unwrap().to_json(), text);
        }
    }

    #[test]
    fn a_template_gets_its_values_in_order() {
        let mut out = String::new();
        fill("{\"a\":\"$\",\"b\":[#]}", &["x\"$#", without_comma(",1,2"), "more"], &mut out);
        assert_eq!(out, "{\"a\":\"x\\\"$#\",\"b\":[1,2]}");
    }

    #[test]
    fn surrogates_are_joined_and_lone_ones_mended() {
        assert_eq!(Value::parse(r#""\ud83d\ude00""#).unwrap(), "😀".into());
        assert_eq!(Value::parse(r#""\ud83d!""#).unwrap(), "\u{fffd}!".into());
        assert_eq!(Value::parse(r#""\ud83d\u0041""#).unwrap(), "\u{fffd}A".into());
        assert_eq!(RawJson::parse(r#" {"a":"\ud83d"} "#).unwrap().as_str(), "{\"a\":\"\u{fffd}\"}");
    }

    #[test]
    fn broken_json_is_refused() {
        for text in ["", "{", "[1,]", "{\"a\"}", "01", "1.", "tru", "\"a", "\"\\x\"", "{} x", "\"\n\"", "+1"]
        {
            assert!(Value::parse(text).is_err(), "{text}");
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        for text in [
            "[,1]",
            "[1 2]",
            "{,\"a\":1}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{\"a\" 1}",
            "{a:1}",
            "{\"a\":}",
            "-",
            "1e",
            "\"\\u12\"",
            "\"\\ud83d\\u00g0\"",
            "\"\\ud83d",
            "nul",
            "[1}",
            "\"\u{1}\"",
        ] {
            assert!(Value::parse(text).is_err(), "{text}");
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        assert!(Value::parse(&"[".repeat(100_000)).is_err());
        let error = Value::parse("[1 2]").unwrap_err();
        assert_eq!(error.text(), "a comma or `]` was expected at byte 3");
        assert_eq!((error.message(), error.offset()), ("a comma or `]` was expected", 3));
    }

    #[test]
    fn whole_numbers_are_read_as_such_and_milliseconds_down_to_one() {
        let read = |text: &str| {
            let value = Value::parse(&["{\"n\":", text, "}"].concat()).unwrap();
            (value.get("n").and_then(Value::as_u64), value.number_at("n"))
        };
        let cases = [
            ("12", (Some(12), Some(12))),
            ("12.00", (Some(12), Some(12))),
            ("12.5", (None, Some(12))),
            ("12.0e3", (None, None)),
            ("-1", (None, None)),
            ("18446744073709551616", (None, None)),
            ("\"12\"", (None, None)),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn objects_are_equal_by_their_members_in_any_order() {
        let parse = |text: &str| Value::parse(text).unwrap();
        let one = parse(r#"{"a":1,"b":{"c":2}}"#);
        assert_eq!(one, parse(r#"{"b":{"c":2},"a":1}"#));
        for other in
            [r#"{"a":1}"#, r#"{"a":1,"b":{"c":3}}"#, r#"{"a":1,"b":{"c":2},"d":4}"#, r#"{"a":1,"d":{"c":2}}"#]
        {
            assert_ne!(one, parse(other), "{other}");
        }
    }

    #[test]
    fn of_equal_keys_the_last_wins() {
        assert_eq!(Value::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap().to_json(), r#"{"b":2,"a":3}"#);
    }

    #[test]
    fn plain_text_is_found_to_its_end_at_every_length() {
        for n in 0..40 {
            for mark in ["\"", "\\\"\"", "\u{e9}\"", "\\n\""] {
                let text = format!("\"{}{mark}", "é".repeat(n));
                assert!(Reader::new(&text).string().unwrap().starts_with(&"é".repeat(n)));
            }
        }
    }

    #[test]
    fn what_is_json_is_what_another_reader_takes_for_json() {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"b\\n\"",
            "\"é😀\"",
            "\"\\u00e9\"",
            "0",
            "12",
            "-3.5",
            "1e-1",
            "true",
            "false",
            "null",
            " ",
            "\n",
            "\t",
            "\0",
            "\"",
            "\\",
            "\"long enough for two words, \\\" too\"",
            "{\"k\":[1,2]}",
            "nul",
            "\u{1}",
        ];
        let (mut state, mut taken) = (1_u64, 0);
        let mut dice = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % limit
        };
        for _ in 0..40_000 {
            // Often on the way to a complete value.
            let mut text = ["", "{", "{\"a\":", "[", "[1,"][dice(5)].to_owned();
            (0..dice(5)).for_each(|_| text += pieces[dice(pieces.len())]);
            text.push_str(["", "}", "]", "}"][dice(4)]);
            let wanted: Option<serde_json::Value> = serde_json::from_str(&text).ok();
            taken += usize::from(wanted.is_some());
            let mut reader = Reader::new(&text);
            let passed = reader.pass_over().and_then(|()| reader.end());
            assert_eq!(passed.is_ok(), wanted.is_some(), "{text:?}");
            let read = Value::parse(&text).ok().map(|value| serde_json::from_str(&value.to_json()).unwrap());
            assert_eq!(read, wanted, "{text:?}");
        }
        assert!(taken > 1_000, "{taken}");
    }
}
