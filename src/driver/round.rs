//! The running effects in rounds: the tools first, all of them; then at most one reply of another effect, which
//! waits until abort and mail have been processed.

use std::cell::Cell;
use std::rc::Rc;

use crate::host::tool::Updates;
use crate::machine::EffectId;

use super::tasks::{Polled, Tasks};

/// A round of the running effects.
#[derive(Default)]
pub(super) struct TaskRound {
    pub(super) tasks: Tasks,
    /// Whether the tools are still being polled.
    is_open: bool,
    /// A reply held back until abort and mail have been processed and, for the end of an answer, until the
    /// listeners have received everything before it.
    held: Option<(EffectId, Polled)>,
    /// Whether a tool has reported progress since progress was last read.
    has_progress: Rc<Cell<bool>>,
}

impl TaskRound {
    /// Drops an effect, and its reply if that is held back.
    pub(super) fn remove(&mut self, id: EffectId) {
        self.tasks.remove(id);
        self.held.take_if(|(held, _)| *held == id);
    }

    /// Begins the next round, if the last one is over.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.tasks.begin_round();
        }
    }

    /// All tools of this round have been polled.
    pub(super) fn end(&mut self) {
        self.is_open = false;
    }

    /// Whether nothing stands before the next piece of an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_none() && !self.is_open
    }

    /// Holds a reply back.
    pub(super) fn hold(&mut self, id: EffectId, polled: Polled) {
        self.held = Some((id, polled));
    }

    /// Polls the effects that are no tools, unless a reply is held back. Returns whether one is now that was not
    /// before.
    pub(super) fn hold_next(&mut self) -> bool {
        if self.held.is_some() {
            return false;
        }
        self.held = self.tasks.poll_others();
        self.held.is_some()
    }

    pub(super) fn take_held(&mut self) -> Option<(EffectId, Polled)> {
        self.held.take()
    }

    /// Takes a held reply that only waits for the mail that came with it to be processed.
    pub(super) fn take_held_end(&mut self) -> Option<(EffectId, Polled)> {
        self.held.take_if(|(_, polled)| matches!(polled, Polled::Last(_)))
    }

    /// Returns where a tool leaves its progress.
    pub(super) fn new_updates(&self) -> Updates {
        Updates::with_flag(self.has_progress.clone())
    }

    /// Whether a tool may have reported progress that nobody has read.
    #[cfg(feature = "durable")]
    pub(super) fn progress_flag(&self) -> Rc<Cell<bool>> {
        self.has_progress.clone()
    }

    /// Returns progress that a tool has reported and nobody has read yet.
    pub(super) fn next_progress(&mut self) -> Option<(EffectId, Polled)> {
        if !self.has_progress.get() {
            return None;
        }
        // A tool may report more while the last of it is processed.
        let progress = self.tasks.take_progress();
        self.has_progress.set(progress.is_some());
        progress
    }
}
