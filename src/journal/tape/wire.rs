//! The bytes of answers, as they came over HTTP: written beside the pieces that the decoder made of them, so that the decoder
//! can be tried again too.

use std::rc::Rc;

use crate::data::json::{ObjectWriter, ToJson, Value};
use crate::data::list::ListWriter;
use crate::data::table::Table;
use crate::host::config::AgentLoopConfig;
use crate::machine::EffectId;
use crate::rules::secrets::Secrets;
use crate::rules::stream::AssistantMessageEvent;
use crate::wires::errors::ErrorResponse;
use crate::wires::{Heard, Tap, decoder};

use super::pen::Pen;
use super::pieces::in_full;
use super::play::Divergence;
use super::text::Tape;

/// Lets the recorder see the bytes of the models that have any.
pub(super) fn hear_bytes(config: &mut AgentLoopConfig, pen: &Rc<Pen>, now: Rc<dyn Fn() -> u64>) {
    let tap: Rc<dyn Tap> = Rc::new(Listening { pen: pen.clone(), now });
    for model in &mut config.ports.models {
        if let Some(tapped) = model.stream_fn.tapped(&tap) {
            model.stream_fn = tapped;
        }
    }
}

struct Listening {
    pen: Rc<Pen>,
    now: Rc<dyn Fn() -> u64>,
}

impl Tap for Listening {
    fn now(&self) -> u64 {
        (self.now)()
    }

    fn call(&self) -> Box<dyn FnOnce(Heard)> {
        let (pen, call) = (self.pen.clone(), self.pen.call.borrow().clone());
        let now = (self.now)();
        Box::new(move |heard| {
            let Some((id, name)) = call else { return };
            let now = heard.reads.last().map_or(now, |(at, _)| *at);
            pen.line(|line| {
                pen.when(now, line);
                line.field("wire", heard.dialect.wire).field("id", &id).field("name", &name);
                write_heard(&heard, line);
            });
        })
    }
}

fn write_heard(heard: &Heard, line: &mut ObjectWriter<'_>) {
    let Heard { dialect, began, reads, size, has_ended, refusal, secrets } = heard;
    line.field("provider", &dialect.provider);
    line.optional("keepsDetails", &dialect.keeps_details.then_some(true));
    line.optional("ended", &has_ended.then_some(true));
    if let Some((status, headers)) = refusal {
        line.field("status", &u64::from(*status));
        let mut object = ObjectWriter::new(line.key("headers"));
        headers.iter().filter(|(_, value)| !holds_any(secrets, value)).for_each(|(name, value)| {
            object.field(name, value);
        });
        object.end();
    }
    if heard.is_too_long() || holds_secret(heard) {
        let why = if heard.is_too_long() { "too long" } else { "a key" };
        line.field("leftOut", &u64::try_from(*size).unwrap_or(u64::MAX)).field("because", why);
        return;
    }
    let mut list = ListWriter::new(line.key("reads"));
    let mut before = *began;
    for (at, bytes) in reads {
        let mut read = ListWriter::new(list.item());
        at.saturating_sub(before).write_json(read.item());
        before = *at;
        match std::str::from_utf8(bytes) {
            Ok(text) => text.write_json(read.item()),
            Err(_) => {
                // A character is cut in two: here every byte is a character.
                Value::Null.write_json(read.item());
                bytes.iter().map(|byte| char::from(*byte)).collect::<String>().write_json(read.item());
            }
        }
        read.end();
    }
    list.end();
}

/// Whether a key stands in what a server sent: as it is, or cut over the pieces of an answer. Then nothing of it is written.
fn holds_secret(heard: &Heard) -> bool {
    if heard.secrets.iter().all(|secrets| secrets.is_empty()) {
        return false;
    }
    let bytes: Vec<u8> = heard.reads.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    if holds_any(&heard.secrets, &String::from_utf8_lossy(&bytes)) {
        return true;
    }
    let dialect = &heard.dialect;
    let Some(mut decoder) = decoder(dialect.wire, &dialect.provider, dialect.keeps_details) else {
        return false;
    };
    let mut events = Vec::new();
    decoder.feed(&bytes, &mut events);
    let mut all = Shown::default();
    events.iter().for_each(|event| all.add(&event.to_json()));
    all.0.iter().any(|text| holds_any(&heard.secrets, text))
}

fn holds_any(secrets: &[Rc<Secrets>], text: &str) -> bool {
    secrets.iter().any(|secrets| secrets.masked(text).is_some())
}

/// Decodes the bytes on a tape again, and compares with the pieces that it has. Returns how many answers were decoded.
///
/// # Errors
/// If the decoder makes something else of them. `input` of the difference is the number of the answer, counted from 0.
pub fn decode_again(tape: &Tape) -> Result<u64, Divergence> {
    let mut decoded = 0;
    let mut run = Answers::default();
    for at in 0..tape.len() {
        let Some(Ok(line)) = tape.line(at) else { break };
        if line.get("run").is_some() {
            run.compare(&mut decoded)?;
            run = Answers::default();
        } else {
            run.take(line);
        }
    }
    run.compare(&mut decoded)?;
    Ok(decoded)
}

/// The answers of one run.
#[derive(Default)]
struct Answers {
    /// What the machine was given.
    taken: Table<EffectId, Shown>,
    wires: Vec<Value>,
}

impl Answers {
    fn take(&mut self, mut line: Value) {
        let Some(id) = line.number_at("id") else { return };
        if line.get("wire").is_some() {
            return self.wires.push(line);
        }
        let is_stream = line.get("reply").is_some_and(|reply| reply.text_at("kind") == Some("stream"));
        let events = match line.text_at("in") {
            Some("pieces") => {
                let Value::Array(mut pieces) = line.take("pieces") else { return };
                in_full(&mut pieces);
                pieces.iter().filter_map(|piece| Some(piece.as_array()?.get(2)?.to_json())).collect()
            }
            Some("reply") if is_stream => {
                let event = line.get("reply").and_then(|reply| reply.get("event"));
                event.map(ToJson::to_json).into_iter().collect::<Vec<_>>()
            }
            _ => return,
        };
        if !self.taken.contains_key(&id) {
            self.taken.insert(id, Shown::default());
        }
        if let Some(shown) = self.taken.get_mut(&id) {
            events.iter().for_each(|event| shown.add(event));
        }
    }

    fn compare(&self, decoded: &mut u64) -> Result<(), Divergence> {
        for wire in self.wires.iter().filter(|wire| wire.get("reads").is_some()) {
            let fault = |expected: &str, got: &str| {
                let name = wire.text_at("name").unwrap_or_default();
                let expected = ["the answer of `", name, "`: ", expected].concat();
                Divergence { input: *decoded, expected, got: got.to_owned() }
            };
            let again = events_of(wire).map_err(|why| fault("bytes that can be decoded", &why))?;
            let nothing = Shown::default();
            let id = wire.number_at("id").unwrap_or_default();
            let taken = self.taken.get(&id).unwrap_or(&nothing);
            if let Some((expected, got)) = taken.difference(&again, wire.flag_at("ended") == Some(true)) {
                return Err(fault(&expected, &got));
            }
            *decoded += 1;
        }
        Ok(())
    }
}

/// Decodes the bytes of a line.
fn events_of(wire: &Value) -> Result<Shown, String> {
    let mut reads = Vec::new();
    for read in wire.list_at("reads") {
        let parts = read.as_array().ok_or("a read is no list")?;
        reads.push(match parts {
            [_, Value::String(text)] => text.as_bytes().to_vec(),
            [_, Value::Null, Value::String(bytes)] => bytes
                .chars()
                .map(u8::try_from)
                .collect::<Result<_, _>>()
                .map_err(|_| "a read holds no bytes")?,
            _ => return Err("a read is neither a text nor bytes".to_owned()),
        });
    }
    let mut shown = Shown::default();
    if let Some(status) = wire.number_at("status").and_then(|status| u16::try_from(status).ok()) {
        let headers = wire.get("headers").unwrap_or(&Value::Null);
        let header = |name: &str| headers.text_at(name).map(str::to_owned);
        let now = wire.number_at("at").unwrap_or_default();
        let body = reads.concat();
        let error = ErrorResponse { status, header: &header, body: &body, now }.error();
        shown.add(&AssistantMessageEvent::Error(error).to_json());
        return Ok(shown);
    }
    let name = wire.text_at("wire").unwrap_or_default();
    let provider = wire.text_at("provider").unwrap_or_default();
    let mut decoder = decoder(name, provider, wire.flag_at("keepsDetails") == Some(true))
        .ok_or_else(|| ["there is no wire `", name, "`"].concat())?;
    let mut events = Vec::new();
    reads.iter().for_each(|read| decoder.feed(read, &mut events));
    if wire.flag_at("ended") == Some(true) && !decoder.is_done() {
        decoder.finish(&mut events);
    }
    events.iter().for_each(|event| shown.add(&event.to_json()));
    Ok(shown)
}

/// Events as texts. Those that add to the same block are one: pieces may have been cut elsewhere, where a key was looked for.
#[derive(Default)]
struct Shown(Vec<String>);

impl Shown {
    fn add(&mut self, event: &str) {
        let Ok(mut event) = Value::parse_container(event) else { return };
        match event.text_at("type") {
            Some("ping") => return,
            // Who records knows the price, and who decodes does not.
            Some("usage" | "done") => {
                if let Some(Value::Object(usage)) = event.get_mut("usage") {
                    *usage = std::mem::take(usage).into_iter().filter(|(key, _)| *key != "cost").collect();
                }
            }
            _ => {}
        }
        let Some(delta) = event.owned_at("delta") else { return self.0.push(event.to_json()) };
        if let Some(slot) = event.get_mut("delta") {
            *slot = Value::Null;
        }
        let head = event.to_json();
        let is_next = self.0.last().is_some_and(|last| last.starts_with(&head));
        match self.0.last_mut() {
            Some(last) if is_next => last.push_str(&delta),
            _ => self.0.push(head + &delta),
        }
    }

    /// The first thing that was taken and is not decoded again. What was decoded and not taken any more counts only if
    /// nothing was taken out of turn: a run may have ended before.
    fn difference(&self, again: &Shown, has_ended: bool) -> Option<(String, String)> {
        for (at, taken) in self.0.iter().enumerate() {
            let is_last = at + 1 == self.0.len();
            let Some(other) = again.0.get(at) else {
                // What the connection, or a limit of time, has made of it.
                let is_error = taken.starts_with("{\"type\":\"error\"");
                return (has_ended || !is_error).then(|| (taken.clone(), "nothing".to_owned()));
            };
            let is_begun = is_last && other.starts_with(taken.as_str());
            if taken != other && !is_begun {
                return Some((taken.clone(), other.clone()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(events: &[&str]) -> Shown {
        let mut shown = Shown::default();
        events.iter().for_each(|event| shown.add(event));
        shown
    }

    #[test]
    fn pieces_of_a_block_are_one_and_prices_do_not_count() {
        let delta = |text: &str| [r#"{"type":"text_delta","contentIndex":0,"delta":""#, text, "\"}"].concat();
        let one = shown(&[
            &delta("ab"),
            r#"{"type":"ping"}"#,
            &delta("c"),
            r#"{"type":"usage","usage":{"input":1,"cost":2}}"#,
        ]);
        let other = shown(&[&delta("a"), &delta("bc"), r#"{"type":"usage","usage":{"input":1}}"#]);
        assert!(one.difference(&other, true).is_none());
        assert!(shown(&[&delta("ab")]).difference(&other, true).is_none());
        let (expected, got) = shown(&[&delta("x")]).difference(&other, true).unwrap();
        assert!(expected.ends_with('x') && got.ends_with("abc"), "{expected} {got}");
    }
}
