//! The tool calls of one answer: order, gates, decisions, limits, steering, hand-over.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

mod decisions;
mod ends;
mod kit;
mod order;
mod restored;
mod results;
mod steering;
