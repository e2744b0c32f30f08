//! Runs inside a durable engine, with the feature `durable`: each effect is a step, whose record the engine stores; in a later
//! process the same run is replayed from the records.
//!
//! There is one seam. An effect that would start becomes a step first (`open_step`), and starts in the ordinary way when the engine
//! asks for its work. Its reply does not enter the machine: it is the outcome of that work (`record_outcome`). It enters when its
//! record is stored and its turn has come, and so it does in every process (`deliver_next`). Pieces of an answer and progress of tools
//! pass as they come, and nothing is done for a piece.
//!
//! The [`Journal`] has the steps, the clock, the order and the mail of a run and of those inside its calls. Each of them has a
//! [`RunSlot`]. When nothing in any of them can go on, the outermost run asks the journal what enters next (`when_idle`). The machine
//! sees the time of the last record and no other clock.

#[cfg(not(feature = "durable"))]
mod absent;
#[cfg(feature = "durable")]
mod begin;
#[cfg(feature = "durable")]
mod enter;
#[cfg(feature = "durable")]
mod mail;
#[cfg(feature = "durable")]
mod timers;

#[cfg(not(feature = "durable"))]
pub(crate) use absent::JournalOfAgent;
#[cfg(feature = "durable")]
pub(crate) use begin::JournalOfAgent;
