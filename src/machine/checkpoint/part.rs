//! Reads the written state piece by piece, and remembers the first thing that cannot be read.

use std::cell::RefCell;

use crate::data::json::{FromJson, Map, Value};
use crate::data::list::{read_all, read_each};
use crate::words::message::AgentMessage;

use crate::machine::history::History;
use crate::machine::input::Letter;

/// The first thing that cannot be read.
#[derive(Default)]
pub(super) struct FirstError(pub(super) RefCell<Option<String>>);

/// A piece of the written state. If it cannot be read, that is recorded, and a placeholder takes its place.
pub(super) struct Part<'a> {
    pub(super) value: &'a Value,
    pub(super) first_error: &'a FirstError,
}

impl<'a> Part<'a> {
    pub(super) fn report(&self, key: &str, problem: &str) {
        let mut first_error = self.first_error.0.borrow_mut();
        if first_error.is_none() {
            *first_error = Some(["`", key, "` ", problem].concat());
        }
    }

    pub(super) fn unknown(&self, key: &str, word: &str) {
        self.report(key, &["is the unknown word `", word, "`"].concat());
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key)
    }

    pub(super) fn required(&self, key: &str) -> &'a Value {
        self.value.get(key).unwrap_or_else(|| {
            self.report(key, "is missing");
            &Value::Null
        })
    }

    pub(super) fn part(&self, key: &str) -> Part<'a> {
        Part { value: self.required(key), first_error: self.first_error }
    }

    pub(super) fn long(&self, key: &str) -> u64 {
        self.required(key).as_u64().unwrap_or_else(|| {
            self.report(key, "must be a whole number");
            0
        })
    }

    /// Reads a number small enough to be counted up from.
    pub(super) fn int(&self, key: &str) -> u32 {
        let number = self.long(key);
        u32::try_from(number).ok().filter(|n| *n < 1 << 31).unwrap_or_else(|| {
            self.report(key, "is too large");
            0
        })
    }

    pub(super) fn size(&self, key: &str) -> usize {
        usize::try_from(self.int(key)).unwrap_or(0)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn word(&self, key: &str) -> &'a str {
        self.required(key).as_str().unwrap_or_else(|| {
            self.report(key, "must be a text");
            ""
        })
    }

    pub(super) fn list(&self, key: &str) -> &'a [Value] {
        self.required(key).as_array().unwrap_or_else(|| {
            self.report(key, "must be a list");
            &[]
        })
    }

    pub(super) fn map(&self, key: &str) -> Map {
        self.required(key).as_object().cloned().unwrap_or_else(|| {
            self.report(key, "must be an object");
            Map::new()
        })
    }

    pub(super) fn read<T: FromJson + Default>(&self, key: &str) -> T {
        self.ok_or_report(key, T::from_json(self.required(key))).unwrap_or_default()
    }

    pub(super) fn letters(&self, key: &str) -> Vec<Letter> {
        self.ok_or_report(key, read_all(self.required(key), Letter::from_json)).unwrap_or_default()
    }

    pub(super) fn optional<T: FromJson>(&self, key: &str) -> Option<T> {
        self.ok_or_report(key, T::from_json(self.get(key)?))
    }

    fn ok_or_report<T>(&self, key: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.report(key, &["cannot be read: ", &why].concat())).ok()
    }

    /// Reads messages; a number is an index into the history.
    pub(super) fn messages(&self, key: &str, history: &History) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        for item in self.list(key) {
            messages.extend(match item.as_u64() {
                None => self.ok_or_report(key, AgentMessage::from_json(item)),
                Some(place) => {
                    let known = usize::try_from(place).ok().and_then(|place| history.messages().get(place));
                    if known.is_none() {
                        self.report(key, "has a place that is not in the history");
                    }
                    known.cloned()
                }
            });
        }
        messages
    }

    /// Reads indexes of calls, all below `count`.
    pub(super) fn places(&self, list: &Value, count: usize) -> Vec<usize> {
        let mut places = Vec::new();
        let read = read_each(list, &mut |place| {
            let place = place.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < count);
            places.push(place.ok_or_else(String::new)?);
            Ok(())
        });
        if read.is_err() {
            self.report("ready", "must be places of calls");
        }
        places
    }
}
