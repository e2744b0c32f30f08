//! The asynchronous driver. It processes the machine's outputs, starts and drops effects as futures, and
//! feeds their replies back. It decides nothing about the run, spawns nothing and has no executor of its
//! own: a run proceeds when it is polled.
//!
//! The parts of an [`AgentStream`]: the machine's [`LoopState`], its outputs that wait (`outputs`), the effects that
//! run (`tasks`, in `round`s), the answer that streams (`answer`), and what the run shares with its owner
//! (`handover`, `inbox`). How they work together is in `run`; how an effect becomes a future is in `start`.

mod answer;
mod checkpoint;
mod children;
#[cfg(feature = "durable")]
mod durable;
mod handover;
mod hooks;
mod inbox;
mod model_call;
mod next;
mod outputs;
mod questions;
mod round;
mod run;
mod seam;
mod serde;
mod spans;
mod start;
mod tasks;

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::stream::Stream;

use crate::data::json::{FromJson, RawJson};
use crate::host::cancel::CancelToken;
use crate::host::config::{AgentLoopConfig, TurnOptions};
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::machine::{Input, LoopState};
use crate::rules::answer::Answer;
use crate::words::error::{AgentError, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::AgentMessage;

use answer::AnswerPump;
pub(crate) use handover::Handover;
pub use handover::{AgentLoopResult, Published};
use inbox::AbortWatch;
pub use inbox::Inbox;
use model_call::KeyOfTurn;
use outputs::OutputQueue;
pub use questions::OpenQuestions;
pub(crate) use questions::TrackQuestions;
use round::TaskRound;
use seam::AtSeam;
pub(crate) use seam::SeamOfAgent;

/// Starts a run with these messages, on an empty history.
pub fn agent_loop(
    prompts: Vec<AgentMessage>,
    config: AgentLoopConfig,
    context: AgentRunContext,
    cancel: CancelToken,
) -> AgentStream {
    AgentStream::standalone(Vec::new(), Input::Begin(prompts), config, context, cancel)
}

/// Starts a run that continues from a history.
///
/// # Errors
/// Misuse, if the history is empty or ends with an assistant message, because there is nothing to answer.
pub fn agent_loop_continue(
    messages: Vec<AgentMessage>,
    config: AgentLoopConfig,
    context: AgentRunContext,
    cancel: CancelToken,
) -> Result<AgentStream, AgentError> {
    match messages.last() {
        None => Err(AgentError::new(ErrorKind::Misuse, "cannot continue with an empty message history")),
        Some(AgentMessage::Assistant(_)) => {
            let text = "cannot continue when the last message is an assistant message";
            Err(AgentError::new(ErrorKind::Misuse, text))
        }
        Some(_) => Ok(AgentStream::standalone(messages, Input::Continue, config, context, cancel)),
    }
}

/// A run, as a stream of its events. It makes progress while it is polled. Dropping it stops the run; the
/// history remains consistent.
pub struct AgentStream {
    state: LoopState,
    /// How the run begins; taken by the first poll.
    begin: Option<Beginning>,
    /// The configuration of this turn.
    config: Rc<AgentLoopConfig>,
    /// What holds for this run, whatever the agent is set to.
    options: Option<Box<TurnOptions>>,
    /// Answers to questions of a checkpoint, asked by agents inside that have not gone on yet. Those of one
    /// command stay together.
    early_answers: Vec<Vec<(String, Answer)>>,
    /// The API key of this turn.
    key: KeyOfTurn,
    /// The latest reading of the clock.
    now: u64,
    outputs: OutputQueue,
    round: TaskRound,
    answer: AnswerPump,
    abort: AbortWatch,
    handover: Handover,
    /// Whether the caller announces calls that start together all at once.
    takes_offers: bool,
    /// The history that such a caller knows of: its [`LoopState::epoch`].
    told_epoch: u64,
    /// Whether an attempt has begun of whose end the hooks were not told.
    has_attempt: bool,
    result: Option<AgentLoopResult>,
    spans: spans::Spans,
    /// Who sees what enters the machine, and decides about it.
    seam: AtSeam,
}

/// How a run begins.
enum Beginning {
    /// With prompts, or from the history.
    Start(Input),
    /// From a checkpoint, with the events that it had not emitted yet.
    Resume(Vec<AgentEvent>),
}

/// What [`AgentStream::poll_output`] returns.
#[allow(clippy::large_enum_variant, reason = "handed on at once, never kept; a box would cost one per event")]
pub enum Next {
    /// Emit an event to the listeners.
    Event(AgentEvent),
    /// Everything emitted so far must reach the listeners before the run can continue.
    Barrier,
    /// The offered calls start as soon as their announcements have been emitted. Comes only to callers that
    /// asked for it.
    Offer,
    /// The run is over.
    End,
}

impl AgentStream {
    fn standalone(
        messages: Vec<AgentMessage>,
        begin: Input,
        config: AgentLoopConfig,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Self {
        let session = SessionState::new(config.rules.session_state.clone());
        let state = LoopState::new(context, messages, session);
        AgentStream::new(Handover::standalone(config, cancel), state, begin)
    }

    pub(crate) fn new(handover: Handover, state: LoopState, begin: Input) -> Self {
        AgentStream::beginning(handover, state, Beginning::Start(begin))
    }

    /// Continues a run from a checkpoint, with the events that have not been emitted yet.
    ///
    /// # Errors
    /// Misuse, if its options do not fit the configuration.
    pub(crate) fn resumed(
        handover: Handover,
        state: LoopState,
        unemitted: Vec<AgentEvent>,
    ) -> Result<Self, AgentError> {
        let options = state.options.as_ref().map(|options| TurnOptions::from_json(&options.to_value()));
        let stream = AgentStream::beginning(handover, state, Beginning::Resume(unemitted));
        let Some(options) = options.transpose().map_err(misuse)? else { return Ok(stream) };
        let tools = stream.config.rules.tools.clone();
        stream.with_options(options.believable(&tools))
    }

    /// Sets what holds for this run in place of what the agent is set to, and of what is chosen for a turn. A run that goes on
    /// from a checkpoint has the active tools and the stream options that it had, those without headers and fields of the
    /// body; what is given here comes first. A checkpoint of a run that has not begun has its prompts alone.
    ///
    /// # Errors
    /// Misuse, if they name a tool that there is not.
    pub fn with_options(mut self, options: TurnOptions) -> Result<Self, AgentError> {
        let options = options.over(self.options.take().map_or_else(TurnOptions::default, |before| *before));
        if !options.is_empty() {
            let config = self.handover.config.borrow().clone();
            config.with_options(&options).map_err(misuse)?;
            let mut data = String::new();
            options.write_checkpoint(&mut data);
            self.state.options = RawJson::parse(&data).ok();
            self.options = Some(Box::new(options));
        }
        self.take_config(None).map_err(misuse)?;
        Ok(self)
    }

    /// Puts the agent's configuration into force, with the options of a turn and those of the run.
    fn take_config(&mut self, turn: Option<TurnOptions>) -> Result<(), String> {
        self.config = self.handover.config.borrow().clone();
        if turn.is_some() || self.options.is_some() {
            self.take_options(turn.unwrap_or_default())?;
        }
        self.configure();
        Ok(())
    }

    #[cold]
    fn take_options(&mut self, turn: TurnOptions) -> Result<(), String> {
        // The host may have taken a tool away since the run began: then it is not active any more.
        let mut own = self.options.as_deref().cloned().unwrap_or_default();
        own.forget_tools_but(&self.config.rules.tools);
        let repeats_tool_choice = turn.stream_options.as_ref().is_some_and(|own| own.tool_choice.is_some());
        let options = own.over(turn);
        let mut config = self.config.with_options(&options)?;
        config.rules.repeats_tool_choice |= repeats_tool_choice;
        self.config = Rc::new(config);
        Ok(())
    }

    fn beginning(handover: Handover, state: LoopState, begin: Beginning) -> Self {
        handover.publish(&state);
        let mut state = state;
        state.spending.earlier = handover.spent.get();
        let config = handover.config.borrow().clone();
        // Before its checkpoint, an attempt may have begun.
        let has_attempt = matches!(begin, Beginning::Resume(_));
        let stream = AgentStream {
            told_epoch: state.epoch(),
            state,
            has_attempt,
            begin: Some(begin),
            config,
            options: None,
            early_answers: Vec::new(),
            key: KeyOfTurn::default(),
            now: 0,
            outputs: OutputQueue::default(),
            round: TaskRound::default(),
            answer: AnswerPump::default(),
            abort: AbortWatch::new(handover.cancel.clone(), handover.inbox.clone()),
            handover,
            takes_offers: false,
            result: None,
            spans: spans::Spans::default(),
            seam: AtSeam::default(),
        };
        #[cfg(feature = "durable")]
        let stream = stream.enter_own_journal();
        stream
    }

    /// Returns the ids of the run.
    pub fn context(&self) -> &AgentRunContext {
        self.state.context()
    }

    /// Returns the inbox, which accepts commands for the run.
    pub fn inbox(&self) -> Inbox {
        self.handover.inbox.clone()
    }

    /// Returns the state of the run.
    pub fn state(&self) -> &LoopState {
        &self.state
    }

    /// Returns the result of the run; `None` until it ends.
    pub fn result(&self) -> Option<&AgentLoopResult> {
        self.result.as_ref()
    }

    /// Runs to the end and returns the result.
    pub async fn finish(mut self) -> AgentLoopResult {
        while self.next().await.is_some() {}
        self.result.clone().unwrap_or_else(|| AgentLoopResult::of_silence(&self.state))
    }

    /// Asks for [`Next::Offer`], so that the listeners of a batch are told at once about all calls that
    /// start together.
    pub fn take_offers(&mut self) {
        self.takes_offers = true;
    }

    /// Returns the announcements of the calls that start now, one after the other.
    pub fn each_offered(&self, announce: &mut dyn FnMut(&AgentEvent)) {
        self.outputs.each_offered(announce);
    }

    /// Announces this many of the offered calls. The others wait for what was posted in the meantime.
    pub fn announced(&mut self, count: usize) {
        let listener = &self.handover.listener;
        self.outputs.take_announcements(count, &mut |event| listener(event));
    }
}

fn misuse(text: String) -> AgentError {
    AgentError::new(ErrorKind::Misuse, text)
}

impl Stream for AgentStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        match self.poll_output(cx, true) {
            Poll::Ready(Next::Event(event)) => Poll::Ready(Some(event)),
            Poll::Ready(Next::Barrier | Next::Offer | Next::End) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for AgentStream {
    /// A run that is no longer polled is stopped, so that its history is consistent, and its end is
    /// emitted.
    fn drop(&mut self) {
        self.leave_seam();
        if self.result.is_some() {
            return;
        }
        match self.begin.take() {
            None => {}
            // The run began before its checkpoint.
            Some(begin @ Beginning::Resume(_)) => self.begin(begin),
            Some(Beginning::Start(_)) => {
                // The run never began, so there is nothing to emit.
                self.handover.hand_over(&mut self.state);
                return (self.handover.ended)();
            }
        }
        self.stop("the run was dropped", &mut |_| {});
    }
}
