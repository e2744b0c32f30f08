//! [`RawJson`] as a type of one's own, by serde, and as text.

use std::fmt;
use std::str::FromStr;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::data::text;

use super::JsonError;
use super::numbers::Number;
use super::raw::RawJson;
use super::value::Value;

impl RawJson {
    /// Reads the value as a type that serde can deserialize, such as the arguments of a call. A whole number may be written
    /// as `3.0`, and a member that the type does not know is passed over, unless the type says `deny_unknown_fields`.
    ///
    /// ```
    /// use turnwheel::json::RawJson;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Place { city: String, days: Option<u32> }
    ///
    /// let place: Place = r#"{"city":"Oslo"}"#.parse::<RawJson>()?.read()?;
    /// assert_eq!((place.city.as_str(), place.days), ("Oslo", None));
    ///
    /// let error = RawJson::parse(r#"{"city":["Oslo"]}"#)?.read::<Place>().err().ok_or("it fits")?;
    /// assert_eq!(error.to_string(), "`city`: invalid type: sequence, expected a string");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the value does not fit the type. The error names the place and says what was expected there.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, MisfitError> {
        T::deserialize(Typed(&self.to_value()))
    }
}

/// Writes the text of the value.
impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The same as [`RawJson::parse`].
impl FromStr for RawJson {
    type Err = JsonError;

    fn from_str(text: &str) -> Result<Self, JsonError> {
        RawJson::parse(text)
    }
}

/// Why a value does not fit a type: see [`RawJson::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisfitError {
    /// Where it stands in the value, such as `items[2].name`; empty for the value itself.
    path: String,
    message: String,
}

impl MisfitError {
    /// Where it stands in the value, such as `items[2].name`; empty for the value itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was found, and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }

    fn inside(mut self, place: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = [place, dot, &self.path].concat();
        self
    }
}

impl fmt::Display for MisfitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "`{path}`: {}", self.message),
        }
    }
}

impl std::error::Error for MisfitError {}

impl Error for MisfitError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        MisfitError { path: String::new(), message: message.to_string() }
    }
}

/// A value that serde reads.
#[derive(Clone, Copy)]
struct Typed<'de>(&'de Value);

impl<'de> IntoDeserializer<'de, MisfitError> for Typed<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Typed<'de> {
    type Error = MisfitError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, MisfitError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => visit_number(number, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items, at: 0 }),
            Value::Object(map) => visitor.visit_map(Members { members: &map.0, value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, MisfitError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, MisfitError> {
        visitor.visit_newtype_struct(self)
    }

    /// A word, or an object whose one member is the variant with its content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, MisfitError> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(StringDeserializer::<MisfitError>::new(word.clone())),
            Value::Object(map) if map.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Members { members: &map.0, value: None }))
            }
            other => {
                Err(MisfitError::custom(["invalid type: ", other.kind(), ", expected a variant"].concat()))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, MisfitError> {
    if let Some(n) = number.as_u64() {
        return visitor.visit_u64(n);
    }
    let whole = number.as_str().split_once('.').filter(|(_, fraction)| fraction.bytes().all(|b| b == b'0'));
    match whole.map_or(number.as_str(), |(whole, _)| whole).parse::<i64>() {
        Ok(n) => visitor.visit_i64(n),
        Err(_) => visitor.visit_f64(number.as_str().parse().map_err(MisfitError::custom)?),
    }
}

/// The items of a list that are left.
struct Items<'de> {
    items: &'de [Value],
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = MisfitError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, MisfitError> {
        let Some((first, rest)) = self.items.split_first() else { return Ok(None) };
        let place = ["[", &text::number(self.at), "]"].concat();
        (self.items, self.at) = (rest, self.at + 1);
        seed.deserialize(Typed(first)).map(Some).map_err(|error| error.inside(&place))
    }
}

/// The members of an object that are left, and the value of the one whose name was read last.
struct Members<'de> {
    members: &'de [(String, Value)],
    value: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = MisfitError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, MisfitError> {
        let Some(((name, value), rest)) = self.members.split_first() else { return Ok(None) };
        (self.members, self.value) = (rest, Some((name.as_str(), value)));
        seed.deserialize(StringDeserializer::<MisfitError>::new(name.clone())).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, MisfitError> {
        let Some((name, value)) = self.value.take() else {
            return Err(MisfitError::custom("a value was asked for before its name"));
        };
        seed.deserialize(Typed(value)).map_err(|error| error.inside(name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, String> {
        T::deserialize(Typed(value)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let value = Value::parse(r#"{"a":[{"b":1},{"b":"x"}]}"#).unwrap();
        let error = read::<BTreeMap<String, Vec<BTreeMap<String, u8>>>>(&value).unwrap_err();
        assert_eq!(error, "`a[1].b`: invalid type: string \"x\", expected u8");
    }

    #[test]
    fn whole_numbers_are_whole_however_they_are_written() {
        for (text, number) in [("3", 3), ("3.0", 3), ("-2.00", -2)] {
            assert_eq!(read::<i32>(&Value::parse(text).unwrap()), Ok(number));
        }
        assert_eq!(read::<f64>(&Value::parse("1e3").unwrap()), Ok(1000.0));
        assert!(read::<i32>(&Value::parse("1.5").unwrap()).is_err());
        assert!(read::<u8>(&Value::parse("256").unwrap()).is_err());
    }

    #[test]
    fn options_and_tuples_are_read() {
        assert_eq!(read::<Option<u8>>(&Value::Null), Ok(None));
        let value = Value::parse(r#"[true,"x",[1,2]]"#).unwrap();
        assert_eq!(read::<(bool, String, Option<Vec<u8>>)>(&value), Ok((true, "x".into(), Some(vec![1, 2]))));
    }
}
