//! turnwheel-web in a JavaScript host: in Node, or with `WASM_BINDGEN_USE_BROWSER=1` in headless Chromium.

#![cfg(target_family = "wasm")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod fetch;
mod scene;
mod time;
mod tools;
mod values;
