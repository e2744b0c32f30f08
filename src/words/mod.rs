//! What is said and stored: messages, errors, prices.

pub mod error;
pub mod event;
pub mod message;
pub mod price;
pub mod question;
mod serde;
