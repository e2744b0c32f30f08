//! Without the feature `tracing`: functions that do nothing.

use crate::host::config::AgentLoopConfig;
use crate::host::ports::AgentRunContext;
use crate::words::event::AgentEvent;

/// The spans of a run: none.
#[derive(Default)]
pub(in crate::driver) struct Spans {}

/// Nothing was entered.
pub(in crate::driver) struct Entered;

impl Spans {
    #[inline]
    pub(in crate::driver) fn begin(&mut self, _: &AgentRunContext, _: &AgentLoopConfig) {}

    #[inline]
    pub(in crate::driver) fn entered(&self) -> Entered {
        Entered
    }

    #[inline]
    pub(in crate::driver) fn event(&mut self, _: &AgentEvent, _: &AgentLoopConfig) {}

    #[inline]
    pub(in crate::driver) fn tool<F>(&mut self, _: &str, _: &str, future: F) -> F {
        future
    }

    #[inline]
    pub(in crate::driver) fn answer<S>(&self, stream: S) -> S {
        stream
    }
}
