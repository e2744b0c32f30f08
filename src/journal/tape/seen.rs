//! What happens while a tape is lived again.

use crate::data::json::{ObjectWriter, RawJson, ToJson};
use crate::host::ports::AgentRunContext;
use crate::machine::{Effect, EffectId, Queue};
use crate::rules::answer::Answer;
use crate::words::event::AgentEvent;

use super::answering::RuleAnswer;

/// Something that is on a tape, or follows from what is.
#[derive(Debug)]
pub enum Seen {
    /// A run begins, or goes on from a checkpoint.
    Run(AgentRunContext),
    /// An input that is no reply of an effect, as the tape has it.
    Input(RawJson),
    /// A reply of an effect.
    Reply {
        /// The effect.
        id: EffectId,
        /// Its name.
        name: String,
        /// The reply, as the tape has it.
        reply: RawJson,
        /// Whether more may follow.
        is_last: bool,
    },
    /// A rule of the host was asked.
    Rule(RuleAnswer),
    /// The listeners are told of an event.
    Event(AgentEvent),
    /// An effect starts.
    Start {
        /// The effect.
        id: EffectId,
        /// Its name.
        name: String,
        /// What to do.
        effect: Effect,
    },
    /// An effect is not wanted any more, whether it had started or not.
    Cancel {
        /// The effect.
        id: EffectId,
        /// Its name.
        name: String,
    },
    /// A running tool gets the answer to a question that it asked.
    Answer {
        /// The effect of the tool.
        id: EffectId,
        /// Its name.
        name: String,
        /// The number of the question among those of the call.
        number: u64,
        /// The answer.
        answer: Answer,
    },
    /// A mark for people.
    Note(String),
}

impl Seen {
    /// Writes the members that say what it is; `run_id` is that of the run.
    pub fn write_members(&self, run_id: &str, out: &mut ObjectWriter<'_>) {
        match self {
            Seen::Run(context) => drop(out.field("kind", "run").field("run", context)),
            Seen::Input(input) => drop(out.field("kind", "input").field("input", input)),
            Seen::Reply { name, reply, is_last, .. } => {
                out.field("kind", "reply").field("name", name).field("last", is_last).field("reply", reply);
            }
            Seen::Rule(RuleAnswer { rule, place, asked, answer }) => {
                out.field("kind", "rule").field("rule", *rule);
                out.field("place", &u64::try_from(*place).unwrap_or(u64::MAX));
                out.field("asked", asked).field("answer", answer);
            }
            Seen::Event(event) => {
                out.field("kind", "event");
                write_event(event, run_id, out.key("event"));
            }
            Seen::Start { name, effect, .. } => {
                out.field("kind", "start").field("name", name);
                write_effect(effect, out.key("effect"));
            }
            Seen::Cancel { name, .. } => drop(out.field("kind", "cancel").field("name", name)),
            Seen::Answer { name, number, answer, .. } => {
                out.field("kind", "answer")
                    .field("name", name)
                    .field("number", number)
                    .field("answer", answer);
            }
            Seen::Note(text) => drop(out.field("kind", "note").field("text", text)),
        }
    }
}

/// Writes an event as the listeners of the package get it: with the id of its run.
pub(super) fn write_event(event: &AgentEvent, run_id: &str, out: &mut String) {
    let json = event.to_json();
    match json.strip_suffix("}") {
        Some(open) => {
            out.push_str(open);
            out.push_str(",\"runId\":");
            run_id.write_json(out);
            out.push_str("}");
        }
        None => out.push_str(&json),
    }
}

fn write_effect(effect: &Effect, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    match effect {
        Effect::Choose => drop(object.field("kind", "choose")),
        Effect::Prepare { overflow } => drop(object.field("kind", "transform").field("overflow", overflow)),
        Effect::Infer { request, .. } => drop(object.field("kind", "model").field("request", request)),
        Effect::Hook(call) => drop(object.field("kind", "hook").field("stage", call.stage())),
        Effect::Approve(request) => drop(object.field("kind", "approve").field("request", request)),
        Effect::Execute { call_id, arguments, .. } => {
            object.field("kind", "tool").field("callId", call_id).field("arguments", arguments);
        }
        Effect::Poll(Queue::FollowUp) => drop(object.field("kind", "follow_up")),
        Effect::Poll(_) => drop(object.field("kind", "queue")),
        Effect::Compact { model } => drop(object.field("kind", "compact").field("model", model)),
        Effect::Sleep { ms } => drop(object.field("kind", "sleep").field("ms", ms)),
    }
    object.end();
}
