//! What a model call yields.

use std::cell::Cell;

use crate::data::json::{FromJson, RawJson, ToJson, Value};
use crate::words::error::ErrorInfo;
use crate::words::message::{MessageStopReason, Usage};

/// What a model call yields, in order: `Start`, then blocks numbered from 0 without gaps, then `Done` or
/// `Error`.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantMessageEvent {
    /// The provider answered. A second `Start` means that the answer begins again and everything before it
    /// is void.
    Start,
    /// A text block begins.
    TextStart {
        /// The index of the block.
        index: u32,
    },
    /// More text.
    TextDelta {
        /// The index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// The index of the block.
        index: u32,
        /// Returned unchanged in later requests.
        signature: Option<String>,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// The index of the block.
        index: u32,
    },
    /// More thinking.
    ThinkingDelta {
        /// The index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// The index of the block.
        index: u32,
        /// Returned unchanged in later requests.
        signature: Option<String>,
        /// Whether the signature is an opaque block of its own.
        redacted: bool,
    },
    /// A tool call begins.
    ToolCallStart {
        /// The index of the block.
        index: u32,
        /// The provider's id for the call; empty if it has none.
        call_id: String,
        /// The tool's name.
        tool_name: String,
    },
    /// More of the text of the arguments.
    ToolCallDelta {
        /// The index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A tool call is complete. A call that never gets this event was cut off and does not run.
    ToolCallEnd {
        /// The index of the block.
        index: u32,
        /// What the wire needs to get back; a JSON object.
        metadata: Option<RawJson>,
    },
    /// A complete block that only its provider understands.
    Raw {
        /// The index of the block.
        index: u32,
        /// The block as received.
        data: RawJson,
    },
    /// The usage so far. Each report replaces the one before.
    Usage(Usage),
    /// A sign of life without content, such as a comment on the wire.
    Ping,
    /// The answer is complete.
    Done {
        /// Why the answer ended.
        stop_reason: MessageStopReason,
        /// The usage of the call.
        usage: Option<Usage>,
    },
    /// The call failed. Nothing follows.
    Error(ErrorInfo),
}

impl FromJson for AssistantMessageEvent {
    fn from_json(value: &Value) -> Result<Self, String> {
        use AssistantMessageEvent as E;
        let Some(kind) = value.text_at("type") else {
            return Err(["an event must be an object with a `type`, got ", value.kind()].concat());
        };
        // Missing fields are reported once at the end, which gives one exit instead of one for each field.
        let missing = Cell::new("");
        let text = |key: &'static str| {
            value.owned_at(key).unwrap_or_else(|| {
                missing.set(key);
                String::new()
            })
        };
        let optional = |key: &str| value.owned_at(key);
        let index = value.number_at("contentIndex").and_then(|n| u32::try_from(n).ok());
        let needs_index = !matches!(kind, "start" | "ping" | "usage" | "done" | "error");
        let event = match (kind, index.unwrap_or_default()) {
            ("start", _) => E::Start,
            ("ping", _) => E::Ping,
            ("text_start", index) => E::TextStart { index },
            ("text_delta", index) => E::TextDelta { index, delta: text("delta") },
            ("text_end", index) => E::TextEnd { index, signature: optional("signature") },
            ("thinking_start", index) => E::ThinkingStart { index },
            ("thinking_delta", index) => E::ThinkingDelta { index, delta: text("delta") },
            ("thinking_end", index) => E::ThinkingEnd {
                index,
                signature: optional("signature"),
                redacted: value.flag_at("redacted").unwrap_or(false),
            },
            ("tool_call_start", index) => E::ToolCallStart {
                index,
                call_id: optional("callId").unwrap_or_default(),
                tool_name: text("toolName"),
            },
            ("tool_call_delta", index) => E::ToolCallDelta { index, delta: text("delta") },
            ("tool_call_end", index) => {
                E::ToolCallEnd { index, metadata: value.get("metadata").map(ToJson::to_raw) }
            }
            ("raw", index) => E::Raw { index, data: raw_data(value)? },
            ("usage", _) => E::Usage(Usage::from_json(value)?),
            ("done", _) => E::Done {
                stop_reason: match value.text_at("stopReason") {
                    None => MessageStopReason::Stop,
                    Some(word) => MessageStopReason::from_word(word)
                        .ok_or_else(|| ["unknown stop reason `", word, "`"].concat())?,
                },
                usage: value.get("usage").map(Usage::from_json).transpose()?,
            },
            ("error", _) => E::Error(ErrorInfo::from_json(value.get("error").unwrap_or(&Value::Null))?),
            _ => return Err(["unknown event type `", kind, "`"].concat()),
        };
        if needs_index && index.is_none() {
            return Err(["`", kind, "` needs a `contentIndex`, a whole number from 0"].concat());
        }
        match missing.get() {
            "" => Ok(event),
            key => Err(["`", kind, "` needs a text `", key, "`"].concat()),
        }
    }
}

fn raw_data(value: &Value) -> Result<RawJson, String> {
    Ok(value.get("data").ok_or("`raw` needs a `data`")?.to_raw())
}
