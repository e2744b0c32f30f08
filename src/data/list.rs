//! Lists as JSON, item by item: written without a list of copies, and read with the position of any error.

use crate::data::json::{FromJson, Value, write_u64};
use crate::data::text;

/// Writes a list, item by item.
pub struct ListWriter<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> ListWriter<'a> {
    pub fn new(out: &'a mut String) -> Self {
        ListWriter { out, empty: true }
    }

    /// Begins an item. The caller must append exactly one value to the returned string.
    pub fn item(&mut self) -> &mut String {
        self.out.push_str(if self.empty { "[" } else { "," });
        self.empty = false;
        self.out
    }

    pub fn place(&mut self, place: usize) {
        write_u64(u64::try_from(place).unwrap_or(u64::MAX), self.item());
    }

    pub fn end(self) {
        self.out.push_str(if self.empty { "[]" } else { "]" });
    }
}

/// Reads a list.
pub fn read_all<T>(list: &Value, read: fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    read_each(list, &mut |item| {
        all.push(read(item)?);
        Ok(())
    })?;
    Ok(all)
}

/// Reads a list, item by item. An error names the item where reading stopped.
pub fn read_each(list: &Value, read: &mut dyn FnMut(&Value) -> Result<(), String>) -> Result<(), String> {
    let Some(items) = list.as_array() else {
        return Err(["a list was expected, got ", list.kind()].concat());
    };
    for (at, item) in items.iter().enumerate() {
        read(item).map_err(|why| ["item ", &text::number(at), ": ", &why].concat())?;
    }
    Ok(())
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Value) -> Result<Self, String> {
        read_all(value, T::from_json)
    }
}
