//! An agent that is recorded, or durable.

use crate::journal::tape::Recorder;
use crate::words::error::{AgentError, ErrorKind};

use super::Agent;

impl Agent {
    /// Writes down what enters the runs of the agent from the next one on.
    ///
    /// # Errors
    /// Misuse, if a run is active: what has entered it already is nowhere.
    pub fn record(&self, recorder: &Recorder) -> Result<(), AgentError> {
        if self.is_running() {
            let text = "a run is active; record an agent before it runs, or after";
            return Err(AgentError::new(ErrorKind::Misuse, text));
        }
        *self.0.seam.recorder.borrow_mut() = Some(recorder.clone());
        Ok(())
    }

    /// Whether the active run only repeats what an earlier process has lived: see
    /// [`AgentStream::is_replaying`](crate::AgentStream::is_replaying). A listener may ask.
    pub fn is_replaying(&self) -> bool {
        self.is_running()
            && self.0.seam.journal.borrow().as_ref().is_some_and(|journal| journal.is_replaying())
    }
}
