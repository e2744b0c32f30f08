//! The journal of a durable run: its steps, their records, and the order in which what they answered enters.

mod chance;
mod journal;
mod mail;
mod open;
mod order;
mod outside;
mod record;
mod slot;

pub(crate) use chance::Chance;
pub(crate) use journal::{Journal, object_of};
pub(crate) use open::{Open, What};
pub(crate) use record::Outcome;
pub(crate) use slot::{Entry, Inside, Place, RunSlot};
