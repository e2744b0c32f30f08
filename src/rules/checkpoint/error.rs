//! Why a text is not a valid checkpoint.

use std::fmt;

/// Why a text is not a valid checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// It has no version, and is not one of the older shapes without a version. The reason is for people.
    MissingVersion(String),
    /// It has another version.
    UnsupportedVersion(u64),
    /// It has another format.
    UnsupportedFormat(String),
    /// It is sealed: `unseal` of the npm package's `turnwheel/stores` checks it and gives the checkpoint.
    Sealed,
    /// It is not valid JSON, or something is missing. The reason is for people.
    InvalidPayload(String),
}

impl CheckpointError {
    /// Returns `missing_version`, `unsupported_version`, `unsupported_format`, `sealed` or `invalid_payload`.
    pub fn kind(&self) -> &'static str {
        match self {
            CheckpointError::MissingVersion(_) => "missing_version",
            CheckpointError::UnsupportedVersion(_) => "unsupported_version",
            CheckpointError::UnsupportedFormat(_) => "unsupported_format",
            CheckpointError::Sealed => "sealed",
            CheckpointError::InvalidPayload(_) => "invalid_payload",
        }
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::MissingVersion(_) => f.write_str("checkpoint payload is missing version"),
            CheckpointError::UnsupportedVersion(version) => {
                f.write_str("unsupported checkpoint version: ")?;
                f.write_str(&version.to_string())
            }
            CheckpointError::UnsupportedFormat(format) => {
                f.write_str("unsupported checkpoint format: ")?;
                f.write_str(format)
            }
            CheckpointError::Sealed => f.write_str(
                "the checkpoint is sealed: unseal it first, with `await unseal(sealed, key)` of turnwheel/stores",
            ),
            CheckpointError::InvalidPayload(reason) => {
                f.write_str("invalid checkpoint payload: ")?;
                f.write_str(reason)
            }
        }
    }
}

impl std::error::Error for CheckpointError {}
