//! `AbortSignal` and [`CancelToken`], each made of the other.

use turnwheel::CancelToken;
use wasm_bindgen::prelude::*;
use web_sys::{AbortController, AbortSignal};

use crate::thrown;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = DOMException)]
    type AbortError;

    #[wasm_bindgen(constructor, js_class = "DOMException")]
    fn new(message: &str, name: &str) -> AbortError;
}

/// Returns a signal that is aborted when the token is cancelled, with an `AbortError` whose message is the reason.
///
/// # Errors
/// If the host has no `AbortController`.
pub fn signal_of(token: &CancelToken) -> Result<AbortSignal, JsValue> {
    let controller = AbortController::new()?;
    let signal = controller.signal();
    let reasons = token.clone();
    token.on_cancel(move || {
        let reason = reasons.reason();
        controller.abort_with_reason(&AbortError::new(reason.as_deref().unwrap_or_default(), "AbortError"));
    });
    Ok(signal)
}

/// Returns a token that is cancelled when the signal is aborted, for the same reason: a run that JavaScript can stop.
///
/// ```no_run
/// use turnwheel_web::cancel_by;
/// # fn example(signal: &web_sys::AbortSignal) {
/// let cancel = cancel_by(signal);
/// # }
/// ```
pub fn cancel_by(signal: &AbortSignal) -> CancelToken {
    let token = CancelToken::new();
    if signal.aborted() {
        token.cancel(&thrown::text_of(&signal.reason()));
        return token;
    }
    let (cancelled, source) = (token.clone(), signal.clone());
    let listener = Closure::once_into_js(move || {
        cancelled.cancel(&thrown::text_of(&source.reason()));
    });
    // Adding a listener fails only on what is no signal.
    let _ = signal.add_event_listener_with_callback("abort", listener.unchecked_ref());
    token
}
