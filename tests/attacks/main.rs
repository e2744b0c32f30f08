//! Attacks on the native crate, one module a file.

mod keys;
