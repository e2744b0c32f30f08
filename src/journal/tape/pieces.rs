//! Pieces of an answer on one line.

use crate::data::json::{ToJson, Value};
use crate::rules::stream::AssistantMessageEvent;

use super::play::{Pieces, When};

/// Reads a piece: `[ms since the last, events since the last, event]`; or, if it adds to the block of the last one, which was
/// an event, `[ms since the last, text]` or the text alone.
pub(super) fn read_piece(pieces: &mut Pieces, piece: Value) -> Result<(When, Value), &'static str> {
    let (later, events, event) = match piece {
        Value::String(_) => (0, 1, with_delta(&pieces.last, piece)?),
        Value::Array(parts) => match <[Value; 3]>::try_from(parts) {
            Ok([later, events, event]) => {
                let when = later.as_u64().zip(events.as_u64());
                let (later, events) = when.ok_or("it does not say when it came")?;
                (later, events, event)
            }
            Err(parts) => {
                let Ok([later, delta]) = <[Value; 2]>::try_from(parts) else {
                    return Err("it has neither two members nor three");
                };
                let later = later.as_u64().ok_or("it does not say when it came")?;
                (later, 1, with_delta(&pieces.last, delta)?)
            }
        },
        _ => return Err("it is neither a text nor a list"),
    };
    pieces.when = When {
        now: pieces.when.now.saturating_add(later),
        events: pieces.when.events.saturating_add(events),
        starts: pieces.when.starts,
    };
    pieces.last = event.clone();
    Ok((pieces.when, event))
}

/// Writes the pieces of a line in full.
pub(super) fn in_full(list: &mut [Value]) {
    let mut last = Value::Null;
    for piece in list {
        let (later, delta) = match &*piece {
            Value::String(_) => (Value::from(0), piece.clone()),
            Value::Array(parts) => match parts.as_slice() {
                [later, delta] => (later.clone(), delta.clone()),
                [_, _, event] => {
                    last = event.clone();
                    continue;
                }
                _ => continue,
            },
            _ => continue,
        };
        if let Ok(event) = with_delta(&last, delta) {
            last = event.clone();
            *piece = Value::Array(vec![later, Value::from(1), event]);
        }
    }
}

fn with_delta(last: &Value, delta: Value) -> Result<Value, &'static str> {
    let mut event = last.clone();
    match event.get_mut("delta") {
        Some(slot) if matches!(delta, Value::String(_)) => *slot = delta,
        _ => return Err("there is no block before it that it could add to"),
    }
    Ok(event)
}

/// Writes the last member of a piece.
pub(super) fn write_piece(event: &AssistantMessageEvent, text: &mut String) {
    text.push_str(",");
    event.write_json(text);
    text.push_str("]");
}
