//! Frames of each wire, in few words.

use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::gemini::Gemini;
use turnwheel::wires::openai_responses::OpenAiResponses;
use turnwheel::wires::{Wire, WireOptions};

use crate::wire_words::play;

/// The events of these documents, one frame each.
pub(crate) fn frames(wire: &dyn Wire, documents: &[&str]) -> Vec<String> {
    let body: String = documents.iter().map(|document| format!("data: {document}\n\n")).collect();
    play(wire, &body).0
}

pub(crate) fn messages(documents: &[&str]) -> Vec<String> {
    frames(&Anthropic::new(WireOptions::default()).unwrap(), documents)
}

pub(crate) fn responses(documents: &[&str]) -> Vec<String> {
    frames(&OpenAiResponses::new(WireOptions::default()).unwrap(), documents)
}

pub(crate) fn gemini(documents: &[&str]) -> Vec<String> {
    frames(&Gemini::new(WireOptions::default()).unwrap(), documents)
}

pub(crate) const STOP: &str = r#"{"type":"message_stop"}"#;

pub(crate) fn block(index: u32, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

pub(crate) fn delta(index: u32, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

pub(crate) fn reason(word: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}"}}}}"#)
}

pub(crate) fn tool(index: u32) -> String {
    block(index, &format!(r#"{{"type":"tool_use","id":"t{index}","name":"f","input":{{}}}}"#))
}
