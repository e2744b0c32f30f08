//! Letters and commands in a checkpoint.

use crate::data::json::{FromJson, Map, ObjectWriter, ToJson, Value};
use crate::data::list::ListWriter;
use crate::host::config::SteeringTime;
use crate::rules::answer::Answer;
use crate::rules::approval::read_decision;
use crate::words::message::AgentMessage;

use crate::machine::input::{AgentCommand, Letter};

impl AgentCommand {
    /// Whether a checkpoint may have it: everything that cannot make a tool run.
    pub(crate) fn is_believable(&self) -> bool {
        match self {
            AgentCommand::Resolve(answers) => answers.iter().all(|(_, answer)| !answer.is_positive()),
            other => !other.is_decision(),
        }
    }

    /// Whether the command is about a question.
    pub(crate) fn is_decision(&self) -> bool {
        matches!(
            self,
            AgentCommand::Resolve(_)
                | AgentCommand::Refuse { .. }
                | AgentCommand::ResolveTool { .. }
                | AgentCommand::ResolveTools(_)
        )
    }
}

fn write_decisions<T: ToJson>(decisions: &[(String, T)], out: &mut String) {
    let mut all = ObjectWriter::new(out);
    for (id, decision) in decisions {
        all.field(id, decision);
    }
    all.end();
}

fn read_decisions<T>(
    value: &Value,
    read: fn(&Value) -> Result<T, String>,
) -> Result<Vec<(String, T)>, String> {
    let mut all = Vec::new();
    for (id, decision) in value.as_object().map(Map::iter).into_iter().flatten() {
        all.push((id.to_owned(), read(decision)?));
    }
    Ok(all)
}

/// The receipt of a letter whose sender is gone.
const SENDER_GONE: u64 = u64::MAX;

impl ToJson for Letter {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("message", &self.message).field("posted", &(self.receipt > 0));
        if let Some(when) = self.when {
            object.field("when", when.as_str());
        }
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
        let receipt = if posted == Some(true) { SENDER_GONE } else { 0 };
        let unknown = |word: &str| ["`when` of a steering message is no time: ", word].concat();
        let when = value.text_at("when").map(|word| SteeringTime::of_word(word).ok_or_else(|| unknown(word)));
        Ok(Letter { message, receipt, when: when.transpose()? })
    }
}

impl ToJson for AgentCommand {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            AgentCommand::Steer(letter) => letter.write_command("steer", &mut object),
            AgentCommand::FollowUp(letter) => letter.write_command("follow_up", &mut object),
            AgentCommand::Resolve(answers) => {
                object.field("kind", "answer");
                write_decisions(answers, object.key("answers"));
            }
            AgentCommand::Refuse { id, call_id, reason } => {
                object.field("kind", "refuse").optional("id", id).optional("callId", call_id);
                object.field("reason", reason);
            }
            AgentCommand::ResolveTool { call_id, decision } => {
                object.field("kind", "resolve").field("callId", call_id).field("decision", decision);
            }
            AgentCommand::ResolveTools(decisions) => {
                object.field("kind", "resolve_all");
                write_decisions(decisions, object.key("decisions"));
            }
            AgentCommand::SwitchModel => drop(object.field("kind", "switch_model")),
            AgentCommand::ClearQueues => drop(object.field("kind", "clear_queues")),
            AgentCommand::Cancel(reason) => drop(object.field("kind", "cancel").field("reason", reason)),
        }
        object.end();
    }
}

impl FromJson for AgentCommand {
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
            "resolve_all" => AgentCommand::ResolveTools(read_decisions(get("decisions"), read_decision)?),
            "answer" => AgentCommand::Resolve(read_decisions(get("answers"), Answer::from_json)?),
            "refuse" => AgentCommand::Refuse {
                id: value.owned_at("id"),
                call_id: value.owned_at("callId"),
                reason: word("reason").to_owned(),
            },
            "switch_model" => AgentCommand::SwitchModel,
            "clear_queues" => AgentCommand::ClearQueues,
            "cancel" => AgentCommand::Cancel(word("reason").into()),
            other => return Err(["`mail` has the unknown word `", other, "`"].concat()),
        })
    }
}
