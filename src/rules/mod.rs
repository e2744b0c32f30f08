//! What follows from what, without waiting for anything: how a stream becomes a message, which calls need an approval,
//! what is retried, what a request leaves out, and how a run is written down.

pub mod answer;
pub mod approval;
pub mod authority;
pub mod budget;
pub mod call_ids;
pub mod checkpoint;
pub mod context;
pub(crate) mod estimate;
mod json;
pub mod overflow;
pub mod policy;
pub mod retry;
pub mod secrets;
mod serde;
pub mod stream;
pub mod stream_parts;
