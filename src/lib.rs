pub mod error;
pub mod json;
pub mod message;
pub mod provider;
pub mod retry;
pub mod stream;
