//! Runs inside a durable engine, with the feature `durable`: each effect is a step, whose record the engine stores; in a later
//! process the same run is replayed from the records.
//!
//! An effect that would start becomes a step first (`open_step`), and starts in the ordinary way when the engine asks for its work.
//! Its reply does not enter the machine: it is the outcome of that work (`record_outcome`). It enters when its record is stored and its
//! turn has come, and so it does in every process (`deliver_next`). Pieces of an answer and progress of tools pass as they come, and
//! nothing is done for a piece.
//!
//! The [`Journal`](crate::journal::steps::Journal) has the steps, the clock, the order and the mail of a run and of those inside its
//! calls. Each of them has a [`RunSlot`]. When nothing in any of them can go on, the outermost run asks the journal what enters next
//! (`when_idle`). The machine sees the time of the last record and no other clock.

mod answers;
mod begin;
mod enter;
mod mail;
mod timers;

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::host::config::AgentLoopConfig;
use crate::journal::steps::RunSlot;
use crate::journal::tape::Recorder;
use crate::journal::{Answers, Rest, Seam};
use crate::machine::{Effect, EffectId, Reply};

use super::AgentStream;

impl AgentStream {
    /// Writes down what enters the run, before it begins.
    #[must_use]
    pub fn recorded(mut self, recorder: &Recorder) -> Self {
        let seam = recorder.at_seam::<AgentStream>();
        self.config = seam.configure(self.config.clone());
        self.handover.listener = recorder.listening(self.handover.listener.clone());
        self.seam.recorder = Some(seam);
        self
    }
}

impl Seam<AgentStream> for RunSlot {
    fn configure(&self, config: Rc<AgentLoopConfig>) -> Rc<AgentLoopConfig> {
        Rc::new(RunSlot::configure(self, &config))
    }

    fn starts(&self, run: &mut AgentStream, id: EffectId, effect: Effect, by: Answers) -> Option<Effect> {
        if by == Answers::Driver { Some(effect) } else { run.open_step(id, effect) }
    }

    fn drops(&self, run: &mut AgentStream, id: EffectId) {
        run.drop_step(id);
    }

    fn arrives(&self, run: &mut AgentStream, id: EffectId, reply: Reply) -> Option<Reply> {
        match reply {
            Reply::Stream(_) | Reply::StreamEnded | Reply::Progress(_) => run.record_piece(id, reply),
            reply => run.record_outcome(id, reply),
        }
    }

    fn commands(&self, run: &mut AgentStream) -> Option<bool> {
        run.post_commands()
    }

    fn rests(&self, run: &mut AgentStream, rest: Rest, cx: &mut Context<'_>) -> Option<Poll<bool>> {
        let waits = |is_waiting: bool| is_waiting.then_some(Poll::Pending);
        match rest {
            Rest::Polling => run.deliver_next(cx).then_some(Poll::Ready(true)),
            Rest::Idle => run.when_idle(cx),
            Rest::Beginning if self.is_root() => waits(run.await_begin(cx)),
            Rest::Between if self.is_root() => run.has_failed().then_some(Poll::Ready(false)),
            Rest::Over if self.is_root() => waits(run.await_end(&self.journal, cx)),
            Rest::Beginning | Rest::Between | Rest::Over => None,
        }
    }

    fn leaves(&self, run: &mut AgentStream) {
        run.leave_journal();
    }
}
