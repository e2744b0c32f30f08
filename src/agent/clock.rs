//! The clock of an agent.

use super::Agent;

impl Agent {
    /// The time by the clock of its configuration, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.0.config.borrow().ports.timer.now()
    }
}
