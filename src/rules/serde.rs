//! serde for events, checkpoints and model calls, in the JSON form of the npm package.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::data::json::{FromJson, ToJson, Value, serde_as_json, serde_as_word, serialize_as_json};
use crate::rules::checkpoint::CheckpointEnvelopeV1;
use crate::rules::stream::{AssistantMessageEvent, Delta, ModelRequest, StreamOptions, ToolSchema};
use crate::words::event::{AgentEvent, CompactionReport, DecisionSource, RunStopReason, TurnEndReason};

serde_as_word!(DecisionSource, RunStopReason, TurnEndReason);

serde_as_json!(AgentEvent, CompactionReport, Delta, StreamOptions, ToolSchema);

impl Serialize for CheckpointEnvelopeV1 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_as_json(self, serializer)
    }
}

/// Reads the older shapes too, like [`CheckpointEnvelopeV1::from_value`].
impl<'de> Deserialize<'de> for CheckpointEnvelopeV1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for AssistantMessageEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_as_json(self, serializer)
    }
}

/// Reads `raw` too, which only a wire of the crate may say: a `streamFn` of JavaScript may not.
impl<'de> Deserialize<'de> for AssistantMessageEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let index = value.number_at("contentIndex").and_then(|index| u32::try_from(index).ok());
        match (value.text_at("type"), index, value.get("data")) {
            (Some("raw"), Some(index), Some(data)) => Ok(Self::Raw { index, data: data.to_raw() }),
            _ => Self::from_json(&value).map_err(serde::de::Error::custom),
        }
    }
}

/// Without the key; see `ToJson`.
impl Serialize for ModelRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_as_json(self, serializer)
    }
}
