//! serde's traits, in the same form as the traits of this module: objects become maps, lists sequences, numbers
//! numbers, for any serializer, be it one that writes text or one that makes JavaScript objects. What only passes
//! through here keeps its meaning, not its layout: a number beyond 64 bits becomes the nearest `f64`, and whitespace is
//! gone. Where every byte counts, [`ToJson`](super::ToJson) gives the text as it is.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::MAX_DEPTH;
use super::value::{FromJson, Map, Number, RawJson, Value};
use super::write::ToJson;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Value::Object(map) => map.serialize(serializer),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            object.serialize_entry(key, value)?;
        }
        object.end()
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.as_str().parse::<u64>(), self.as_str().parse::<i64>()) {
            (Ok(n), _) => serializer.serialize_u64(n),
            (_, Ok(n)) => serializer.serialize_i64(n),
            _ => serializer.serialize_f64(self.as_str().parse().unwrap_or(f64::NAN)),
        }
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_as_json(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Nested { levels_left: DEEPEST }.deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(map) => Ok(map),
            other => Err(D::Error::custom(["an object was expected, got ", other.kind()].concat())),
        }
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| value.to_raw())
    }
}

/// As deep as [`Value::parse_container`] reads. Other formats have no limit of their own: JavaScript objects may even
/// contain themselves.
const DEEPEST: u32 = MAX_DEPTH / 2 * 3;

/// Reads a value that may contain so many levels of lists and objects.
#[derive(Clone, Copy)]
struct Nested {
    levels_left: u32,
}

impl Nested {
    fn inside<E: Error>(self) -> Result<Nested, E> {
        let levels_left = self.levels_left.checked_sub(1);
        levels_left
            .map(|levels_left| Nested { levels_left })
            .ok_or_else(|| E::custom("it is nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Number(Number(n.to_string().into())))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        // `Debug` writes 1.0 and 1e300 where `Display` writes 1 and three hundred zeros. Both are JSON.
        Ok(if n.is_finite() { Value::Number(Number(format!("{n:?}").into())) } else { Value::Null })
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members = Vec::new();
        while let Some(member) = object.next_entry_seed(PhantomData, inside)? {
            members.push(member);
        }
        Ok(Value::Object(members.into_iter().collect()))
    }
}

/// Serializes what [`ToJson`] writes.
pub(crate) fn serialize_as_json<S: Serializer>(
    written: &impl ToJson,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    use serde::ser::Error;
    Value::parse_container(&written.to_json()).map_err(S::Error::custom)?.serialize(serializer)
}

/// Deserializes what [`FromJson`] reads.
pub(crate) fn deserialize_as_json<'de, T: FromJson, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::from_json(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Implements `Serialize` and `Deserialize` for a type, in the form that [`ToJson`] and [`FromJson`] define.
macro_rules! serde_as_json {
    ($($name:ty),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                crate::data::json::serialize_as_json(self, serializer)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::data::json::deserialize_as_json(deserializer)
            }
        }
    )+};
}
pub(crate) use serde_as_json;

/// Implements `Serialize` and `Deserialize` for a type with `as_str` and `from_word`: a text, one of its words.
macro_rules! serde_as_word {
    ($($name:ty),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = String::deserialize(deserializer)?;
                let unknown = || ["`", &word, "` is no word for a ", stringify!($name)].concat();
                Self::from_word(&word).ok_or_else(|| serde::de::Error::custom(unknown()))
            }
        }
    )+};
}
pub(crate) use serde_as_word;
