//! What happens on the agent's thread: commands are carried out, and the run is polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::StreamExt;

use crate::agent::Agent;
use crate::driver::{AgentLoopResult, AgentStream};
use crate::words::error::ErrorKind;

use super::error::SpawnError;
use super::queue::{Reader, Writer, queue};
use super::sent::Sent;

/// Something to do on the agent's thread.
pub(super) type Command = Box<dyn FnOnce(&mut Desk) + Send>;

/// The agent, what is to be done, and the run that is active.
pub(super) struct Desk {
    agent: Agent,
    commands: UnboundedReceiver<Command>,
    /// How many commands wait.
    waiting: Arc<AtomicUsize>,
    /// How many events may wait.
    waiting_events: usize,
    active: Option<Active>,
}

struct Active {
    run: AgentStream,
    events: Writer,
    /// Whether the reader's pace does not count any more.
    is_aborted: bool,
}

impl Desk {
    pub(super) fn new(
        agent: Agent,
        commands: UnboundedReceiver<Command>,
        waiting: Arc<AtomicUsize>,
        waiting_events: usize,
    ) -> Self {
        Desk { agent, commands, waiting, waiting_events, active: None }
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Takes a run, and returns who reads it.
    pub(super) fn begin(&mut self, run: AgentStream) -> Result<Reader, SpawnError> {
        if self.active.is_some() {
            let text = "the agent is already running; steer it, queue a follow-up, or wait for it";
            return Err(SpawnError::new(ErrorKind::Misuse, text));
        }
        let (events, reader) = queue();
        self.active = Some(Active { run, events, is_aborted: false });
        Ok(reader)
    }

    pub(super) fn abort(&mut self, reason: &str) {
        self.agent.abort(reason);
        if let Some(active) = &mut self.active {
            active.is_aborted = true;
        }
    }

    /// A checkpoint as JSON, of the active run if there is one.
    pub(super) fn checkpoint(&mut self) -> String {
        match &mut self.active {
            Some(active) => active.run.checkpoint().encode(),
            None => self.agent.checkpoint(self.agent.now()).encode(),
        }
    }

    /// Stops a run that nobody reads any more: its history is consistent, and the next one may begin.
    fn leave_unread(&mut self) {
        self.active.take_if(|active| active.events.is_unread());
    }

    /// Carries out what waits. Returns whether there may be more.
    fn work(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            self.leave_unread();
            match self.commands.poll_next_unpin(cx) {
                Poll::Ready(Some(command)) => {
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                    command(self);
                }
                Poll::Ready(None) => return false,
                Poll::Pending => return true,
            }
        }
    }

    /// Takes the next event of the run. Returns whether there was one, or the run has ended.
    fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(active) = &mut self.active else { return false };
        if !active.events.has_room(self.waiting_events, cx) && !active.is_aborted {
            return false;
        }
        match active.run.poll_next_unpin(cx) {
            Poll::Pending => return false,
            Poll::Ready(Some(event)) => {
                active.events.send(Sent::event(&event, &active.run.context().run_id));
                return true;
            }
            Poll::Ready(None) => {}
        }
        if let Some(Active { run, events, .. }) = self.active.take() {
            let silence = || AgentLoopResult::of_silence(run.state());
            events.finish(Sent::new(&run.result().cloned().unwrap_or_else(silence)));
        }
        true
    }
}

impl Future for Desk {
    type Output = ();

    /// Ready when nobody is left who could ask for anything.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let has_handles = self.work(cx);
            if !self.advance(cx) {
                return if has_handles || self.active.is_some() { Poll::Pending } else { Poll::Ready(()) };
            }
        }
    }
}
