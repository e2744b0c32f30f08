//! The specification, sentence by sentence: the validation rules and the state tables of the data model, the loop
//! document with its event sequence and its dispatch system, and the loop lessons.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

mod bridges;
mod context;
mod data_model;
mod hooks;
mod kit;
mod lessons;
mod loop_document;
