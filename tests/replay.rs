//! Sends each recorded answer of Messages, Responses and Gemini back in the next request, with results
//! for its calls: the request must obey the provider's rules.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic here is a test that fails")]

use std::fs;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, MessageStopReason, ToolResultMessage, Usage,
};
use turnwheel::stream::{Assembler, AssistantMessageEvent, ModelRequest};
use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::gemini::Gemini;
use turnwheel::wires::openai_responses::OpenAiResponses;
use turnwheel::wires::{Wire, WireOptions};

/// The answers of a folder, and the bodies of the requests that follow them. `model` is the model asked.
fn requests(
    folder: &str,
    new: impl Fn() -> Box<dyn Wire>,
    model: &str,
) -> Vec<(String, Rc<AssistantMessage>, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures").join(folder);
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "sse") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if let Some(answer) = answer(new().as_ref(), &fs::read(&path).unwrap(), model) {
                let body = next_request(new().as_mut(), &answer, model);
                all.push((name, answer, body));
            }
        }
    }
    assert!(all.len() > 15, "{folder}");
    all
}

/// Decodes a body into a message; `None` if it failed.
fn answer(wire: &dyn Wire, body: &[u8], model: &str) -> Option<Rc<AssistantMessage>> {
    let mut decoder = wire.decoder();
    let (mut events, mut assembler) = (Vec::new(), Assembler::default());
    decoder.feed(body, &mut events);
    decoder.finish(&mut events);
    let mut end = MessageStopReason::Error;
    for event in events {
        if let AssistantMessageEvent::Done { stop_reason, .. } = &event {
            end = *stop_reason;
        }
        assembler.push(event).unwrap();
    }
    let mut content = assembler.finish(end).content;
    for (at, block) in content.iter_mut().enumerate() {
        if let ContentBlock::ToolCall(call) = block
            && call.call_id.is_empty()
        {
            call.call_id = format!("made_{at}");
        }
    }
    let message = AssistantMessage {
        content,
        provider: wire.provider().to_owned(),
        model: model.to_owned(),
        usage: Usage::default(),
        stop_reason: end,
        error: None,
        timestamp: 0,
        id: None,
        foreign: None,
    };
    if end == MessageStopReason::Error { None } else { Some(Rc::new(message)) }
}

fn next_request(wire: &mut dyn Wire, answer: &Rc<AssistantMessage>, model: &str) -> Value {
    let user = |text: &str| AgentMessage::user(text).as_llm().unwrap();
    let mut messages = vec![user("Go"), LlmMessage::Assistant(answer.clone())];
    messages.extend(answer.tool_calls().map(|call| {
        LlmMessage::ToolResult(Rc::new(ToolResultMessage {
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            content: vec![ContentBlock::text("done")],
            details: None,
            is_error: false,
            cause: None,
            timestamp: 0,
            foreign: None,
        }))
    }));
    messages.push(user("And now?"));
    let request = ModelRequest {
        model: model.into(),
        system_prompt: "".into(),
        messages: Rc::new(messages),
        tools: Rc::from([]),
        options: Rc::default(),
        api_key: None,
        output: None,
        session_id: None,
    };
    serde_json::from_slice(&wire.encode(&request).body).unwrap()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn of_type<'v>(blocks: &'v [Value], kinds: &[&str]) -> Vec<&'v Value> {
    blocks.iter().filter(|block| kinds.contains(&block["type"].as_str().unwrap_or_default())).collect()
}

#[test]
fn what_one_wire_said_goes_to_another_without_what_only_the_first_understands() {
    let names = ["openai-chat", "openai-responses", "anthropic", "gemini"];
    let new = |name: &str| turnwheel::wires::wire(name, WireOptions::default()).unwrap();
    let mut handed = 0;
    for from in names {
        for (name, answer, _) in requests(from, || new(from), "m") {
            for to in names.iter().filter(|to| **to != from) {
                let mut target = new(to);
                // OpenAI is one provider with two wires.
                let model = if target.provider() == answer.provider { "another" } else { "m" };
                let body = next_request(target.as_mut(), &answer, model);
                let text = body.to_string();
                for block in &answer.content {
                    let secrets = match block {
                        ContentBlock::Thinking(block) => [Some(&block.thinking), block.signature.as_ref()],
                        ContentBlock::Text(block) => [None, block.signature.as_ref()],
                        _ => [None, None],
                    };
                    for secret in secrets.into_iter().flatten().filter(|secret| secret.len() > 15) {
                        let written = Value::from(secret.as_str()).to_string();
                        let inner = written.trim_matches('"');
                        assert!(
                            !text.contains(inner) || answer.text().contains(secret),
                            "{name} to {to}: {inner}"
                        );
                    }
                }
                for foreign in
                    ["redacted_thinking", "encrypted_content\":", "server_tool_use", "executableCode"]
                {
                    assert!(!text.contains(foreign), "{name} to {to}: {foreign}");
                }
                let (calls, results) = pairs(to, &body);
                assert_eq!(calls.len(), answer.tool_calls().count(), "{name} to {to}");
                assert_eq!(calls, results, "{name} to {to}");
                handed += calls.len();
            }
        }
    }
    assert!(handed > 100, "{handed} calls were handed over");
}

/// The ids of the calls in a request and those of the results; for Gemini, which has no ids, the names.
fn pairs(wire: &str, body: &Value) -> (Vec<Value>, Vec<Value>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let messages = ["messages", "input", "contents"].iter().flat_map(|key| list(body, key));
    for message in messages {
        let parts = [list(message, "content"), list(message, "parts"), list(message, "tool_calls")].concat();
        for part in parts.iter().chain([message]) {
            let id = |value: &Value| if value.is_null() { None } else { Some(value.clone()) };
            let (call, result) = match wire {
                "anthropic" => (id(&part["id"]), id(&part["tool_use_id"])),
                "gemini" => (id(&part["functionCall"]["name"]), id(&part["functionResponse"]["name"])),
                "openai-chat" => (id(&part["id"]), id(&part["tool_call_id"])),
                _ if part["output"].is_null() => (id(&part["call_id"]), None),
                _ => (None, id(&part["call_id"])),
            };
            calls.extend(call);
            results.extend(result);
        }
    }
    (calls, results)
}

#[test]
fn anthropic_gets_its_thinking_back_unchanged_and_a_result_for_each_call() {
    let new = || -> Box<dyn Wire> { Box::new(Anthropic::new(WireOptions::default()).unwrap()) };
    for (name, answer, body) in requests("anthropic", new, "claude-sonnet-4-5") {
        let messages = list(&body, "messages");
        let Some(at) = messages.iter().position(|message| message["role"] == "assistant") else {
            let is_refused = answer.stop_reason == MessageStopReason::Refusal;
            assert!(answer.content.is_empty() || is_refused, "{name}");
            continue;
        };
        let (answer_blocks, result_blocks) =
            (list(&messages[at], "content"), list(&messages[at + 1], "content"));
        let signed =
            |block: &&ContentBlock| matches!(block, ContentBlock::Thinking(t) if t.signature.is_some());
        let wanted: Vec<Value> = answer
            .content
            .iter()
            .filter(signed)
            .map(|block| match block {
                ContentBlock::Thinking(block) if block.redacted => {
                    serde_json::json!({"type": "redacted_thinking", "data": block.signature})
                }
                ContentBlock::Thinking(block) => serde_json::json!(
                    {"type": "thinking", "thinking": block.thinking, "signature": block.signature}),
                _ => Value::Null,
            })
            .collect();
        let got = of_type(answer_blocks, &["thinking", "redacted_thinking"]);
        assert_eq!(got, wanted.iter().collect::<Vec<_>>(), "{name}");
        // Citations are for the app; their texts carry those that go back.
        let is_theirs = |block: &&ContentBlock| matches!(block, ContentBlock::Raw(raw) if raw.to_value().text_at("type") != Some("citations"));
        let raw = answer.content.iter().filter(is_theirs).count();
        let converted = of_type(answer_blocks, &["thinking", "redacted_thinking", "text", "tool_use"]).len();
        assert_eq!(answer_blocks.len() - converted, raw, "{name}");
        assert!(
            of_type(answer_blocks, &["text"]).iter().all(|text| !text["text"]
                .as_str()
                .unwrap()
                .trim()
                .is_empty())
        );
        let calls: Vec<_> =
            of_type(answer_blocks, &["tool_use"]).iter().map(|call| call["id"].clone()).collect();
        let results: Vec<_> =
            result_blocks[..calls.len()].iter().map(|result| result["tool_use_id"].clone()).collect();
        assert_eq!(calls, results, "{name}");
    }
}

#[test]
fn responses_gets_thinking_in_front_of_what_came_of_it_and_an_output_for_each_call() {
    let new = || -> Box<dyn Wire> { Box::new(OpenAiResponses::new(WireOptions::default()).unwrap()) };
    let mut thoughts = 0;
    for (name, _, body) in requests("openai-responses", new, "gpt-5-mini") {
        let input = list(&body, "input");
        for (at, item) in input.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
            thoughts += 1;
            let is_whole = item["encrypted_content"].is_string() || !list(item, "content").is_empty();
            assert!(is_whole && item["id"].is_string() && item["summary"].is_array(), "{name}: {item}");
            let next = &input[at + 1];
            assert!(next["type"] != "reasoning" && next["role"] != "user", "{name}: {next}");
        }
        let ids = |kinds: &[&str]| -> Vec<Value> {
            of_type(input, kinds).iter().map(|item| item["call_id"].clone()).collect()
        };
        let calls = ids(&["function_call", "custom_tool_call"]);
        assert_eq!(calls, ids(&["function_call_output", "custom_tool_call_output"]), "{name}");
    }
    assert!(thoughts > 2, "{thoughts} thoughts were given back");
}

#[test]
fn gemini_gets_every_signature_back_on_its_part_and_a_response_for_each_call() {
    let new = || -> Box<dyn Wire> { Box::new(Gemini::new(WireOptions::default()).unwrap()) };
    for (name, answer, body) in requests("gemini", new, "gemini-3-pro-preview") {
        let contents = list(&body, "contents");
        assert!(contents.iter().all(|content| !list(content, "parts").is_empty()), "{name}");
        let Some(at) = contents.iter().position(|content| content["role"] == "model") else {
            assert!(answer.content.is_empty(), "{name}");
            continue;
        };
        let parts = list(&contents[at], "parts");
        let calls: Vec<_> = parts.iter().filter(|part| part["functionCall"].is_object()).collect();
        let responses =
            list(&contents[at + 1], "parts").iter().filter(|part| part["functionResponse"].is_object());
        assert_eq!(calls.len(), responses.count(), "{name}");
        assert!(calls.first().is_none_or(|call| call["thoughtSignature"].is_string()), "{name}");
        let signed = answer.content.iter().filter(|block| match block {
            ContentBlock::Text(block) => block.signature.is_some(),
            ContentBlock::Thinking(block) => block.signature.is_some(),
            _ => false,
        });
        let got =
            parts.iter().filter(|part| part["text"].is_string() && part["thoughtSignature"].is_string());
        assert_eq!(signed.count(), got.count(), "{name}");
    }
}
