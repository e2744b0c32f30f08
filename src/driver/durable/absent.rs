//! Without the feature `durable`: functions that do nothing.

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::driver::{AgentStream, Next};
use crate::host::config::AgentLoopConfig;
use crate::host::state::SessionState;
use crate::machine::{Effect, EffectId, Reply};

/// What an agent keeps of its journal: nothing.
#[derive(Clone, Default)]
pub(crate) struct JournalOfAgent {}

impl AgentStream {
    #[inline]
    pub(in crate::driver) fn seated(self) -> Self {
        self
    }

    #[inline]
    pub(in crate::driver) fn awaits_begin(&mut self, _: &mut Context<'_>) -> bool {
        false
    }

    #[inline]
    pub(in crate::driver) fn with_steps(&self, config: Rc<AgentLoopConfig>) -> Rc<AgentLoopConfig> {
        config
    }

    #[inline]
    pub(in crate::driver) fn open_step(&mut self, _: EffectId, effect: Effect) -> Option<Effect> {
        Some(effect)
    }

    #[inline]
    pub(in crate::driver) fn record_piece(&mut self, _: EffectId, reply: Reply) -> Option<Reply> {
        Some(reply)
    }

    #[inline]
    pub(in crate::driver) fn record_outcome(&mut self, _: EffectId, reply: Reply) -> Option<Reply> {
        Some(reply)
    }

    #[inline]
    pub(in crate::driver) fn deliver_next(&mut self, _: &mut Context<'_>) -> bool {
        false
    }

    #[inline]
    pub(in crate::driver) fn when_idle(&mut self, _: &mut Context<'_>) -> Option<Poll<bool>> {
        None
    }

    #[inline]
    pub(in crate::driver) fn has_steps(&self) -> bool {
        false
    }

    #[inline]
    pub(in crate::driver) fn diverts(&mut self) -> Option<bool> {
        None
    }

    #[inline]
    pub(in crate::driver) fn gives_up(&mut self, _: EffectId) {}

    #[inline]
    pub(in crate::driver) fn journal_time(&self) -> Option<u64> {
        None
    }

    #[inline]
    pub(in crate::driver) fn ends(&mut self, _: &mut Context<'_>) -> Poll<Next> {
        Poll::Ready(Next::End)
    }

    #[inline]
    pub(in crate::driver) fn has_failed(&mut self) -> bool {
        false
    }

    #[inline]
    pub(in crate::driver) fn takes_back(&mut self) {}

    #[inline]
    pub(in crate::driver) fn leaves(&mut self) {}

    #[inline]
    pub(in crate::driver) fn state_of_call(&self) -> SessionState {
        self.state.session().clone()
    }
}
