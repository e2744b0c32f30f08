//! Requests on all wires: each file of `tests/data/requests/WIRE` holds a request and the body (address, headers) that
//! must come of it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a test that fails"
)]

use std::fs;
use std::path::Path;
use std::rc::Rc;

use turnwheel::json::{FromJson, ToJson, Value};
use turnwheel::message::LlmMessage;
use turnwheel::provider::openai_chat::OpenAiChat;
use turnwheel::provider::{HttpRequest, Wire, WireOptions, wire};
use turnwheel::stream::{ModelRequest, StreamOptions, ToolSchema};

/// One file.
struct Case {
    wire: &'static str,
    name: String,
    file: Value,
}

/// The folders of the wires, and how many cases each has at least.
const WIRES: [(&str, usize); 4] =
    [("openai_chat", 83), ("anthropic", 31), ("openai_responses", 30), ("gemini", 23)];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (wire, least) in WIRES {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/requests").join(wire);
        let before = cases.len();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{wire}/{}", path.file_stem().unwrap().to_string_lossy());
            let file = Value::parse(&fs::read_to_string(path).unwrap()).unwrap();
            cases.push(Case { wire, name, file });
        }
        assert!(cases.len() - before >= least, "{wire}");
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    fn wire(&self) -> Box<dyn Wire> {
        let options = self.file.get("options").unwrap();
        let base_url = options.get("baseUrl").and_then(Value::as_str).unwrap_or_default().to_owned();
        let headers = options.get("headers").and_then(Value::as_object).into_iter().flat_map(|h| h.iter());
        let headers =
            headers.map(|(name, value)| (name.to_owned(), value.as_str().unwrap().to_owned())).collect();
        let compat = options.get("compat").cloned().unwrap_or_default();
        let dangerously_allow_browser = options.get("dangerouslyAllowBrowser").is_some();
        let options =
            WireOptions { base_url, headers, compat, dangerously_allow_browser, ..WireOptions::default() };
        wire(&self.wire.replace('_', "-"), options).unwrap()
    }

    fn request(&self) -> ModelRequest {
        let request = self.file.get("request").unwrap();
        let text = |key: &str| Rc::from(request.get(key).and_then(Value::as_str).unwrap_or_default());
        let tools = request.get("tools").and_then(Value::as_array).unwrap().iter().map(|tool| ToolSchema {
            name: tool.get("name").and_then(Value::as_str).unwrap().into(),
            description: tool.get("description").and_then(Value::as_str).unwrap().into(),
            parameters: tool.get("parameters").unwrap().to_raw(),
        });
        ModelRequest {
            model: text("model"),
            system_prompt: text("systemPrompt"),
            messages: Rc::new(Vec::from_json(request.get("messages").unwrap()).unwrap()),
            tools: tools.collect(),
            options: Rc::new(StreamOptions::from_json(request.get("options").unwrap()).unwrap()),
            api_key: request.get("apiKey").and_then(Value::as_str).map(Rc::from),
            output: request.get("output").map(ToJson::to_raw),
            session_id: request.get("sessionId").and_then(Value::as_str).map(Rc::from),
        }
    }
}

fn body(request: &HttpRequest) -> Value {
    Value::parse(std::str::from_utf8(&request.body).unwrap()).unwrap()
}

#[test]
fn every_request_is_written_as_its_server_wants_it() {
    for case in cases() {
        let got = case.wire().encode(&case.request());
        if let Some(url) = case.file.get("url") {
            assert_eq!(Some(got.url.as_str()), url.as_str(), "{}", case.name);
        }
        if let Some(headers) = case.file.get("headers") {
            let got = got.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
            assert_eq!(&Value::Object(got.collect()), headers, "{}", case.name);
        }
        let wanted = case.file.get("body").unwrap();
        assert_eq!(body(&got).to_json(), ordered_as(&body(&got), wanted).to_json(), "{}", case.name);
    }
}

#[test]
fn a_conversation_that_grew_message_by_message_gives_the_same_bytes() {
    for case in cases() {
        let request = case.request();
        let whole = case.wire().encode(&request);
        let mut wire = case.wire();
        for length in 0..=request.messages.len() {
            let messages = Rc::new(request.messages[..length].to_vec());
            wire.encode(&ModelRequest { messages, ..request.clone() });
        }
        assert_eq!(wire.encode(&request), whole, "{}", case.name);
        let shorter = Rc::new(request.messages.get(..1).unwrap_or_default().to_vec());
        let shorter = ModelRequest { messages: shorter, ..request.clone() };
        assert_eq!(wire.encode(&shorter), case.wire().encode(&shorter), "{}", case.name);
        let other = ModelRequest { model: "another".into(), tools: Rc::from([]), ..request.clone() };
        assert_eq!(wire.encode(&other), case.wire().encode(&other), "{}", case.name);
        assert_eq!(wire.encode(&request), whole, "{}", case.name);
    }
}

#[test]
fn a_call_and_its_result_always_get_the_same_id() {
    for (base_url, length) in [("https://api.mistral.ai/v1", 9..=9), ("https://api.openai.com/v1", 1..=40)] {
        for id in ["t1#2", "call_00000000000000000000000000000000000000000000000001", "\u{e9}"] {
            let messages = [
                format!(
                    r#"{{"role":"assistant","content":[{{"type":"tool_call","callId":"{id}","toolName":"t"}}]}}"#
                ),
                format!(r#"{{"role":"tool_result","callId":"{id}","toolName":"t","content":"x"}}"#),
            ];
            let messages = messages.iter().map(|m| LlmMessage::from_json(&Value::parse(m).unwrap()).unwrap());
            let messages = Rc::new(messages.collect());
            let request = ModelRequest {
                model: "m".into(),
                system_prompt: "".into(),
                messages,
                tools: Rc::from([]),
                options: Rc::default(),
                api_key: None,
                output: None,
                session_id: None,
            };
            let options = WireOptions { base_url: base_url.into(), ..WireOptions::default() };
            let body = body(&OpenAiChat::new(options).unwrap().encode(&request));
            let messages = body.get("messages").and_then(Value::as_array).unwrap();
            let call = messages[0].get("tool_calls").and_then(Value::as_array).unwrap()[0].get("id").unwrap();
            assert_eq!(messages[1].get("tool_call_id"), Some(call));
            assert!(length.contains(&call.as_str().unwrap().len()), "{}", call.to_json());
        }
    }
}

/// `value` with its keys in the order of `like`, so that a difference can be read.
fn ordered_as(like: &Value, value: &Value) -> Value {
    match (like, value) {
        (Value::Object(like), Value::Object(map)) => {
            let known =
                like.iter().filter_map(|(key, l)| Some((key.to_owned(), ordered_as(l, map.get(key)?))));
            let unknown = map.iter().filter(|(key, _)| like.get(key).is_none());
            Value::Object(known.chain(unknown.map(|(key, v)| (key.to_owned(), v.clone()))).collect())
        }
        (Value::Array(like), Value::Array(items)) if like.len() == items.len() => {
            Value::Array(like.iter().zip(items).map(|(l, v)| ordered_as(l, v)).collect())
        }
        _ => value.clone(),
    }
}
