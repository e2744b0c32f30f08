//! Futures of tokio on any executor: whoever polls them lends the runtime of a thread in the background.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::thread;

use futures::stream::Stream;
use tokio::runtime::{Builder, Handle};

/// The runtime of the process, on a thread that ends with it.
///
/// A client's connections belong to the runtime that made them. With that of whoever polls, a client would fail as soon as one
/// of several is over, such as that of a test.
pub(super) fn background() -> Result<Handle, String> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    RUNTIME.get_or_init(start).clone()
}

fn start() -> Result<Handle, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the network cannot be used: {error}"))?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("turnwheel-http".to_owned());
    let started = thread.spawn(move || runtime.block_on(pending::<()>()));
    started.map_err(|error| format!("the thread of the HTTP client cannot be started: {error}"))?;
    Ok(handle)
}

/// A future or a stream that is polled and dropped with a runtime at hand.
pub(super) struct Within<T> {
    runtime: Handle,
    /// `None` only once it is dropped.
    inner: Option<Pin<Box<T>>>,
}

impl<T> Within<T> {
    pub(super) fn new(runtime: Handle, inner: Pin<Box<T>>) -> Self {
        Within { runtime, inner: Some(inner) }
    }
}

impl<T: Future> Future for Within<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        let Within { runtime, inner } = &mut *self;
        let _context = runtime.enter();
        inner.as_mut().map_or(Poll::Pending, |inner| inner.as_mut().poll(cx))
    }
}

impl<T: Stream> Stream for Within<T> {
    type Item = T::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T::Item>> {
        let Within { runtime, inner } = &mut *self;
        let _context = runtime.enter();
        inner.as_mut().map_or(Poll::Ready(None), |inner| inner.as_mut().poll_next(cx))
    }
}

impl<T> Drop for Within<T> {
    fn drop(&mut self) {
        // A connection that goes back to the others may start a task.
        let _context = self.runtime.enter();
        self.inner = None;
    }
}
