//! Streams of Responses.

use turnwheel::json::{RawJson, Value};
use turnwheel::wires::WireOptions;
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::openai_responses::OpenAiResponses;

use super::kit::{STOP, block, delta, frames, gemini, messages, reason, responses};
use crate::wire_words::play;

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
