//! Takes a checkpoint of a run: its state, what was posted, and what was not emitted yet.

use crate::data::json::{ObjectWriter, ToJson};
use crate::data::list::ListWriter;
use crate::machine::{AgentCommand, Input};
use crate::rules::checkpoint::CheckpointEnvelopeV1;
use crate::words::event::AgentEvent;

use super::{AgentStream, Beginning};

impl AgentStream {
    /// Returns a checkpoint of the run, which can be stored and continued elsewhere: see
    /// [`Agent::restore`](crate::agent::Agent::restore). It may be taken at any time, even in the middle of
    /// an answer, a batch or a delay.
    pub fn checkpoint(&mut self) -> CheckpointEnvelopeV1 {
        let is_end_emitted = self.result.is_some();
        let mut own = String::new();
        let mut object = ObjectWriter::new(&mut own);
        self.write_checkpoint(is_end_emitted, &mut object);
        object.end();
        CheckpointEnvelopeV1::of_state(&self.state.context().run_id, self.state.messages(), &own)
    }

    /// Writes the state of the run: the members that a checkpoint keeps. `is_end_emitted` means that the end of
    /// the run has been emitted, so that the run is only history.
    pub fn write_checkpoint(&mut self, is_end_emitted: bool, out: &mut ObjectWriter<'_>) {
        self.handle_finished();
        let session = self.state.session();
        out.field("session", &session.snapshot()).field("changes", &session.changes());
        out.field("usage", &self.handover.used.get());
        self.handover.spent.get().write_members(out);
        let mut mail = ListWriter::new(out.key("mail"));
        self.handover.inbox.write_mail(&mut mail);
        if let Some(reason) = self.abort.waiting() {
            AgentCommand::Cancel(reason).write_json(mail.item());
        }
        mail.end();
        match &self.begin {
            Some(Beginning::Start(Input::Begin(prompts))) => drop(out.field("prompts", prompts)),
            Some(Beginning::Start(_)) => out.key("prompts").push_str("null"),
            _ if is_end_emitted => {}
            _ => {
                self.write_run(out);
                self.write_children(out);
            }
        }
    }

    /// Writes the agents inside the tools: those that run, and those of a checkpoint that have not gone on yet.
    fn write_children(&self, out: &mut ObjectWriter<'_>) {
        let mut children = Vec::new();
        for (_, child) in self.round.tasks.children() {
            if let Some(checkpoint) = child.checkpoint() {
                children.push((child.call_id().to_owned(), checkpoint));
            }
        }
        let mut waiting = self.state.waiting_children().peekable();
        if children.is_empty() && waiting.peek().is_none() {
            return;
        }
        let mut object = ObjectWriter::new(out.key("children"));
        // One of them may be there again, and nobody has heard of it yet.
        for (call_id, child) in waiting.filter(|(id, _)| children.iter().all(|(of, _)| of != id)) {
            object.field(call_id, child);
        }
        for (call_id, child) in &children {
            object.field(call_id, child);
        }
        object.end();
    }

    fn write_run(&mut self, out: &mut ObjectWriter<'_>) {
        self.update_now();
        let (unannounced, waiting) = self.outputs.unsaid();
        self.state.write_checkpoint(self.now, &unannounced, out.key("run"));
        let mut unemitted = ListWriter::new(out.key("untold"));
        let mut write = |event: &AgentEvent| event.write_json(unemitted.item());
        if let Some(Beginning::Resume(events)) = &self.begin {
            events.iter().for_each(&mut write);
        }
        waiting.into_iter().for_each(write);
        unemitted.end();
    }

    /// Takes the replies of finished tools, and any held-back reply that only waits for the mail that came
    /// with it to be emitted. What a tool has done and a person has said must not be lost.
    fn handle_finished(&mut self) {
        if self.begin.is_none() && !self.state.is_ended() {
            self.handle_tools();
            self.round.tasks.begin_round();
            self.handle_tools();
            if let Some((id, polled)) = self.round.take_held_end() {
                self.take_polled(id, polled);
            }
            // What agents inside the tools have told is told in their own checkpoints.
            self.handle_progress();
        }
        self.end_cancelled_children();
    }
}
