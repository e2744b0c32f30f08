//! Reading the fields of a frame tolerantly: a value of an unexpected type is skipped.

use std::borrow::Cow;

use crate::data::json::{JsonError, Reader, Value};
use crate::rules::stream::Excess;

use super::answering::Answering;
use super::piece::Piece;

/// The result of a reading step.
pub(crate) type ReadResult = Result<(), JsonError>;

/// How many items a list in a frame may have: each of them takes more memory than the few bytes it was made of.
const MANY_ITEMS: usize = 10_000;

/// Reads a value of a frame as a tree; `None` if it is malformed. A tree that takes too much memory fails the answer.
pub(crate) fn tree(text: &str, answering: &mut Answering) -> Option<Value> {
    let read = Value::parse_bounded(text);
    if read.as_ref().is_err_and(JsonError::is_too_large) {
        answering.fail(Excess::Memory.error());
    }
    read.ok()
}

/// Reads an object; anything else is skipped.
pub(crate) fn in_object<'a>(
    reader: &mut Reader<'a>,
    member: impl FnMut(&mut Reader<'a>, &str) -> ReadResult,
) -> ReadResult {
    if reader.peek() == Some(b'{') { reader.object(member) } else { reader.pass_over() }
}

/// Reads a list; anything else is skipped. A list that is too long is an error.
pub(crate) fn in_array<'a>(
    reader: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>, usize) -> ReadResult,
) -> ReadResult {
    if reader.peek() != Some(b'[') {
        return reader.pass_over();
    }
    reader.array(|reader, at| if at < MANY_ITEMS { item(reader, at) } else { Err(reader.too_large()) })
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

/// Reads a string into a slot, or puts the JSON text of anything else but `null` there. An empty text does not replace
/// another.
pub(crate) fn text_or_json<'a>(reader: &mut Reader<'a>, slot: &mut Option<Piece<'a>>) -> ReadResult {
    let known = slot.take();
    match reader.peek() {
        Some(b'"' | b'n') => Piece::read(reader, slot)?,
        _ => *slot = Some(reader.skip()?.into()),
    }
    if slot.as_ref().is_none_or(Piece::is_empty) {
        *slot = known.or(slot.take());
    }
    Ok(())
}

/// Reads a number into a slot; anything else leaves the slot as it is.
pub(crate) fn number(reader: &mut Reader<'_>, slot: &mut Option<u64>) -> ReadResult {
    reader.optional_u64().map(|number| *slot = number.or(*slot))
}

/// Reads a string into a slot. Anything else leaves the slot as it is, and an empty text too: neither unsays what was
/// said before.
pub(crate) fn string<'a>(reader: &mut Reader<'a>, slot: &mut Cow<'a, str>) -> ReadResult {
    text(reader).map(|text| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            *slot = text;
        }
    })
}
