//! The next event of a run, without an import.

use std::future::poll_fn;
use std::pin::Pin;

use futures::stream::Stream;

use super::AgentStream;
use crate::words::event::AgentEvent;

impl AgentStream {
    /// Runs until the next event and returns it; `None` once the run is over. The same as `next` of
    /// [`StreamExt`](futures::StreamExt), which has more ways to listen.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}
