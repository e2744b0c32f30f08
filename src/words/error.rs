//! Errors: a kind for each cause, a plain form that crosses every boundary, and the error type of the
//! crate.

use std::fmt;
use std::rc::Rc;

use crate::data::json::members::{maybe, plain};
use crate::data::json::{FromJson, Member, Value, members, words};

/// The kinds of error. The provider adapter sets them; nothing later guesses them from texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// Too many requests. Transient, unless the quota is spent.
    Throttled,
    /// The provider has no capacity. Transient.
    Overloaded,
    /// There was no answer, or it was cut off. Transient.
    Network,
    /// The provider failed. Transient.
    Server,
    /// The key is missing or wrong.
    Auth,
    /// The provider refused the request as it stands.
    InvalidRequest,
    /// A safety filter refused.
    ContentFiltered,
    /// The conversation does not fit into the model's context; it has its own recovery.
    ContextOverflow,
    /// The run was aborted.
    Aborted,
    /// Something exceeded its time limit.
    Timeout,
    /// A tool marked as fatal failed.
    Tool,
    /// A hook failed.
    Hook,
    /// The caller did something that the engine does not allow.
    Misuse,
    /// The engine itself has a bug.
    Internal,
    /// None of these.
    Unknown,
}

words!(ErrorKind {
    Throttled = "throttled", Overloaded = "overloaded", Network = "network", Server = "server", Auth = "auth",
    InvalidRequest = "invalid_request", ContentFiltered = "content_filtered",
    ContextOverflow = "context_overflow", Aborted = "aborted", Timeout = "timeout", Tool = "tool",
    Hook = "hook", Misuse = "misuse", Internal = "internal", Unknown = "unknown",
});

impl ErrorKind {
    /// Whether a retry may help: throttled, overloaded, network, server.
    pub fn is_transient(self) -> bool {
        matches!(self, ErrorKind::Throttled | ErrorKind::Overloaded | ErrorKind::Network | ErrorKind::Server)
    }
}

/// The provider's own description of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The HTTP status.
    pub status: Option<u16>,
    /// The provider's `type`.
    pub kind: Option<String>,
    /// The provider's `code`; a numeric one as text.
    pub code: Option<String>,
}

/// An error as it appears in events, messages and checkpoints: plain data, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The kind of error.
    pub code: ErrorKind,
    /// A message for people. It names what is wrong and how to fix it.
    pub message: String,
    /// Whether a retry may help.
    pub retryable: bool,
    /// How long the server asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Where in the run it happened, such as `model` or `tool`.
    pub phase: Option<String>,
    /// The provider's own description.
    pub provider: Option<ProviderError>,
}

impl ErrorInfo {
    /// Creates an error of a kind, which also determines whether it is retryable.
    pub fn new(code: ErrorKind, message: impl Into<String>) -> Self {
        ErrorInfo {
            code,
            message: message.into(),
            retryable: code.is_transient(),
            retry_after_ms: None,
            phase: None,
            provider: None,
        }
    }

    /// Returns the same error, with the phase of the run where it happened.
    pub fn in_phase(mut self, phase: &str) -> Self {
        self.phase.get_or_insert_with(|| phase.to_owned());
        self
    }
}

members!(write ErrorInfo {
    "code" => code: plain,
    "message" => message: plain,
    "retryable" => retryable: plain,
    "retryAfterMs" => retry_after_ms: maybe,
    "phase" => phase: maybe,
    "provider" => provider: maybe,
});

members!(write ProviderError {
    "status" => status: maybe,
    "type" => kind: maybe,
    "code" => code: maybe,
});

impl FromJson for ErrorInfo {
    fn from_json(value: &Value) -> Result<Self, String> {
        let Some(message) = value.text_at("message") else {
            return Err("an error needs a `message` text".to_owned());
        };
        let code = ErrorKind::at(value, "code").unwrap_or(ErrorKind::Unknown);
        let mut info = ErrorInfo::new(code, message);
        if let Some(retryable) = value.flag_at("retryable") {
            info.retryable = retryable;
        }
        info.retry_after_ms = value.number_at("retryAfterMs");
        info.phase = value.owned_at("phase");
        info.provider = value.get("provider").map(|provider| ProviderError {
            status: maybe::read(provider, "status"),
            kind: provider.owned_at("type"),
            code: provider.get("code").and_then(|code| match code {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.as_str().to_owned()),
                _ => None,
            }),
        });
        Ok(info)
    }
}

/// The error type of the crate: an [`ErrorInfo`] and, if there is one, the error that caused it.
#[derive(Clone, Debug)]
pub struct AgentError(Box<ErrorParts>);

#[derive(Clone, Debug)]
struct ErrorParts {
    info: ErrorInfo,
    cause: Option<Rc<dyn std::error::Error>>,
}

impl AgentError {
    /// Creates an error of a kind.
    pub fn new(code: ErrorKind, message: impl Into<String>) -> Self {
        ErrorInfo::new(code, message).into()
    }

    /// Returns the same error, with its cause.
    #[must_use]
    pub fn because(mut self, cause: impl std::error::Error + 'static) -> Self {
        self.0.cause = Some(Rc::new(cause));
        self
    }

    /// Returns the kind of error.
    pub fn code(&self) -> ErrorKind {
        self.0.info.code
    }

    /// Returns the plain form.
    pub fn info(&self) -> &ErrorInfo {
        &self.0.info
    }
}

impl From<ErrorInfo> for AgentError {
    fn from(info: ErrorInfo) -> Self {
        AgentError(Box::new(ErrorParts { info, cause: None }))
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.info.message)
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref()
    }
}
