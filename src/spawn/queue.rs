//! The events on their way from the thread to their reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::driver::AgentLoopResult;
use crate::words::event::AgentEvent;

use super::sent::Sent;

/// What both sides see.
#[derive(Default)]
struct State {
    events: VecDeque<Sent<AgentEvent>>,
    /// Set at the end of the run.
    result: Option<Sent<AgentLoopResult>>,
    /// Whether the writer is gone.
    is_over: bool,
    /// Whether the reader is gone.
    is_unread: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<State>>);

impl Queue {
    /// A panic while it is locked could only be one of the allocator.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State), other: fn(&mut State) -> &mut Option<Waker>) {
        let mut state = self.lock();
        change(&mut state);
        let waker = other(&mut state).take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Makes a queue.
pub(super) fn queue() -> (Writer, Reader) {
    let queue = Queue::default();
    (Writer(queue.clone()), Reader(queue))
}

/// The end of the queue on the agent's thread.
pub(super) struct Writer(Queue);

impl Writer {
    /// Whether fewer events wait than this. If not, the task is woken when one is read.
    pub(super) fn has_room(&self, limit: usize, cx: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        state.writer = Some(cx.waker().clone());
        state.events.len() < limit
    }

    /// Whether nobody reads any more. If not, the task is woken when that changes, once [`Writer::has_room`] was asked.
    pub(super) fn is_unread(&self) -> bool {
        self.0.lock().is_unread
    }

    pub(super) fn send(&self, event: Sent<AgentEvent>) {
        self.0.change(|state| state.events.push_back(event), |state| &mut state.reader);
    }

    pub(super) fn finish(self, result: Sent<AgentLoopResult>) {
        self.0.lock().result = Some(result);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.change(|state| state.is_over = true, |state| &mut state.reader);
    }
}

/// The reader's end of the queue.
pub(super) struct Reader(Queue);

impl Reader {
    /// The next event; `None` when there are no more.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Sent<AgentEvent>>> {
        let mut state = self.0.lock();
        let Some(event) = state.events.pop_front() else {
            if state.is_over {
                return Poll::Ready(None);
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Ready(Some(event))
    }

    /// The result of the run; `None` if the thread died before its end, or it is not over.
    pub(super) fn result(&self) -> Option<Sent<AgentLoopResult>> {
        self.0.lock().result.clone()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let unread = |state: &mut State| {
            state.is_unread = true;
            state.events.clear();
        };
        self.0.change(unread, |state| &mut state.writer);
    }
}
