//! A run of an agent on another thread.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::stream::{Stream, StreamExt};

use crate::driver::AgentLoopResult;
use crate::words::event::AgentEvent;

use super::Fate;
use super::error::SpawnError;
use super::handle::AgentHandle;
use super::queue::Reader;
use super::sent::Sent;

/// A run of a spawned agent, as a stream of its events, each the JSON that the npm package gives, with the `runId`. It goes on
/// while it is read, or up to [`waiting_events`](super::SpawnOptions::waiting_events) further. Dropping it stops the run.
///
/// The stream ends after `agent_end`. If the agent's thread dies before, the error comes as its last item.
#[must_use = "a run that is dropped is stopped"]
pub struct Run {
    reader: Reader,
    agent: AgentHandle,
    /// Taken when the stream has ended.
    fate: Option<Fate>,
}

impl Run {
    pub(super) fn new(reader: Reader, agent: AgentHandle) -> Self {
        let fate = Some(agent.fate());
        Run { reader, agent, fate }
    }

    /// The agent, to steer, answer or abort the run.
    pub fn agent(&self) -> &AgentHandle {
        &self.agent
    }

    /// Reads to the end, and returns the result. A run that failed has a result too, with its error: see
    /// [`AgentLoopResult::error`].
    ///
    /// # Errors
    /// If the agent's thread dies before the end of the run.
    pub async fn finish(mut self) -> Result<Sent<AgentLoopResult>, SpawnError> {
        while let Some(event) = self.next().await {
            event?;
        }
        match self.reader.result() {
            Some(result) => Ok(result),
            None => Err(self.agent.fate().await),
        }
    }
}

impl Stream for Run {
    type Item = Result<Sent<AgentEvent>, SpawnError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = match self.reader.poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(event) => event,
        };
        if let Some(event) = event {
            return Poll::Ready(Some(Ok(event)));
        }
        if self.reader.result().is_some() {
            self.fate = None;
        }
        let Some(fate) = &mut self.fate else { return Poll::Ready(None) };
        let Poll::Ready(why) = fate.poll_unpin(cx) else { return Poll::Pending };
        self.fate = None;
        Poll::Ready(Some(Err(why)))
    }
}
