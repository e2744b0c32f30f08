//! A serializer that writes no text: it notes what it is handed, as `serde-wasm-bindgen` makes JavaScript values of it.

use std::fmt::Display;

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeSeq, Serializer};

/// What was handed over: one word for each call, in order.
#[derive(Default)]
struct Plain(Vec<String>);

/// Serializes a value and returns what was handed over.
pub(crate) fn noted(value: &impl Serialize) -> Vec<String> {
    let mut plain = Plain::default();
    value.serialize(&mut plain).unwrap();
    plain.0
}

impl Plain {
    fn note(&mut self, word: impl Display) -> Result<(), serde_json::Error> {
        self.0.push(word.to_string());
        Ok(())
    }
}

/// Anything that no JSON has is refused.
macro_rules! refused {
    ($($method:ident($($type:ty),*)),+ $(,)?) => {$(
        fn $method(self $(, _: $type)*) -> Result<(), serde_json::Error> {
            Err(serde::ser::Error::custom(stringify!($method)))
        }
    )+};
}

type Never = Impossible<(), serde_json::Error>;

fn never(method: &str) -> Result<Never, serde_json::Error> {
    Err(serde::ser::Error::custom(method))
}

impl Serializer for &mut Plain {
    type Ok = ();
    type Error = serde_json::Error;
    type SerializeSeq = Self;
    type SerializeMap = Self;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    fn serialize_bool(self, flag: bool) -> Result<(), Self::Error> {
        self.note(flag)
    }

    fn serialize_u64(self, n: u64) -> Result<(), Self::Error> {
        self.note(format_args!("u64 {n}"))
    }

    fn serialize_i64(self, n: i64) -> Result<(), Self::Error> {
        self.note(format_args!("i64 {n}"))
    }

    fn serialize_f64(self, n: f64) -> Result<(), Self::Error> {
        self.note(format_args!("f64 {n}"))
    }

    fn serialize_str(self, text: &str) -> Result<(), Self::Error> {
        self.note(format_args!("\"{text}\""))
    }

    fn serialize_unit(self) -> Result<(), Self::Error> {
        self.note("null")
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Self::Error> {
        self.note(format_args!("list of {}", length.unwrap()))?;
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, Self::Error> {
        self.note(format_args!("object of {}", length.unwrap()))?;
        Ok(self)
    }

    refused!(
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_f32(f32),
        serialize_char(char),
        serialize_bytes(&[u8]),
        serialize_none(),
        serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str),
    );

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Self::Error> {
        Err(serde::ser::Error::custom("serialize_some"))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: &T,
    ) -> Result<(), Self::Error> {
        Err(serde::ser::Error::custom(name))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Self::Error> {
        Err(serde::ser::Error::custom(name))
    }

    fn serialize_tuple(self, _: usize) -> Result<Never, Self::Error> {
        never("serialize_tuple")
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Never, Self::Error> {
        never(name)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Self::Error> {
        never(name)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Never, Self::Error> {
        never(name)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Self::Error> {
        never(name)
    }
}

impl SerializeSeq for &mut Plain {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Self::Error> {
        item.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl SerializeMap for &mut Plain {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Self::Error> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}
