//! The words that both sides share.
