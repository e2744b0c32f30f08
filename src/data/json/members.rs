//! A type's JSON from one table of its members: it is written and read by the same line.
//!
//! A line names a member, the field that holds it, and its kind: a module with a function `write`, which appends the
//! member to an object or leaves it out, and a function `read`, which finds it in a value. After `=>?` reading can fail.
//! Members are written and read in the order of the table. What stands in brackets after a kind is for its `read`.
//!
//! ```ignore
//! members!(Report {
//!     "type" = "report",               // the same in every report; nobody reads it
//!     "text" =>? text: needed,         // an error if it is missing or no text
//!     "tokens" => tokens: plain,       // the default if it is missing
//!     "signature" => signature: maybe, // an `Option`; left out if there is none
//!     "usage" =>? usage: part,         // an object with a table of its own
//!     ..foreign: None,                 // a field that JSON does not have
//! } then rounded);                     // what is read goes through `Report::rounded`
//! members!(write Request { "model" => model: plain });
//! ```
//!
//! `words!` does the same for an enum whose JSON is one of several words.

use super::raw::RawJson;
use super::value::{FromJson, Value};
use super::write::{ObjectWriter, ToJson};

/// Writes and reads a type as an object, or, with `write` before its name, only writes it.
macro_rules! members {
    (write $name:ident { $($key:literal $(= $same:literal)? $(=> $field:ident: $kind:ident)?),+ $(,)? }) => {
        impl $name {
            /// Appends the members of the JSON object.
            pub(crate) fn write_members(&self, object: &mut $crate::data::json::ObjectWriter<'_>) {
                $(
                    $(object.raw(concat!("\"", $key, "\":\"", $same, "\""));)?
                    $($kind::write(&self.$field, $key, object);)?
                )+
            }
        }

        impl $crate::data::json::ToJson for $name {
            fn write_json(&self, out: &mut String) {
                let mut object = $crate::data::json::ObjectWriter::new(out);
                self.write_members(&mut object);
                object.end();
            }
        }
    };
    ($name:ident {
        $($key:literal $(= $same:literal)?
            $(=> $field:ident: $kind:ident $(($($how:expr),+))?)?
            $(=>? $tried:ident: $tries:ident $(($($by:expr),+))?)?
        ),+
        $(, ..$other:ident: $value:expr)* $(,)?
    } $(then $end:ident)?) => {
        $crate::data::json::members!(write $name {
            $($key $(= $same)? $(=> $field: $kind)? $(=> $tried: $tries)?),+
        });

        impl $crate::data::json::FromJson for $name {
            fn from_json(value: &$crate::data::json::Value) -> Result<Self, String> {
                Ok($name {
                    $($($field: $kind::read(value, $key $($(, $how)+)?),)?
                    $($tried: $tries::read(value, $key $($(, $by)+)?)?,)?)+
                    $($other: $value,)*
                }$(.$end())?)
            }
        }
    };
}
pub(crate) use members;

/// Gives an enum its words: `as_str` and `from_word`.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        // No word is forgotten.
        const _: fn($name) = |known| match known { $($name::$variant => {})+ };

        impl $name {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$variant, $word)),+];

            /// Returns the word used in JSON.
            pub fn as_str(self) -> &'static str {
                Self::WORDS.iter().find(|(known, _)| *known == self).map_or("", |(_, word)| word)
            }

            /// Returns what a word stands for, if it stands for anything.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::WORDS.iter().find(|(_, known)| *known == word).map(|(found, _)| *found)
            }
        }

        impl $crate::data::json::Member for $name {
            fn at(value: &$crate::data::json::Value, key: &str) -> Option<Self> {
                value.text_at(key).and_then(Self::from_word)
            }
        }

        impl $crate::data::json::ToJson for $name {
            fn write_json(&self, out: &mut String) {
                self.as_str().write_json(out);
            }
        }
    };
}
pub(crate) use words;

/// What a member can be that is nothing but itself: a text, a number, a flag, any JSON, a word.
pub(crate) trait Member: Sized {
    /// Reads it, if it is there and of its kind.
    fn at(value: &Value, key: &str) -> Option<Self>;
}

macro_rules! are_members {
    ($($type:ty: |$value:ident, $key:ident| $found:expr,)+) => {$(
        impl Member for $type {
            fn at($value: &Value, $key: &str) -> Option<Self> {
                $found
            }
        }
    )+};
}

are_members! {
    String: |value, key| value.owned_at(key),
    u16: |value, key| value.number_at(key).and_then(|number| u16::try_from(number).ok()),
    u32: |value, key| value.number_at(key).and_then(|number| u32::try_from(number).ok()),
    u64: |value, key| value.number_at(key),
    bool: |value, key| value.flag_at(key),
    RawJson: |value, key| value.get(key).map(ToJson::to_raw),
}

/// The default if it is missing.
pub(crate) mod plain {
    use super::{Member, ObjectWriter, ToJson, Value};

    pub(crate) fn write<T: ToJson + ?Sized>(member: &T, key: &str, object: &mut ObjectWriter<'_>) {
        object.field(key, member);
    }

    pub(crate) fn read<T: Member + Default>(value: &Value, key: &str) -> T {
        T::at(value, key).unwrap_or_default()
    }
}

/// Left out if there is none.
pub(crate) mod maybe {
    use super::{Member, ObjectWriter, ToJson, Value};

    pub(crate) fn write<T: ToJson>(member: &Option<T>, key: &str, object: &mut ObjectWriter<'_>) {
        object.optional(key, member);
    }

    pub(crate) fn read<T: Member>(value: &Value, key: &str) -> Option<T> {
        T::at(value, key)
    }
}

/// Any JSON; null if it is missing.
pub(crate) mod any {
    pub(crate) use super::plain::write;
    use super::{RawJson, ToJson, Value};

    pub(crate) fn read(value: &Value, key: &str) -> RawJson {
        value.get(key).map_or_else(RawJson::null, ToJson::to_raw)
    }
}

/// A flag that is left out unless it is set.
pub(crate) mod rare {
    use super::{ObjectWriter, Value};

    pub(crate) fn write(flag: &bool, key: &str, object: &mut ObjectWriter<'_>) {
        if *flag {
            object.field(key, flag);
        }
    }

    pub(crate) fn read(value: &Value, key: &str) -> bool {
        value.flag_at(key).unwrap_or_default()
    }
}

/// A text that must be there.
pub(crate) mod needed {
    use super::Value;
    pub(crate) use super::plain::write;

    pub(crate) fn read(value: &Value, key: &str) -> Result<String, String> {
        match value.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            other => {
                Err(["`", key, "` must be a string, got ", other.map_or("nothing", Value::kind)].concat())
            }
        }
    }
}

/// What has a table of its own; the default if it is missing.
pub(crate) mod part {
    pub(crate) use super::plain::write;
    use super::{FromJson, Value};

    pub(crate) fn read<T: FromJson + Default>(value: &Value, key: &str) -> Result<T, String> {
        value.get(key).map_or_else(|| Ok(T::default()), T::from_json)
    }
}

/// What has a table of its own; left out if there is none.
pub(crate) mod maybe_part {
    pub(crate) use super::maybe::write;
    use super::{FromJson, Value};

    pub(crate) fn read<T: FromJson>(value: &Value, key: &str) -> Result<Option<T>, String> {
        value.get(key).map(T::from_json).transpose()
    }
}
