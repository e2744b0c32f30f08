//! A moment of a tape.

use crate::data::json::{ObjectWriter, ToJson};
use crate::data::list::ListWriter;
use crate::machine::{Letter, unsaid};
use crate::rules::checkpoint::CheckpointEnvelopeV1;
use crate::rules::stream::ModelRequest;
use crate::words::message::{AgentMessage, Usage};
use crate::words::question::{Question, QuestionKind};

use super::play::Player;

/// What there is once so many events have been emitted.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The number of events.
    pub n: u64,
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The history.
    pub messages: Vec<AgentMessage>,
    /// What the run does.
    pub phase: &'static str,
    /// The open questions of all kinds, in the order in which they were asked.
    pub questions: Vec<Question>,
    /// The usage of the run.
    pub usage: Usage,
    /// The request that was sent last, without its key.
    pub request: Option<ModelRequest>,
    /// The state of the agent, as a checkpoint.
    pub checkpoint: CheckpointEnvelopeV1,
}

impl Player {
    /// The moment that the player has come to.
    pub fn frame(&self) -> Frame {
        let state = self.state.as_ref();
        Frame {
            n: self.events,
            at: self.now,
            messages: self.messages().to_vec(),
            phase: self.phase(),
            questions: state.map_or_else(Vec::new, |state| state.questions()),
            usage: state.map_or_else(Usage::default, |state| *state.usage()),
            request: self.request.clone(),
            checkpoint: self.checkpoint(),
        }
    }

    /// Writes the members of a [`Frame`] that are small, and the messages: a host that shows moments one after the other asks
    /// for the request and the checkpoint, in which the messages stand again, only where it shows them.
    pub fn write_frame(&self, out: &mut ObjectWriter<'_>) {
        let state = self.state.as_ref();
        out.field("n", &self.events).field("at", &self.now).field("phase", self.phase());
        write_questions(&state.map_or_else(Vec::new, |state| state.questions()), out);
        out.field("usage", &state.map_or_else(Usage::default, |state| *state.usage()));
        let mut messages = ListWriter::new(out.key("messages"));
        self.messages().iter().for_each(|message| message.write_json(messages.item()));
        messages.end();
    }

    /// What the run does.
    pub fn phase(&self) -> &'static str {
        self.state.as_ref().map_or("idle", |state| state.phase.name())
    }

    /// The request that was sent last, without its key.
    pub fn request(&self) -> Option<&ModelRequest> {
        self.request.as_ref()
    }

    /// The agent at this moment, as a checkpoint: see [`Agent::restore`](crate::agent::Agent::restore).
    pub fn checkpoint(&self) -> CheckpointEnvelopeV1 {
        let mut own = String::new();
        let mut object = ObjectWriter::new(&mut own);
        self.write_checkpoint(&mut object);
        object.end();
        let run_id = self.state.as_ref().map_or("", |state| &state.context.run_id);
        CheckpointEnvelopeV1::of_state(run_id, self.messages(), &own)
    }

    fn write_checkpoint(&self, out: &mut ObjectWriter<'_>) {
        if let Some(state) = &self.state {
            out.field("session", &state.session.snapshot()).field("changes", &state.session.changes());
        }
        out.field("usage", &self.used);
        self.spent.write_members(out);
        let mut mail = ListWriter::new(out.key("mail"));
        Letter::write_mail(&self.letters.0, "steer", &mut mail);
        Letter::write_mail(&self.letters.1, "follow_up", &mut mail);
        mail.end();
        let Some(state) = self.state.as_ref().filter(|_| !self.is_between_runs()) else { return };
        let (unannounced, waiting) = unsaid(&self.queue);
        state.write_checkpoint(self.now, &unannounced, out.key("run"));
        let mut unemitted = ListWriter::new(out.key("untold"));
        waiting.into_iter().for_each(|event| event.write_json(unemitted.item()));
        unemitted.end();
        let mut children = ObjectWriter::new(out.key("children"));
        state.waiting_children().for_each(|(call_id, child)| {
            children.field(call_id, child);
        });
        children.end();
    }

    /// Whether the last run is over, and its end emitted.
    fn is_between_runs(&self) -> bool {
        let Some(state) = &self.state else { return true };
        let is_end = |output: &crate::machine::Output| matches!(output, crate::machine::Output::Event(_));
        state.is_ended() && !self.queue.iter().any(is_end)
    }
}

impl ToJson for Frame {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("n", &self.n).field("at", &self.at).field("messages", &self.messages);
        object.field("phase", self.phase);
        write_questions(&self.questions, &mut object);
        object.field("usage", &self.usage).optional("request", &self.request);
        object.field("checkpoint", &self.checkpoint);
        object.end();
    }
}

fn write_questions(questions: &[Question], out: &mut ObjectWriter<'_>) {
    let mut all = ListWriter::new(out.key("pendingQuestions"));
    questions.iter().for_each(|question| question.write_json(all.item()));
    all.end();
    let mut approvals = ListWriter::new(out.key("pendingApprovals"));
    let is_tool = |question: &&Question| question.kind == QuestionKind::Tool;
    questions.iter().filter(is_tool).for_each(|question| question.write_json(approvals.item()));
    approvals.end();
}
