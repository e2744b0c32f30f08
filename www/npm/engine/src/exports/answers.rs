//! What comes back from JavaScript: the bytes of a response, the events of a model that the host streams, the results
//! of tools, and all other answers to effects.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use wasm_bindgen::prelude::*;

use turnwheel::data::text::lossy;
use turnwheel::json::{RawJson, ToJson, Value};
use turnwheel::tool::{Ask, ChildEvent};
use turnwheel::wires::errors::{ErrorResponse, in_stream_text};

use crate::bridge::{Bridge, SlotId};
use crate::instance::{RunEntry, run_entry, set_now};
use crate::room::has_room_for_tree;

/// A response has ended.
#[wasm_bindgen]
pub fn feed_end(handle: u32, slot: SlotId) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.feed_end(slot);
    }
}

/// A response has a status other than 200. `headers` is a JSON object with lower-case names.
#[wasm_bindgen]
pub fn feed_refusal(handle: u32, slot: SlotId, status: u16, headers: &str, body: &[u8], now: f64) {
    set_now(now);
    let headers = Value::parse(headers).unwrap_or_default();
    if let Some(bridge) = bridge_of(handle) {
        bridge.refuse(slot, status, &headers, body);
    }
}

/// Returns what a response means, as JSON: one with this status, or an error document in an answer that began well.
/// `headers` is a JSON object with lower-case names.
#[wasm_bindgen]
pub fn error_of(status: u16, headers: &str, body: &[u8], now: f64) -> String {
    set_now(now);
    let headers = Value::parse(headers).unwrap_or_default();
    let header = |name: &str| headers.get(name).and_then(Value::as_str).map(str::to_owned);
    let info = match status {
        0..300 => in_stream_text(&lossy(body)),
        status => ErrorResponse { status, header: &header, body, now: crate::instance::now() }.error(),
    };
    info.to_json()
}

/// The host's stream yielded an event (JSON), or ended (JSON `null`).
#[wasm_bindgen]
pub fn stream_event(handle: u32, slot: SlotId, event: &str) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.stream_event(slot, event);
    }
}

/// The host's stream yielded a piece of text (kind 1), thinking (2) or tool arguments (3).
#[wasm_bindgen]
pub fn stream_delta(handle: u32, slot: SlotId, kind: u32, index: u32, delta: String) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.stream_delta(slot, kind, index, delta);
    }
}

/// Answers an effect, with a text or JSON; `ports.rs` says what each effect expects.
#[wasm_bindgen]
pub fn resolve(handle: u32, slot: SlotId, mut answer: String, is_text: bool) {
    let bridge = bridge_of(handle);
    bridge.iter().for_each(|bridge| bridge.mask_result(slot, &mut answer));
    let answer = if is_text {
        Ok(Value::String(answer))
    } else if has_room_for_tree(&answer) {
        Value::parse(&answer).map_err(|error| error.to_string())
    } else {
        Err("there is not enough memory in the engine".to_owned())
    };
    if let Some(bridge) = bridge {
        bridge.resolve(slot, answer);
    }
}

/// Fails an effect, with the reason.
#[wasm_bindgen]
pub fn reject(handle: u32, slot: SlotId, mut reason: String) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.mask_failure(slot, &mut reason);
        bridge.resolve(slot, Err(reason));
    }
}

/// Returns a text that the host threw, with its secrets masked. `is_key`: it was thrown instead of a key.
#[wasm_bindgen]
pub fn without_secrets(handle: u32, text: String, is_key: bool) -> String {
    run_entry(handle).map(|run| run.bridge.masked(text, is_key)).unwrap_or_default()
}

/// A tool reports progress, as JSON.
#[wasm_bindgen]
pub fn update(handle: u32, slot: SlotId, update: String) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.update(slot, update);
    }
}

/// A tool asks a person: the id of the question, its words, and a JSON Schema of the answer, or an empty text.
#[wasm_bindgen]
pub fn ask(handle: u32, slot: SlotId, id: &str, mut message: String, mut schema: String) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.mask_result(slot, &mut message);
        bridge.mask_result(slot, &mut schema);
        let (id, schema) = (Some(id.to_owned()), RawJson::parse(&schema).ok());
        bridge.ask(slot, Ask { message, schema, id });
    }
}

/// A tool changes the session state. `value` is JSON; if it is empty, the key is deleted.
#[wasm_bindgen]
pub fn set_state(handle: u32, slot: SlotId, key: &str, value: &str) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.set_state(slot, key, value);
    }
}

/// An agent inside a tool emits an event, as JSON. `path` is a list of the ids of the calls inside this one that led to it, or
/// empty. See `child_event` for the flags.
#[wasm_bindgen]
pub fn subagent_event(handle: u32, slot: SlotId, path: &str, event: &str, flags: u32) {
    if let (Some(bridge), Ok(event)) = (bridge_of(handle), RawJson::parse(event)) {
        bridge.subagent_event(slot, child_event(path, event, flags));
    }
}

/// An agent inside a call whose effect is gone emits an event while it is ended. Returns a list of the events that the
/// listeners are told.
#[wasm_bindgen]
pub fn late_subagent_event(handle: u32, call_id: &str, path: &str, event: &str, flags: u32) -> String {
    let Some(run) = run_entry(handle) else { return String::new() };
    let (Ok(mut stream), Ok(event)) = (run.stream.try_borrow_mut(), RawJson::parse(event)) else {
        return String::new();
    };
    let child = child_event(path, event, flags);
    stream.take_late_event(call_id, child).to_json()
}

/// An event of a sub-agent. Flag 1: its questions are not those of the agent around it. Flag 2: it counts what it uses in the
/// budgets of that agent itself.
fn child_event(path: &str, event: RawJson, flags: u32) -> ChildEvent {
    let (keeps_questions, shares_budget) = (flags & 1 != 0, flags & 2 != 0);
    ChildEvent { path: read_path(path), event, keeps_questions, shares_budget }
}

/// Reads the path of a sub-agent: a list of call ids as JSON, or nothing.
fn read_path(path: &str) -> Vec<String> {
    let path = Value::parse(path).unwrap_or_default();
    let path = path.as_array().unwrap_or_default().iter();
    path.filter_map(|call_id| call_id.as_str().map(str::to_owned)).collect()
}

/// Takes the body of a request to send. Later calls return nothing.
#[wasm_bindgen]
pub fn take_body(handle: u32, slot: SlotId) -> Vec<u8> {
    run_entry(handle).map(|run| run.bridge.take_body(slot)).unwrap_or_default()
}

/// Access to the bridge of a run, to leave something there. The consequences come with the next `run_poll`:
/// a listener that calls in during the delivery of a batch must not produce another batch. The caller
/// polls afterwards, so the waker does not ask for it.
pub(crate) struct BridgeGuard {
    run: Rc<RunEntry>,
    polling: bool,
}

impl BridgeGuard {
    pub(crate) fn of(run: Rc<RunEntry>) -> Self {
        let polling = run.woken.polling.swap(true, Ordering::Relaxed);
        BridgeGuard { run, polling }
    }
}

impl std::ops::Deref for BridgeGuard {
    type Target = Bridge;

    fn deref(&self) -> &Bridge {
        &self.run.bridge
    }
}

impl Drop for BridgeGuard {
    fn drop(&mut self) {
        self.run.woken.polling.store(self.polling, Ordering::Relaxed);
    }
}

fn bridge_of(handle: u32) -> Option<BridgeGuard> {
    run_entry(handle).map(BridgeGuard::of)
}
