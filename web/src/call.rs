//! Calls of JavaScript functions, which may return promises.

use std::future::Future;

use js_sys::{Function, Promise, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Calls a function with two arguments, and waits if it returned a promise. The call is made at once.
///
/// # Errors
/// What the function threw, or what its promise was rejected with.
pub(crate) fn call(
    function: &Function,
    this: &JsValue,
    first: &JsValue,
    second: &JsValue,
) -> impl Future<Output = Result<JsValue, JsValue>> + use<> {
    let returned = function.call2(this, first, second);
    async move {
        let value = returned?;
        if is_thenable(&value) { JsFuture::from(Promise::resolve(&value)).await } else { Ok(value) }
    }
}

/// Whether a value has to be awaited: promises of other realms and of libraries too.
fn is_thenable(value: &JsValue) -> bool {
    value.is_object() && Reflect::get(value, &"then".into()).is_ok_and(|then| then.is_function())
}

/// Returns a struct as a JavaScript object.
pub(crate) fn object<T: Serialize>(members: &T) -> Result<JsValue, JsValue> {
    Ok(members.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}
