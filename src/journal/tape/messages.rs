//! Messages on a tape: those of a list that both sides know are named by their places in it, so that a tape grows with the
//! conversation and not with its square.

use crate::data::json::{FromJson, ToJson, Value};
use crate::data::list::{ListWriter, read_each};
use crate::words::message::{AgentMessage, LlmMessage};

/// Writes messages as a list: `[3, 7]` are the places 3 to 6 of the known messages, anything else is a message.
pub(super) fn write_known(known: &[AgentMessage], messages: &[AgentMessage], out: &mut String) {
    let mut list = ListWriter::new(out);
    let mut from = 0;
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        let place =
            known.iter().skip(from).position(|other| other.is_same(message)).map(|place| from + place);
        let Some(place) = place else {
            message.write_json(list.item());
            at += 1;
            continue;
        };
        let run = known.iter().skip(place).zip(messages.iter().skip(at));
        let count = run.take_while(|(known, message)| known.is_same(message)).count();
        let mut range = ListWriter::new(list.item());
        range.place(place);
        range.place(place + count);
        range.end();
        (from, at) = (place + count, at + count);
    }
    list.end();
}

/// Reads what [`write_known`] has written.
pub(super) fn read_known(known: &[AgentMessage], list: &Value) -> Result<Vec<AgentMessage>, String> {
    let mut messages = Vec::new();
    read_each(list, &mut |item| {
        let Some(range) = item.as_array() else {
            messages.push(AgentMessage::from_json(item)?);
            return Ok(());
        };
        let [from, to] = range else { return Err("a range has two places".to_owned()) };
        let place = |value: &Value| value.as_u64().and_then(|place| usize::try_from(place).ok());
        let (Some(from), Some(to)) = (place(from), place(to)) else {
            return Err("the places of a range are whole numbers".to_owned());
        };
        let range = known.get(from..to).ok_or("it names messages that there are not")?;
        messages.extend_from_slice(range);
        Ok(())
    })?;
    Ok(messages)
}

/// Writes what `convert_to_llm` gave for a message: `true` is the message itself, `null` leaves it out.
pub(super) fn write_shown(message: &AgentMessage, shown: Option<&LlmMessage>, out: &mut String) {
    match shown {
        None => out.push_str("null"),
        Some(shown) if message.as_llm().as_ref() == Some(shown) => out.push_str("true"),
        Some(shown) => shown.write_json(out),
    }
}

/// Reads what [`write_shown`] has written.
pub(super) fn read_shown(message: &AgentMessage, value: &Value) -> Result<Option<LlmMessage>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(_) => Ok(message.as_llm()),
        shown => LlmMessage::from_json(shown).map(Some),
    }
}
