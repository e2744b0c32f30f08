//! A run that is recorded.

use std::rc::Rc;

use crate::journal::tape::{Beginning as BeginsWith, Recorder, Recording};

use super::{AgentStream, Beginning};

impl AgentStream {
    /// Writes down what enters the run, before it begins.
    #[must_use]
    pub fn recorded(self, recorder: &Recorder) -> Self {
        self.with_recording(recorder.recording())
    }

    pub(crate) fn with_recording(mut self, recording: Rc<dyn Recording>) -> Self {
        self.config = recording.takes_config(&self.config);
        self.handover.listener = recording.clone().listens(self.handover.listener.clone());
        self.recording = Some(recording);
        self
    }

    /// Writes down how the run begins.
    pub(super) fn record_beginning(&self, begin: &Beginning) {
        let Some(recording) = &self.recording else { return };
        let unemitted = match begin {
            Beginning::Resume(events) => Some(events.as_slice()),
            Beginning::Start(_) => None,
        };
        let (used, spent) = (self.handover.used.get(), self.handover.spent.get());
        recording.begins(&self.state, &BeginsWith { unemitted, used, spent });
    }
}
