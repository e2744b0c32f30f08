//! What `JSON.stringify` would lose without a word.

use js_sys::{Array, Number, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::thrown;

/// How deep objects may lie in each other; turnwheel reads no JSON that is deeper.
const MAX_DEPTH: usize = 128;

/// Returns why a value is not JSON, or nothing if it is: `the result.rows[2] is a function`. A member that is
/// `undefined` is missing, which is no flaw.
pub(crate) fn flaw_of(value: &JsValue, place: &str) -> Option<String> {
    find(value, &mut Vec::new(), place)
}

fn find(value: &JsValue, above: &mut Vec<JsValue>, place: &str) -> Option<String> {
    if value.is_null() || value.is_undefined() || value.is_string() || value.as_bool().is_some() {
        return None;
    }
    if let Some(number) = value.as_f64() {
        return (!Number::is_finite(value)).then(|| format!("{place} is {number}"));
    }
    if !value.is_object() {
        return Some(format!("{place} is {}", thrown::kind_of(value)));
    }
    if above.len() >= MAX_DEPTH {
        return Some(format!("{} is nested too deeply", place.split(['.', '[']).next().unwrap_or(place)));
    }
    if above.contains(value) {
        return Some(format!("{place} contains itself"));
    }
    if Reflect::get(value, &"toJSON".into()).is_ok_and(|method| method.is_function()) {
        return None;
    }
    let is_array = Array::is_array(value);
    if !is_array && !is_record(value) {
        return Some(format!("{place} is {}", class_of(value)));
    }
    above.push(value.clone());
    let mut flaw = None;
    for entry in Object::entries(value.unchecked_ref::<Object>()).iter() {
        let entry: Array = entry.unchecked_into();
        let key = entry.get(0).as_string().unwrap_or_default();
        let place = if is_array { format!("{place}[{key}]") } else { format!("{place}.{key}") };
        flaw = flaw.or_else(|| find(&entry.get(1), above, &place));
    }
    above.pop();
    flaw
}

/// Whether `JSON.stringify` keeps what an object holds: a plain object, or an instance of a class with members of its
/// own, but no error, no bytes, no map.
fn is_record(value: &JsValue) -> bool {
    let prototype = Reflect::get_prototype_of(value).map(JsValue::from).unwrap_or(JsValue::NULL);
    if prototype.is_null() || Object::get_prototype_of(&prototype).is_null() {
        return true;
    }
    let is_iterable = Reflect::has(value, &js_sys::Symbol::iterator()).unwrap_or(true);
    let has_members = Object::keys(value.unchecked_ref::<Object>()).length() > 0;
    has_members
        && !is_iterable
        && !js_sys::ArrayBuffer::is_view(value)
        && !value.is_instance_of::<js_sys::Error>()
}

/// Names the class of an object: `an object (Map)`.
fn class_of(value: &JsValue) -> String {
    let constructor = Reflect::get(value, &"constructor".into()).unwrap_or(JsValue::UNDEFINED);
    let name = Reflect::get(&constructor, &"name".into()).ok().and_then(|name| name.as_string());
    format!("an object ({})", name.as_deref().unwrap_or("no prototype"))
}
