//! The result of a run as JSON, in the form of the npm package, and serde for it.

use super::AgentLoopResult;
use crate::data::json::{FromJson, ObjectWriter, ToJson, Value, serde_as_json};
use crate::words::error::ErrorInfo;
use crate::words::event::{RunStopReason, write_usage};
use crate::words::message::Usage;

impl ToJson for AgentLoopResult {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("runId", &self.run_id).field("text", &self.text).field("messages", &self.messages);
        write_usage(&self.usage, self.own_usage.as_ref(), &mut object);
        object.field("turns", &self.turns);
        object.field("stopReason", self.stop_reason.as_str()).optional("output", &self.output);
        if let Some(error) = &self.error {
            object.field("error", error.info());
        }
        object.end();
    }
}

impl FromJson for AgentLoopResult {
    fn from_json(value: &Value) -> Result<Self, String> {
        let get = |key: &str| value.get(key).unwrap_or(&Value::Null);
        let text = |key: &str| value.text_at(key).unwrap_or_default();
        let stop_reason = RunStopReason::from_word(text("stopReason"))
            .ok_or_else(|| ["unknown stop reason `", text("stopReason"), "`"].concat())?;
        Ok(AgentLoopResult {
            run_id: text("runId").into(),
            messages: Vec::from_json(get("messages"))?,
            text: text("text").to_owned(),
            output: value.get("output").map(ToJson::to_raw),
            usage: value.get("usage").map_or(Ok(Usage::default()), Usage::from_json)?,
            own_usage: get("usage").get("own").map(Usage::from_json).transpose()?,
            turns: value.number_at("turns").and_then(|turns| u32::try_from(turns).ok()).unwrap_or(0),
            stop_reason,
            error: value.get("error").map(|error| ErrorInfo::from_json(error).map(Into::into)).transpose()?,
        })
    }
}

serde_as_json!(AgentLoopResult);
