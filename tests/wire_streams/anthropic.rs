//! Streams of Messages.

use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::{Wire, WireOptions};

use super::kit::{STOP, block, delta, messages, reason, tool};

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
