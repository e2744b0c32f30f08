//! What the tests share: JavaScript written in Rust strings, models and runs.

use std::rc::Rc;

use js_sys::{JSON, Reflect};
use turnwheel::wires::{WireOptions, wire};
use turnwheel::{AgentEvent, AgentLoopConfig, AgentLoopResult, CancelToken, HttpModel, Model, agent_loop};
use turnwheel_web::{Clock, Fetch, new_context};
use wasm_bindgen::prelude::*;

/// Evaluates an expression.
pub(crate) fn js<T: JsCast>(expression: &str) -> T {
    let value = js_sys::eval(&format!("({expression})"));
    value.unwrap_or_else(|error| panic!("{expression}: {error:?}")).unchecked_into()
}

/// Returns a member.
pub(crate) fn at(value: &JsValue, path: &str) -> JsValue {
    path.split('.').fold(value.clone(), |value, key| {
        Reflect::get(&value, &key.into()).unwrap_or_else(|_| panic!("no {key} of {path}"))
    })
}

/// Returns the JSON of a value.
pub(crate) fn json(value: &JsValue) -> String {
    JSON::stringify(value).unwrap().into()
}

/// A model on OpenAI's wire, behind this transport.
pub(crate) fn chat(fetch: Fetch, base_url: &str) -> Model {
    let options = WireOptions { base_url: base_url.to_owned(), ..WireOptions::default() };
    let wire = wire("openai-chat", options).unwrap();
    HttpModel::new(wire, Rc::new(fetch), Rc::new(Clock)).with_key("sk-secret-of-the-test").model("gpt-test")
}

/// A configuration without retries.
pub(crate) fn config(model: Model) -> AgentLoopConfig {
    let mut config = turnwheel_web::config(model);
    config.rules.retry = Rc::new(turnwheel::retry::RetryConfig { max_attempts: 1, ..Default::default() });
    config
}

/// Plays one run, and returns its events and its result.
pub(crate) async fn play(config: AgentLoopConfig, prompt: &str) -> (Vec<AgentEvent>, AgentLoopResult) {
    let mut run = agent_loop(vec![prompt.into()], config, new_context(), CancelToken::new());
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.finish().await)
}

/// Returns the result of the call with this id.
pub(crate) fn result_of<'e>(events: &'e [AgentEvent], id: &str) -> &'e turnwheel::message::ToolResultMessage {
    let results = events.iter().filter_map(|event| match event {
        AgentEvent::ToolExecutionEnd { result, .. } => Some(&**result),
        _ => None,
    });
    results.into_iter().find(|result| result.call_id == id).unwrap_or_else(|| panic!("no result of {id}"))
}
