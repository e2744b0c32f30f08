//! How the decoders of Messages, Responses and Gemini handle streams that no recording in
//! `tests/data/fixtures` covers.

#![allow(clippy::unwrap_used, reason = "a panic here is a test that fails")]

mod anthropic;
mod frames;
mod gemini;
mod kit;
mod limits;
mod responses;
#[path = "../wire_words/mod.rs"]
mod wire_words;
