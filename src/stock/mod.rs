//! Ready-made implementations of the traits of `host`: a model over HTTP, a model and a clock for tests, summaries.

pub mod http;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "jsonschema")]
pub mod schema;
pub mod scripted;
pub mod summarize;
