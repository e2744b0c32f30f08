//! The handle to an agent on another thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::channel::mpsc::UnboundedSender;
use futures::channel::oneshot;
use futures::future::BoxFuture;

use crate::agent::{Agent, Receipt};
use crate::data::json::{FromJson, ToJson, Value};
use crate::driver::AgentStream;
use crate::host::cancel::CancelToken;
use crate::host::isolate::guard;
use crate::host::ports::AgentRunContext;
use crate::rules::answer::Answer;
use crate::rules::approval::ToolDecision;
use crate::words::error::{AgentError, ErrorKind};
use crate::words::message::AgentMessage;
use crate::words::question::Question;

use super::Fate;
use super::desk::{Command, Desk};
use super::error::SpawnError;
use super::run::Run;
use super::sent::Sent;

/// The way to the agent's thread.
#[derive(Clone)]
pub(super) struct Line {
    commands: UnboundedSender<Command>,
    /// How many commands wait, and may wait.
    waiting: Arc<AtomicUsize>,
    limit: usize,
    fate: Fate,
}

impl Line {
    pub(super) fn new(commands: UnboundedSender<Command>, limit: usize, fate: Fate) -> Self {
        Line { commands, waiting: Arc::default(), limit, fate }
    }

    pub(super) fn waiting(&self) -> Arc<AtomicUsize> {
        self.waiting.clone()
    }

    /// Posts a command at once.
    fn post<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Desk) -> Result<T, SpawnError> + Send + 'static,
    ) -> Reply<T> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let text = format!(
                "{} commands wait for the agent's thread already; wait for their replies",
                self.limit
            );
            return Reply::error(SpawnError::new(ErrorKind::Throttled, text));
        }
        let (reply, replied) = oneshot::channel();
        let command = move |desk: &mut Desk| {
            let acted = guard(|| Ok(act(desk)));
            let panicked = |panic: String| {
                Err(SpawnError::new(ErrorKind::Internal, ["the closure panicked: ", &panic].concat()))
            };
            let _ = reply.send(acted.unwrap_or_else(panicked));
        };
        // If nobody takes it, the sender of the reply is dropped with it.
        let _ = self.commands.unbounded_send(Box::new(command));
        let fate = self.fate.clone();
        Reply::of(async move {
            match replied.await {
                Ok(reply) => reply,
                Err(_) => Err(fate.await),
            }
        })
    }
}

/// What a command gives: a future, which need not be awaited, because the command was posted when it was made.
#[must_use = "the command is posted, but what became of it is in the reply"]
pub struct Reply<T>(BoxFuture<'static, Result<T, SpawnError>>);

impl<T: Send + 'static> Reply<T> {
    fn of(reply: impl Future<Output = Result<T, SpawnError>> + Send + 'static) -> Self {
        Reply(reply.boxed())
    }

    fn error(error: SpawnError) -> Self {
        Reply::of(async { Err(error) })
    }
}

impl<T> Future for Reply<T> {
    type Output = Result<T, SpawnError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_unpin(cx)
    }
}

/// A handle to an agent on a thread of its own: `Send`, `Sync`, and a clone is a handle to the same agent. Every method posts a
/// command at once, in the order of the calls, and returns a [`Reply`].
///
/// Every reply is an error if the agent could not be built, if its thread panicked, or if too many commands wait: see the
/// [module](self::super).
#[derive(Clone)]
pub struct AgentHandle {
    line: Line,
    session_id: Arc<str>,
}

impl AgentHandle {
    pub(super) fn new(line: Line, session_id: Arc<str>) -> Self {
        AgentHandle { line, session_id }
    }

    pub(super) fn fate(&self) -> Fate {
        self.line.fate.clone()
    }

    /// The id of the conversation.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Starts a run with this message, under a random id.
    ///
    /// The reply is an error of the kind [`ErrorKind::Misuse`] if a run is active, or waits to go on from a checkpoint.
    pub fn prompt(&self, message: impl Into<AgentMessage>) -> Reply<Run> {
        let message = Crossing::new(&message.into());
        self.start(move |agent, who| agent.prompt(vec![message.read()?], who, CancelToken::new()))
    }

    /// Goes on with the run of the checkpoint that the agent was [restored](Agent::restore) from, under its own ids; without one,
    /// as [`Agent::continue_run`] does.
    pub fn go_on(&self) -> Reply<Run> {
        self.start(|agent, who| agent.continue_run(agent.resumable().unwrap_or(who), CancelToken::new()))
    }

    /// Starts a run with whatever [`Agent`] offers: several messages, ids or options of its own. The context has a random run id
    /// and the id of the conversation.
    ///
    /// ```
    /// # use turnwheel::{Agent, AgentLoopConfig, scripted, spawn};
    /// use turnwheel::CancelToken;
    /// use turnwheel::config::TurnOptions;
    /// # let agent = spawn(|| {
    /// #     let config = AgentLoopConfig::new(scripted::model([scripted::text("Ja.")]), scripted::clock());
    /// #     Ok::<_, String>(Agent::new(config, Vec::new()))
    /// # })?;
    /// # futures::executor::block_on(async {
    /// let run = agent.start(|agent, who| {
    ///     let options = TurnOptions { system_prompt: Some("Answer in Norwegian.".into()), ..Default::default() };
    ///     agent.prompt(vec!["Here is a file.".into(), "Is it long?".into()], who, CancelToken::new())?.with_options(options)
    /// });
    /// assert_eq!(run.await?.finish().await?.read()?.text, "Ja.");
    /// # Ok::<_, turnwheel::spawn::SpawnError>(())
    /// # })?;
    /// # Ok::<(), turnwheel::spawn::SpawnError>(())
    /// ```
    pub fn start(
        &self,
        begin: impl FnOnce(&Agent, AgentRunContext) -> Result<AgentStream, AgentError> + Send + 'static,
    ) -> Reply<Run> {
        let handle = self.clone();
        let session_id = self.session_id.clone();
        let reader = self.line.post(move |desk| {
            let context = AgentRunContext { session_id: (*session_id).into(), ..AgentRunContext::random() };
            desk.begin(begin(desk.agent(), context)?)
        });
        Reply::of(async { reader.await.map(|reader| Run::new(reader, handle)) })
    }

    /// Posts a message that interrupts the run, when the rules say: [`Agent::steer`]. The reply says what became of it.
    pub fn steer(&self, message: impl Into<AgentMessage>) -> Reply<Receipt> {
        self.send(message.into(), Agent::steer)
    }

    /// Posts a message that is read when the run would otherwise end: [`Agent::follow_up`]. The reply says what became of it.
    pub fn follow_up(&self, message: impl Into<AgentMessage>) -> Reply<Receipt> {
        self.send(message.into(), Agent::follow_up)
    }

    fn send(
        &self,
        message: AgentMessage,
        post: fn(&Agent, AgentMessage) -> oneshot::Receiver<Receipt>,
    ) -> Reply<Receipt> {
        let message = Crossing::new(&message);
        let receipt = self.line.post(move |desk| Ok(post(desk.agent(), message.read()?)));
        let fate = self.fate();
        Reply::of(async move {
            match receipt.await?.await {
                Ok(receipt) => Ok(receipt),
                Err(_) => Err(fate.await),
            }
        })
    }

    /// Answers a question by its id: [`Agent::resolve`]. The reply says whether it was open and had no answer yet.
    pub fn resolve(&self, id: impl Into<String>, answer: impl Into<Answer>) -> Reply<bool> {
        let (id, answer) = (id.into(), Crossing::new(&answer.into()));
        self.line.post(move |desk| {
            let answer: Answer = answer.read()?;
            Ok(desk.agent().resolve(&id, answer))
        })
    }

    /// Answers the open question about a tool call: [`Agent::resolve_tool`]. The reply says whether there was one.
    pub fn resolve_tool(&self, call_id: impl Into<String>, decision: ToolDecision) -> Reply<bool> {
        let (call_id, decision) = (call_id.into(), Crossing::new(&Answer::Decision(decision)));
        self.line.post(move |desk| match decision.read()? {
            Answer::Decision(decision) => Ok(desk.agent().resolve_tool(call_id, decision)),
            _ => Ok(false),
        })
    }

    /// Aborts the active run, if there is one. Its events up to `agent_end` still come, and the reader's pace does not delay them.
    pub fn abort(&self, reason: impl Into<String>) -> Reply<()> {
        let reason = reason.into();
        self.line.post(move |desk| {
            desk.abort(&reason);
            Ok(())
        })
    }

    /// The JSON of a checkpoint, of the active run if there is one, for [`CheckpointEnvelopeV1::decode`] and [`Agent::restore`].
    ///
    /// [`CheckpointEnvelopeV1::decode`]: crate::CheckpointEnvelopeV1::decode
    pub fn checkpoint(&self) -> Reply<String> {
        self.line.post(|desk| Ok(desk.checkpoint()))
    }

    /// The history.
    pub fn messages(&self) -> Reply<Sent<Vec<AgentMessage>>> {
        self.with(|agent| Sent::new(&agent.messages()))
    }

    /// What waits for a person, in the order in which it was asked. [`AgentHandle::resolve`] answers.
    pub fn questions(&self) -> Reply<Sent<Vec<Question>>> {
        self.with(|agent| Sent::new(&agent.pending_questions()))
    }

    /// Calls a function on the agent's thread, and gives what it returns: for everything that has no method here, such as
    /// [`Agent::configure`], [`Agent::rewind`] or [`Agent::usage`]. While it blocks, the agent stands still. A panic in it is the
    /// error of the reply, and nothing else.
    pub fn with<T: Send + 'static>(&self, act: impl FnOnce(&Agent) -> T + Send + 'static) -> Reply<T> {
        self.line.post(move |desk| Ok(act(desk.agent())))
    }
}

/// A value on its way to the thread: its JSON.
struct Crossing(String);

impl Crossing {
    fn new(value: &impl ToJson) -> Self {
        Crossing(value.to_json())
    }

    fn read<T: FromJson>(&self) -> Result<T, AgentError> {
        let value = Value::parse_container(&self.0).map_err(|error| error.text());
        value.and_then(|value| T::from_json(&value)).map_err(|why| AgentError::new(ErrorKind::Misuse, why))
    }
}
