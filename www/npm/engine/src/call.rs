//! A call of a tool, as the bridge keeps it.

#[cfg(feature = "server")]
use std::rc::Rc;

use turnwheel::state::SessionState;
use turnwheel::tool::{ToolContext, Updates};

/// A call of a tool: where what it reports goes, and the session state as it sees it.
pub(super) struct Call {
    pub(super) updates: Updates,
    pub(super) state: SessionState,
    /// The durable run that an agent inside the call is part of.
    #[cfg(feature = "server")]
    pub(super) durable: Option<Rc<dyn std::any::Any>>,
}

impl Call {
    pub(super) fn of(context: &ToolContext) -> Self {
        Call {
            updates: context.updates.clone(),
            state: context.state.clone(),
            #[cfg(feature = "server")]
            durable: context.durable.clone(),
        }
    }
}
