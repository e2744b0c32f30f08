//! The boundary to JavaScript: free functions over handles. No exported class, no `&mut self`,
//! and no borrow held while JavaScript runs, except inside the synchronous rules, which can
//! reach nothing but the inbox.
//!
//! JavaScript drives: it calls in with bytes, answers and mail, and reads one batch of what happened
//! (see `outbox`). It notifies its listeners, then calls `run_poll`, which continues to the next
//! effect. docs/internals/boundary.md says why.

#![allow(unsafe_code, reason = "what wasm-bindgen generates needs it; nothing here is written with it")]
#![allow(unreachable_pub, reason = "what is exported to JavaScript must be `pub`")]

mod bridge;
mod call;
mod exports;
mod http;
mod instance;
mod known;
mod outbox;
mod ports;
mod protocol;
mod room;
mod rules;
mod settings;
#[cfg(feature = "server")]
mod steps;

/// Smaller and faster than std's allocator (docs/internals/build.md).
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();
