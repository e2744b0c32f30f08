//! The checkpoint envelope, `CheckpointEnvelopeV1`, which other agents can read and write too.
//!
//! `{"version": 1, "format": "stakai_message_v1", "run_id": uuid or null, "messages": […], "metadata": …}`.
//! Messages are `{role, content, name?, provider_options?}`, where the content is a text or parts (`text`,
//! `image`, `tool_call`, `tool_result`). Anything not understood here is kept and written back. Data that
//! only this engine needs is in `metadata.turnwheel`.

mod check;
pub mod convert;
mod error;

use check::{check_message, checked_messages, uuid};
pub use error::CheckpointError;

use crate::data::json::{Map, ObjectWriter, ToJson, Value};
use crate::data::text;
use crate::words::message::AgentMessage;

/// The only version so far.
pub const VERSION: u64 = 1;
/// The only format so far.
pub const FORMAT: &str = "stakai_message_v1";
/// The format of a checkpoint that was sealed with `seal` of the package `turnwheel/stores`.
pub const SEALED_FORMAT: &str = "turnwheel_sealed_checkpoint";
/// The version of the engine's own state.
pub const STATE_VERSION: u64 = 1;
/// The key of the engine's own state in the metadata.
const OWN_STATE: &str = "turnwheel";
/// The metadata entry for a checkpoint that was a bare list of messages.
const MIGRATED_FROM: (&str, &str) = ("migrated_from", "legacy_messages_array");

/// A checkpoint: decoded and validated, or about to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointEnvelopeV1 {
    /// A UUID in lower case with hyphens; never anything else.
    run_id: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<Value>,
    /// Any JSON.
    pub metadata: Value,
    /// Fields that this version does not define.
    others: Map,
}

impl CheckpointEnvelopeV1 {
    /// Creates an envelope. A run id that is not a UUID is left out, because other readers would refuse the
    /// whole checkpoint; keep it in the metadata.
    pub fn new(run_id: Option<&str>, messages: Vec<Value>, metadata: Value) -> Self {
        CheckpointEnvelopeV1 { run_id: run_id.and_then(uuid), messages, metadata, others: Map::new() }
    }

    /// Returns the run id, if it is a UUID.
    pub fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// Returns the engine's own state.
    pub fn own_state(&self) -> Option<&Value> {
        self.metadata.get(OWN_STATE)
    }

    /// Returns the engine's own state, if its version is supported.
    ///
    /// # Errors
    /// If a newer version wrote it. Nothing in it is guessed.
    pub fn checked_state(&self) -> Result<Option<&Value>, CheckpointError> {
        let Some(own) = self.own_state() else { return Ok(None) };
        let written = own.get("version");
        if written.and_then(Value::as_u64) == Some(STATE_VERSION) {
            return Ok(Some(own));
        }
        let written = written.map_or_else(|| "none".to_owned(), ToJson::to_json);
        let reads = text::number(STATE_VERSION);
        Err(CheckpointError::InvalidPayload(
            ["metadata.turnwheel is of version ", &written, ", this turnwheel reads ", &reads].concat(),
        ))
    }

    /// Converts the messages to those of the engine.
    ///
    /// # Errors
    /// Names the first message that cannot be read.
    pub fn agent_messages(&self) -> Result<Vec<AgentMessage>, CheckpointError> {
        convert::from_stakai(&self.messages).map_err(CheckpointError::InvalidPayload)
    }

    /// Creates an envelope from a history and the members of the engine's own state, a JSON object.
    pub(crate) fn of_state(run_id: &str, messages: &[AgentMessage], own: &str) -> Self {
        let run_id = Some(run_id).filter(|id| !id.is_empty());
        let mut envelope = CheckpointEnvelopeV1::new(run_id, convert::to_stakai(messages), Value::Null);
        let mut state = Map::from_iter([("version".to_owned(), Value::from(STATE_VERSION))]);
        if let Ok(Value::Object(members)) = Value::parse(own) {
            members.iter().for_each(|(key, value)| state.insert(key, value.clone()));
        }
        envelope.set_own_state(state.into());
        envelope
    }

    /// Sets the engine's own state. Metadata that is not an object is replaced with one.
    pub fn set_own_state(&mut self, state: Value) {
        if !matches!(self.metadata, Value::Object(_)) {
            self.metadata = Value::Object(Map::new());
        }
        if let Value::Object(metadata) = &mut self.metadata {
            metadata.insert(OWN_STATE, state);
        }
    }

    /// Writes the checkpoint as JSON text. Every number stays as it was written, of any length.
    pub fn encode(&self) -> String {
        self.to_json()
    }

    /// Reads a checkpoint from bytes.
    ///
    /// # Errors
    /// As for [`CheckpointEnvelopeV1::from_value`], and if the bytes are not valid JSON.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let invalid = |reason: String| CheckpointError::InvalidPayload(reason);
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("not valid UTF-8".to_owned()))?;
        Self::from_value(Value::parse_container(text).map_err(|error| invalid(error.to_string()))?)
    }

    /// Reads a checkpoint, or one of the older shapes without a version: a bare list of messages, or an
    /// object with `messages`.
    ///
    /// # Errors
    /// If the version, the shape or the format is invalid. They are checked in this order, the version as
    /// it was written.
    pub fn from_value(value: Value) -> Result<Self, CheckpointError> {
        if value.text_at("format") == Some(SEALED_FORMAT) {
            return Err(CheckpointError::Sealed);
        }
        let version = match value.get("version") {
            // Only digits count as a version. Anything else (`1.0`, null, a text) was never written by any
            // version.
            Some(Value::Number(number)) => number.as_str().parse::<u64>().ok(),
            _ => None,
        };
        match version {
            Some(VERSION) => current(value),
            Some(other) => Err(CheckpointError::UnsupportedVersion(other)),
            None => legacy(value).map_err(CheckpointError::MissingVersion),
        }
    }
}

impl ToJson for CheckpointEnvelopeV1 {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("version", &VERSION).field("format", FORMAT).field("run_id", &self.run_id);
        object.field("messages", &self.messages).field("metadata", &self.metadata);
        for (key, value) in self.others.iter() {
            object.field(key, value);
        }
        object.end();
    }
}

fn current(value: Value) -> Result<CheckpointEnvelopeV1, CheckpointError> {
    let invalid = |reason: &str| Err(CheckpointError::InvalidPayload(reason.to_owned()));
    let Value::Object(mut fields) = value else { return invalid("an object was expected") };
    fields.remove("version");
    let Some(Value::String(format)) = fields.remove("format") else {
        return invalid("`format` must be a text");
    };
    let run_id = match fields.remove("run_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => match uuid(&text) {
            None => return invalid("`run_id` must be a UUID or null"),
            id => id,
        },
        Some(_) => return invalid("`run_id` must be a UUID or null"),
    };
    let messages = checked_messages(fields.remove("messages")).map_err(CheckpointError::InvalidPayload)?;
    let Some(metadata) = fields.remove("metadata") else { return invalid("`metadata` is missing") };
    if format != FORMAT {
        return Err(CheckpointError::UnsupportedFormat(format));
    }
    Ok(CheckpointEnvelopeV1 { run_id, messages, metadata, others: fields })
}

fn legacy(value: Value) -> Result<CheckpointEnvelopeV1, String> {
    let mut fields = match value {
        Value::Array(_) => {
            let messages = checked_messages(Some(value))?;
            let (key, mark) = MIGRATED_FROM;
            let metadata = Map::from_iter([(key.to_owned(), Value::from(mark))]);
            return Ok(CheckpointEnvelopeV1::new(None, messages, metadata.into()));
        }
        Value::Object(fields) => fields,
        other => return Err(["a checkpoint must be an object, got ", other.kind()].concat()),
    };
    let messages = checked_messages(fields.remove("messages"))?;
    let metadata = fields.remove("metadata").unwrap_or_else(|| Value::Object(Map::new()));
    let run_id = fields.remove("run_id");
    fields.remove("version");
    fields.remove("format");
    let run_id = run_id.as_ref().and_then(Value::as_str);
    Ok(CheckpointEnvelopeV1 { others: fields, ..CheckpointEnvelopeV1::new(run_id, messages, metadata) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Result<CheckpointEnvelopeV1, CheckpointError> {
        CheckpointEnvelopeV1::decode(text.as_bytes())
    }

    #[test]
    fn what_is_not_understood_is_written_again() {
        let text = concat!(
            r#"{"version":1,"format":"stakai_message_v1","run_id":null,"messages":"#,
            r#"[{"role":"user","content":"q","mood":"good"}],"metadata":{"a":[1]},"extra":{"k":12345678901234567890123}}"#
        );
        assert_eq!(decode(text).unwrap().to_json(), text);
    }

    #[test]
    fn a_version_is_judged_before_it_is_narrowed() {
        for version in ["0", "2", "65537", "4294967297", "18446744073709551615"] {
            let text = ["{\"version\":", version, "}"].concat();
            let Err(error) = decode(&text) else { panic!("{version} was taken for 1") };
            assert_eq!(error.to_string(), ["unsupported checkpoint version: ", version].concat());
        }
    }

    #[test]
    fn the_version_is_judged_first_then_the_shape_then_the_format() {
        let kind = |text: &str| decode(text).map_err(|error| error.kind()).map(|_| ());
        assert_eq!(kind(r#"{"version":2,"format":"other"}"#), Err("unsupported_version"));
        assert_eq!(kind(r#"{"version":1,"format":"other","messages":[]}"#), Err("invalid_payload"));
        let other = r#"{"version":1,"format":"other","messages":[],"metadata":null}"#;
        assert_eq!(kind(other), Err("unsupported_format"));
        assert_eq!(decode(other).unwrap_err().to_string(), "unsupported checkpoint format: other");
    }

    #[test]
    fn the_engine_keeps_its_own_state_beside_the_hosts() {
        let mut envelope =
            CheckpointEnvelopeV1::new(None, Vec::new(), Value::parse("{\"cwd\":\"/w\"}").unwrap());
        envelope.set_own_state(Value::from(true));
        let again = decode(&envelope.to_json()).unwrap();
        assert_eq!(again.own_state(), Some(&Value::Bool(true)));
        assert_eq!(again.metadata.get("cwd"), Some(&Value::from("/w")));
    }

    #[test]
    fn run_ids_are_uuids_in_all_their_forms_and_nothing_else() {
        let canonical = "11111111-2222-4333-8444-5555555555af";
        for form in [
            canonical,
            "11111111-2222-4333-8444-5555555555AF",
            "1111111122224333844455555555 55af".replace(' ', "").as_str(),
            "{11111111-2222-4333-8444-5555555555af}",
            "urn:uuid:11111111-2222-4333-8444-5555555555af",
        ] {
            assert_eq!(uuid(form).as_deref(), Some(canonical), "{form}");
        }
        for form in
            ["", "run-1", "11111111-2222-4333-8444-5555555555ag", "11111111-2222-4333-84445555555555af"]
        {
            assert_eq!(uuid(form), None, "{form}");
        }
    }

    #[test]
    fn an_older_shape_that_does_not_decode_says_what_is_wrong() {
        let Err(CheckpointError::MissingVersion(reason)) = decode(r#"[{"role":"nobody","content":"x"}]"#)
        else {
            panic!("it was taken");
        };
        assert_eq!(reason, "message 0: unknown role `nobody`");
    }
}
