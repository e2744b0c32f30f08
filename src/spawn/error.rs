//! The error of everything that is asked of an agent on another thread.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::words::error::{AgentError, ErrorInfo, ErrorKind};

/// Why an agent on another thread did not do something: an [`AgentError`] without its cause, which may not cross threads. Either
/// is made of the other by `?`.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnError(Box<ErrorInfo>);

impl SpawnError {
    pub(super) fn new(code: ErrorKind, message: impl Into<String>) -> Self {
        SpawnError(Box::new(ErrorInfo::new(code, message)))
    }

    /// Returns the kind of error.
    pub fn code(&self) -> ErrorKind {
        self.0.code
    }

    /// Returns the plain form.
    pub fn info(&self) -> &ErrorInfo {
        &self.0
    }
}

impl From<AgentError> for SpawnError {
    fn from(error: AgentError) -> Self {
        SpawnError(Box::new(error.info().clone()))
    }
}

impl From<SpawnError> for AgentError {
    fn from(error: SpawnError) -> Self {
        AgentError::from(*error.0)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for SpawnError {}

impl Serialize for SpawnError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
