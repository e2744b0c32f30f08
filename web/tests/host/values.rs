//! Events, messages and decisions as JavaScript values.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use js_sys::JSON;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::driver::agent_loop;
use turnwheel::event::AgentEvent;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::message::{AgentMessage, Usage};
use turnwheel::ports::{AgentRunContext, Timer};
use turnwheel::retry::RetryConfig;
use turnwheel::tool::AgentTool;
use turnwheel_web::{JsApprover, JsModel, JsTool, event_to_js, from_js, to_js};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::scene::{at, config, js, json, play};

/// A clock that stands still, as in the package's half of the test.
struct Stopped;

impl Timer for Stopped {
    fn now(&self) -> u64 {
        1_700_000_000_000
    }

    fn sleep(&self, _: u64) -> LocalBoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// Returns the JSON of a value with sorted members, so that only their order may differ.
fn sorted(value: &JsValue) -> String {
    let sort: js_sys::Function = js("function sort(value) {
        if (Array.isArray(value)) return value.map(sort);
        if (typeof value !== 'object' || value === null) return value;
        return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sort(value[key])]));
    }");
    json(&sort.call1(&JsValue::UNDEFINED, value).unwrap())
}

/// Returns the names of an object's members.
fn names_of(value: &JsValue) -> String {
    let names: js_sys::Function = js("(value) => Object.keys(value).join()");
    names.call1(&JsValue::UNDEFINED, value).unwrap().as_string().unwrap()
}

#[test]
async fn events_are_the_objects_of_the_package() {
    let scene: JsValue = js_sys::eval(include_str!("../data/scene.js")).unwrap();
    let bound = |name: &str| at(&scene, name).unchecked_into::<js_sys::Function>().bind0(&scene);
    let model = Model::new("scene", "scripted", Rc::new(JsModel::new(bound("stream"))));
    let mut config = AgentLoopConfig::new(model, Rc::new(Stopped));
    let tools: js_sys::Array = at(&scene, "tools").unchecked_into();
    config
        .set_tools(
            tools.iter().map(|tool| Rc::new(JsTool::new(tool).unwrap()) as Rc<dyn AgentTool>).collect(),
        )
        .unwrap();
    config.set_approver(Rc::new(JsApprover::new(bound("approve"))));
    config.rules.system_prompt = "Be brief.".into();
    config.rules.include_requests = true;
    config.rules.retry =
        Rc::new(RetryConfig { initial_backoff_ms: 1, jitter: false, ..RetryConfig::default() });
    // The package's host made one id before: that of the session.
    let ids = std::cell::Cell::new(1);
    config.rules.new_id = Rc::new(move || {
        ids.set(ids.get() + 1);
        format!("id-{}", ids.get())
    });
    let prompt: AgentMessage =
        from_js(&js("{ role: 'user', content: [{ type: 'text', text: 'Look' }], timestamp: 5 }")).unwrap();
    let mut run =
        agent_loop(vec![prompt], config, AgentRunContext::new("run-1", "session-1"), CancelToken::new());
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(sorted(&event_to_js(&event, "run-1")));
    }
    let golden: js_sys::Array = JSON::parse(include_str!("../data/events.json")).unwrap().unchecked_into();
    let golden: Vec<String> = golden.iter().map(|event| sorted(&event)).collect();
    for (event, golden) in events.iter().zip(&golden) {
        assert_eq!(event, golden);
    }
    assert_eq!(events.len(), golden.len());
}

#[test]
async fn values_can_be_cloned_and_sent() {
    let (events, result) =
        play(config(turnwheel::scripted::model([turnwheel::scripted::text("Hi")])), "Hello").await;
    let clone: js_sys::Function =
        js("(value) => JSON.stringify(structuredClone(value)) === JSON.stringify(value)");
    for event in &events {
        assert_eq!(clone.call1(&JsValue::UNDEFINED, &to_js(event)).unwrap(), true, "{}", event.name());
    }
    assert_eq!(names_of(&to_js(&result)), "runId,text,messages,usage,turns,stopReason");
    assert_eq!(at(&to_js(&result), "stopReason"), "completed");
    let history = to_js(&result.messages);
    assert_eq!(from_js::<Vec<AgentMessage>>(&history).unwrap(), result.messages);
}

#[test]
async fn numbers_are_numbers_and_what_is_not_there_is_missing() {
    let usage = to_js(&Usage { input: 1 << 40, output: u64::MAX, ..Usage::default() });
    assert_eq!(at(&usage, "input").as_f64(), Some(1_099_511_627_776.0));
    assert_eq!(at(&usage, "output").as_f64(), Some(18_446_744_073_709_551_615.0), "rounded, and no bigint");
    assert_eq!(names_of(&usage), "input,output,cacheRead,cacheWrite,total", "no `reasoning`, no `cost`");
    let delta = event_to_js(&AgentEvent::TurnStart { turn_index: 3, at: 5 }, "r");
    assert_eq!(json(&delta), r#"{"type":"turn_start","turnIndex":3,"at":5,"runId":"r"}"#);
    assert_eq!(
        names_of(&to_js(&AgentEvent::CommandRefused { id: None, call_id: None, reason: String::new() })),
        "type,reason"
    );
}

#[test]
async fn a_member_named_like_the_prototype_is_a_member() {
    let json_text = r#"{"a":{"__proto__":{"polluted":true},"n":[-1.5e-7,1e21,0]}}"#;
    let value = to_js(&RawJson::parse(json_text).unwrap());
    let own: js_sys::Function = js(
        "(value) => Object.hasOwn(value.a, '__proto__') && value.a.polluted === undefined && {}.polluted === undefined",
    );
    assert_eq!(own.call1(&JsValue::UNDEFINED, &value).unwrap(), true);
    assert_eq!(json(&value), json(&JSON::parse(json_text).unwrap()));
}

#[test]
async fn javascript_values_are_read_as_json_sees_them() {
    let message: AgentMessage = from_js(&js(
        "{ role: 'custom', kind: 'note', data: { at: new Date(0), gone: undefined, n: 1e3 }, timestamp: 7 }",
    ))
    .unwrap();
    assert_eq!(
        message.to_json(),
        r#"{"role":"custom","kind":"note","data":{"at":"1970-01-01T00:00:00.000Z","n":1000},"timestamp":7}"#
    );
    let decision: ToolDecision = from_js(&js("{ action: 'approve', arguments: undefined }")).unwrap();
    assert_eq!(decision, ToolDecision::Accept);
    for (value, wrong) in [
        ("undefined", "nothing is no JSON"),
        ("() => 1", "a function is no JSON"),
        ("(() => { const a = []; a.push(a); return a; })()", "ircular"),
        ("({ n: 1n })", "BigInt"),
        ("'maybe'", "a decision must be"),
    ] {
        let error = from_js::<ToolDecision>(&js(value)).unwrap_err();
        assert!(error.contains(wrong) || error.to_lowercase().contains("cycl"), "{value}: {error}");
    }
}
