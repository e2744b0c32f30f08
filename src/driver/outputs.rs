//! The outputs of the machine that have not been processed yet.

use std::collections::VecDeque;

use crate::machine::{Effect, EffectId, LoopState, Output, tell_first, unsaid};
use crate::words::event::AgentEvent;

/// The outputs that wait, in order.
#[derive(Default)]
pub(super) struct OutputQueue {
    outputs: VecDeque<Output>,
    /// How many of them are cancellations, because many calls that start together each check for their own.
    cancels: usize,
}

impl OutputQueue {
    /// Appends what a step puts into the list.
    pub(super) fn append(&mut self, step: impl FnOnce(&mut Vec<Output>)) {
        // Usually the queue is empty; then the machine writes directly into it, and nothing has to be moved.
        let is_behind = !self.outputs.is_empty();
        let mut out = if is_behind { Vec::new() } else { Vec::from(std::mem::take(&mut self.outputs)) };
        step(&mut out);
        self.cancels += out.iter().filter(|output| matches!(output, Output::Cancel(_))).count();
        if is_behind {
            self.outputs.extend(out);
        } else {
            self.outputs = out.into();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front();
        if let Some(Output::Cancel(_)) = output {
            self.cancels = self.cancels.saturating_sub(1);
        }
        output
    }

    pub(super) fn put_back(&mut self, output: Output) {
        self.cancels += usize::from(matches!(output, Output::Cancel(_)));
        self.outputs.push_front(output);
    }

    /// Asks once to have everything received that is waiting now.
    pub(super) fn flush_later(&mut self) {
        self.outputs.retain(|output| !matches!(output, Output::Flush));
        self.outputs.push_back(Output::Flush);
    }

    /// Puts events before the cancellation of an effect, or before everything if that has been taken.
    pub(super) fn tell_before_cancel(&mut self, id: EffectId, events: Vec<AgentEvent>) {
        let is_this = |output: &Output| matches!(output, Output::Cancel(cancelled) if *cancelled == id);
        let place = self.outputs.iter().position(is_this).unwrap_or(0);
        let rest = self.outputs.split_off(place);
        self.outputs.extend(events.into_iter().map(Output::Event));
        self.outputs.extend(rest);
    }

    /// What agents inside the calls told late is part of the usage that the end of the run tells.
    #[cold]
    pub(super) fn correct_end(&mut self, state: &LoopState) {
        if let Some(Output::Event(AgentEvent::AgentEnd { usage, own_usage, .. })) = self.outputs.back_mut() {
            (*usage, *own_usage) = (*state.usage(), state.own_usage());
        }
    }

    /// The effects whose cancellation is among the outputs.
    pub(super) fn cancelled(&self) -> Vec<EffectId> {
        if self.cancels == 0 {
            return Vec::new();
        }
        let id = |output: &Output| if let Output::Cancel(id) = output { Some(*id) } else { None };
        self.outputs.iter().filter_map(id).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Inserts the events that a checkpoint had not emitted yet: see [`tell_first`].
    pub(super) fn tell_first(&mut self, unemitted: Vec<AgentEvent>) {
        tell_first(unemitted, &mut self.outputs);
    }

    /// Returns the effects not announced and the events not emitted: see [`unsaid`].
    pub(super) fn unsaid(&self) -> (Vec<EffectId>, Vec<&AgentEvent>) {
        unsaid(&self.outputs)
    }

    /// Whether a cancellation of the effect is among the outputs.
    pub(super) fn is_cancelled(&self, id: EffectId) -> bool {
        let is_this = |output: &Output| matches!(output, Output::Cancel(cancelled) if *cancelled == id);
        self.cancels > 0 && self.outputs.iter().any(is_this)
    }

    /// Whether the output is a call that may start as soon as its announcement has been emitted.
    pub(super) fn is_offer(&self, output: &Output) -> bool {
        match output {
            Output::Start { id, effect: Effect::Execute { .. }, announce: Some(_) } => {
                !self.is_cancelled(*id)
            }
            _ => false,
        }
    }

    /// Returns the announcements of the calls that start now, one after the other.
    pub(super) fn each_offered(&self, announce: &mut dyn FnMut(&AgentEvent)) {
        for output in &self.outputs {
            match output {
                Output::Start { announce: Some(event), .. } if self.is_offer(output) => announce(event),
                _ => return,
            }
        }
    }

    /// Takes the announcements of this many outputs.
    pub(super) fn take_announcements(&mut self, count: usize, announce: &mut dyn FnMut(&AgentEvent)) {
        for output in self.outputs.iter_mut().take(count) {
            if let Output::Start { announce: slot, .. } = output
                && let Some(event) = slot.take()
            {
                announce(&event);
            }
        }
    }
}
