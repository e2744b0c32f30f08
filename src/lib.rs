pub mod approval;
pub mod call_ids;
pub mod error;
pub mod json;
pub mod message;
pub mod provider;
pub mod retry;
pub mod stream;
