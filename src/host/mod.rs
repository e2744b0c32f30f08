//! What a host fills in: the configuration, the traits behind it, and what its code receives.

pub mod cancel;
pub mod config;
pub mod isolate;
pub mod ports;
mod serde;
pub mod state;
pub mod tool;
