//! Letters and commands in a checkpoint.

use crate::data::json::{FromJson, ObjectWriter, ToJson, Value};
use crate::data::list::ListWriter;
use crate::rules::approval::read_decision;
use crate::words::message::AgentMessage;

use crate::machine::input::{AgentCommand, Letter};

/// The receipt of a letter whose sender is gone.
const SENDER_GONE: u64 = u64::MAX;

impl ToJson for Letter {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("message", &self.message).field("posted", &(self.receipt > 0));
        object.end();
    }
}

impl Letter {
    fn write_command(&self, kind: &str, out: &mut ObjectWriter<'_>) {
        out.field("kind", kind).field("letter", self);
    }

    /// Writes letters as the commands that post them.
    pub(crate) fn write_mail(letters: &[Letter], kind: &str, mail: &mut ListWriter<'_>) {
        for letter in letters {
            let mut object = ObjectWriter::new(mail.item());
            letter.write_command(kind, &mut object);
            object.end();
        }
    }
}

impl FromJson for Letter {
    fn from_json(value: &Value) -> Result<Letter, String> {
        let message = AgentMessage::from_json(value.get("message").unwrap_or(&Value::Null))?;
        let posted = value.flag_at("posted");
        Ok(Letter { message, receipt: if posted == Some(true) { SENDER_GONE } else { 0 } })
    }
}

impl ToJson for AgentCommand {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            AgentCommand::Steer(letter) => letter.write_command("steer", &mut object),
            AgentCommand::FollowUp(letter) => letter.write_command("follow_up", &mut object),
            AgentCommand::ResolveTool { call_id, decision } => {
                object.field("kind", "resolve").field("callId", call_id).field("decision", decision);
            }
            AgentCommand::ResolveTools(decisions) => {
                object.field("kind", "resolve_all");
                let mut all = ObjectWriter::new(object.key("decisions"));
                for (call_id, decision) in decisions {
                    all.field(call_id, decision);
                }
                all.end();
            }
            AgentCommand::SwitchModel => drop(object.field("kind", "switch_model")),
            AgentCommand::ClearQueues => drop(object.field("kind", "clear_queues")),
            AgentCommand::Cancel(reason) => drop(object.field("kind", "cancel").field("reason", reason)),
        }
        object.end();
    }
}

impl FromJson for AgentCommand {
    #[inline(never)]
    fn from_json(value: &Value) -> Result<AgentCommand, String> {
        let get = |key: &str| value.get(key).unwrap_or(&Value::Null);
        let word = |key: &str| get(key).as_str().unwrap_or_default();
        Ok(match word("kind") {
            "steer" => AgentCommand::Steer(Letter::from_json(get("letter"))?),
            "follow_up" => AgentCommand::FollowUp(Letter::from_json(get("letter"))?),
            "resolve" => AgentCommand::ResolveTool {
                call_id: word("callId").to_owned(),
                decision: read_decision(get("decision"))?,
            },
            "resolve_all" => {
                let mut all = Vec::new();
                if let Value::Object(decisions) = get("decisions") {
                    for (id, decision) in decisions.iter() {
                        all.push((id.to_owned(), read_decision(decision)?));
                    }
                }
                AgentCommand::ResolveTools(all)
            }
            "switch_model" => AgentCommand::SwitchModel,
            "clear_queues" => AgentCommand::ClearQueues,
            "cancel" => AgentCommand::Cancel(word("reason").into()),
            other => return Err(["`mail` has the unknown word `", other, "`"].concat()),
        })
    }
}
