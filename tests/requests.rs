//! Requests on all wires: each file in `tests/data/requests/WIRE` holds a request and the expected
//! body (and URL and headers).

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
use turnwheel::stream::{ModelRequest, StreamOptions, ToolSchema};
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::{HttpRequest, Wire, WireOptions, wire};

/// One file.
struct Case {
    wire: &'static str,
    name: String,
    file: Value,
}

/// The folders of the wires, and the least number of cases in each.
const WIRES: [(&str, usize); 4] =
    [("openai_chat", 93), ("anthropic", 43), ("openai_responses", 32), ("gemini", 27)];

/// Wire (and `compat`), model, options, and the members of the body besides model, messages and tools.
const TOLD: &str = r#"
anthropic | claude-3-opus-20240229 | {"reasoning":"off"} | {"max_tokens":4096}
anthropic | claude-3-5-sonnet-20241022 | {"reasoning":"none"} | {"max_tokens":8192}
anthropic | claude-3-7-sonnet-20250219 | {"reasoning":"none"} | {"max_tokens":8192,"thinking":{"type":"disabled"}}
anthropic | claude-sonnet-5 | {"reasoning":"off"} | {"max_tokens":32768,"thinking":{"type":"disabled"}}
anthropic | claude-haiku-5-5 | {"reasoning":"off"} | {"max_tokens":32768,"thinking":{"type":"disabled"}}
anthropic | claude-fable-5 | {"reasoning":"off"} | {"max_tokens":32768,"output_config":{"effort":"low"}}
anthropic | claude-mythos-5 | {"reasoning":"none"} | {"max_tokens":32768,"output_config":{"effort":"low"}}
anthropic | claude-opus-4-6 | {"reasoning":"minimal"} | {"max_tokens":32768,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}
anthropic | claude-opus-4-6 | {"reasoning":{"budgetTokens":9000}} | {"max_tokens":32768,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"}}
anthropic | claude-opus-4-6 | {"reasoning":"xhigh","maxTokens":9} | {"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}
anthropic | claude-opus-4-7 | {"reasoning":"xhigh","maxTokens":9} | {"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"}}
anthropic | claude-next | {"reasoning":"low","temperature":0.5} | {"max_tokens":32768,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}
anthropic | claude-next | {"temperature":0.5,"topP":0.9} | {"max_tokens":8192}
anthropic | claude-opus-4-1 | {"temperature":0.5,"topP":0.9} | {"max_tokens":8192,"temperature":0.5}
anthropic | claude-haiku-4-5 | {"topP":0.9} | {"max_tokens":8192,"top_p":0.9}
anthropic | claude-3-7-sonnet-20250219 | {"temperature":0.5,"topP":0.9} | {"max_tokens":8192,"temperature":0.5,"top_p":0.9}
anthropic | MiniMax-M2 | {"temperature":0.5,"topP":0.9,"maxTokens":200000} | {"max_tokens":200000,"temperature":0.5,"top_p":0.9}
anthropic | claude-opus-4-8 | {"temperature":0.5,"topP":0.9} | {"max_tokens":8192}
anthropic | claude-opus-4-1 | {"reasoning":"max"} | {"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":24576}}
anthropic | claude-3-haiku-20240307 | {"maxTokens":9000} | {"max_tokens":4096}
anthropic | claude-3-5-haiku-20241022 | {"maxTokens":9000} | {"max_tokens":8192}
anthropic | claude-sonnet-4-5 | {"maxTokens":100000} | {"max_tokens":64000}
anthropic | claude-sonnet-5 | {"maxTokens":100000} | {"max_tokens":100000}
openai_chat {"server":"moonshot"} | kimi-k3 | {"reasoning":"off"} | {"reasoning_effort":"low"}
openai_chat {"server":"moonshot"} | kimi-k3 | {"reasoning":"medium"} | {"reasoning_effort":"high"}
openai_chat {"server":"moonshot"} | kimi-k3.1 | {"reasoning":"xhigh"} | {"reasoning_effort":"max"}
openai_chat {"server":"moonshot"} | kimi-k4-preview | {"reasoning":"low","toolChoice":{"toolName":"f"}} | {"reasoning_effort":"low","tool_choice":"required"}
openai_chat {"server":"moonshot"} | kimi-k3 | {"toolChoice":"required"} | {"tool_choice":"required"}
openai_chat {"server":"moonshot"} | kimi-k2.7-code | {"reasoning":"off","toolChoice":{"toolName":"f"}} | {"tool_choice":"auto"}
openai_chat {"server":"moonshot"} | kimi-k2.7-code | {"reasoning":"low"} | {"thinking":{"type":"enabled"}}
openai_chat {"server":"moonshot"} | kimi-k2.6 | {"reasoning":"off"} | {"thinking":{"type":"disabled"}}
openai_chat {"server":"openrouter"} | google/gemini-3.7-flash | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | google/gemini-2.5-flash | {"reasoning":"off"} | {"reasoning":{"enabled":false}}
openai_chat {"server":"openrouter"} | google/gemini-3-pro-preview | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | minimax/minimax-m3 | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | stepfun/step-3.5-flash:free | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | openai/gpt-5 | {"reasoning":"off"} | {"reasoning":{"effort":"minimal"}}
openai_chat {"server":"openrouter"} | openai/gpt-5.4 | {"reasoning":"off"} | {"reasoning":{"enabled":false}}
openai_chat {"server":"openrouter"} | openai/gpt-oss-120b | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | openai/o4-mini | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | moonshotai/kimi-k3 | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"openrouter"} | x-ai/grok-4.3 | {"reasoning":"off"} | {"reasoning":{"enabled":false}}
openai_chat {"server":"openrouter"} | qwen/qwen3-235b-a22b-thinking-2507 | {"reasoning":"off"} | {"reasoning":{"effort":"low"}}
openai_chat {"server":"deepseek"} | deepseek-v4 | {"reasoning":"xhigh"} | {"thinking":{"type":"enabled"},"reasoning_effort":"max"}
openai_chat {"server":"groq"} | openai/gpt-oss-120b | {"reasoning":"max"} | {"reasoning_effort":"high"}
openai_chat {"server":"xai"} | grok-4.6 | {"reasoning":"max"} | {"reasoning_effort":"xhigh"}
openai_chat {"server":"xai"} | grok-4.5 | {"reasoning":"xhigh"} | {"reasoning_effort":"high"}
openai_chat {"server":"openai"} | gpt-5.1 | {"reasoning":"xhigh"} | {"reasoning_effort":"high"}
openai_chat {"server":"openai"} | gpt-5.1-codex-max | {"reasoning":"max"} | {"reasoning_effort":"xhigh"}
openai_chat {"server":"openai"} | gpt-5.5 | {"reasoning":"max"} | {"reasoning_effort":"xhigh"}
openai_chat {"server":"openai"} | gpt-5.6 | {"reasoning":"max"} | {"reasoning_effort":"max"}
openai_chat {"server":"openai"} | o3 | {"reasoning":"xhigh"} | {"reasoning_effort":"high"}
openai_responses {"server":"openai"} | gpt-7 | {"reasoning":"max"} | {"reasoning":{"effort":"max","summary":"auto"}}
gemini | gemini-2.5-pro | {"reasoning":{"budgetTokens":50}} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":128}}}
gemini | gemini-2.5-flash-lite | {"reasoning":{"budgetTokens":100}} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":512}}}
gemini | gemini-2.5-flash | {"reasoning":{"budgetTokens":90000}} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}}
anthropic | claude-sonnet-4-5 | {"reasoning":"minimal"} | {"max_tokens":9216,"thinking":{"type":"enabled","budget_tokens":1024}}
anthropic | claude-sonnet-4-5 | {"reasoning":"medium"} | {"max_tokens":16384,"thinking":{"type":"enabled","budget_tokens":8192}}
anthropic | claude-sonnet-4-5 | {"reasoning":"high"} | {"max_tokens":24576,"thinking":{"type":"enabled","budget_tokens":16384}}
anthropic | claude-opus-4-6 | {"reasoning":"max"} | {"max_tokens":32768,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}}
anthropic | claude-sonnet-4-5 | {"reasoning":"xhigh"} | {"max_tokens":40960,"thinking":{"type":"enabled","budget_tokens":32768}}
anthropic | claude-sonnet-4-5 | {"reasoning":"max"} | {"max_tokens":40960,"thinking":{"type":"enabled","budget_tokens":32768}}
anthropic | claude-sonnet-4-5 | {"reasoning":{"budgetTokens":100},"maxTokens":1024} | {"max_tokens":2048,"thinking":{"type":"enabled","budget_tokens":1024}}
anthropic | claude-sonnet-4-5 | {"reasoning":{"budgetTokens":2000},"maxTokens":5000} | {"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":2000}}
anthropic {"reasoning":"budget"} | claude-opus-4-6 | {"reasoning":"low"} | {"max_tokens":10240,"thinking":{"type":"enabled","budget_tokens":2048}}
anthropic | claude-opus-4-6 | {"toolChoice":"none"} | {"max_tokens":8192,"tool_choice":{"type":"none"}}
anthropic | claude-opus-5-4 | {"toolChoice":"required"} | {"max_tokens":32768,"tool_choice":{"type":"any"}}
anthropic | claude-haiku-5-5 | {"toolChoice":"required"} | {"max_tokens":32768,"tool_choice":{"type":"any"}}
anthropic | claude-mythos-5 | {"toolChoice":"required"} | {"max_tokens":32768,"tool_choice":{"type":"any"}}
anthropic | claude-mythos-5-1 | {"toolChoice":"required"} | {"max_tokens":32768,"tool_choice":{"type":"auto"}}
anthropic | claude-fable-5-1 | {"toolChoice":{"toolName":"f"}} | {"max_tokens":32768,"tool_choice":{"type":"auto"}}
openai_chat {"server":"openrouter"} | openai/gpt-5.6 | {"temperature":0.5} | {"temperature":0.5}
openai_chat {"server":"openrouter"} | m | {"reasoning":{"budgetTokens":0}} | {"reasoning":{"enabled":false}}
openai_chat {"server":"openai"} | gpt-4o | {"reasoning":"high"} | {"reasoning_effort":"high"}
openai_chat {"server":"azure"} | gpt-5 | {"reasoning":"none","temperature":1} | {"reasoning_effort":"minimal"}
openai_chat {"server":"groq"} | openai/gpt-oss-120b | {"reasoning":"minimal"} | {"reasoning_effort":"low"}
openai_chat {"server":"mistral"} | magistral-small | {"reasoning":"none"} | {}
openai_chat {"server":"mistral"} | mistral-medium | {"reasoning":"none"} | {"reasoning_effort":"none"}
openai_chat {"server":"mistral"} | mistral-medium | {"reasoning":"low"} | {"reasoning_effort":"high"}
openai_chat {"server":"moonshot"} | kimi-k2 | {} | {}
openai_chat {"server":"moonshot"} | kimi-k2 | {"toolChoice":"auto"} | {"tool_choice":"auto"}
openai_chat {"server":"moonshot"} | kimi-k2 | {"reasoning":"none","toolChoice":"required"} | {"tool_choice":"required","thinking":{"type":"disabled"}}
openai_chat {"server":"deepseek"} | deepseek-v4 | {"reasoning":"off","toolChoice":{"toolName":"f"}} | {"tool_choice":{"type":"function","function":{"name":"f"}},"thinking":{"type":"disabled"}}
openai_chat {"server":"openai"} | o1 | {"reasoning":"minimal","temperature":1} | {"reasoning_effort":"low"}
openai_chat {"server":"openai"} | o1-mini | {"reasoning":"off","temperature":1} | {"temperature":1}
openai_chat {"server":"openai"} | o4-mini | {"reasoning":"off","temperature":1} | {"reasoning_effort":"low"}
openai_chat {"server":"openai"} | codex-mini-latest | {"reasoning":"none","temperature":1} | {"reasoning_effort":"low"}
openai_chat {"server":"openai"} | gpt-5.4 | {"reasoning":"none","temperature":1} | {"temperature":1,"reasoning_effort":"none"}
openai_chat {"server":"openai"} | gpt-5.4 | {"reasoning":"minimal","temperature":1} | {"reasoning_effort":"low"}
openai_chat {"server":"openai"} | gpt-6-luna | {"reasoning":"none","temperature":1} | {"reasoning_effort":"none"}
openai_chat {"server":"openai"} | gpt-6.1-terra | {"reasoning":"off"} | {"reasoning_effort":"none"}
openai_chat {"server":"openai"} | gpt-6 | {"reasoning":"minimal"} | {"reasoning_effort":"low"}
openai_chat {"server":"openai"} | gpt-4o | {"toolChoice":"none","parallelToolCalls":false} | {"tool_choice":"none","parallel_tool_calls":false}
openai_chat | m | {"headers":{"x":"y"},"body":{"a":1,"tools":[]}} | {"a":1}
openai_responses {"server":"openai"} | gpt-5 | {"reasoning":{"budgetTokens":2048},"topP":0.5} | {"reasoning":{"effort":"low","summary":"auto"}}
openai_responses {"server":"openai"} | gpt-5 | {"reasoning":{"budgetTokens":2049}} | {"reasoning":{"effort":"medium","summary":"auto"}}
openai_responses {"server":"openai"} | gpt-5 | {"reasoning":{"budgetTokens":16385}} | {"reasoning":{"effort":"high","summary":"auto"}}
openai_responses {"server":"azure"} | gpt-4o | {"reasoning":"none","temperature":0.5,"toolChoice":{"toolName":"f"}} | {"tool_choice":{"type":"function","name":"f"},"temperature":0.5}
openai_responses {"server":"azure"} | gpt-5 | {"reasoning":"low","temperature":0.5} | {"reasoning":{"effort":"low","summary":"auto"}}
openai_responses {"server":"openrouter"} | openai/gpt-5 | {"temperature":0.5} | {"temperature":0.5}
openai_responses {"server":"ollama"} | m | {"reasoning":"none"} | {"reasoning":{"effort":"none"}}
openai_responses {"reasoning":"none"} | m | {"reasoning":"high"} | {}
gemini | gemini-2.0-flash | {"reasoning":"high"} | {}
gemini | gemini-2.0-flash | {"toolChoice":"auto"} | {"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}
gemini | gemini-2.0-flash | {"toolChoice":"none"} | {"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}
gemini | gemini-2.0-flash | {"toolChoice":"required"} | {"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}
gemini | gemini-3-pro-preview | {"reasoning":"max"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}
gemini {"reasoning":"budget"} | gemini-3-pro-preview | {"reasoning":"low"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048}}}
gemini | m-latest | {"reasoning":"high"} | {}
gemini | gemini-2.5-flash | {"reasoning":"none"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingBudget":0}}}
gemini | gemini-2.5-pro | {"reasoning":"off"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingBudget":128}}}
gemini | gemini-2.5-pro | {"reasoning":"minimal"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024}}}
gemini | gemini-2.5-pro | {"reasoning":"low"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048}}}
gemini | gemini-2.5-pro | {"reasoning":"medium"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}}}
gemini | gemini-2.5-pro | {"reasoning":"max"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}}
gemini | gemini-2.5-pro | {"reasoning":{"budgetTokens":5000}} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":5000}}}
gemini | gemini-3-pro-preview | {"reasoning":"none"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingLevel":"LOW"}}}
gemini | gemini-3-flash-preview | {"reasoning":"none"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingLevel":"MINIMAL"}}}
gemini | gemini-3-flash-preview | {"reasoning":"minimal"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MINIMAL"}}}
gemini | gemini-3.7-flash | {"reasoning":"minimal"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}}
gemini | gemini-3.7-flash-lite | {"reasoning":"none"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingLevel":"MINIMAL"}}}
gemini {"reasoning":"level"} | m | {"reasoning":"off"} | {"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingLevel":"MINIMAL"}}}
"#;

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (wire, minimum) in WIRES {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/requests").join(wire);
        let before = cases.len();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{wire}/{}", path.file_stem().unwrap().to_string_lossy());
            let file = Value::parse(&fs::read_to_string(path).unwrap()).unwrap();
            cases.push(Case { wire, name, file });
        }
        assert!(cases.len() - before >= minimum, "{wire}");
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
            let encoded = got.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
            assert_eq!(&Value::Object(encoded.collect()), headers, "{}", case.name);
            assert_eq!(headers.as_object().unwrap().len(), got.headers.len(), "{}", case.name);
        }
        assert_eq!(got.has_links, case.file.get("hasLinks").is_some(), "{}", case.name);
        let wanted = case.file.get("body").unwrap();
        assert_eq!(body(&got).to_json(), ordered_as(&body(&got), wanted).to_json(), "{}", case.name);
    }
}

/// A request without its warnings, which only the first one with these tools has.
fn sent(wire: &mut dyn Wire, request: &ModelRequest) -> HttpRequest {
    HttpRequest { warnings: Vec::new(), ..wire.encode(request) }
}

#[test]
fn a_conversation_that_grew_message_by_message_gives_the_same_bytes() {
    for case in cases() {
        let request = case.request();
        let whole = sent(&mut *case.wire(), &request);
        let mut wire = case.wire();
        for length in 0..=request.messages.len() {
            let messages = Rc::new(request.messages[..length].to_vec());
            wire.encode(&ModelRequest { messages, ..request.clone() });
        }
        assert_eq!(sent(&mut *wire, &request), whole, "{}", case.name);
        let shorter = Rc::new(request.messages.get(..1).unwrap_or_default().to_vec());
        let shorter = ModelRequest { messages: shorter, ..request.clone() };
        assert_eq!(sent(&mut *wire, &shorter), sent(&mut *case.wire(), &shorter), "{}", case.name);
        let other = ModelRequest { model: "another".into(), tools: Rc::from([]), ..request.clone() };
        assert_eq!(wire.encode(&other), case.wire().encode(&other), "{}", case.name);
        assert_eq!(sent(&mut *wire, &request), whole, "{}", case.name);
    }
}

/// The same message as a new object.
fn anew(message: &LlmMessage) -> LlmMessage {
    match message {
        LlmMessage::User(message) => LlmMessage::User(Rc::new((**message).clone())),
        LlmMessage::Assistant(message) => LlmMessage::Assistant(Rc::new((**message).clone())),
        LlmMessage::ToolResult(message) => LlmMessage::ToolResult(Rc::new((**message).clone())),
    }
}

#[test]
fn a_conversation_that_is_changed_anywhere_gives_the_same_bytes() {
    let cases = cases();
    let pool: Vec<LlmMessage> = cases.iter().flat_map(|case| case.request().messages.to_vec()).collect();
    let mut state = 20_261_123_u64;
    let mut dice = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for case in &cases {
        let request = case.request();
        let mut wire = case.wire();
        let mut messages = request.messages.to_vec();
        messages.extend((0..6).map(|_| pool[dice(pool.len())].clone()));
        for step in 0..40 {
            let at = dice(messages.len());
            match dice(8) {
                // As with a prompt that changes in every turn, and a transformer that makes new messages.
                0..4 => {
                    let at = if dice(2) == 0 { 0 } else { at };
                    messages[at] = anew(&messages[at]);
                }
                4 => messages[at] = pool[dice(pool.len())].clone(),
                5 => messages.insert(at, pool[dice(pool.len())].clone()),
                6 if messages.len() > 2 => drop(messages.remove(at)),
                _ => messages.push(pool[dice(pool.len())].clone()),
            }
            let changed = ModelRequest { messages: Rc::new(messages.clone()), ..request.clone() };
            let again = sent(&mut *case.wire(), &changed);
            assert_eq!(sent(&mut *wire, &changed), again, "{}, step {step}", case.name);
        }
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

/// A model gets, besides its messages and tools, what `options` ask for, in words that it knows.
#[test]
fn a_model_is_told_only_what_it_knows() {
    let tools = r#"[{"name":"f","description":"","parameters":{"type":"object","properties":{}}}]"#;
    let message = r#"{"role":"user","content":"Go","timestamp":0}"#;
    for row in TOLD.trim().lines() {
        let [wire, model, options, wanted] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let file = format!(
            r#"{{"options":{{"compat":{{}}}},"request":{{"model":"{model}","messages":[{message}],"tools":{tools},"options":{options}}}}}"#
        );
        let (wire, server) = wire.split_once(' ').unwrap_or((wire, ""));
        let file = if server.is_empty() {
            file
        } else {
            file.replace("\"compat\":{}", &format!("\"compat\":{server}"))
        };
        let case = Case {
            wire: WIRES.iter().find(|(name, _)| *name == wire).unwrap().0,
            name: row.into(),
            file: Value::parse(&file).unwrap(),
        };
        let encoded = body(&case.wire().encode(&case.request()));
        let common_fields = [
            "model",
            "stream",
            "stream_options",
            "messages",
            "input",
            "contents",
            "tools",
            "store",
            "include",
        ];
        let encoded = encoded.as_object().unwrap().iter().filter(|(key, _)| !common_fields.contains(key));
        let encoded = Value::Object(encoded.map(|(key, value)| (key.to_owned(), value.clone())).collect());
        let wanted = Value::parse(wanted).unwrap();
        assert_eq!(encoded.to_json(), ordered_as(&encoded, &wanted).to_json(), "{row}");
    }
}

/// Returns `value` with its keys in the order of `like`, so that a difference is readable.
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
