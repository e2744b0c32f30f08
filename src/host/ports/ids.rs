//! Ids for a host that has none.

use crate::host::config::random_id;

use super::AgentRunContext;

impl AgentRunContext {
    /// Creates a context with two random ids of 128 bits each: the first run of a new conversation. The runs after it have the
    /// same session, `who.next_run()`.
    ///
    /// They are as random as [`RandomState`](std::collections::hash_map::RandomState), which is not where a target has no
    /// source of chance, such as `wasm32-unknown-unknown`: there the ids come from the host.
    ///
    /// ```
    /// use turnwheel::AgentRunContext;
    ///
    /// let (first, other) = (AgentRunContext::random(), AgentRunContext::random());
    /// assert_ne!(first.session_id, other.session_id);
    /// let second = first.next_run();
    /// assert_eq!(second.session_id, first.session_id);
    /// assert_ne!(second.run_id, first.run_id);
    /// ```
    pub fn random() -> Self {
        AgentRunContext::new(&random_id(), &random_id())
    }

    /// Creates the context of the next run of the same conversation, with a random id and the same metadata.
    #[must_use]
    pub fn next_run(&self) -> Self {
        let next = AgentRunContext::new(&random_id(), &self.session_id);
        AgentRunContext { metadata: self.metadata.clone(), ..next }
    }
}
