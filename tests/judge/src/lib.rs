//! Judges traces of an agent loop. The rules are in `tests/data/oracle/README.md`.
#![forbid(unsafe_code)]

pub mod compare;

/// Whether a finding counts; the others are for the reader.
pub fn is_failure(problem: &str) -> bool {
    !problem.starts_with("informative")
}
