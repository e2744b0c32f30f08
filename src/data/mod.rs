//! What std does not have in small: JSON that passes through as text, text search, maps that stay small in
//! wasm.

pub mod id_map;
pub mod json;
pub mod list;
pub mod room;
pub mod table;
pub mod text;
