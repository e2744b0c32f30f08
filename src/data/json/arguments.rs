//! The arguments of a call: JSON that a person is shown and a tool runs with, perhaps read by two different readers. What they
//! might read differently is mended or refused here, so that all of them have the same value.

use crate::data::id_map::hash;
use crate::data::text;

use super::JsonError;
use super::numbers::{Extent, Number, extent};
use super::raw::RawJson;
use super::read::Reader;
use super::value::Value;
use super::write::ToJson;

/// How many names of an object are compared one by one.
const MANY: usize = 256;

/// How much of a number an error shows.
const SHOWN: usize = 40;

impl RawJson {
    /// Like [`RawJson::parse`], for the arguments of a call. Of equal names the last one is kept, `-0` becomes `0`, and a
    /// member `__proto__`, which some readers drop, is dropped. The inner error says which number is not finite.
    ///
    /// # Errors
    /// If the text is not exactly one JSON value.
    pub(crate) fn parse_arguments(text: &str) -> Result<Result<RawJson, String>, JsonError> {
        let mut reader = Reader::new(text);
        let mut look = Look::default();
        reader.peek();
        let start = reader.position();
        look.pass_over(&mut reader)?;
        let value = reader.since(start);
        reader.end()?;
        if reader.mended || look.is_odd { mended(text) } else { Ok(Ok(RawJson(value.into()))) }
    }

    /// Returns the value as [`RawJson::parse_arguments`] reads it: the same object if nothing is to be mended.
    ///
    /// # Errors
    /// If a number is not finite. The text says which.
    pub(crate) fn as_arguments(&self) -> Result<RawJson, String> {
        let mut look = Look::default();
        // It is known to be valid.
        let is_read = look.pass_over(&mut Reader::new(self.as_str())).is_ok();
        let mended = if is_read && look.is_odd { mended(self.as_str()).ok() } else { None };
        mended.filter(|mended| mended.as_ref() != Ok(self)).unwrap_or_else(|| Ok(self.clone()))
    }
}

/// Looks for what readers might read differently.
#[derive(Default)]
struct Look {
    /// The hashes of the names so far in each object around the place.
    names: Vec<usize>,
    /// Whether there may be something to mend or to refuse. Two names with one hash count as equal; the tree tells more.
    is_odd: bool,
}

impl Look {
    /// Skips a value, and looks at it.
    fn pass_over(&mut self, reader: &mut Reader<'_>) -> Result<(), JsonError> {
        match reader.peek() {
            Some(b'{') => {
                let from = self.names.len();
                reader.object(|reader, name| {
                    self.note(from, name);
                    self.pass_over(reader)
                })?;
                self.names.truncate(from);
                Ok(())
            }
            Some(b'[') => reader.array(|reader, _| self.pass_over(reader)),
            Some(b'-' | b'0'..=b'9') => {
                self.is_odd |= extent(reader.skip()?) != Extent::Ordinary;
                Ok(())
            }
            _ => reader.pass_over(),
        }
    }

    fn note(&mut self, from: usize, name: &str) {
        let hash = hash(name);
        let others = self.names.get(from..).unwrap_or_default();
        // Of an object with many names the tree finds those that are equal, in less than quadratic time.
        self.is_odd |= others.contains(&hash) || others.len() > MANY || name == PROTO;
        if !self.is_odd {
            self.names.push(hash);
        }
    }
}

/// In JavaScript, a member of this name becomes what the object inherits from as soon as somebody copies it carelessly.
const PROTO: &str = "__proto__";

#[cold]
fn mended(text: &str) -> Result<Result<RawJson, String>, JsonError> {
    let mut value = Value::parse(text)?;
    Ok(mend(&mut value, "").map(|()| value.to_raw()))
}

#[cold]
fn mend(value: &mut Value, path: &str) -> Result<(), String> {
    match value {
        Value::Number(Number(number)) => match extent(number) {
            Extent::Ordinary => {}
            Extent::NegativeZero => *number = "0".into(),
            Extent::Infinite => {
                let shown =
                    number.get(..SHOWN).map_or_else(|| number.to_string(), |shown| [shown, "…"].concat());
                let (tick, place) = if path.is_empty() { ("", "it") } else { ("`", path) };
                let is = [tick, place, tick, " is ", &shown, ", which is too large for a number"];
                return Err(is.concat());
            }
        },
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                mend(item, &[path, "[", &text::number(at), "]"].concat())?;
            }
        }
        Value::Object(map) => {
            map.remove(PROTO);
            for (name, item) in &mut map.0 {
                mend(item, &[path, if path.is_empty() { "" } else { "." }, name].concat())?;
            }
        }
        _ => {}
    }
    Ok(())
}
