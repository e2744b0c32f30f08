//! An agent on a thread of its own, with the feature `spawn`: a handle to it is `Send`, so that servers with many threads can
//! keep it, and a [`Run`] is a stream of events that is `Send`, too.
//!
//! The loop itself stays on one thread, and nothing in it is `Send`. A run shares its messages, its configuration and its
//! session state with tools, hooks and policies without locks, and a tool's future may borrow what belongs to its thread, as in a
//! browser. What crosses is text: an event is the JSON that a server would write for its page anyway, and a message or an answer
//! is written by the handle and read by the thread. [`Sent`] reads it back as its type.
//!
//! ```
//! use futures::TryStreamExt;
//! use turnwheel::{Agent, AgentLoopConfig, scripted, spawn};
//!
//! // Made on the thread, because nothing of it may cross.
//! let agent = spawn(|| {
//!     let model = scripted::model([scripted::text("Hello!")]);
//!     Ok::<_, String>(Agent::new(AgentLoopConfig::new(model, scripted::clock()), Vec::new()))
//! })?;
//!
//! // On any thread, in any task:
//! # futures::executor::block_on(async {
//! let mut run = agent.prompt("Say hello.").await?;
//! while let Some(event) = run.try_next().await? {
//!     println!("data: {event}\n"); // {"type":"message_update","delta":{…},"runId":"…"}
//! }
//! let result = run.finish().await?.read()?;
//! assert_eq!(result.text, "Hello!");
//! # Ok::<_, turnwheel::spawn::SpawnError>(())
//! # })?;
//! # Ok::<(), turnwheel::spawn::SpawnError>(())
//! ```
//!
//! - **Letting go.** A [`Run`] that is dropped stops its run; its history is consistent, and the agent takes the next prompt. The
//!   thread ends when neither a handle nor a run is left.
//! - **A slow reader.** [`SpawnOptions::waiting_events`] events wait for their reader, 256 by default. Then the run waits for it:
//!   it is not polled, so it asks for nothing more of its model's connection, and its tools stand still. Commands are still
//!   taken, and an abort lifts the limit, so that the run can end.
//! - **Many commands.** [`SpawnOptions::waiting_commands`] may wait for the thread, 1,024 by default. One more is refused with
//!   [`Throttled`](crate::error::ErrorKind::Throttled).
//! - **Failures.** A closure that cannot build its agent, and a panic on the thread, are the error of everything that waits, and of
//!   everything that is asked later. A tool that panics is an error result, as everywhere.
//! - **Blocking.** A tool that blocks its thread stops its own agent, and no other.
//!
//! A target without threads, such as `wasm32-unknown-unknown`, gives an error when a thread is started.

mod desk;
mod error;
mod handle;
mod queue;
mod run;
mod sent;

use std::fmt::Display;
use std::sync::Arc;
use std::thread;

use futures::FutureExt;
use futures::channel::{mpsc, oneshot};
use futures::executor::block_on;
use futures::future::{BoxFuture, LocalBoxFuture, Shared};

use crate::agent::Agent;
use crate::host::isolate::guard;
use crate::host::ports::AgentRunContext;
use crate::words::error::ErrorKind;

use desk::Desk;
use handle::Line;

pub use error::SpawnError;
pub use handle::{AgentHandle, Reply};
pub use run::Run;
pub use sent::Sent;

/// Starts a thread, and builds an agent on it. The module has an example.
///
/// # Errors
/// If the system gives no thread. What `build` fails with is the error of everything that is asked of the agent.
pub fn spawn<E: Display>(
    build: impl FnOnce() -> Result<Agent, E> + Send + 'static,
) -> Result<AgentHandle, SpawnError> {
    SpawnOptions::default().spawn(build)
}

/// Polls the agent until it is over: see [`SpawnOptions::executor`].
pub type Executor = Box<dyn FnOnce(LocalBoxFuture<'static, ()>) + Send>;

/// How an agent is spawned.
///
/// ```
/// use turnwheel::spawn::SpawnOptions;
/// use turnwheel::{Agent, AgentLoopConfig, scripted};
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let options = SpawnOptions {
///     session_id: Some("chat-42".to_owned()),
///     // The tools use tokio.
///     executor: Some(Box::new(move |agent| runtime.block_on(agent))),
///     ..SpawnOptions::default()
/// };
/// let agent = options.spawn(|| {
///     let config = AgentLoopConfig::new(scripted::model([scripted::text("Hi.")]), scripted::clock());
///     Ok::<_, String>(Agent::new(config, Vec::new()))
/// })?;
/// assert_eq!(agent.session_id(), "chat-42");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SpawnOptions {
    /// The id of the conversation; a random one by default.
    pub session_id: Option<String>,
    /// How many events may wait for their reader, at least 1; then the run waits. 256 by default.
    pub waiting_events: usize,
    /// How many commands may wait for the thread, at least 1; one more is refused. 1,024 by default.
    pub waiting_commands: usize,
    /// What polls the agent on its thread, and returns when it is over. By default, the executor of `futures`, which also drives
    /// the HTTP client of the feature `reqwest`. Tools that use tokio need it:
    /// `let tokio = Handle::current(); Box::new(move |agent| tokio.block_on(agent))`.
    pub executor: Option<Executor>,
}

impl Default for SpawnOptions {
    fn default() -> Self {
        SpawnOptions { session_id: None, waiting_events: 256, waiting_commands: 1024, executor: None }
    }
}

impl SpawnOptions {
    /// Starts a thread, and builds an agent on it: [`spawn()`](crate::spawn()), with these options.
    ///
    /// # Errors
    /// As for [`spawn()`](crate::spawn()).
    pub fn spawn<E: Display>(
        self,
        build: impl FnOnce() -> Result<Agent, E> + Send + 'static,
    ) -> Result<AgentHandle, SpawnError> {
        let (commands, inbox) = mpsc::unbounded();
        let (dies, death) = oneshot::channel();
        let line = Line::new(commands, self.waiting_commands.max(1), fate(death));
        let waiting = line.waiting();
        let (executor, waiting_events) = (self.executor, self.waiting_events.max(1));
        let live = move || -> Result<(), SpawnError> {
            let agent = build().map_err(|error| {
                SpawnError::new(ErrorKind::Misuse, format!("the agent could not be built: {error:#}"))
            })?;
            let desk = Desk::new(agent, inbox, waiting, waiting_events).boxed_local();
            match executor {
                Some(executor) => executor(desk),
                None => block_on(desk),
            }
            Ok(())
        };
        let body = move || {
            let lived = guard(|| Ok(live()));
            // Everything that waited has been dropped by now, and waits for this.
            let _ = dies.send(match lived {
                Ok(Ok(())) => over(),
                Ok(Err(error)) => error,
                Err(panic) => {
                    SpawnError::new(ErrorKind::Internal, ["the agent's thread panicked: ", &panic].concat())
                }
            });
        };
        let thread = thread::Builder::new().name("turnwheel-agent".to_owned());
        thread.spawn(body).map_err(|error| {
            SpawnError::new(ErrorKind::Internal, format!("no thread can be started for the agent: {error}"))
        })?;
        let session_id = self.session_id.map_or_else(|| AgentRunContext::random().session_id, Into::into);
        Ok(AgentHandle::new(line, Arc::from(&*session_id)))
    }
}

/// Why the thread of an agent is over.
type Fate = Shared<BoxFuture<'static, SpawnError>>;

fn fate(death: oneshot::Receiver<SpawnError>) -> Fate {
    death.map(|why| why.unwrap_or_else(|_| over())).boxed().shared()
}

fn over() -> SpawnError {
    SpawnError::new(ErrorKind::Internal, "the agent's thread is over: its executor has let go of it")
}
