//! Words for whatever JavaScript threw, or gave where something else was expected.

use js_sys::{Error, JSON, Reflect};
use wasm_bindgen::prelude::*;

/// Returns the message of what was thrown: that of an `Error`, or the value itself.
pub(crate) fn text_of(thrown: &JsValue) -> String {
    if let Some(text) = thrown.as_string() {
        return text;
    }
    let message = Reflect::get(thrown, &"message".into()).ok().and_then(|message| message.as_string());
    match message {
        Some(message) if !message.is_empty() => message,
        _ => match thrown.dyn_ref::<Error>() {
            Some(error) => error.name().into(),
            None => JSON::stringify(thrown)
                .ok()
                .and_then(|json| json.as_string())
                .unwrap_or_else(|| kind_of(thrown)),
        },
    }
}

/// Returns the message together with that of its cause, in which Node hides why `fetch` failed.
pub(crate) fn text_with_cause(thrown: &JsValue) -> String {
    let text = text_of(thrown);
    let cause = Reflect::get(thrown, &"cause".into()).unwrap_or(JsValue::UNDEFINED);
    if cause.is_undefined() || cause.is_null() {
        return text;
    }
    format!("{text} ({})", text_of(&cause))
}

/// Names the kind of a value: `a function`, `an array`, `nothing`.
pub(crate) fn kind_of(value: &JsValue) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    if js_sys::Array::is_array(value) {
        return "an array".to_owned();
    }
    match value.js_typeof().as_string().as_deref() {
        None | Some("undefined") => "nothing".to_owned(),
        Some("object") => "an object".to_owned(),
        Some(kind) => format!("a {kind}"),
    }
}
