//! Limits, and frames that are told apart without being read.

use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::gemini::Gemini;
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::openai_responses::OpenAiResponses;
use turnwheel::wires::{Limits, Wire, WireOptions};

use super::kit::{STOP, block, delta, frames, reason, tool};
use crate::wire_words::play;

#[test]
fn an_answer_that_breaks_a_limit_is_an_error() {
    let limits = Limits { line: 10_000, calls: 2, arguments: 20, ..Limits::default() };
    let wires: [Box<dyn Wire>; 3] = [
        Box::new(Anthropic::new(WireOptions { limits, ..WireOptions::default() }).unwrap()),
        Box::new(OpenAiResponses::new(WireOptions { limits, ..WireOptions::default() }).unwrap()),
        Box::new(Gemini::new(WireOptions { limits, ..WireOptions::default() }).unwrap()),
    ];
    let calls = [
        (0..3).map(tool).collect::<Vec<_>>(),
        (0..3)
            .map(|n| format!(r#"{{"type":"response.output_item.added","output_index":{n},"item":{{"type":"function_call","call_id":"c{n}","name":"f"}}}}"#))
            .collect(),
        vec![r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]}}]}"#.to_owned()],
    ];
    let long = "1".repeat(30);
    let arguments = [
        vec![tool(0), delta(0, &format!(r#"{{"type":"input_json_delta","partial_json":"{long}"}}"#))],
        vec![
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}"#.to_owned(),
            format!(r#"{{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{long}"}}"#),
        ],
        vec![format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"f","args":{{"a":{long}}}}}}}]}}}}]}}"#)],
    ];
    // Raw blocks count too.
    let new = block(0, r#"{"type":"new"}"#);
    let kept = [
        block(0, &format!(r#"{{"type":"new","of":{long}}}"#)),
        format!("{new}|{}", delta(0, &format!(r#"{{"type":"text_delta","text":"{long}"}}"#))),
        format!(
            "{new}|{}",
            delta(0, &format!(r#"{{"type":"compaction_delta","encrypted_content":"{long}"}}"#))
        ),
    ];
    let citation = format!(
        r#"{{"type":"citations_delta","citation":{{"type":"web_search_result_location","of":{long}}}}}"#
    );
    let cited = format!("{}|{}", block(0, r#"{"type":"text","text":""}"#), delta(0, &citation));
    for documents in kept.iter().chain([&cited]) {
        let events = frames(wires[0].as_ref(), &documents.split('|').collect::<Vec<_>>());
        assert!(events.last().unwrap().starts_with("error server: the arg"), "{events:?}");
    }
    for ((wire, calls), arguments) in wires.iter().zip(&calls).zip(&arguments) {
        for documents in [calls, arguments] {
            let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
            let events = frames(wire.as_ref(), &documents);
            assert!(events.last().unwrap().starts_with("error server: the a"), "{events:?}");
        }
        // The largest allowed number, and the largest allowed length, are no error.
        let (calls, arguments) = (calls.join("|"), arguments.join("|"));
        let fewer = calls
            .rsplit_once('|')
            .map_or(calls.replacen("{\"functionCall\":{\"name\":\"f\"}},", "", 1), |(some, _)| {
                some.to_owned()
            });
        let length = if arguments.contains("\"args\"") { 14 } else { 20 };
        for documents in [fewer, arguments.replace(&long, &"1".repeat(length))] {
            let events = frames(wire.as_ref(), &documents.split('|').collect::<Vec<_>>());
            assert!(events.last().unwrap().starts_with("error network"), "{events:?}");
        }
        let endless = format!("data: {}", "x".repeat(20_000));
        let (events, _) = play(wire.as_ref(), &endless);
        assert!(events.last().unwrap().contains("longer than 10000 bytes"), "{events:?}");
    }
}

/// Frames that differ only in their text are compared, not parsed. With an empty frame between all of
/// them each one is parsed, and the result must be the same.
#[test]
fn frames_that_are_not_read_mean_what_they_would_if_they_were() {
    let wires: [(&str, Box<dyn Wire>, &str); 3] = [
        ("openai-chat", Box::new(OpenAiChat::new(WireOptions::default()).unwrap()), "{\"id\":\"x\"}"),
        ("anthropic", Box::new(Anthropic::new(WireOptions::default()).unwrap()), "{\"type\":\"ping\"}"),
        (
            "openai-responses",
            Box::new(OpenAiResponses::new(WireOptions::default()).unwrap()),
            "{\"type\":\"ping\"}",
        ),
    ];
    for (name, wire, nothing) in &wires {
        let folder = format!("{}/tests/data/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "sse") {
                continue;
            }
            let body = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).replace("\r\n", "\n");

            let read = body.replace("\n\n", &format!("\n\ndata: {nothing}\n\n"));
            assert_eq!(play(&**wire, &body), play(&**wire, &read), "{}", path.display());
            count += 1;
        }
        assert!(count > 10, "{name}: {count} recordings");
    }
}

#[test]
fn what_looks_like_the_frame_before_but_is_not_is_read() {
    let text = |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let chat = OpenAiChat::new(WireOptions::default()).unwrap();
    // The halves of a surrogate pair in two frames, a text that looks like the end of
    // its frame, an empty text.
    let documents = ["a", "b", r"\ud83d", r"\ude00", "c", r#"\"}}]}"#, "", "d\\n"].map(text);
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let events = frames(&chat, &documents);
    let apart: Vec<&str> = documents.iter().flat_map(|document| [*document, "{\"id\":\"x\"}"]).collect();
    assert_eq!(events, frames(&chat, &apart));
    assert!(events.iter().any(|event| event.contains('😀')), "{events:?}");
    // Arguments count against the limit, parsed or not.
    let limits = Limits { arguments: 100, ..Limits::default() };
    let chat = OpenAiChat::new(WireOptions { limits, ..WireOptions::default() }).unwrap();
    let call = |more: &str, piece: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,{more}"function":{{"arguments":"{piece}"}}}}]}}}}]}}"#
        )
    };
    let begin = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}"#;
    let piece = call("", "0123456789");
    let mut documents = vec![begin];
    documents.extend([&*piece; 12]);
    let last = frames(&chat, &documents).pop().unwrap();
    assert!(last.contains("longer than 100 bytes"), "{last}");
}

#[test]
fn events_that_differ_in_text_number_and_padding_are_told_like_others() {
    let wire = OpenAiResponses::new(WireOptions::default()).unwrap();
    let text = "response.output_text.delta";
    let begin = r#"{"type":"response.output_item.added","sequence_number":8,"output_index":0,"item":{"type":"message","id":"m"}}"#;
    let delta = |number: &str, delta: &str, padding: &str| {
        format!(
            r#"{{"sequence_number":{number},"type":"{text}","output_index":0,"delta":"{delta}","obfuscation":{padding}}}"#
        )
    };
    let end = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"ab\ncdefg!"}]}}"#;
    let deltas = [
        delta("9", "a", "\"xy\""),
        delta("10", "b", "\"\""),
        delta("11", "\\n", "\"a\\\"b\""),
        delta("null", "c", "{\"delta\":\"no\"}"),
        // Without padding, in another order, for another item: parsed.
        format!(r#"{{"type":"{text}","output_index":0,"delta":"d"}}"#),
        format!(r#"{{"delta":"e","type":"{text}","sequence_number":12,"output_index":0}}"#),
        format!(r#"{{"delta":"f","type":"{text}","sequence_number":130,"output_index":0}}"#),
        format!(r#"{{"delta":"g","type":"{text}","sequence_number":14,"output_index":0}}"#),
    ];
    let mut documents = vec![begin];
    documents.extend(deltas.iter().map(String::as_str));
    documents.push(end);
    let events = frames(&wire, &documents);
    let apart: Vec<&str> = documents.iter().flat_map(|document| [*document, "{\"type\":\"ping\"}"]).collect();
    assert_eq!(events, frames(&wire, &apart));
    // At the end of the item it is known what was reported, so only the rest is added.
    let pieces: Vec<&str> = events.iter().filter_map(|event| event.strip_prefix("0 + ")).collect();
    assert_eq!(pieces, ["a", "b", "\n", "c", "d", "e", "f", "g", "!"]);
    // An invalid number, or one that is cut off, ends the answer as it would otherwise.
    for broken in [delta("1x", "h", "\"\""), delta("15", "h", "\"")] {
        let documents = [&deltas[0], &deltas[1], &broken].map(String::as_str);
        assert!(frames(&wire, &documents).pop().unwrap().contains("is no JSON"), "{broken}");
    }
}

#[test]
fn nothing_follows_arguments_that_broke_a_limit_at_the_end_of_their_block() {
    let limits = Limits { arguments: 5, ..Limits::default() };
    let messages = Anthropic::new(WireOptions { limits, ..WireOptions::default() }).unwrap();
    let begin = block(0, r#"{"type":"tool_use","id":"a","name":"f","input":{"st":"n"}}"#);
    let events = frames(&messages, &[&begin, &reason("tool_use"), STOP]);
    assert!(events.last().unwrap().contains("longer than 5 bytes"), "{events:?}");
}
