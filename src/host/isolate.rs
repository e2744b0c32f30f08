//! Contains failures of host code: a panic becomes an error text. Where panics abort, as in wasm, there is nothing
//! to catch: there a boundary to JavaScript turns exceptions into errors.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Calls `host`, and returns an error or a panic as a text.
///
/// # Errors
/// The host's own error, or the panic's message.
pub fn guard<T>(host: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(host)).unwrap_or_else(|panic| Err(text_of(&*panic)))
}

/// Polls a future of the host, and returns a panic as a text.
///
/// # Errors
/// The panic's message.
pub fn guard_poll<T>(
    future: &mut Pin<Box<dyn Future<Output = T>>>,
    cx: &mut Context<'_>,
) -> Result<Poll<T>, String> {
    guard(|| Ok(future.as_mut().poll(cx)))
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panicked".to_owned())
}
