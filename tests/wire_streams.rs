//! How the decoders of Messages, Responses and Gemini handle streams that no recording in
//! `tests/data/fixtures` covers.

#![allow(clippy::unwrap_used, reason = "a panic here is a test that fails")]

mod wire_words;

use turnwheel::json::{RawJson, Value};
use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::gemini::Gemini;
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::openai_responses::OpenAiResponses;
use turnwheel::wires::{Limits, Wire, WireOptions};

use wire_words::play;

/// The events of these documents, one frame each.
fn frames(wire: &dyn Wire, documents: &[&str]) -> Vec<String> {
    let body: String = documents.iter().map(|document| format!("data: {document}\n\n")).collect();
    play(wire, &body).0
}

fn messages(documents: &[&str]) -> Vec<String> {
    frames(&Anthropic::new(WireOptions::default()).unwrap(), documents)
}

fn responses(documents: &[&str]) -> Vec<String> {
    frames(&OpenAiResponses::new(WireOptions::default()).unwrap(), documents)
}

fn gemini(documents: &[&str]) -> Vec<String> {
    frames(&Gemini::new(WireOptions::default()).unwrap(), documents)
}

const STOP: &str = r#"{"type":"message_stop"}"#;

fn block(index: u32, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn delta(index: u32, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn reason(word: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}"}}}}"#)
}

fn tool(index: u32) -> String {
    block(index, &format!(r#"{{"type":"tool_use","id":"t{index}","name":"f","input":{{}}}}"#))
}

#[test]
fn an_answer_with_another_id_voids_what_came_before() {
    let start = |id: &str| format!(r#"{{"type":"message_start","message":{{"id":"{id}"}}}}"#);
    let events = messages(&[
        &start("a"),
        &block(0, r#"{"type":"text","text":"void"}"#),
        &start("b"),
        &block(0, r#"{"type":"text","text":"new"}"#),
        &reason("end_turn"),
        STOP,
    ]);
    let wanted = ["start", "0 text", "0 + void", "start", "0 text", "0 + new", "0 end", "done stop"];
    assert_eq!(events, wanted);
}

#[test]
fn a_start_in_the_middle_of_a_block_does_not_void_it() {
    let start = |id: &str| format!(r#"{{"type":"message_start","message":{{"id":"{id}"}}}}"#);
    let text = |index, text: &str| delta(index, &format!(r#"{{"type":"text_delta","text":"{text}"}}"#));
    let begun = block(0, r#"{"type":"text","text":"a"}"#);
    let stopped = r#"{"type":"content_block_stop","index":0}"#;
    // The block goes on, or the next one begins: the start means nothing.
    let events = messages(&[&start("a"), &begun, &start("b"), &text(0, "b"), &reason("end_turn"), STOP]);
    assert_eq!(events, ["start", "0 text", "0 + a", "0 + b", "0 end", "done stop"]);
    let events = messages(&[&start("a"), &begun, stopped, &start("b"), &tool(1), &reason("tool_use"), STOP]);
    assert_eq!(events, ["start", "0 text", "0 + a", "0 end", "1 call f(t1)", "1 end", "done tool_use"]);
    // What follows a block that has ended begins another answer.
    let events =
        messages(&[&start("a"), &begun, stopped, &start("b"), &text(0, "b"), &reason("end_turn"), STOP]);
    assert_eq!(events, ["start", "0 text", "0 + a", "start", "0 text", "0 + b", "0 end", "done stop"]);
    // The same message once more, after another one that never came.
    let events = messages(&[
        &start("a"),
        &begun,
        &start("b"),
        &start("a"),
        &block(0, r#"{"type":"text","text":"b"}"#),
        STOP,
    ]);
    assert_eq!(events.iter().filter(|event| *event == "start").count(), 1, "{events:?}");
}

#[test]
fn the_last_call_of_a_message_that_was_cut_is_cut_unless_its_end_came() {
    let whole = |index| delta(index, r#"{"type":"input_json_delta","partial_json":"{\"a\":1}"}"#);
    let close = r#"{"type":"content_block_stop","index":0}"#;
    for (word, ends) in [("tool_use", true), ("end_turn", true), ("max_tokens", false), ("refusal", false)] {
        let events = messages(&[&tool(0), &whole(0), close, &tool(1), &whole(1), &reason(word), STOP]);
        assert!(events.contains(&"0 end".to_owned()), "{word}");
        assert_eq!(events.contains(&"1 end".to_owned()), ends, "{word}");
        let stop = match word {
            "max_tokens" => "done length",
            "refusal" => "done refusal",
            _ => "done tool_use",
        };
        assert_eq!(events.last().unwrap(), stop);
    }
    // A following block proves that this one is complete, even if its own start was left out;
    // so does this one's end.
    let behind = delta(1, r#"{"type":"text_delta","text":"x"}"#);
    let expected = ["start", "0 call f(t0)", r#"0 + {"a":1}"#];
    let wanted = [&expected[..], &["0 end", "1 text", "1 + x", "1 end", "done length"]].concat();
    assert_eq!(messages(&[&tool(0), &whole(0), &behind, &reason("max_tokens"), STOP]), wanted);
    // Its own end proves it too, but not of a call whose arguments have not begun.
    let wanted = [&expected[..], &["0 end", "done length"]].concat();
    assert_eq!(messages(&[&tool(0), &whole(0), close, &reason("max_tokens"), STOP]), wanted);
    let wanted = [&expected[..2], &["done length"]].concat();
    assert_eq!(messages(&[&tool(0), close, &reason("max_tokens"), STOP]), wanted);
    let half = delta(1, r#"{"type":"input_json_delta","partial_json":"{"}"#);
    let events = messages(&[&tool(0), &tool(1), &whole(0), &half, close, &half, &reason("max_tokens"), STOP]);
    let wanted = ["0 call f(t0)", "1 call f(t1)", r#"0 + {"a":1}"#, "1 + {", "1 + {", "0 end", "done length"];
    assert_eq!(events[1..], wanted);
}

#[test]
fn what_an_answer_said_under_another_id_is_forgotten() {
    let start = |id: &str, used: u32| {
        let output = if id == "b" { "" } else { ",\"output_tokens\":7" };
        format!(
            r#"{{"type":"message_start","message":{{"id":"{id}","usage":{{"input_tokens":{used}{output}}}}}}}"#
        )
    };
    let text = |index, text: &str| block(index, &format!(r#"{{"type":"text","text":"{text}"}}"#));
    let events = messages(&[
        &start("", 1),
        &start("a", 1),
        &tool(0),
        &tool(1),
        r#"{"type":"content_block_stop","index":1}"#,
        &start("a", 1),
        r#"{"type":"message_start","message":{}}"#,
        &text(2, "void"),
        &start("b", 2),
        &text(0, "new"),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":""}}"#,
        STOP,
    ]);
    let void = ["start", "usage 1 7", "0 call f(t0)", "1 call f(t1)", "1 end", "2 text", "2 + void"];
    let new = ["start", "usage 2 0", "0 text", "0 + new", "usage 2 3", "0 end", "done stop"];
    assert_eq!(events, [void, new].concat());
    let events =
        messages(&[&start("a", 1), &tool(0), &start("b", 2), &text(0, "new"), &reason("end_turn"), STOP]);
    assert_eq!(events[3..], ["start", "usage 2 0", "0 text", "0 + new", "0 end", "done stop"]);
    // The stop reason of the first message does not end the second.
    let events =
        messages(&[&start("a", 1), &text(0, "void"), &reason("refusal"), &start("b", 1), &text(0, "new")]);
    assert!(events.last().unwrap().starts_with("error network"), "{events:?}");
    let later = r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":5}}"#;
    assert_eq!(messages(&[&start("a", 1), later, STOP])[1..], ["usage 1 7", "usage 5 7", "done stop"]);
    assert_eq!(messages(&[&reason("max_tokens"), &reason(""), STOP]), ["start", "done length"]);
    // The first one said nothing.
    let events = messages(&[&start("a", 1), &start("b", 2), &reason("end_turn"), STOP]);
    assert_eq!(events, ["start", "usage 1 7", "usage 2 7", "done stop"]);
}

#[test]
fn blocks_of_anthropic_in_forms_that_few_have() {
    let close = r#"{"type":"content_block_stop","index":0}"#;
    let play = |documents: &[&str]| {
        let end = [&reason("end_turn"), STOP];
        let mut events = messages(&[documents, &end].concat());
        assert_eq!((events.remove(0), events.pop().unwrap().contains("done")), ("start".to_owned(), true));
        events
    };
    // Thinking whose text is hidden consists of its signature.
    let thinking = block(0, r#"{"type":"thinking","thinking":""}"#);
    let sign = delta(0, r#"{"type":"signature_delta","signature":"S"}"#);
    assert_eq!(play(&[&thinking, &sign, close]), ["0 thinking", "0 end S"]);
    let whole = block(0, r#"{"type":"thinking","thinking":"t","signature":"S"}"#);
    assert_eq!(play(&[&whole, close]), ["0 thinking", "0 + t", "0 end S"]);
    // Arguments at the start count if no pieces follow.
    let call = block(0, r#"{"type":"tool_use","id":"t","name":"f","input":{"a":1}}"#);
    let piece = delta(0, r#"{"type":"input_json_delta","partial_json":"{}"}"#);
    assert_eq!(play(&[&call, close]), ["0 call f(t)", r#"0 + {"a":1}"#, "0 end"]);
    assert_eq!(play(&[&call, &piece, close]), ["0 call f(t)", "0 + {}", "0 end"]);
    let none = call.replace(r#"{"a":1}"#, "null");
    assert_eq!(play(&[&none, close]), ["0 call f(t)", "0 end"]);
    let half = delta(0, r#"{"type":"input_json_delta","partial_json":"\ud83d"}"#);
    assert_eq!(play(&[&tool(0), &half, close])[1..], ["0 + \u{fffd}", "0 end"]);
    // Without an index, and without a start.
    assert_eq!(
        play(&[r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#]),
        ["0 text", "0 + a", "0 end"]
    );
    // Unknown blocks are kept, even if their end is missing.
    let new = block(0, r#"{"type":"new","text":"a"}"#);
    let more = delta(0, r#"{"type":"text_delta","text":"b"}"#);
    let text = block(1, r#"{"type":"text","text":"c"}"#);
    let kept = r#"0 raw {"type":"new","text":"ab"}"#;
    assert_eq!(play(&[&new, &more, &text]), [kept, "1 text", "1 + c", "1 end"]);
    // An unknown block is complete at its own end, whatever cuts off the answer.
    let cut = |documents: &[&str]| messages(&[documents, &[&reason("max_tokens"), STOP]].concat());
    assert_eq!(cut(&[&new, &more, close]), ["start", kept, "done length"]);
    assert_eq!(cut(&[&new, &more]), ["start", "done length"]);
    // Gateways close with `[DONE]`, which means nothing without a stop reason.
    assert_eq!(messages(&[&text, "[DONE]", STOP])[3..], ["0 end", "done stop"]);
    let mut decoder = Anthropic::new(WireOptions::default()).unwrap().decoder();
    let end = format!("data: {}\n\ndata: [DONE]\n\n", reason("end_turn"));
    decoder.feed(end.as_bytes(), &mut Vec::new());
    assert!(decoder.is_done(), "nobody waits for the end of the body");
    // Without a start.
    let used = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":3}}"#;
    assert_eq!(messages(&[used, STOP]), ["start", "usage 0 3", "done stop"]);
    assert_eq!(messages(&[STOP]), ["start", "done stop"]);
    let named = r#"{"type":"message_delta","delta":{},"error":{"type":"overloaded_error","message":"m"}}"#;
    assert_eq!(messages(&[named]), ["error overloaded: m"]);
    let fine = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"error":null}"#;
    assert_eq!(messages(&[fine, STOP]), ["start", "done stop"]);
}

#[test]
fn frames_that_are_no_json_are_errors_where_they_should_be_some() {
    let wires: [Box<dyn Wire>; 4] = [
        Box::new(OpenAiChat::new(WireOptions::default()).unwrap()),
        Box::new(Anthropic::new(WireOptions::default()).unwrap()),
        Box::new(OpenAiResponses::new(WireOptions::default()).unwrap()),
        Box::new(Gemini::new(WireOptions::default()).unwrap()),
    ];
    for wire in wires {
        let last = |body: &str| play(&*wire, body).0.pop().unwrap();
        assert_eq!(
            last("event: error\ndata: Rate limit exceeded\n\n"),
            "error throttled: Rate limit exceeded"
        );
        let broken = last("data: {\"a\"\n\ndata: {}\n\n");
        assert!(broken.starts_with("error server: a chunk of the stream is no JSON: "), "{broken}");
        let alive =
            last("data: working on it\n\ndata:\n\ndata: {\"error\":{\"message\":\"m\",\"code\":503}}\n\n");
        assert_eq!(alive, "error overloaded: m");
        // What was cut off is not a broken chunk.
        assert!(last("data: {\"a\"").starts_with("error network: "));
    }
    let half = r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#;
    let chat = OpenAiChat::new(WireOptions::default()).unwrap();
    let (events, _) = play(&chat, &format!("data: {half}\n\n<title>Bad gateway</title>"));
    assert_eq!(events[..3], ["start", "0 text", "0 + \u{fffd}"]);
    assert!(events[3].ends_with("; beside the events stood: Bad gateway"), "{events:?}");
}

#[test]
fn the_words_of_gemini_are_translated() {
    let finish_reasons = [
        ("STOP", "done tool_use"),
        ("OTHER", "done tool_use"),
        ("MAX_TOKENS", "done length"),
        ("CONTINUATION", "done length"),
        ("SAFETY", "done content_filter"),
        ("RECITATION", "done content_filter"),
        ("LANGUAGE", "done content_filter"),
        ("BLOCKLIST", "done content_filter"),
        ("PROHIBITED_CONTENT", "done content_filter"),
        ("SPII", "done content_filter"),
        ("IMAGE_SAFETY", "done content_filter"),
        ("IMAGE_PROHIBITED_CONTENT", "done content_filter"),
        ("IMAGE_RECITATION", "done content_filter"),
        ("UNEXPECTED_TOOL_CALL", "error server: UNEXPECTED_TOOL_CALL: the answer went wrong"),
        ("TOO_MANY_TOOL_CALLS", "error server: TOO_MANY_TOOL_CALLS: the answer went wrong"),
        ("MISSING_THOUGHT_SIGNATURE", "error server: MISSING_THOUGHT_SIGNATURE: the answer went wrong"),
    ];
    let call =
        |call: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{call}}}]}}}}]}}"#);
    let (whole, half) = (call(r#"{"id":"i","name":"f"}"#), call(r#"{"name":"g","willContinue":true}"#));
    for (word, wanted) in finish_reasons {
        let end = format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#);
        let events = gemini(&[&whole, &half, &end]);
        let expected = ["start", "0 call f(i)", "0 + {}", r#"0 end {"id":"i"}"#, "1 call g()"];
        assert_eq!(events[..5], expected);
        assert_eq!(events.contains(&"1 end".to_owned()), wanted == "done tool_use", "{word}");
        assert_eq!(events.last().unwrap(), wanted);
    }
    // A call that is followed by another one had its end.
    let end = r#"{"candidates":[{"finishReason":"SAFETY"}]}"#;
    assert_eq!(
        gemini(&[&half, &whole, end])[1..],
        [
            "0 call g()",
            "0 + {}",
            "0 end",
            "1 call f(i)",
            "1 + {}",
            r#"1 end {"id":"i"}"#,
            "done content_filter"
        ]
    );
    let used = |usage: &str| {
        gemini(&[&format!(r#"{{"usageMetadata":{usage},"candidates":[{{"finishReason":"MAX_TOKENS"}}]}}"#)])
    };
    let all = r#"{"promptTokenCount":10,"toolUsePromptTokenCount":5,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":3}"#;
    assert_eq!(used(all), ["start", "usage 11 5", "done length"]);
    assert_eq!(used(r#"{"promptTokenCount":1}"#)[1], "usage 1 0");
    assert_eq!(used(r#"{"candidatesTokenCount":2}"#)[1], "usage 0 2");
    assert_eq!(used(r#"{"trafficType":"x"}"#), ["start", "done length"]);
    // Nothing is said if the prompt was refused, also by a response that is no stream.
    let refused = r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#;
    let with_message = refused.replace("\"}", "\",\"blockReasonMessage\":\"m\"}");
    let error = "error content_filtered: the provider refused the prompt: ";
    for (document, reason) in [(refused, "SAFETY"), (&with_message, "m")] {
        let wanted = [error, reason].concat();
        assert_eq!(gemini(&[document]), ["start", &wanted]);
        assert_eq!(play(&Gemini::new(WireOptions::default()).unwrap(), document).0, ["start", &wanted]);
    }
}

#[test]
fn parts_of_gemini_in_forms_that_few_have() {
    let play = |parts: &str| {
        let mut events = gemini(&[&format!(
            r#"{{"error":null,"candidates":[{{"index":1,"content":{{"parts":[{{"text":"no"}}]}}}},{{"index":0,"content":{{"parts":[{parts}]}},"finishReason":"STOP"}},{{"content":{{"parts":[{{"text":"no"}}]}}}}]}}"#
        )]);
        assert_eq!(events.remove(0), "start");
        events
    };
    let text = ["0 text", "0 + a", "0 end", "done stop"];
    assert_eq!(play(r#"{"text":"a"}"#), text);
    assert_eq!(play(r#"null,{"text":"a","inlineData":null}"#), text);
    assert_eq!(play(r#"{"text":"a","functionCall":null,"speaker":1}"#), text);
    assert_eq!(
        play(r#"{"mediaResolution":{"level":1}},{"videoMetadata":{}},{"partMetadata":{}},{"text":"a"}"#),
        text
    );
    let signed = ["0 text", "0 + a", "0 end S", "1 text", "1 + b", "1 end", "done stop"];
    assert_eq!(play(r#"{"text":"a","thought_signature":"S"},{"text":"b"}"#), signed);
    let called = ["0 call f()", "0 + {}", "0 end", "done tool_use"];
    for args in ["null", "[1]", "\"x\"", "7"] {
        assert_eq!(play(&format!(r#"{{"functionCall":{{"name":"f","args":{args}}}}}"#)), called, "{args}");
    }
}

#[test]
fn the_words_of_anthropic_are_translated() {
    let finish_reasons = [
        ("end_turn", "done stop"),
        ("stop_sequence", "done stop"),
        ("max_tokens", "done length"),
        ("model_context_window_exceeded", "done length"),
        ("pause_turn", "done pause"),
        ("compaction", "done pause"),
        ("refusal", "done refusal"),
        ("something_new", "done stop"),
        ("error", "error server: the provider ended the answer with `error`"),
    ];
    for (word, wanted) in finish_reasons {
        // Also without `message_stop`.
        for documents in [vec![reason(word), STOP.to_owned()], vec![reason(word)]] {
            let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
            assert_eq!(messages(&documents), ["start", wanted]);
        }
    }
}

#[test]
fn calls_that_are_told_at_the_same_time_get_their_own_arguments() {
    let piece = |index, json: &str| {
        delta(
            index,
            &format!(r#"{{"type":"input_json_delta","partial_json":{}}}"#, RawJson::string(json).as_str()),
        )
    };
    let stop = |index: u32| format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    let pieces = [&tool(0), &tool(1), &piece(0, "{\"a\""), &piece(1, "{\"b\""), &piece(0, ":1}"), &stop(0)];
    let rest = [&piece(1, ":2}"), &stop(1), &block(2, r#"{"type":"text","text":"x"}"#), &stop(2)];
    let play = |word: &str, cut: usize| {
        let end = reason(word);
        let mut all: Vec<&str> =
            pieces.iter().chain(&rest[..rest.len() - cut]).map(|text| text.as_str()).collect();
        all.extend([end.as_str(), STOP]);
        messages(&all)
    };
    let calls = |events: &[String]| -> Vec<String> {
        (0..2)
            .map(|index| events.iter().filter_map(|e| e.strip_prefix(&format!("{index} + "))).collect())
            .collect()
    };
    let three = messages(&[&tool(0), &tool(1), &tool(2), &piece(1, "{}"), &piece(0, "{\"a\":1}"), STOP]);
    assert_eq!(three[4..6], ["1 + {}", r#"0 + {"a":1}"#]);
    let whole = play("tool_use", 0);
    assert_eq!(calls(&whole), [r#"{"a":1}"#, r#"{"b":2}"#]);
    assert!(whole.contains(&"0 end".to_owned()) && whole.contains(&"1 end".to_owned()));
    // The limit cut off the second call: the first is complete.
    let cut = play("max_tokens", 4);
    assert_eq!(calls(&cut), [r#"{"a":1}"#, r#"{"b""#]);
    assert!(cut.contains(&"0 end".to_owned()) && !cut.contains(&"1 end".to_owned()));
}

#[test]
fn a_message_may_begin_with_content() {
    let events = messages(&[
        r#"{"type":"message_start","message":{"id":"m","content":[{"type":"code_execution_tool_result","tool_use_id":"s"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use"}}"#,
        STOP,
    ]);
    let raw = r#"0 raw {"type":"code_execution_tool_result","tool_use_id":"s"}"#;
    assert_eq!(events, ["start", raw, "1 call f(t)", r#"1 + {"a":1}"#, "1 end", "done tool_use"]);
}

#[test]
fn what_is_encrypted_of_a_compaction_is_kept_for_the_way_back() {
    let compaction = |content: &str| {
        let piece =
            format!(r#"{{"type":"compaction_delta","content":{content},"encrypted_content":"secret"}}"#);
        let start = block(0, r#"{"type":"compaction","content":null,"encrypted_content":null}"#);
        messages(&[&start, &delta(0, &piece), r#"{"type":"content_block_stop","index":0}"#, STOP]).remove(1)
    };
    let raw = r#"0 raw {"type":"compaction","content":CONTENT,"encrypted_content":"secret"}"#;
    for content in ["\"notes\"", "null"] {
        assert_eq!(compaction(content), raw.replace("CONTENT", content));
    }
}

#[test]
fn a_sign_of_life_beside_the_frames_is_no_error() {
    let alive = "{\"type\":\"keepalive\"}\n";
    let hi = r#"data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#;
    let events = play(&Gemini::new(WireOptions::default()).unwrap(), &format!("{alive}{hi}\n\n{alive}")).0;
    assert_eq!(events, ["start", "0 text", "0 + hi", "0 end", "done stop"]);
}

#[test]
fn empty_parts_of_a_summary_are_told_as_nothing_and_sent_back() {
    let piece = |part: usize, text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":{part},"delta":"{text}"}}"#
        )
    };
    for summary in [["", "a", "b"], ["a", "", "b"], ["a", "b", ""]] {
        let parts = summary.map(|text| format!(r#"{{"type":"summary_text","text":"{text}"}}"#)).join(",");
        let done = format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"reasoning","id":"r","encrypted_content":"e","summary":[{parts}]}}}}"#
        );
        let pieces = (0..3).filter(|at| !summary[*at].is_empty()).map(|at| piece(at, summary[at]));
        let documents: Vec<String> = pieces.chain([done]).collect();
        let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
        let lengths = summary.map(|text| text.len().to_string()).join(",");
        let end = format!(r#"0 end {{"id":"r","encrypted_content":"e","parts":[{lengths}]}}"#);
        let events = responses(&documents);
        assert_eq!(events[..6], ["start", "0 thinking", "0 + a", "0 + \n\n", "0 + b", &end]);
    }
}

#[test]
fn what_xai_searches_by_itself_is_no_call() {
    let compat = Value::parse(r#"{"server":"xai"}"#).unwrap();
    let xai = OpenAiResponses::new(WireOptions { compat, ..WireOptions::default() }).unwrap();
    let call = r#"{"type":"custom_tool_call","call_id":"xs","name":"x_keyword_search","input":"{}"}"#;
    let documents = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","call_id":"xs","name":"x_keyword_search","input":""}}"#,
        r#"{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"{}"}"#,
        &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{call}}}"#),
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"found"}"#,
        r#"{"type":"response.completed","response":{"status":"completed"}}"#,
    ];
    let wanted = ["start", &format!("0 raw {call}"), "1 text", "1 + found", "1 end", "done stop"];
    assert_eq!(frames(&xai, &documents), wanted);
}

#[test]
fn items_without_an_end_are_whole_if_the_answer_is_and_holds_them() {
    let play = |end: &str| {
        responses(&[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}"#,
            r#"{"type":"response.output_text.done","output_index":0,"text":"ab"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f"}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\""}"#,
            &format!(
                r#"{{"type":"response.{end}","response":{{"output":[{{"type":"message","content":[{{"type":"output_text","text":"ab"}}]}},{{"type":"function_call","call_id":"c","name":"f","arguments":"{{\"a\":1}}"}}]}}}}"#
            ),
        ])
    };
    let expected = ["start", "0 text", "0 + ab", "0 end", "1 call f(c)", r#"1 + {"a""#];
    let whole = play("completed");
    assert_eq!(whole[..6], expected);
    assert_eq!(whole[6..], ["1 + :1}", "1 end", "done tool_use"]);
    assert_eq!(play("incomplete"), [&expected[..], &["done length"]].concat());
}

#[test]
fn an_answer_that_the_server_gave_up_is_an_error() {
    let chat = OpenAiChat::new(WireOptions::default()).unwrap();
    let given_up = [
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#,
        "[DONE]",
    ];
    assert!(frames(&chat, &given_up).last().unwrap().starts_with("error server: "));
}

#[test]
fn blocks_of_the_provider_are_kept_whole_and_dropped_if_cut() {
    let search = block(0, r#"{"type":"server_tool_use","id":"s","name":"web","input":{}}"#);
    let half = delta(0, r#"{"type":"input_json_delta","partial_json":"{\"q\":"}"#);
    let rest = delta(0, r#"{"type":"input_json_delta","partial_json":"\"x\"}"}"#);
    let close = r#"{"type":"content_block_stop","index":0}"#;
    let events = messages(&[&search, &half, &rest, close, &reason("pause_turn"), STOP]);
    let raw = r#"0 raw {"type":"server_tool_use","id":"s","name":"web","input":{"q":"x"}}"#;
    assert_eq!(events, ["start", raw, "done pause"]);
    assert_eq!(messages(&[&search, &half, close, &reason("max_tokens"), STOP]), ["start", "done length"]);
}

#[test]
fn a_gateway_may_leave_out_the_beginnings() {
    let events = messages(&[
        &delta(0, r#"{"type":"thinking_delta","thinking":"hm"}"#),
        &delta(0, r#"{"type":"signature_delta","signature":"S"}"#),
        &delta(1, r#"{"type":"text_delta","text":"a"}"#),
        &reason("end_turn"),
        "[DONE]",
    ]);
    let wanted = ["start", "0 thinking", "0 + hm", "0 end S", "1 text", "1 + a", "1 end", "done stop"];
    assert_eq!(events, wanted);
}

#[test]
fn a_server_that_cannot_stream_gives_its_answer_at_once() {
    let message = r#"{"type":"message","id":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":2,"output_tokens":3}}"#;
    let (events, _) = play(&Anthropic::new(WireOptions::default()).unwrap(), message);
    let wanted = [
        "start",
        "usage 2 3",
        "0 text",
        "0 + a",
        "0 end",
        "1 call f(t)",
        r#"1 + {"x":1}"#,
        "1 end",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
    let response = r#"{"object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":2,"output_tokens":3}}"#;
    let (events, _) = play(&OpenAiResponses::new(WireOptions::default()).unwrap(), response);
    assert_eq!(events, ["start", "usage 2 3", "0 text", "0 + a", "0 end", "done stop"]);
    let list = "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]},\n{\"candidates\":[{\"finishReason\":\"STOP\"}]}]";
    let (events, _) = play(&Gemini::new(WireOptions::default()).unwrap(), list);
    assert_eq!(events, ["start", "0 text", "0 + a", "0 end", "done stop"]);
}

#[test]
fn a_stream_that_ends_without_an_end_is_a_network_error() {
    let cut = [
        messages(&[&block(0, r#"{"type":"text","text":"a"}"#)]),
        responses(&[r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#]),
        gemini(&[r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#]),
        messages(&[]),
        responses(&["[DONE]"]),
        gemini(&["[DONE]"]),
    ];
    for events in cut {
        assert!(events.last().unwrap().starts_with("error network"), "{events:?}");
    }
}

#[test]
fn an_error_in_any_form_ends_the_stream() {
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}"#;
    assert_eq!(responses(&[failed]), ["start", "error server: m"]);
    let flat = r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}"#;
    assert_eq!(responses(&[flat, failed]), ["error throttled: slow"]);
    let named = r#"{"type":"response.error","error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
    assert_eq!(responses(&[named]), ["error throttled: slow"]);
    let without = r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#;
    assert_eq!(responses(&[without])[1], "error server: the provider ended the answer as `failed`");
    // Anything named an error is one, whatever its form.
    let named = "event: error\ndata: {\"type\":\"overloaded_error\",\"message\":\"m\"}\n\n";
    let wires: [Box<dyn Wire>; 2] = [
        Box::new(Anthropic::new(WireOptions::default()).unwrap()),
        Box::new(OpenAiResponses::new(WireOptions::default()).unwrap()),
    ];
    for wire in wires {
        let (events, _) = play(&*wire, named);
        assert!(events[0].starts_with("error ") && events[0].ends_with(": m"), "{events:?}");
    }
    let overloaded = r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#;
    assert_eq!(gemini(&[overloaded]), ["error overloaded: m"]);
    let malformed = r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"m"}]}"#;
    assert_eq!(gemini(&[malformed]), ["start", "error server: MALFORMED_FUNCTION_CALL: m"]);
    let malformed = malformed.replace("FUNCTION_CALL", "RESPONSE");
    assert_eq!(gemini(&[&malformed]), ["start", "error server: MALFORMED_RESPONSE: m"]);
    let (events, _) = play(
        &Anthropic::new(WireOptions::default()).unwrap(),
        "{\n \"type\": \"error\",\n \"error\": {\"type\": \"overloaded_error\", \"message\": \"m\"}\n}",
    );
    assert_eq!(events, ["error overloaded: m"]);
}

#[test]
fn items_are_told_apart_by_their_number_and_their_end_counts() {
    let events = responses(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x","call_id":"a","name":"f"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"y","call_id":"b","name":"g"}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"?","delta":"{\"p\""}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"!","delta":"{}"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"y","call_id":"b","name":"g","arguments":"{}","status":"completed"}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"p\":1}"}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
    ]);
    let wanted = [
        "start",
        "0 call f(a)",
        "1 call g(b)",
        "0 + {\"p\"",
        "1 + {}",
        "0 + :1}",
        "0 end",
        "1 end {\"item_id\":\"y\"}",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
}

/// Like [`responses`]: items that are announced, their pieces and ends, and the end of the answer.
fn items(documents: &[&str], end: &str) -> Vec<String> {
    let expand = |document: &&str| match document.split_once(' ') {
        Some(("+", rest)) => {
            let (at, item) = rest.split_once(' ').unwrap();
            format!(r#"{{"type":"response.output_item.added","output_index":{at},"item":{item}}}"#)
        }
        Some((".", rest)) => {
            let (at, item) = rest.split_once(' ').unwrap();
            format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#)
        }
        Some((at, rest)) if at.parse::<u32>().is_ok() => {
            let (kind, text) = rest.split_once(' ').unwrap();
            let text = RawJson::string(text);
            format!(r#"{{"type":"response.{kind}.delta","output_index":{at},"delta":{}}}"#, text.as_str())
        }
        _ => (*document).to_owned(),
    };
    let all: Vec<String> = documents.iter().chain([&end]).map(expand).collect();
    let mut events = responses(&all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(events.remove(0), "start");
    events
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"usage":{"input_tokens":2}}}"#;

#[test]
fn what_the_end_of_an_item_says_is_told_where_its_pieces_did_not() {
    let events_of = |documents: &[&str]| {
        let mut events = items(documents, COMPLETED);
        assert!(events.pop().unwrap().starts_with("done "));
        events.retain(|event| event != "usage 2 0");
        events
    };
    let message =
        |phase: &str, part: &str| format!(r#"{{"type":"message","phase":"{phase}","content":[{part}]}}"#);
    let (spoken, refused) = (r#"{"type":"output_text","text":"ab"}"#, r#"{"type":"refusal","refusal":"No"}"#);
    let end = r#"0 end {"phase":"p"}"#;
    assert_eq!(events_of(&[&format!(". 0 {}", message("p", spoken))]), ["0 text", "0 + ab", end]);
    assert_eq!(
        events_of(&["0 output_text a", &format!(". 0 {}", message("p", spoken))]),
        ["0 text", "0 + a", "0 + b", end]
    );
    let whole = format!(". 0 {}", message("p", refused));
    assert_eq!(events_of(&[&whole]), ["0 text", "0 + No", end]);
    assert_eq!(events_of(&["0 refusal N", &whole]), ["0 text", "0 + N", "0 + o", end]);
    assert_eq!(items(&["0 refusal No"], COMPLETED).pop().unwrap(), "done refusal");
    // Two items that were announced and did not end are two.
    let two = [
        &*format!("+ 0 {}", message("p", "")),
        "0 output_text a",
        &format!("+ 1 {}", message("q", "")),
        "1 output_text b",
    ];
    assert_eq!(events_of(&two), ["0 text", "0 + a", end, "1 text", "1 + b", r#"1 end {"phase":"q"}"#]);
    assert_eq!(
        events_of(&["0 reasoning_text a", "1 reasoning b", "2 output_text c"]),
        ["0 thinking", "0 + a", "0 end", "1 thinking", "1 + b", "1 end", "2 text", "2 + c", "2 end"]
    );
    // Thinking: as a summary, in full, or the rest of it.
    let reasoning =
        |lists: &str| format!(r#". 0 {{"type":"reasoning","id":"r","status":"completed",{lists}}}"#);
    let summary = reasoning(r#""summary":[{"text":"ab"}]"#);
    assert_eq!(events_of(&[&summary]), ["0 thinking", "0 + ab", r#"0 end {"id":"r"}"#]);
    assert_eq!(events_of(&["0 reasoning_summary_text a", &summary])[..3], ["0 thinking", "0 + a", "0 + b"]);
    let full = reasoning(r#""summary":[],"content":[{"text":"ab"}]"#);
    assert_eq!(events_of(&[&full]), ["0 thinking", "0 + ab", r#"0 end {"id":"r","source":"content"}"#]);
    assert_eq!(
        events_of(&["0 output_text x", &reasoning("\"summary\":[]")])[2..],
        ["0 end", "1 thinking", r#"1 end {"id":"r"}"#]
    );
    // Calls whose input is text.
    let custom = |input: &str| {
        format!(r#". 0 {{"type":"custom_tool_call","call_id":"c","name":"f","input":"{input}"}}"#)
    };
    let added = r#"+ 0 {"type":"custom_tool_call","call_id":"c","name":"f"}"#;
    let input_of = |documents: &[&str]| -> String {
        events_of(documents).iter().filter_map(|event| event.strip_prefix("0 + ")).collect()
    };
    assert_eq!(input_of(&[&custom("a b")]), r#"{"input":"a b"}"#);
    assert_eq!(input_of(&[&custom("")]), r#"{"input":""}"#);
    assert_eq!(
        input_of(&[added, "0 custom_tool_call_input \"a", &custom("\\\"a b")]),
        r#"{"input":"\"a b"}"#
    );
    // Some servers give a call a single id, and its arguments as an object.
    let call = r#". 0 {"type":"function_call","call_id":"","id":"fc","name":"f","arguments":{"a":1}}"#;
    assert_eq!(events_of(&[call]), ["0 call f(fc)", r#"0 + {"a":1}"#, r#"0 end {"item_id":"fc"}"#]);
    assert_eq!(events_of(&[&call.replace(",\"id\":\"fc\"", "")])[0], "0 call f()");
}

#[test]
fn what_an_item_repeats_in_other_words_stays_as_it_came() {
    let added = r#"+ 0 {"type":"function_call","call_id":"c","name":"f","arguments":""}"#;
    let done = |arguments: &str| {
        let text = RawJson::string(arguments);
        format!(r#". 0 {{"type":"function_call","call_id":"c","name":"f","arguments":{}}}"#, text.as_str())
    };
    let input_of = |pieces: &[&str], whole: &str| -> String {
        let deltas: Vec<String> =
            pieces.iter().map(|piece| format!("0 function_call_arguments {piece}")).collect();
        let end = done(whole);
        let documents: Vec<&str> =
            [added].into_iter().chain(deltas.iter().map(String::as_str)).chain([&*end]).collect();
        items(&documents, COMPLETED).iter().filter_map(|event| event.strip_prefix("0 + ")).collect()
    };
    // The frames of the later pieces are compared with the first one's, and not read.
    let pieces = [r#"{"a":"#, r#""b","#, r#""c":"#, "1}"];
    let streamed = pieces.concat();
    assert_eq!(input_of(&pieces, r#"{"a": "b", "c": 1}"#), streamed);
    assert_eq!(input_of(&pieces, &streamed), streamed);
    assert_eq!(input_of(&pieces[..3], &streamed), streamed);
    assert_eq!(input_of(&[], &streamed), streamed);
    // So does a text whose end begins otherwise.
    let done = r#". 0 {"type":"message","content":[{"type":"output_text","text":"\n\nHello"}]}"#;
    assert_eq!(items(&["0 output_text Hello", done], COMPLETED)[..2], ["0 text", "0 + Hello"]);
    assert_eq!(items(&["0 output_text Hello", done], COMPLETED)[2], "0 end");
    let done = r#". 0 {"type":"reasoning","id":"r","summary":[{"text":" Hello"}]}"#;
    assert_eq!(items(&["0 reasoning_summary_text Hello", done], COMPLETED)[2], r#"0 end {"id":"r"}"#);
}

#[test]
fn a_call_whose_item_is_incomplete_is_cut() {
    let call =
        r#". 0 {"type":"function_call","call_id":"c","name":"f","arguments":"{}","status":"incomplete"}"#;
    for (end, wanted) in [
        (r#"{"type":"response.incomplete","response":{}}"#, "done length"),
        (
            r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#,
            "done content_filter",
        ),
        (r#"{"type":"response.done","response":{"output":null}}"#, "done stop"),
    ] {
        assert_eq!(items(&[call], end), ["0 call f(c)", "0 + {}", wanted]);
    }
}

#[test]
fn events_of_responses_in_forms_that_few_have() {
    // Without an index.
    let bare = |kind: &str, text: &str| {
        format!(r#"{{"type":"response.{kind}.delta","delta":"{text}","error":null}}"#)
    };
    let events = responses(&[
        &bare("reasoning_text", ""),
        &bare("reasoning_text", "a"),
        &bare("output_text", ""),
        &bare("output_text", "b"),
        &bare("reasoning_text", "c"),
        COMPLETED,
    ]);
    let wanted = [
        "start",
        "0 thinking",
        "0 + a",
        "0 end",
        "1 text",
        "1 + b",
        "1 end",
        "2 thinking",
        "2 + c",
        "usage 2 0",
        "2 end",
        "done stop",
    ];
    assert_eq!(events, wanted);
    // Named by their frames only; and errors.
    let wire = OpenAiResponses::new(WireOptions::default()).unwrap();
    let named = "event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\nevent: response.completed\ndata: {}\n\n";
    assert_eq!(play(&wire, named).0, ["start", "0 text", "0 + a", "0 end", "done stop"]);
    assert_eq!(responses(&[r#"{"error":{"message":"m"}}"#]), ["error server: m"]);
    assert_eq!(
        play(&wire, "event: error\ndata: {\"type\":\"response.created\",\"message\":\"m\"}\n\n").0,
        ["error server: m"]
    );
    let failed = r#"{"type":"response.completed","response":{"status":"completed","error":{"message":"m"}}}"#;
    assert_eq!(responses(&[failed])[1..], ["error server: m"]);
    let cancelled = r#"{"type":"response.completed","response":{"status":"cancelled"}}"#;
    assert_eq!(responses(&[cancelled])[1..], ["error server: the provider ended the answer as `cancelled`"]);
    // A document that is not an answer.
    assert!(
        play(&wire, r#"{"object":"list","status":"completed"}"#).0[0].starts_with("error invalid_request")
    );
}

#[test]
fn items_without_numbers_that_end_with_the_answer_are_told_once() {
    let events = responses(&[
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"rs"}}"#,
        r#"{"type":"response.reasoning_text.delta","item_id":"rs","delta":"hm"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"message","id":"msg"}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg","delta":"Hi"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_a","call_id":"a","name":"f"}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_a","delta":"{\"x\""}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_b","call_id":"b","name":"g"}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_b","delta":"{}"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","encrypted_content":"","content":[{"text":"hm"}]}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message","id":"msg","content":[{"text":"Hi"}]}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_a","call_id":"a","name":"f","arguments":"{\"x\":1}"}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_b","call_id":"b","name":"g","arguments":"{}"}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
    ]);
    let wanted = [
        "start",
        "0 thinking",
        "0 + hm",
        "0 end",
        "1 text",
        "1 + Hi",
        "1 end",
        "2 call f(a)",
        "2 + {\"x\"",
        "3 call g(b)",
        "3 + {}",
        "2 + :1}",
        "2 end {\"item_id\":\"fc_a\"}",
        "3 end {\"item_id\":\"fc_b\"}",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
}

#[test]
fn thinking_that_comes_as_summary_and_in_full_is_told_once() {
    let events = responses(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r"}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"a"}"#,
        r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"a"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"b"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","encrypted_content":"E","summary":[{"text":"a"},{"text":"b"}],"content":[{"text":"a"}]}}"#,
        r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}"#,
    ]);
    let wanted = [
        "start",
        "0 thinking",
        "0 + a",
        "0 + \n\n",
        "0 + b",
        r#"0 end {"id":"r","encrypted_content":"E","parts":[1,1]}"#,
        "done content_filter",
    ];
    assert_eq!(events, wanted);
}

#[test]
fn what_the_provider_ran_itself_is_kept_as_it_came() {
    let item = r#"{"type":"web_search_call","id":"ws","status":"completed"}"#;
    let events = responses(&[
        &format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{item}}}"#),
        &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
        r#"{"type":"response.completed","response":{"status":"completed"}}"#,
    ]);
    assert_eq!(events, ["start", &format!("0 raw {item}"), "done stop"]);
    let part = r#"{"executableCode":{"code":"1"}}"#;
    let chunk = format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}"#);
    assert_eq!(gemini(&[&chunk]), ["start", &format!("0 raw {part}"), "done stop"]);
}

#[test]
fn citations_of_the_providers_own_search_are_kept_with_their_text() {
    let quote = r#"{"type":"web_search_result_location","url":"u"}"#;
    let place = r#"{"type":"char_location","document_index":0}"#;
    let cited = |citation: &str| delta(0, &format!(r#"{{"type":"citations_delta","citation":{citation}}}"#));
    let events = messages(&[
        &block(0, r#"{"type":"text","text":"","citations":[]}"#),
        &cited(quote),
        &delta(0, r#"{"type":"text_delta","text":"so"}"#),
        &cited(place),
        &cited(quote),
        &block(1, r#"{"type":"text","text":"b"}"#),
        &reason("end_turn"),
        STOP,
    ]);
    let end = format!(r#"0 end {{"citations":[{quote},{quote}]}}"#);
    let kept = r#"2 raw {"type":"citations","citations":[{"url":"u"}]}"#;
    assert_eq!(events[1..], ["0 text", "0 + so", &end, "1 text", "1 + b", "1 end", kept, "done stop"]);
}

#[test]
fn a_call_of_gemini_grows_with_each_piece_of_its_arguments() {
    let piece =
        |call: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{call}}}]}}}}]}}"#);
    let more = |path: &str, text: &str| {
        piece(&format!(
            r#"{{"partialArgs":[{{"jsonPath":"{path}","stringValue":"{text}"}}],"willContinue":true}}"#
        ))
    };
    let events = gemini(&[
        &piece(r#"{"name":"t","willContinue":true}"#),
        &more("$.a", "x"),
        &more("$.a", "y"),
        &more("$.l[0]", "z"),
        &piece("{}"),
        r#"{"candidates":[{"finishReason":"STOP"}]}"#,
    ]);
    let wanted = [
        "start",
        "0 call t()",
        "0 + {\"a\":\"x",
        "0 + y",
        "0 + \",\"l\":[\"z",
        "0 + \"]}",
        "0 end",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
    let events =
        gemini(&[&piece(r#"{"name":"t","willContinue":true}"#), &more("$.a", "x"), &more("$.a.b", "y")]);
    assert!(
        events.last().unwrap().starts_with("error server: the pieces of a call's arguments came in an order")
    );
}

#[test]
fn arguments_of_gemini_that_are_a_text_are_read() {
    let events = gemini(&[
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"{\"a\":1}"}}]},"finishReason":"STOP"}]}"#,
    ]);
    assert_eq!(events, ["start", "0 call f()", r#"0 + {"a":1}"#, "0 end", "done tool_use"]);
}

#[test]
fn a_text_of_gemini_is_a_text_whatever_stands_beside_it() {
    let events = gemini(&[
        r#"{"promptFeedback":{"blockReason":"BLOCKED_REASON_UNSPECIFIED"},"candidates":[{"content":{"parts":[{"text":"a","speechMetadata":{"speaker":"s"}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#,
    ]);
    assert_eq!(events, ["start", "0 text", "0 + a", "0 + b", "0 end", "done stop"]);
}

#[test]
fn a_signed_part_of_gemini_is_a_block_of_its_own() {
    let events = gemini(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"},{"text":"c","thoughtSignature":"S"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"d"},{"text":"","thoughtSignature":"T"}]},"finishReason":"STOP"}]}"#,
    ]);
    let wanted = [
        "start",
        "0 text",
        "0 + a",
        "0 + b",
        "0 end",
        "1 text",
        "1 + c",
        "1 end S",
        "2 text",
        "2 + d",
        "2 end",
        "3 text",
        "3 end T",
        "done stop",
    ];
    assert_eq!(events, wanted);
}

#[test]
fn a_call_of_gemini_whose_arguments_were_still_to_come_is_cut() {
    let begin =
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}"#;
    // Gemini 4 ends like this where it would continue in another answer.
    for word in ["MAX_TOKENS", "CONTINUATION"] {
        let end = format!(r#"{{"candidates":[{{"finishReason":"{word}","continuationToken":"t"}}]}}"#);
        assert_eq!(gemini(&[begin, &end]), ["start", "0 call f()", "done length"]);
    }
}

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
