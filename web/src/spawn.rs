//! Runs in the background of the page.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::channel::oneshot;
use turnwheel::{AgentEvent, AgentLoopResult, AgentStream};
use wasm_bindgen_futures::spawn_local;

/// Plays a run to its end on the host's event loop, and calls `on_event` with every event, in order, before the run goes
/// on. The function may start, steer or stop other runs, and this one.
///
/// The result can be awaited, and need not be: dropping it changes nothing. To stop the run, cancel its token.
///
/// ```no_run
/// # async fn example(run: turnwheel::AgentStream) {
/// let done = turnwheel_web::spawn(run, |event| {
///     if let Some(text) = event.added_text() {
///         web_sys::console::log_1(&text.into());
///     }
/// });
/// let result = done.await;
/// # }
/// ```
pub fn spawn(mut run: AgentStream, mut on_event: impl FnMut(AgentEvent) + 'static) -> Spawned {
    let (sender, receiver) = oneshot::channel();
    spawn_local(async move {
        while let Some(event) = run.next().await {
            on_event(event);
        }
        // If nobody waits for the result, it is not needed.
        let _ = sender.send(run.finish().await);
    });
    Spawned(receiver)
}

/// The result of a run that plays in the background.
pub struct Spawned(oneshot::Receiver<AgentLoopResult>);

impl Future for Spawned {
    type Output = AgentLoopResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<AgentLoopResult> {
        match Pin::new(&mut self.0).poll(cx) {
            Poll::Ready(Ok(result)) => Poll::Ready(result),
            // The task was dropped half-way. Only a panic does that, and after one nothing in this instance runs.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}
