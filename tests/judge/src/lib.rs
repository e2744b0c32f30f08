//! Judges traces of an agent loop. The rules are in `tests/data/oracle/README.md`.
#![forbid(unsafe_code)]

pub mod compare;

/// Whether a finding counts as a failure; the others are for information.
pub fn is_failure(problem: &str) -> bool {
    !problem.starts_with("informative")
}
