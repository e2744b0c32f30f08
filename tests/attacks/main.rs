//! What strangers tried: hostile models, servers, checkpoints and host code, one module for each kind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod control;
mod decisions;
mod filtered;
mod keys;
mod listeners;
mod numbers;
mod sealed;
mod spending;
