//! Reading the fields of a frame tolerantly: a value of an unexpected type is skipped.

use std::borrow::Cow;

use crate::data::json::{JsonError, Reader};

use super::piece::Piece;

/// The result of a reading step.
pub(crate) type ReadResult = Result<(), JsonError>;

/// Reads an object; anything else is skipped.
pub(crate) fn in_object<'a>(
    reader: &mut Reader<'a>,
    member: impl FnMut(&mut Reader<'a>, &str) -> ReadResult,
) -> ReadResult {
    if reader.peek() == Some(b'{') { reader.object(member) } else { reader.pass_over() }
}

/// Reads a list; anything else is skipped.
pub(crate) fn in_array<'a>(
    reader: &mut Reader<'a>,
    item: impl FnMut(&mut Reader<'a>, usize) -> ReadResult,
) -> ReadResult {
    if reader.peek() == Some(b'[') { reader.array(item) } else { reader.pass_over() }
}

/// Reads a string; anything else is skipped.
pub(crate) fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, JsonError> {
    if reader.peek() != Some(b'"') {
        return reader.pass_over().map(|()| None);
    }
    let mut spare = String::new();
    Ok(Some(match reader.text_into(&mut spare)? {
        Some(plain) => Cow::Borrowed(plain),
        None => Cow::Owned(spare),
    }))
}

/// Reads a string into a slot, or puts the JSON text of anything else but `null` there.
pub(crate) fn text_or_json<'a>(reader: &mut Reader<'a>, slot: &mut Option<Piece<'a>>) -> ReadResult {
    match reader.peek() {
        Some(b'"' | b'n') => Piece::read(reader, slot),
        _ => reader.skip().map(|raw| *slot = Some(raw.into())),
    }
}

/// Reads a number into a slot; anything else leaves the slot as it is.
pub(crate) fn number(reader: &mut Reader<'_>, slot: &mut Option<u64>) -> ReadResult {
    reader.optional_u64().map(|number| *slot = number.or(*slot))
}

/// Reads a string into a slot; anything else empties the slot.
pub(crate) fn string<'a>(reader: &mut Reader<'a>, slot: &mut Cow<'a, str>) -> ReadResult {
    text(reader).map(|text| *slot = text.unwrap_or_default())
}
