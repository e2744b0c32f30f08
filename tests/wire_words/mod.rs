//! What a wire makes of a body, as short words that tests can compare.

use turnwheel::stream::{Assembler, AssistantMessageEvent as Event};
use turnwheel::wires::{Remarks, Wire};

/// Decodes a body into short words and remarks, which must be the same however the body is cut.
pub(crate) fn play(wire: &dyn Wire, body: &str) -> (Vec<String>, Remarks) {
    let mut first = None;
    for piece in [body.len().max(1), 1, 2, 3, 11, 64] {
        let mut decoder = wire.decoder();
        let mut events = Vec::new();
        for bytes in body.as_bytes().chunks(piece) {
            decoder.feed(bytes, &mut events);
        }
        decoder.finish(&mut events);
        assert!(decoder.is_done());
        let mut assembler = Assembler::default();
        for event in &events {
            assembler.push(event.clone()).unwrap();
        }
        let played = (events.iter().map(in_words).collect(), decoder.remarks());
        assert_eq!(first.get_or_insert_with(|| played.clone()), &played, "pieces of {piece}");
    }
    first.unwrap()
}

/// An event in short words.
pub(crate) fn in_words(event: &Event) -> String {
    match event {
        Event::Start => "start".into(),
        Event::Ping => "ping".into(),
        Event::TextStart { index } => format!("{index} text"),
        Event::TextDelta { index, delta } | Event::ThinkingDelta { index, delta } => {
            format!("{index} + {delta}")
        }
        Event::TextEnd { index, signature: None } => format!("{index} end"),
        Event::TextEnd { index, signature: Some(signature) } => format!("{index} end {signature}"),
        Event::ThinkingStart { index } => format!("{index} thinking"),
        Event::ThinkingEnd { index, signature: None, .. } => format!("{index} end"),
        Event::ThinkingEnd { index, signature: Some(signature), redacted } => {
            format!("{index} end {signature}{}", if *redacted { " redacted" } else { "" })
        }
        Event::ToolCallStart { index, call_id, tool_name } => format!("{index} call {tool_name}({call_id})"),
        Event::ToolCallDelta { index, delta } => format!("{index} + {delta}"),
        Event::ToolCallEnd { index, metadata: None } => format!("{index} end"),
        Event::ToolCallEnd { index, metadata: Some(metadata) } => {
            format!("{index} end {}", metadata.as_str())
        }
        Event::Raw { index, data } => format!("{index} raw {}", data.as_str()),
        Event::Usage(usage) => format!("usage {} {}", usage.input, usage.output),
        Event::Done { stop_reason, .. } => format!("done {}", stop_reason.as_str()),
        Event::Error(error) => format!("error {}: {}", error.code.as_str(), error.message),
    }
}
