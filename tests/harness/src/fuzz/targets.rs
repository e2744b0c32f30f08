//! The fuzz targets, and what must hold for every input.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use turnwheel::json::{RawJson, Reader, ToJson, Value};
use turnwheel::message::{
    AgentMessage, AssistantMessage, LlmMessage, MessageStopReason, ToolResultMessage, Usage,
};
use turnwheel::stream::{Assembler, AssistantMessageEvent as Event, ModelRequest};
use turnwheel::wires::sse::SseParser;
use turnwheel::wires::{Limits, Wire, WireOptions, wire};

use super::mutate::Dice;

/// Something that reads foreign data.
pub struct Target {
    pub name: &'static str,
    /// The name endings of the recordings to start from, and the wire they must belong to.
    seeds: &'static str,
    wire: &'static str,
    /// Plays an input. Returns a number that stands for what happened; a new number is a
    /// new path worth following.
    ///
    /// # Errors
    /// What does not hold.
    pub(super) play: fn(&Target, &[u8], &mut Dice) -> Result<u64, String>,
}

pub const TARGETS: [Target; 7] = [
    Target { name: "openai-chat", seeds: ".sse", wire: "openai-chat", play: play_wire },
    Target { name: "openai-responses", seeds: ".sse", wire: "openai-responses", play: play_wire },
    Target { name: "anthropic", seeds: ".sse", wire: "anthropic", play: play_wire },
    Target { name: "gemini", seeds: ".sse", wire: "gemini", play: play_wire },
    Target { name: "error", seeds: ".http.json", wire: "", play: play_error },
    Target { name: "sse", seeds: ".sse", wire: "", play: play_sse },
    Target { name: "json", seeds: ".json", wire: "", play: play_json },
];

impl Target {
    /// A target that starts from no recording.
    #[cfg(test)]
    pub(super) fn new(
        name: &'static str,
        play: fn(&Target, &[u8], &mut Dice) -> Result<u64, String>,
    ) -> Self {
        Target { name, seeds: "", wire: "", play }
    }

    /// Returns the recordings to start from.
    pub fn inputs(&self) -> Vec<Vec<u8>> {
        let mut inputs = vec![Vec::new()];
        self.find(&crate::data("fixtures"), &mut inputs);
        inputs
    }

    fn find(&self, dir: &Path, inputs: &mut Vec<Vec<u8>>) {
        let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                self.find(&path, inputs);
            } else if let Some(stem) = name.strip_suffix(self.seeds) {
                let expectation = fs::read_to_string(format!("{stem}.expect.json")).unwrap_or_default();
                if expectation.contains(&format!("\"wire\": \"{}", self.wire)) || self.wire.is_empty() {
                    inputs.push(fs::read(&path).unwrap());
                }
            }
        }
    }
}

fn play_wire(target: &Target, body: &[u8], dice: &mut Dice) -> Result<u64, String> {
    // Now and then a limit ends an answer half-way.
    let default = Limits::default();
    let limits = match dice.below(4) {
        0 => Limits { calls: 1 + dice.below(3), arguments: dice.below(100), ..default },
        _ => default,
    };
    let mut wire = wire(target.wire, WireOptions { limits, ..WireOptions::default() })?;
    let whole = decoded(wire.as_ref(), body, &mut || body.len().max(1))?;
    let size = [1, 2, 3, 7, 17, 64, 300][dice.below(7)];
    let mut dice = dice.clone();
    let pieces = decoded(wire.as_ref(), body, &mut || 1 + dice.below(size))?;
    if whole != pieces {
        return Err(format!("pieces of at most {size} make a difference: {whole:?} | {pieces:?}"));
    }
    let shape = shape(&whole);
    next_request(wire.as_mut(), whole)?;
    Ok(shape)
}

/// Decodes a body. Its events must be in order and have one end.
fn decoded(wire: &dyn Wire, body: &[u8], size: &mut dyn FnMut() -> usize) -> Result<Vec<Event>, String> {
    let mut decoder = wire.decoder();
    let mut events = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(size().min(rest.len()));
        decoder.feed(piece, &mut events);
        rest = after;
    }
    decoder.finish(&mut events);
    if !decoder.is_done() {
        return Err("it is not done at the end".to_owned());
    }
    let is_end = |event: &Event| matches!(event, Event::Done { .. } | Event::Error(_));
    let end = events.iter().position(is_end).ok_or("no end came")?;
    if end + 1 != events.len() {
        return Err(format!("after the end came {:?}", &events[end + 1..]));
    }
    let mut assembler = Assembler::default();
    for event in &events {
        assembler.push(event.clone())?;
    }
    Ok(events)
}

/// Checks that the next request is JSON, whatever was said.
fn next_request(wire: &mut dyn Wire, events: Vec<Event>) -> Result<(), String> {
    let answer = answer_of(wire, events)?;
    let result = |call: &turnwheel::message::ToolCallBlock| {
        LlmMessage::ToolResult(Rc::new(ToolResultMessage {
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            content: Vec::new(),
            details: None,
            is_error: true,
            cause: None,
            timestamp: 0,
            foreign: None,
        }))
    };
    let mut messages: Vec<_> = AgentMessage::user("Go").as_llm().into_iter().collect();
    messages.push(LlmMessage::Assistant(answer.clone()));
    messages.extend(answer.tool_calls().map(result));
    let request = ModelRequest {
        model: "m-3".into(),
        system_prompt: "".into(),
        messages: Rc::new(messages),
        tools: Rc::from([]),
        options: Rc::default(),
        api_key: None,
        output: None,
        session_id: None,
    };
    let body = wire.encode(&request).body;
    let body = String::from_utf8(body).map_err(|error| format!("the next request is no UTF-8: {error}"))?;
    // Arguments may be nested up to the limit, and the request adds a few levels; numbers of any size
    // are passed on unchanged.
    match serde_json::from_str::<serde_json::Value>(&body) {
        Err(error)
            if !["recursion limit", "number out of range"]
                .iter()
                .any(|k| error.to_string().starts_with(k)) =>
        {
            Err(format!("the next request is no JSON: {error}: {body}"))
        }
        _ => Ok(()),
    }
}

/// Returns the message that the events make.
fn answer_of(wire: &dyn Wire, events: Vec<Event>) -> Result<Rc<AssistantMessage>, String> {
    let (mut assembler, mut stop_reason) = (Assembler::default(), MessageStopReason::Error);
    for event in events {
        if let Event::Done { stop_reason: reported, .. } = &event {
            stop_reason = *reported;
        }
        assembler.push(event)?;
    }
    let content = if stop_reason == MessageStopReason::Error {
        assembler.partial()
    } else {
        assembler.finish(stop_reason).content
    };
    Ok(Rc::new(AssistantMessage {
        content,
        provider: wire.provider().to_owned(),
        model: "m-3".to_owned(),
        usage: Usage::default(),
        stop_reason,
        error: None,
        timestamp: 0,
        id: None,
        foreign: None,
    }))
}

/// A hash of the kinds of events in order, with repetitions counted once.
fn shape(events: &[Event]) -> u64 {
    let mut shape = 0;
    let mut last = None;
    for event in events {
        let kind = match event {
            Event::Done { stop_reason, .. } => stop_reason.as_str(),
            Event::Error(error) => error.code.as_str(),
            Event::Start => "a",
            Event::TextStart { .. } => "b",
            Event::TextDelta { .. } => "c",
            Event::TextEnd { signature: None, .. } => "d",
            Event::TextEnd { .. } => "e",
            Event::ThinkingStart { .. } => "f",
            Event::ThinkingDelta { .. } => "g",
            Event::ThinkingEnd { signature: None, .. } => "h",
            Event::ThinkingEnd { .. } => "i",
            Event::ToolCallStart { .. } => "j",
            Event::ToolCallDelta { .. } => "k",
            Event::ToolCallEnd { metadata: None, .. } => "l",
            Event::ToolCallEnd { .. } => "m",
            Event::Raw { .. } => "n",
            Event::Usage(_) => "o",
            Event::Ping => "p",
        };
        if last.replace(kind) != Some(kind) {
            shape = kind
                .bytes()
                .fold(shape, |sum: u64, byte| sum.rotate_left(5).wrapping_mul(31) ^ u64::from(byte));
        }
    }
    shape
}

/// Any body of an error response, on any wire, becomes some error.
fn play_error(_: &Target, body: &[u8], dice: &mut Dice) -> Result<u64, String> {
    let wire = wire("openai-chat", WireOptions::default())?;
    let status = [400, 401, 402, 403, 404, 408, 413, 422, 429, 499, 500, 502, 503, 529, 600][dice.below(15)];
    let text = String::from_utf8_lossy(body);
    let header = |name: &str| {
        (dice.0 & 1 == 0 && name.len().is_multiple_of(2)).then(|| text.chars().take(30).collect())
    };
    let error = wire.error(status, &header, body, 1_700_000_000_000);
    if error.message.is_empty() || error.message.chars().count() > 4_000 {
        return Err(format!("a message of {} bytes", error.message.len()));
    }
    if error.retry_after_ms.is_some() && !error.retryable {
        return Err("it is to be waited for what is not to be asked again".to_owned());
    }
    Ok(u64::from(status) << 8 | u64::from(error.code.as_str().len() as u32) | u64::from(error.retryable) << 7)
}

fn play_sse(_: &Target, body: &[u8], dice: &mut Dice) -> Result<u64, String> {
    let mut dice = dice.clone();
    let mut read = |max_piece: usize| -> Result<(Vec<String>, String), String> {
        let mut parser = SseParser::new(50_000);
        let mut frames = Vec::new();
        let mut rest = body;
        let mut outcome = Ok(());
        while !rest.is_empty() && outcome.is_ok() {
            let (piece, after) = rest.split_at((1 + dice.below(max_piece)).min(rest.len()));
            outcome = parser.feed(piece, |frame| frames.push(format!("{}|{}", frame.event, frame.data)));
            rest = after;
        }
        if outcome.is_ok() {
            outcome = parser.finish(|frame| frames.push(format!("{}|{}", frame.event, frame.data)));
        }
        // Before a line that is too long, some frames may be reported or not.
        Ok(if outcome.is_err() { (Vec::new(), "too long".to_owned()) } else { (frames, parser.stray()) })
    };
    let (whole, pieces) = (read(1_000_000)?, read(9)?);
    if whole != pieces && whole.1 != "too long" {
        return Err(format!("pieces make a difference: {whole:?} | {pieces:?}"));
    }
    Ok(whole.0.len().min(64) as u64 * 2 + u64::from(whole.1.is_empty()))
}

/// Our reader and serde's must agree, except where ours repairs lone surrogates.
fn play_json(_: &Target, body: &[u8], _: &mut Dice) -> Result<u64, String> {
    let Ok(text) = std::str::from_utf8(body) else { return Ok(0) };
    let parsed = Value::parse(text);
    let raw = RawJson::parse(text);
    let mut reader = Reader::new(text);
    let skipped = reader.skip().map(drop).and_then(|()| reader.end());
    let mended = reader.mended;
    if parsed.is_ok() != raw.is_ok() || parsed.is_ok() != skipped.is_ok() {
        return Err(format!("parse {:?}, raw {:?}, skip {skipped:?}", parsed.is_ok(), raw.is_ok()));
    }
    let expected = serde_json::from_str::<serde_json::Value>(text);
    match (&parsed, &expected) {
        (Ok(parsed), Ok(expected)) => {
            let again: serde_json::Value = serde_json::from_str(&parsed.to_json())
                .map_err(|error| format!("written anew it is no JSON: {error}"))?;
            if again != *expected {
                return Err("written anew it is another value".to_owned());
            }
        }
        (Ok(_), Err(error)) => {
            let message = error.to_string();
            // Numbers too large for a float, and nesting one level too deep by serde's count.
            let is_known =
                ["number out of range", "recursion limit"].iter().any(|known| message.starts_with(known));
            if !mended && !is_known {
                return Err(format!("serde refuses it: {message}"));
            }
        }
        (Err(error), Ok(_)) if !error.to_string().contains("deep") => {
            return Err(format!("serde takes it: {error}"));
        }
        _ => {}
    }
    Ok(match &parsed {
        Ok(value) => value.kind().len() as u64 | u64::from(mended) << 8,
        Err(error) => error.message().len() as u64 | 1 << 9,
    })
}
