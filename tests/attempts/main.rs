//! Model calls: attempts, delays, fallback models, context overflow, and streams that end early.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

mod fallback;
mod hooks;
mod kit;
mod messages;
mod overflow;
mod policies;
mod retries;
mod silence;
mod structured_output;
