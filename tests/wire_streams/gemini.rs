//! Streams of Gemini.

use turnwheel::wires::WireOptions;
use turnwheel::wires::gemini::Gemini;

use super::kit::gemini;
use crate::wire_words::play;

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
