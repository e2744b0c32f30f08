//! A decision about a call, and why one is refused.

use std::fmt;

use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value};
use crate::words::message::ContentBlock;

/// A decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDecision {
    /// Run the call.
    Accept,
    /// Run the call with these arguments instead, a JSON object.
    AcceptWith(RawJson),
    /// Do not run the call.
    Reject {
        /// The reason, for the model.
        reason: Option<String>,
    },
    /// Do not run the call; use this as its result.
    Result {
        /// Text, image and file blocks.
        content: Vec<ContentBlock>,
        /// Data for the UI; never sent to the model.
        details: Option<RawJson>,
        /// Whether the result counts as a failure.
        is_error: bool,
    },
}

impl ToolDecision {
    /// Returns why the decision is none: it would run the call with arguments that are no object, or with a number that is not
    /// finite.
    pub(crate) fn flaw(&self) -> Option<String> {
        match self {
            ToolDecision::AcceptWith(arguments) if !arguments.is_object() => {
                let got = arguments.to_value().kind();
                Some(["the `arguments` of a decision must be an object, got ", got].concat())
            }
            ToolDecision::AcceptWith(arguments) => {
                let why = arguments.as_arguments().err()?;
                Some(["the `arguments` of a decision do not fit: ", &why].concat())
            }
            _ => None,
        }
    }

    /// Whether the tool runs.
    pub fn is_approval(&self) -> bool {
        matches!(self, ToolDecision::Accept | ToolDecision::AcceptWith(_))
    }
}

/// The effect of a decision that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The decision now holds.
    Applied,
    /// The same decision already held.
    Repeated,
    /// No batch has this call yet. The decision will hold as soon as one does.
    Parked,
}

/// Why a decision was refused. A refused decision changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalError {
    /// The batch has no call with this id.
    UnknownToolCallId(String),
    /// The call has already been decided or has started.
    AlreadyResolved(String),
    /// The decision about the call with this id would run it with arguments that are no object, or with
    /// a number that is not finite.
    InvalidArguments(String),
    /// The command contains no decision about a call.
    InvalidCommand,
}

impl ApprovalError {
    /// Returns the id of the call that the error is about.
    pub fn call_id(&self) -> Option<&str> {
        match self {
            ApprovalError::UnknownToolCallId(id)
            | ApprovalError::AlreadyResolved(id)
            | ApprovalError::InvalidArguments(id) => Some(id),
            ApprovalError::InvalidCommand => None,
        }
    }

    /// Returns the text that `Display` writes.
    pub(crate) fn text(&self) -> String {
        match self {
            ApprovalError::UnknownToolCallId(id) => ["unknown tool_call_id: ", id].concat(),
            ApprovalError::AlreadyResolved(id) => ["tool_call_id ", id, " is already resolved"].concat(),
            ApprovalError::InvalidArguments(id) => [
                "the `arguments` of the decision about tool_call_id ",
                id,
                " are no object with finite numbers",
            ]
            .concat(),
            ApprovalError::InvalidCommand => "invalid approval command for state machine".to_owned(),
        }
    }
}

impl fmt::Display for ApprovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for ApprovalError {}

impl ToJson for ToolDecision {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            ToolDecision::Accept => drop(object.field("action", "approve")),
            ToolDecision::AcceptWith(arguments) => {
                object.field("action", "approve").field("arguments", arguments);
            }
            ToolDecision::Reject { reason } => {
                object.field("action", "reject").optional("reason", reason);
            }
            ToolDecision::Result { content, details, is_error } => {
                object.field("action", "result");
                let mut output = ObjectWriter::new(object.key("content"));
                output.field("content", content).optional("details", details);
                output.end();
                object.field("isError", is_error);
            }
        }
        object.end();
    }
}

impl FromJson for ToolDecision {
    fn from_json(value: &Value) -> Result<Self, String> {
        let decision = read_decision(value)?;
        decision.flaw().map_or(Ok(decision), Err)
    }
}

/// Reads a decision without checking its arguments. They are checked together with the call.
pub(crate) fn read_decision(value: &Value) -> Result<ToolDecision, String> {
    let action = value.as_str().or_else(|| value.text_at("action"));
    match action {
        Some("approve") => match value.get("arguments") {
            None => Ok(ToolDecision::Accept),
            Some(arguments) => Ok(ToolDecision::AcceptWith(arguments.to_raw())),
        },
        Some("reject") => {
            let reason = value.owned_at("reason");
            Ok(ToolDecision::Reject { reason })
        }
        Some("result") => result_decision(value),
        other => {
            let got = other.unwrap_or(value.kind());
            Err(["a decision must be `approve`, `reject` or { action: \"result\", content }, got ", got]
                .concat())
        }
    }
}

fn result_decision(value: &Value) -> Result<ToolDecision, String> {
    let output = value.get("content").unwrap_or(&Value::Null);
    let (content, details, is_error) = read_output(output, value.flag_at("isError"))?;
    Ok(ToolDecision::Result { content, details, is_error })
}

/// Reads the result of a call that a person or the host gives: its blocks, its details, and whether it failed. What is no
/// list of blocks becomes a text.
pub(crate) fn read_output(
    output: &Value,
    is_error: Option<bool>,
) -> Result<(Vec<ContentBlock>, Option<RawJson>, bool), String> {
    let blocks = output.get("content").filter(|content| content.as_array().is_some());
    let content = match (output, blocks) {
        (_, Some(blocks)) => Vec::<ContentBlock>::from_json(blocks)?,
        (Value::Null, None) => Vec::new(),
        (Value::String(text), None) => vec![ContentBlock::text(text.as_str())],
        (json, None) => vec![ContentBlock::text(json.to_json())],
    };
    let shown = |block: &ContentBlock| {
        matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::File(_))
    };
    if !content.iter().all(shown) {
        return Err("the `content` of a result takes text, image and file blocks only".to_owned());
    }
    let is_error = is_error.or_else(|| blocks.and_then(|_| output.flag_at("isError"))).unwrap_or(false);
    let details = blocks.and_then(|_| output.get("details")).map(ToJson::to_raw);
    Ok((content, details, is_error))
}
