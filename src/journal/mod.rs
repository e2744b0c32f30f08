//! What enters a run, in order: written down as a tape, or kept as a journal.

#[cfg(feature = "durable")]
pub(crate) mod steps;
pub mod tape;
