//! How the Chat Completions decoder handles streams that no recording in `tests/data/fixtures` covers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a test that fails"
)]

use std::fs;
use std::path::Path;

use turnwheel::error::ErrorKind;
use turnwheel::json::Value;
use turnwheel::stream::{Assembler, AssistantMessageEvent as Event};
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::{Limits, Wire, WireOptions};

mod wire_words;

use wire_words::play;

const DONE: &str = "data: [DONE]\n\n";

fn wire(base_url: &str) -> OpenAiChat {
    OpenAiChat::new(WireOptions { base_url: base_url.into(), ..WireOptions::default() }).unwrap()
}

/// The events of chunks with these choices (each given as the members of choice 0) and `[DONE]`.
fn choices(choices: &[&str]) -> Vec<String> {
    let frame = |members: &&str| format!("data: {{\"choices\":[{{\"index\":0,{members}}}]}}\n\n");
    let body: String = choices.iter().map(frame).collect();
    play(&wire(""), &(body + DONE)).0
}

/// Like [`choices`], but each given as the entries of `tool_calls`.
fn calls(lists: &[&str], finish_reason: &str) -> Vec<String> {
    let mut all: Vec<String> =
        lists.iter().map(|list| format!("\"delta\":{{\"tool_calls\":[{list}]}}")).collect();
    all.push(format!("\"delta\":{{}},\"finish_reason\":\"{finish_reason}\""));
    choices(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn only_the_first_choice_counts_wherever_its_index_stands() {
    let body = [
        r#"data: {"choices":[{"delta":{"content":"no"},"index":1},{"delta":{"content":"a"},"index":0}]}"#,
        r#"data: {"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}"#,
        r#"data: {"choices":[{"finish_reason":"stop","delta":{"content":"b"}}]}"#,
        "data: [DONE]",
    ]
    .join("\n\n");
    let (events, remarks) = play(&wire(""), &body);
    assert_eq!(events, ["start", "0 text", "0 + a", "0 + b", "0 end", "done stop"]);
    assert_eq!(remarks.raw_stop_reason.as_deref(), Some("stop"));
}

#[test]
fn a_stream_that_ends_without_an_end_is_a_network_error() {
    let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let cut = [
        String::new(),
        text.to_owned(),
        format!("{text}data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"con"),
        format!("{text}: ping\n\n"),
        // Usage on a chunk with content does not end the answer.
        text.replace("}]}", "}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}"),
    ];
    for body in &cut {
        let (events, remarks) = play(&wire(""), body);
        let last = events.last().unwrap();
        assert!(last.starts_with("error network: the stream ended early"), "{body}: {last}");
        assert!(!remarks.saw_done);
    }
}

#[test]
fn a_call_of_a_cut_stream_is_never_whole() {
    let body = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#;
    let (events, _) = play(&wire(""), body);
    assert_eq!(events[..3], ["start", "0 call f(a)", "0 + {}"]);
    assert!(events[3].starts_with("error network"));
}

#[test]
fn usage_in_a_chunk_without_content_ends_a_stream_that_has_no_other_end() {
    let body = concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\"}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":22,\"completion_tokens\":5}}\n\n",
    );
    let (events, _) = play(&wire(""), body);
    assert_eq!(events, ["start", "0 text", "0 + 4", "usage 22 5", "0 end", "done stop"]);
}

#[test]
fn usage_ends_a_stream_where_nothing_comes_behind_it() {
    let usage = r#""usage":{"prompt_tokens":1,"completion_tokens":1}"#;
    let frame = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{{{delta}}}}}],{usage}}}\n\n");
    let (role, end) = (frame("\"role\":\"assistant\""), frame(""));
    let contents = [
        r#""content":"a""#,
        r#""reasoning":"a""#,
        r#""refusal":"a""#,
        r#""content":[{"type":"text","text":"a"}]"#,
        r#""reasoning_details":[{"type":"reasoning.text","text":"a"}]"#,
        r#""tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]"#,
    ];
    for content in contents {
        let content = frame(content);
        let last = |frames: &[&str]| play(&wire(""), &frames.concat()).0.pop().unwrap();
        for cut in [
            &[&*role][..],
            &[&content],
            &[&role, &content],
            &[&content, &content],
            &[&content, &end, &content],
        ] {
            assert!(last(cut).starts_with("error network"), "{cut:?}");
        }
        assert!(last(&[&content, &end]).starts_with("done "), "{content}");
        assert!(last(&[&content, &end, &role]).starts_with("done "), "{content}");
    }
    let trailer = format!("data: {{\"choices\":[],{usage}}}\n\n");
    assert_eq!(play(&wire(""), &[role, trailer].concat()).0[2..], ["done stop"]);
}

#[test]
fn deltas_in_forms_that_few_have() {
    let whole = |documents: &[&str]| {
        let body: String = documents.iter().map(|document| format!("data: {document}\n\n")).collect();
        play(&wire(""), &(body + DONE)).0
    };
    let expected = ["start", "0 text", "0 + a", "0 end", "done stop"];
    // Invalid choices and parts, a second choice, MiniMax's status for success, an
    // `error` that is not an error.
    assert_eq!(
        whole(&[r#"{"choices":[null,{"delta":{"content":"a"}},{"delta":{"content":"no"}}]}"#]),
        expected
    );
    assert_eq!(whole(&[r#"{"choices":[{"delta":{"content":["a",null]}}],"error":{}}"#]), expected);
    let good = r#"{"choices":[{"delta":{"content":"a"}}],"object":"x","base_resp":{"status_code":0,"status_msg":"ok"}}"#;
    assert_eq!(whole(&[good]), expected);
    assert_eq!(whole(&[r#"{"response":"a"}"#]), expected);
    // A message next to an answer does not mean that it failed.
    assert_eq!(whole(&[r#"{"message":"m","choices":[{"delta":{"content":"a"}}]}"#]), expected);
    assert_eq!(
        whole(&[r#"{"detail":"m","usage":{"prompt_tokens":1}}"#]),
        ["start", "usage 1 0", "done stop"]
    );
    let refused = r#""delta":{"content":[{"type":"refusal","refusal":"a"}]}"#;
    assert_eq!(choices(&[refused])[2..], ["0 + a", "0 end", "done refusal"]);
    assert_eq!(choices(&[r#""delta":{"reasoning_text":"a"}"#])[1..3], ["0 thinking", "0 + a"]);
    let thinking = r#""delta":{"content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]}"#;
    assert_eq!(choices(&[thinking])[1..5], ["0 thinking", "0 + a", "0 end", "1 text"]);
    // The last valid finish reason counts.
    let ends = [r#""delta":{},"finish_reason":"length""#, r#""delta":{},"finish_reason":"""#];
    assert_eq!(choices(&ends), ["start", "done length"]);
    // An id may be a number; the members next to a call may be null; a call of nulls is ignored.
    let call = r#"{"index":0,"id":7,"function":{"name":"f","arguments":"{}"},"extra_content":null}"#;
    let nothing = r#"{"index":1,"id":null,"type":null,"function":{"name":null,"arguments":null}}"#;
    assert_eq!(calls(&[call, nothing], "stop"), ["start", "0 call f(7)", "0 + {}", "0 end", "done tool_use"]);
    // Anything named an error is one, whatever it says; keep-alives alone are not an answer.
    assert_eq!(
        play(&wire(""), "event: error\ndata: {\"why\":1}\n\n").0,
        ["start", r#"error server: {"why":1}"#][1..]
    );
    assert!(play(&wire(""), r#"{"type":"keepalive"}"#).0[0].starts_with("error invalid_request"));
}

#[test]
fn pieces_of_calls_find_the_call_that_they_belong_to() {
    let call_events = |lists: &[&str]| {
        let mut events = calls(lists, "stop");
        assert_eq!((events.remove(0), events.pop().unwrap()), ("start".into(), "done tool_use".into()));
        events
    };
    let f = r#"{"function":{"name":"f","arguments":"{"}}"#;
    // A call begins when its name is whole: what stood beside the last piece of the name comes with the next one.
    let one = ["0 call f(a)", "0 + {}", "0 end"];
    // Another id without a name starts no call; the same name again is no other call, another name is.
    assert_eq!(
        call_events(&[
            &f.replace("{\"fu", "{\"id\":\"a\",\"fu"),
            r#"{"id":"b","function":{"arguments":"}"}}"#
        ]),
        one
    );
    let again = call_events(&[f, &f.replace("\"{\"", "\"}\"")]);
    assert_eq!(again, ["0 call f()", "0 + {}", "0 end"]);
    assert_eq!(call_events(&[f, r#"{"function":{"name":"g"}}"#])[2..], ["1 call g()", "0 end", "1 end"]);
    // The arguments may come first, then the id, then the name; or there may be no name at all.
    let late = [
        r#"{"index":0,"function":{"arguments":"{"}}"#,
        r#"{"index":0,"id":"a"}"#,
        r#"{"index":0,"function":{"name":"f","arguments":"}"}}"#,
    ];
    assert_eq!(call_events(&late), one);
    assert_eq!(call_events(&late[..2]), ["0 call (a)", "0 + {", "0 end"]);
    // A late id, and a name without arguments after complete ones, belong to the same call.
    let whole = r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#;
    let same = ["0 call f()", "0 + {}", "0 end"];
    assert_eq!(
        call_events(&[
            r#"{"index":0,"function":{"name":"f"}}"#,
            &whole.replace("{\"in", "{\"id\":\"a\",\"in")
        ]),
        one
    );
    assert_eq!(call_events(&[whole, r#"{"index":0,"function":{"name":"f"}}"#]), same);
    // `null` instead of arguments adds nothing; inside of arguments it is kept.
    let piece = |text: &str| whole.replace("{}", text);
    assert_eq!(call_events(&[&piece("null")]), ["0 call f()", "0 end"]);
    let more = |text: &str| format!(r#"{{"index":0,"function":{{"arguments":"{text}"}}}}"#);
    let events = call_events(&[&piece("[1,"), &more("null"), &more("]")]);
    assert_eq!(events, ["0 call f()", "0 + [1,null", "0 + ]", "0 end"]);
    // Only OpenRouter gets the details back.
    let details = r#""delta":{"reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#;
    let events = choices(&[details, &format!("\"delta\":{{\"tool_calls\":[{whole}]}}")]);
    assert_eq!(events[4..], ["1 call f()", "1 + {}", "1 end", "done tool_use"]);
}

#[test]
fn thinking_without_an_entry_and_entries_that_say_nothing_keep_their_places() {
    let play_details = |lists: &[&str]| {
        let mut body: String = lists
            .iter()
            .map(|list| format!("data: {{\"choices\":[{{\"delta\":{{{list}}}}}]}}\n\n"))
            .collect();
        body +=
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}"#;
        let mut events = play(&wire("https://openrouter.ai/api/v1"), &[&body, "\n\n", DONE].concat()).0;
        assert_eq!((events.remove(0), events.pop().unwrap()), ("start".into(), "done tool_use".into()));
        events
    };
    let events = play_details(&[
        r#""reasoning":"a""#,
        r#""reasoning_details":[null,{"type":"new","text":"no"},{"type":"reasoning.text","text":"","index":0}]"#,
        r#""reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"r"}]"#,
        r#""reasoning":"b""#,
    ]);
    let wanted = [
        "0 thinking",
        "0 + a",
        "0 end",
        "1 thinking",
        "1 end x redacted",
        "2 thinking",
        "2 + b",
        "2 end",
        "3 call f(a)",
        r#"3 end {"reasoning_details":[null,{"type":"reasoning.encrypted","id":"r"},null]}"#,
    ];
    assert_eq!(events, wanted);
    // Another type or another index is another entry; a missing index is no difference.
    let text = |index: &str, text: &str| format!(r#"{{"type":"reasoning.text","text":"{text}"{index}}}"#);
    let list = [
        text("", "a"),
        text(r#","index":1"#, "b"),
        r#"{"type":"reasoning.summary","summary":"c"}"#.into(),
        text(r#","index":1"#, "d"),
        text(r#","index":2"#, "e"),
        text("", "f"),
    ];
    let events = play_details(&[&format!("\"reasoning_details\":[{}]", list.join(","))]);
    let deltas: Vec<&str> = events.iter().filter(|event| event.contains('+')).map(String::as_str).collect();
    assert_eq!(deltas, ["0 + a", "0 + b", "1 + c", "2 + d", "3 + e", "3 + f"]);
    // What comes with the signature is added to what came with the text.
    let events = play_details(&[
        r#""reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":"f"}]"#,
        r#""reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"id":"no"}]"#,
        r#""reasoning_details":[{"type":"reasoning.text","signature":"s","id":"r","index":0,"format":null}]"#,
    ]);
    let end = r#"1 end {"reasoning_details":[{"type":"reasoning.text","index":0,"format":"f","id":"r"}]}"#;
    assert_eq!(events[3..], ["0 end s", "1 call f(a)", end]);
    let events = play_details(&[r#""reasoning":"a""#]);
    assert_eq!(events[2..], ["0 end", "1 call f(a)", "1 end"]);
    // A signature alone is worth a block.
    let events = play_details(&[r#""reasoning_details":[{"type":"reasoning.text","signature":"s"}]"#]);
    assert_eq!(events[..2], ["0 thinking", "0 end s"]);
}

#[test]
fn calls_are_told_apart_by_index_and_may_grow_in_turns() {
    let events = calls(
        &[
            r#"{"index":3,"id":"a","function":{"name":"f","arguments":"{\"x\""}},{"index":7,"id":"b","function":{"name":"g"}}"#,
            r#"{"index":7,"function":{"arguments":"{}"}}"#,
            r#"{"index":3,"function":{"arguments":":1}"}}"#,
        ],
        "tool_calls",
    );
    let wanted = [
        "start",
        "0 call f(a)",
        "0 + {\"x\"",
        "1 call g(b)",
        "1 + {}",
        "0 + :1}",
        "0 end",
        "1 end",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
}

#[test]
fn calls_without_an_index_are_told_apart_by_id_then_by_place() {
    let by_id = calls(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{"}},{"id":"b","function":{"name":"g","arguments":"{"}}"#,
            r#"{"id":"a","function":{"arguments":"}"}}"#,
            r#"{"function":{"arguments":"}"}}"#,
        ],
        "stop",
    );
    assert_eq!(by_id[1..7], ["0 call f(a)", "0 + {}", "1 call g(b)", "1 + {}", "0 end", "1 end"]);
    let by_place = calls(
        &[
            r#"{"function":{"name":"f","arguments":"{"}},{"function":{"name":"g","arguments":"{"}}"#,
            r#"{"function":{"arguments":"\"a\":1}"}},{"function":{"arguments":"\"b\":1}"}}"#,
        ],
        "stop",
    );
    let wanted = ["0 call f()", "0 + {\"a\":1}", "1 call g()", "1 + {\"b\":1}", "0 end", "1 end"];
    assert_eq!(by_place[1..7], wanted);
}

#[test]
fn calls_without_ids_are_two_when_whole_arguments_come_twice() {
    let whole = r#"{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}"#;
    let events = calls(&[whole, whole], "tool_calls");
    assert_eq!(events[1..5], ["0 call f()", "0 + {\"a\":1}", "1 call f()", "1 + {\"a\":1}"]);
    let repeated = [
        r#"{"index":0,"function":{"name":"f","arguments":"{\"a\""}}"#,
        r#"{"index":0,"function":{"name":"f","arguments":":1}"}}"#,
    ];
    let events = calls(&repeated, "tool_calls");
    assert_eq!(events[1..4], ["0 call f()", "0 + {\"a\":1}", "0 end"]);
}

#[test]
fn a_call_waits_for_its_name() {
    let events = calls(
        &[
            r#"{"index":0,"id":"a","function":{"arguments":"{"}}"#,
            r#"{"index":0,"function":{"name":"f","arguments":"}"}}"#,
        ],
        "tool_calls",
    );
    assert_eq!(events, ["start", "0 call f(a)", "0 + {}", "0 end", "done tool_use"]);
}

#[test]
fn of_a_cut_message_the_last_call_is_cut_unless_something_began_after_it() {
    let two = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
    ];
    for reason in ["length", "content_filter"] {
        let events = calls(&two, reason);
        let wanted = ["0 call f(a)", "0 + {}", "1 call g(b)", "1 + {}", "0 end"];
        assert_eq!(events[1..6], wanted);
        assert_eq!(events[6], format!("done {reason}"));
    }
    let events = choices(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#,
        r#""delta":{"content":"And"},"finish_reason":"length""#,
    ]);
    assert_eq!(events[3..], ["1 text", "1 + And", "1 end", "0 end", "done length"]);
}

#[test]
fn a_legacy_function_call_is_a_call() {
    let events = choices(&[
        r#""delta":{"function_call":{"name":"f","arguments":""}}"#,
        r#""delta":{"function_call":{"arguments":"{}"}}"#,
        r#""delta":{},"finish_reason":"function_call""#,
    ]);
    assert_eq!(events, ["start", "0 call f()", "0 + {}", "0 end", "done tool_use"]);
}

#[test]
fn native_calls_of_workers_ai_stand_at_the_top() {
    let body = concat!(
        "data: {\"response\":null,\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}},{\"name\":\"f\",\"arguments\":{\"a\":2}}]}\n\n",
        "data: [DONE]\n\n"
    );
    let (events, _) = play(&wire(""), body);
    let wanted = [
        "start",
        "0 call f()",
        "0 + {\"a\":1}",
        "1 call f()",
        "1 + {\"a\":2}",
        "0 end",
        "1 end",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
}

#[test]
fn thinking_that_comes_in_two_fields_is_counted_once() {
    let events = choices(&[
        r#""delta":{"reasoning":"a","reasoning_content":"a"}"#,
        r#""delta":{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}"#,
        r#""delta":{"reasoning":"","reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]}"#,
        r#""delta":{"content":"c"},"finish_reason":"stop""#,
    ]);
    let wanted =
        ["start", "0 thinking", "0 + a", "0 + b", "0 end s", "1 text", "1 + c", "1 end", "done stop"];
    assert_eq!(events, wanted);
}

#[test]
fn each_entry_of_the_reasoning_details_is_a_block_and_openrouter_gets_the_rest_of_it_back() {
    let frames = [
        r#""delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"a","format":"f","index":0}]}"#,
        r#""delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"b","format":"f","index":0}]}"#,
        r#""delta":{"reasoning_details":[{"type":"reasoning.text","text":"c","index":1}]}"#,
        r#""delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"r","index":0}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]},"finish_reason":"tool_calls""#,
    ];
    let frame = |members: &&str| format!("data: {{\"choices\":[{{{members}}}]}}\n\n");
    let body = frames.iter().map(frame).collect::<String>() + DONE;
    let (events, _) = play(&wire("https://openrouter.ai/api/v1"), &body);
    let blocks = [
        "0 thinking",
        "0 + a",
        "0 + b",
        "0 end",
        "1 thinking",
        "1 + c",
        "1 end",
        "2 thinking",
        "2 end x redacted",
    ];
    assert_eq!(events[1..10], blocks);
    let metadata = concat!(
        r#"{"reasoning_details":[{"type":"reasoning.summary","format":"f","index":0},"#,
        r#"{"type":"reasoning.text","index":1},{"type":"reasoning.encrypted","id":"r","index":0}]}"#,
    );
    assert_eq!(events[11], format!("3 end {metadata}"));
}

#[test]
fn the_signature_that_gemini_hides_beside_a_call_is_kept() {
    let events = calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}"#,
        ],
        "tool_calls",
    );
    assert_eq!(events[3], r#"0 end {"extra_content":{"google":{"thought_signature":"s"}}}"#);
}

#[test]
fn a_refusal_is_a_block_of_its_own() {
    let body = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"Well. \"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    );
    let (events, remarks) = play(&wire(""), body);
    assert_eq!(
        events,
        ["start", "0 text", "0 + Well. ", "0 end", "1 text", "1 + No.", "1 end", "done refusal"]
    );
    assert_eq!(remarks.refusals, [1]);
}

#[test]
fn the_word_of_the_server_is_translated() {
    let finish_reasons = [
        ("stop", "done stop"),
        ("eos", "done stop"),
        ("length", "done length"),
        ("model_length", "done length"),
        ("max_tokens", "done length"),
        ("abort", "error server: the provider ended the answer with `abort`"),
        ("model_context_window_exceeded", "done length"),
        ("content_filter", "done content_filter"),
        ("sensitive", "done content_filter"),
        ("network_error", "error server: the provider ended the answer with `network_error`"),
        ("something_new", "done stop"),
        ("LENGTH", "done length"),
        ("MAX_TOKENS", "done length"),
        ("CONTENT_FILTER", "done content_filter"),
        ("ERROR", "error server: the provider ended the answer with `error`"),
        (
            "insufficient_system_resource",
            "error overloaded: the provider ended the answer with `insufficient_system_resource`",
        ),
        ("error", "error server: the provider ended the answer with `error`"),
    ];
    for (word, wanted) in finish_reasons {
        let events = choices(&[&format!("\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"{word}\"")]);
        assert_eq!(events.last().unwrap(), wanted);
    }
}

#[test]
fn an_error_in_any_form_ends_the_stream() {
    let errors = [
        (r#"data: {"error":{"message":"m","type":"server_error"}}"#, "error server: m"),
        (r#"data: {"error":"m"}"#, "error server: m"),
        (
            r#"data: {"object":"error","message":"m","type":"BadRequestError","code":400}"#,
            "error invalid_request: m",
        ),
        (r#"data: {"choices":[{"error":{"code":502,"message":"m"},"delta":{}}]}"#, "error server: m"),
        (r#"data: {"message":"m","code":429}"#, "error throttled: m"),
        (r#"data: {"choices":[{"error":{"message":"no"}}],"error":{"message":"m"}}"#, "error server: m"),
        (r#"data: {"errors":[{"message":"m"}]}"#, "error server: m"),
        (r#"data: {"choices":null,"base_resp":{"status_code":1000,"status_msg":"m"}}"#, "error server: m"),
        (r#"{"choices":null,"base_resp":{"status_code":1000,"status_msg":"m"}}"#, "error server: m"),
        (
            r#"data: {"choices":[{"delta":{}}],"x_groq":{"id":"r","error":"over capacity"}}"#,
            "error overloaded: over capacity",
        ),
        ("event: error\ndata: m", "error server: m"),
        ("event: error\ndata: {\"message\":\"m\"}", "error server: m"),
        (r#"error: {"code":400,"message":"m","type":"invalid_request_error"}"#, "error invalid_request: m"),
        ("{\n \"error\": {\n  \"message\": \"m\", \"code\": 503 }\n}", "error overloaded: m"),
        (r#"{"detail":"m"}"#, "error server: m"),
        (r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#, "error throttled: m"),
    ];
    for (error, wanted) in errors {
        for end in ["", "\n", "\n\n"] {
            let (events, _) = play(&wire(""), &format!("{error}{end}"));
            assert_eq!(events.last().unwrap(), wanted, "{error}");
            let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
            let (events, _) = play(&wire(""), &format!("{text}{error}{end}"));
            assert_eq!(events[..3], ["start", "0 text", "0 + Hel"]);
            assert_eq!(events.last().unwrap(), wanted, "{error}");
        }
    }
}

#[test]
fn a_page_of_html_in_place_of_a_stream_is_shown_by_its_title() {
    let (events, _) = play(&wire(""), "<html><head><title>Sign in</title></head></html>");
    let wanted = "error invalid_request: the answer is no stream of events but: Sign in";
    assert!(events[0].starts_with(wanted), "{}", events[0]);
}

#[test]
fn a_server_that_cannot_stream_gives_its_answer_at_once() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"t",
        "tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let (events, _) = play(&wire(""), body);
    let wanted = [
        "start",
        "usage 3 2",
        "0 thinking",
        "0 + t",
        "0 end",
        "1 text",
        "1 + Hi",
        "1 end",
        "2 call f(a)",
        "2 + {}",
        "2 end",
        "done tool_use",
    ];
    assert_eq!(events, wanted);
    // Also as the only frame of a stream.
    let frame = format!("data: {}\n\n{DONE}", body.replace('\n', ""));
    assert_eq!(play(&wire(""), &frame).0, wanted);
}

#[test]
fn a_chunk_that_is_no_json_is_not_passed_over_in_silence() {
    let body = format!("data: {{\"choices\":[{{\"delta\":}}]}}\n\n{DONE}");
    let (events, _) = play(&wire(""), &body);
    assert!(events[0].starts_with("error server: a chunk of the stream is no JSON"), "{}", events[0]);
    let (events, _) = play(&wire(""), &format!("data: keep-alive\n\ndata:\n\n{DONE}"));
    assert_eq!(events, ["start", "done stop"]);
}

#[test]
fn nothing_comes_after_the_end() {
    let more = "data: {\"choices\":[{\"delta\":{\"content\":\"more\"}}]}\n\n";
    let (events, _) = play(&wire(""), &format!("{DONE}{more}"));
    assert_eq!(events, ["start", "done stop"]);
    let (events, remarks) = play(&wire(""), &format!("data: {{\"error\":\"m\"}}\n\n{more}{DONE}"));
    assert_eq!(events, ["start", "error server: m"]);
    assert!(remarks.saw_done);
}

#[test]
fn an_answer_that_breaks_a_limit_is_an_error_that_names_it_and_is_not_retried() {
    let limits = Limits { line: 300, calls: 3, arguments: 50, ..Limits::default() };
    let wire = OpenAiChat::new(WireOptions { limits, ..WireOptions::default() }).unwrap();
    let call = |index: usize, arguments: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}}}]}}}}]}}\n\n"
        )
    };
    let bodies = [
        ("a line of the stream is longer than 300 bytes", "x".repeat(301)),
        ("the answer holds more than 3 tool calls", (0..4).map(|index| call(index, "{}")).collect()),
        (
            "the arguments of the tool calls are longer than 50 bytes",
            (0..6).map(|_| call(0, "1234567890")).collect(),
        ),
    ];
    for (message, body) in bodies {
        let mut decoder = wire.decoder();
        let mut events = Vec::new();
        decoder.feed(body.as_bytes(), &mut events);
        let Some(Event::Error(error)) = events.last() else { panic!("no error: {message}") };
        assert_eq!(
            (error.code, error.message.as_str(), error.retryable),
            (ErrorKind::Server, message, false)
        );
    }
}

#[test]
fn usage_is_read_in_every_dialect() {
    let dialects = [
        (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, (10, 5, 0, 0, None)),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}"#,
            (4, 5, 4, 2, Some(3)),
        ),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4}"#, (6, 5, 4, 0, None)),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":4}"#, (6, 5, 4, 0, None)),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}"#,
            (10, 12, 0, 0, Some(7)),
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":12}}"#,
            (0, 5, 12, 0, None),
        ),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":4}"#, (6, 5, 4, 0, None)),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_token_details":{"cached_tokens":4}}"#,
            (6, 5, 4, 0, None),
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"cache_read_input_tokens":4,"cache_creation_input_tokens":3}"#,
            (3, 5, 4, 3, None),
        ),
        (r#"{"prompt_tokens":10}"#, (10, 0, 0, 0, None)),
        (r#"{"completion_tokens":5,"reasoning_tokens":2}"#, (0, 5, 0, 0, Some(2))),
    ];
    for (usage, wanted) in dialects {
        for frame in [
            format!("{{\"choices\":[],\"usage\":{usage}}}"),
            format!("{{\"choices\":[{{\"delta\":{{}},\"usage\":{usage}}}],\"usage\":null}}"),
            format!("{{\"x_groq\":{{\"usage\":{usage}}},\"choices\":[]}}"),
        ] {
            let mut decoder = wire("").decoder();
            let mut events = Vec::new();
            decoder.feed(format!("data: {frame}\n\n{DONE}").as_bytes(), &mut events);
            let Some(Event::Done { usage: Some(got), .. }) = events.last() else { panic!("{frame}") };
            let got = (got.input, got.output, got.cache_read, got.cache_write, got.reasoning);
            assert_eq!(got, wanted, "{frame}");
        }
    }
}

#[test]
fn compat_is_checked_when_the_wire_is_made() {
    let compat = Value::parse(r#"{"maxTokenField":"max_tokens"}"#).unwrap();
    let error = OpenAiChat::new(WireOptions { compat, ..WireOptions::default() }).err().unwrap();
    assert!(
        error.starts_with("unknown `compat` switch `maxTokenField` of this wire; it has `maxTokensField` ")
    );
}

/// The bodies of all recorded answers of this wire.
fn recordings() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/openai-chat");
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "sse"))
        .map(|path| fs::read(path).unwrap())
        .collect()
}

/// Feeds a body and checks that the events are in a legal order and end once.
fn legal_events(body: &[u8], piece: usize) -> Vec<Event> {
    let mut decoder = wire("").decoder();
    let mut events = Vec::new();
    for bytes in body.chunks(piece) {
        decoder.feed(bytes, &mut events);
    }
    decoder.finish(&mut events);
    let mut assembler = Assembler::default();
    for event in &events {
        assembler.push(event.clone()).unwrap();
    }
    let is_end = |event: &Event| matches!(event, Event::Done { .. } | Event::Error(_));
    assert_eq!(events.iter().position(is_end), Some(events.len() - 1));
    events
}

#[test]
fn a_recording_cut_anywhere_ends_legally_and_no_call_of_it_is_whole_before_its_end() {
    for body in recordings() {
        for at in (0..body.len()).step_by(body.len() / 60 + 1) {
            let events = legal_events(&body[..at], 97);
            let is_whole = events.iter().any(|event| matches!(event, Event::ToolCallEnd { .. }));
            assert!(!is_whole || matches!(events.last(), Some(Event::Done { .. })));
        }
    }
}

#[test]
fn damaged_bytes_do_no_harm() {
    const MARKS: &[u8] = b"\"\\{}[],:\n\r\0\xff u0n";
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for mut body in recordings() {
        for _ in 0..20 {
            for _ in 0..5 {
                let at = random(body.len());
                body[at] = MARKS[random(MARKS.len())];
            }
            legal_events(&body, 1 + random(300));
        }
    }
}
