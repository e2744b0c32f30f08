//! Events, messages and results as JavaScript values: the same plain objects that the npm package gives.

use js_sys::JSON;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use turnwheel::AgentEvent;
use turnwheel::json::{FromJson, Number, RawJson, ToJson, Value};
use wasm_bindgen::prelude::*;

use crate::thrown;

/// Returns a value as a plain JavaScript object: members in camelCase, counts and times as numbers, and a member that
/// has no value is missing. It can be given to `structuredClone`, `postMessage` and `JSON.stringify`. Events, messages,
/// results, checkpoints, decisions and whatever else `turnwheel` writes as JSON; for types of your own there is
/// `serde_wasm_bindgen::to_value`.
///
/// ```no_run
/// use turnwheel::AgentMessage;
/// use turnwheel_web::to_js;
///
/// let message = to_js(&AgentMessage::user("Hello"));
/// // { role: "user", content: [{ type: "text", text: "Hello" }], timestamp: 0 }
/// ```
pub fn to_js<T: ToJson + ?Sized>(value: &T) -> JsValue {
    // What writes itself as JSON can be read, and nothing of it fails to become a JavaScript value.
    let value = Value::parse(&value.to_json()).unwrap_or_default();
    plain(&value)
}

/// Returns an event as the npm package emits it: the object of [`to_js`], and the id of its run as `runId`.
///
/// ```no_run
/// use turnwheel::AgentEvent;
/// use turnwheel_web::event_to_js;
///
/// let event = event_to_js(&AgentEvent::TurnStart { turn_index: 0, at: 1_700_000_000_000 }, "run-1");
/// // { type: "turn_start", turnIndex: 0, at: 1700000000000, runId: "run-1" }
/// ```
pub fn event_to_js(event: &AgentEvent, run_id: &str) -> JsValue {
    let mut value = Value::parse(&event.to_json()).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.insert("runId", run_id.into());
    }
    plain(&value)
}

/// Reads a message, an event, a decision and so on from a JavaScript value, as `JSON.stringify` sees it: a member that
/// is `undefined` is missing.
///
/// ```no_run
/// use turnwheel::AgentMessage;
/// # let history = wasm_bindgen::JsValue::NULL;
/// let history: Vec<AgentMessage> = turnwheel_web::from_js(&history)?;
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// If the value is no JSON (a function, a cycle, a `BigInt`), or not the expected one. The text says which.
pub fn from_js<T: FromJson>(value: &JsValue) -> Result<T, String> {
    let json = json_of(value)?.ok_or_else(|| format!("{} is no JSON", thrown::kind_of(value)))?;
    T::from_json(&Value::parse(&json).map_err(|error| error.to_string())?)
}

/// Returns the JSON of a value; nothing if it has none, as `undefined`.
///
/// # Errors
/// If `JSON.stringify` throws: on a cycle, a `BigInt`, or in a `toJSON`.
pub(crate) fn json_of(value: &JsValue) -> Result<Option<String>, String> {
    // js-sys says that this is always a string, but `undefined` has no JSON.
    let json = JSON::stringify(value).map_err(|error| thrown::text_of(&error))?;
    Ok(json.as_string())
}

/// The same as [`json_of`], as a value that passes through the loop unread.
pub(crate) fn raw_of(value: &JsValue) -> Result<Option<RawJson>, String> {
    let json = json_of(value)?;
    json.map(|json| RawJson::parse(&json).map_err(|error| error.to_string())).transpose()
}

/// Returns JSON as a JavaScript value.
pub(crate) fn plain(value: &Value) -> JsValue {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    Plain(value).serialize(&serializer).unwrap_or(JsValue::NULL)
}

/// JSON for serde-wasm-bindgen, with what `JSON.parse` would make of the two values on which they differ.
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            // A whole number that JavaScript cannot hold, such as a long id that a model wrote, is rounded. It would be
            // an error.
            Value::Number(number) => serializer.serialize_f64(float(number)),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Plain(item))?;
                }
                list.end()
            }
            // Assigned, this member would become the prototype of the object.
            Value::Object(members) if members.get("__proto__").is_some() => {
                let object = JSON::parse(&self.0.to_json()).unwrap_or(JsValue::NULL);
                serde_wasm_bindgen::preserve::serialize(&object, serializer)
            }
            Value::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members.iter() {
                    object.serialize_entry(key, &Plain(value))?;
                }
                object.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// Returns a number as JavaScript has them.
fn float(number: &Number) -> f64 {
    number.as_str().parse().unwrap_or(f64::NAN)
}
