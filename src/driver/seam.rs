//! The seam of a run: who sits there, and the moments at which they are asked. Without the feature `durable` nobody does, and
//! nothing of this is compiled into the engine.

#[cfg(feature = "durable")]
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::host::tool::ToolContext;
use crate::journal::{Answers, Beginning as BeginsWith, Entering, Rest, Seam};
#[cfg(feature = "durable")]
use crate::journal::{
    steps::{Journal, RunSlot},
    tape::Recorder,
};
use crate::machine::{Effect, EffectId, LoopState, Output, Reply};

use super::{AgentStream, Beginning};

/// Who sits at the seam of a run.
#[derive(Clone, Default)]
pub(super) struct AtSeam {
    #[cfg(feature = "durable")]
    pub(super) recorder: Option<Rc<dyn Seam<AgentStream>>>,
    /// Where a durable run takes its steps.
    #[cfg(feature = "durable")]
    pub(super) slot: Option<Rc<RunSlot>>,
}

/// What an agent keeps for the seams of its runs.
#[derive(Clone, Default)]
pub(crate) struct SeamOfAgent {
    #[cfg(feature = "durable")]
    pub(crate) recorder: Rc<std::cell::RefCell<Option<Recorder>>>,
    /// The journal of its durable runs.
    #[cfg(feature = "durable")]
    pub(crate) journal: Rc<std::cell::RefCell<Option<Rc<Journal>>>>,
}

impl AtSeam {
    #[cfg(feature = "durable")]
    fn each(&self) -> impl DoubleEndedIterator<Item = &dyn Seam<AgentStream>> {
        let slot = self.slot.iter().map(|slot| -> &dyn Seam<AgentStream> { &**slot });
        self.recorder.iter().map(|recorder| &**recorder).chain(slot)
    }

    #[cfg(not(feature = "durable"))]
    fn each(&self) -> impl DoubleEndedIterator<Item = &dyn Seam<AgentStream>> {
        std::iter::empty()
    }

    /// Something is about to enter the machine.
    pub(super) fn enters(&self, state: &LoopState, now: u64, entering: &Entering<'_>) {
        self.each().for_each(|seam| seam.enters(state, now, entering));
    }

    /// It has entered.
    pub(super) fn entered(&self, state: &LoopState, out: &[Output]) {
        self.each().for_each(|seam| seam.entered(state, out));
    }

    /// Whether effects have begun that are no tasks.
    pub(super) fn has_steps(&self) -> bool {
        #[cfg(feature = "durable")]
        return self.slot.as_ref().is_some_and(|slot| slot.has_steps());
        #[cfg(not(feature = "durable"))]
        false
    }

    /// A tool is about to begin.
    #[cfg_attr(not(feature = "durable"), allow(unused_variables, reason = "nobody sits there"))]
    pub(super) fn place_call(&self, call: &mut ToolContext) {
        #[cfg(feature = "durable")]
        if let Some(slot) = &self.slot {
            slot.place_call(call);
        }
    }
}

impl AgentStream {
    /// The configuration that takes force in place of the one that is set. What a journal changes is recorded.
    pub(super) fn configure(&mut self) {
        let seam = self.seam.clone();
        self.config = seam.each().rev().fold(self.config.clone(), |config, seam| seam.configure(config));
    }

    /// An effect would start. Returns it if it starts now.
    pub(super) fn would_start(&mut self, id: EffectId, effect: Effect, by: Answers) -> Option<Effect> {
        let seam = self.seam.clone();
        seam.each().try_fold(effect, |effect, seam| seam.starts(self, id, effect, by).ok_or(())).ok()
    }

    /// An effect is not wanted any more.
    pub(super) fn give_up(&mut self, id: EffectId) {
        let seam = self.seam.clone();
        seam.each().for_each(|seam| seam.drops(self, id));
    }

    /// A reply has arrived. Returns what enters of it now.
    pub(super) fn arrived(&mut self, id: EffectId, reply: Reply) -> Option<Reply> {
        let seam = self.seam.clone();
        seam.each().try_fold(reply, |reply, seam| seam.arrives(self, id, reply).ok_or(())).ok()
    }

    /// Commands may have reached the run. Returns whether one was handled; `None` if they enter at once.
    pub(super) fn divert_commands(&mut self) -> Option<bool> {
        let seam = self.seam.clone();
        seam.each().find_map(|seam| seam.commands(self))
    }

    /// The run rests. Returns what it does then, if that is decided at the seam.
    pub(super) fn rest(&mut self, rest: Rest, cx: &mut Context<'_>) -> Option<Poll<bool>> {
        let seam = self.seam.clone();
        seam.each().find_map(|seam| seam.rests(self, rest, cx))
    }

    /// The run has emitted its end, or is dropped.
    pub(super) fn leave_seam(&mut self) {
        let seam = self.seam.clone();
        seam.each().for_each(|seam| seam.leaves(self));
    }

    /// How the run begins is about to enter.
    pub(super) fn enters_beginning(&self, begin: &Beginning) {
        let unemitted = match begin {
            Beginning::Resume(events) => Some(events.as_slice()),
            Beginning::Start(_) => None,
        };
        let (used, spent) = (self.handover.used.get(), self.handover.spent.get());
        let beginning = BeginsWith { unemitted, used, spent };
        self.seam.enters(&self.state, self.now, &Entering::Beginning(&beginning));
    }
}
