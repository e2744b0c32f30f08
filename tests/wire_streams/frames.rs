//! Frames in forms that no server should send, and ends that are none, on each wire.

use turnwheel::json::RawJson;
use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::gemini::Gemini;
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::openai_responses::OpenAiResponses;
use turnwheel::wires::{Wire, WireOptions};

use super::kit::{STOP, block, delta, gemini, messages, reason, responses, tool};
use crate::wire_words::play;

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
fn a_sign_of_life_beside_the_frames_is_no_error() {
    let alive = "{\"type\":\"keepalive\"}\n";
    let hi = r#"data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#;
    let events = play(&Gemini::new(WireOptions::default()).unwrap(), &format!("{alive}{hi}\n\n{alive}")).0;
    assert_eq!(events, ["start", "0 text", "0 + hi", "0 end", "done stop"]);
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
