//! turnwheel: an LLM agent is a loop — call a model, stream its answer, run the tools it asks for, feed the results
//! back — and this crate is that loop, as a sans-IO [`machine`] and one thin asynchronous [`driver`].
//!
//! [`driver::agent_loop`] starts a run, [`agent::Agent`] keeps a conversation. Both give an
//! [`driver::AgentStream`]: poll it and the run goes on; nothing is spawned.

pub mod agent;
pub mod approval;
pub mod call_ids;
pub mod cancel;
pub mod checkpoint;
pub mod config;
pub mod context;
pub mod driver;
pub mod error;
pub mod event;
mod id_map;
pub mod isolate;
pub mod json;
pub mod machine;
pub mod message;
pub mod overflow;
pub mod policy;
pub mod ports;
pub mod provider;
pub mod retry;
pub mod state;
pub mod stream;
pub mod stream_parts;
pub mod subagent;
pub mod summarize;
pub mod table;
mod text;
pub mod tool;

#[cfg(target_arch = "wasm32")]
mod wasm;
