//! What JavaScript calls: agents, runs, and the answers to effects.

mod agent;
pub(crate) mod answers;
mod run;
#[cfg(feature = "server")]
mod tape;
