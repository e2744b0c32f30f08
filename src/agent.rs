//! The stateful agent: a history, an inbox and subscribers that outlive a run.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::channel::oneshot;

use crate::approval::ToolDecision;
use crate::cancel::CancelToken;
#[cfg(not(target_os = "unknown"))]
use crate::checkpoint::{CheckpointEnvelopeV1, CheckpointError};
use crate::config::{AgentLoopConfig, ConvertToLlm};
use crate::driver::{AgentStream, Inbox, Line, Published};
use crate::error::{AgentError, ErrorKind};
use crate::event::AgentEvent;
use crate::isolate::guard;
use crate::json::{FromJson, ObjectWriter, Value};
use crate::list::{ListWriter, read_all};
use crate::machine::{AgentCommand, History, Input, Letter, LoopState, Receipt};
use crate::message::{AgentMessage, ToolCallBlock, Usage};
use crate::ports::AgentRunContext;
use crate::state::SessionState;
use crate::table::Table;

/// Names a subscription. They are called in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionId(u64);

/// What became of a message that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It stands in the history since this turn.
    Delivered {
        /// From 0.
        turn_index: u32,
    },
    /// The queues were cleared, or the agent is gone.
    NotDelivered,
}

/// An agent: one conversation, one run at a time. Cloning it shares it.
///
/// ```
/// use std::rc::Rc;
/// use futures::executor::block_on;
/// use turnwheel::agent::Agent;
/// use turnwheel::cancel::CancelToken;
/// use turnwheel::config::AgentLoopConfig;
/// use turnwheel::ports::AgentRunContext;
/// use turnwheel::scripted::{self, Clock};
///
/// let model = scripted::model([scripted::text("Monday, Tuesday."), scripted::text("Friday is free.")]);
/// let agent = Agent::new(AgentLoopConfig::new(model, Rc::new(Clock::default())), Vec::new());
/// agent.subscribe(|event| println!("{}", event.name()));
///
/// let who = AgentRunContext::new("run-1", "session-1");
/// let run = agent.prompt(vec!["Plan my week".into()], who, CancelToken::new())?;
/// drop(agent.steer("Leave Friday free".into())); // from anywhere, at any time
/// let result = block_on(run.finish());
///
/// assert_eq!((result.text.as_str(), result.turns), ("Friday is free.", 2));
/// assert_eq!(agent.messages().len(), 4);
/// # Ok::<(), turnwheel::error::AgentError>(())
/// ```
#[derive(Clone)]
pub struct Agent(Rc<Shared>);

struct Shared {
    config: Rc<RefCell<Rc<AgentLoopConfig>>>,
    inbox: RefCell<Inbox>,
    published: RefCell<Rc<RefCell<Published>>>,
    cancel: RefCell<CancelToken>,
    session: RefCell<SessionState>,
    subscribers: RefCell<Table<SubscriptionId, Rc<Subscriber>>>,
    /// Whether there ever was one. Most events have no other listener than who polls the run.
    has_subscribers: Rc<Cell<bool>>,
    receipts: RefCell<Table<u64, Box<Settle>>>,
    next: Cell<u64>,
    idle: RefCell<Vec<Waker>>,
    usage: Rc<Cell<Usage>>,
    /// Whether messages are shown to the model in another way since the last run began.
    converts_anew: Cell<bool>,
    /// A run that was read from a checkpoint and waits for [`Agent::continue_run`].
    resume: RefCell<Option<Resume>>,
}

/// How a run goes on.
enum Resume {
    /// It had not begun.
    Begin(Input),
    /// Where it was, and the events that nobody was told of.
    Run(Box<LoopState>, Vec<AgentEvent>),
}

type Subscriber = dyn Fn(&AgentEvent);

/// Is told what became of a message.
type Settle = dyn FnOnce(Delivery);

impl Agent {
    /// An agent over a history, which may be empty.
    pub fn new(config: AgentLoopConfig, messages: Vec<AgentMessage>) -> Self {
        let session = SessionState::new(config.rules.session_state.clone());
        let published = Published { messages, ended: true, ..Published::default() };
        Agent(Rc::new(Shared {
            config: Rc::new(RefCell::new(Rc::new(config))),
            inbox: RefCell::default(),
            published: RefCell::new(Rc::new(RefCell::new(published))),
            cancel: RefCell::default(),
            session: RefCell::new(session),
            subscribers: RefCell::default(),
            has_subscribers: Rc::default(),
            receipts: RefCell::default(),
            next: Cell::new(1),
            idle: RefCell::default(),
            usage: Rc::default(),
            converts_anew: Cell::default(),
            resume: RefCell::default(),
        }))
    }

    /// An agent as a checkpoint tells of it. What a run needs besides values (models, tools, rules) is in `config`;
    /// [`Agent::continue_run`] goes on with the run, if there was one. A checkpoint of somebody else's is a history.
    ///
    /// # Errors
    /// Where messages or state cannot be read; it says which.
    #[cfg(not(target_os = "unknown"))]
    pub fn restore(
        config: AgentLoopConfig,
        checkpoint: &CheckpointEnvelopeV1,
    ) -> Result<Self, CheckpointError> {
        let agent = Agent::new(config, checkpoint.agent_messages()?);
        let Some(own) = checkpoint.checked_state()? else { return Ok(agent) };
        let untold = own.get("untold").map_or(Ok(Vec::new()), Vec::from_json);
        let read = untold.and_then(|untold| agent.read_checkpoint(own, untold));
        read.map_err(CheckpointError::InvalidPayload)?;
        Ok(agent)
    }

    /// The agent as it stands, while no run of it is on; `now` is milliseconds since 1970. A run is asked itself: see
    /// [`AgentStream::checkpoint`].
    #[cfg(not(target_os = "unknown"))]
    pub fn checkpoint(&self, now: u64) -> CheckpointEnvelopeV1 {
        let mut own = String::new();
        let mut object = ObjectWriter::new(&mut own);
        self.write_checkpoint(now, &mut object);
        object.end();
        let resume = self.0.resume.borrow();
        let run_id = match &*resume {
            Some(Resume::Run(state, _)) => state.context().run_id.clone(),
            _ => "".into(),
        };
        CheckpointEnvelopeV1::of_state(&run_id, &self.messages(), &own)
    }

    /// The ids of the run that waits to go on, for [`Agent::continue_run`]; any others may be given as well.
    pub fn resumable(&self) -> Option<AgentRunContext> {
        match &*self.0.resume.borrow() {
            Some(Resume::Run(state, _)) => Some(state.context().clone()),
            _ => None,
        }
    }

    /// Starts a run with these messages. It goes on while the stream is polled.
    ///
    /// # Errors
    /// Misuse, while another run is on or waits to go on, or without a message.
    pub fn prompt(
        &self,
        prompts: Vec<AgentMessage>,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        if prompts.is_empty() {
            return Err(AgentError::new(ErrorKind::Misuse, "a prompt needs at least one message"));
        }
        if self.0.resume.borrow().is_some() {
            let text = "a run waits to go on from its checkpoint; continue it first, or reset the agent";
            return Err(AgentError::new(ErrorKind::Misuse, text));
        }
        self.run(Input::Begin(prompts), context, cancel)
    }

    /// Goes on: with the run that a checkpoint tells of, else from the history as it is.
    ///
    /// # Errors
    /// Misuse, while another run is on, on an empty history, and where the last message is the model's own and
    /// nothing waits in the queues.
    pub fn continue_run(
        &self,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        match self.0.resume.take() {
            None => {}
            Some(Resume::Begin(begin)) => return self.run(begin, context, cancel),
            Some(Resume::Run(mut state, untold)) => {
                state.rename(context.clone());
                let line = self.begin_line(cancel);
                return Ok(AgentStream::resumed(line, *state, untold, context));
            }
        }
        let refusal = {
            let waiting = self.has_waiting();
            let published = self.0.published.borrow();
            let published = published.borrow();
            match published.messages.last() {
                None => Some("cannot continue with an empty message history"),
                Some(AgentMessage::Assistant(_)) if !waiting => {
                    Some("cannot continue when the last message is an assistant message")
                }
                Some(_) => None,
            }
        };
        match refusal {
            Some(text) if !self.is_running() => Err(AgentError::new(ErrorKind::Misuse, text)),
            _ => self.run(Input::Continue, context, cancel),
        }
    }

    fn run(
        &self,
        begin: Input,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        if self.is_running() {
            let text = "the agent is already running; steer it, queue a follow-up, or wait for it";
            return Err(AgentError::new(ErrorKind::Misuse, text));
        }
        let session = self.0.session.borrow().clone();
        let state = {
            let published = self.0.published.borrow();
            let mut published = published.borrow_mut();
            let queues = (std::mem::take(&mut published.steering), std::mem::take(&mut published.follow_up));
            let known = published.known.take().filter(|_| !self.0.converts_anew.take());
            let history = History::again(known, published.messages.clone());
            LoopState::over(context.clone(), history, session).with_queues(queues.0, queues.1)
        };
        Ok(AgentStream::new(self.begin_line(cancel), state, begin, context))
    }

    /// What the agent and its next run share.
    fn begin_line(&self, cancel: CancelToken) -> Line {
        let messages = std::mem::take(&mut self.0.published.borrow().borrow_mut().messages);
        let published = Rc::new(RefCell::new(Published { messages, ..Published::default() }));
        *self.0.published.borrow_mut() = published.clone();
        *self.0.cancel.borrow_mut() = cancel.clone();
        let (listening, receiving, ending) =
            (Rc::downgrade(&self.0), Rc::downgrade(&self.0), Rc::downgrade(&self.0));
        let board = Rc::downgrade(&published);
        let has_subscribers = self.0.has_subscribers.clone();
        Line {
            config: self.0.config.clone(),
            inbox: self.0.inbox.borrow().clone(),
            used: self.0.usage.clone(),
            cancel,
            published,
            listener: Rc::new(move |event| {
                if (has_subscribers.get() || matches!(event, AgentEvent::AgentEnd { .. }))
                    && let Some(shared) = listening.upgrade()
                {
                    if let AgentEvent::AgentEnd { usage, .. } = event
                        // A run that was reset is over for the agent, but its listeners still hear how it ends.
                        && board.upgrade().is_some_and(|b| Rc::ptr_eq(&b, &shared.published.borrow()))
                    {
                        shared.add(usage);
                    }
                    shared.dispatch(event);
                }
            }),
            receipts: Rc::new(move |id, receipt| {
                if let Some(shared) = receiving.upgrade() {
                    shared.settle(id, receipt);
                }
            }),
            ended: Rc::new(move || {
                if let Some(shared) = ending.upgrade() {
                    shared.wake_waiting();
                }
            }),
        }
    }

    /// Writes down what the agent is at, while no run of it is on: the members of the state that a checkpoint keeps.
    pub(crate) fn write_checkpoint(&self, now: u64, out: &mut ObjectWriter<'_>) {
        let session = self.0.session.borrow();
        out.field("session", &session.snapshot()).field("changes", &session.changes());
        out.field("usage", &self.0.usage.get());
        let published = self.published();
        let published = published.borrow();
        let mut mail = ListWriter::new(out.key("mail"));
        Letter::write_mail(&published.steering, "steer", &mut mail);
        Letter::write_mail(&published.follow_up, "follow_up", &mut mail);
        self.0.inbox.borrow().write_mail(&mut mail);
        mail.end();
        match &*self.0.resume.borrow() {
            None => {}
            Some(Resume::Begin(Input::Begin(prompts))) => drop(out.field("prompts", prompts)),
            Some(Resume::Begin(_)) => out.key("prompts").push_str("null"),
            Some(Resume::Run(state, untold)) => {
                state.write_checkpoint(now, &[], out.key("run"));
                out.field("untold", untold);
            }
        }
    }

    /// Takes the state that a checkpoint keeps: [`Agent::continue_run`] goes on with its run. The history is already
    /// that of the checkpoint. `untold` are the events of the run that nobody was told of.
    ///
    /// # Errors
    /// What cannot be read, by its name; then nothing has changed.
    pub(crate) fn read_checkpoint(&self, own: &Value, untold: Vec<AgentEvent>) -> Result<(), String> {
        let map = |key: &str| own.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        let session = SessionState::restored(map("session"), map("changes"));
        let mail = own.get("mail").map_or(Ok(Vec::new()), |told| read_all(told, AgentCommand::from_json))?;
        let resume = match (own.get("run"), own.get("prompts")) {
            (Some(run), _) => {
                let state = LoopState::read_checkpoint(self.messages(), session.clone(), run);
                let state =
                    state.map_err(|why| ["the run of the checkpoint cannot be read: ", &why].concat())?;
                #[cfg(not(target_os = "unknown"))]
                {
                    self.published().borrow_mut().pending_approvals = state.pending_approvals();
                }
                Some(Resume::Run(Box::new(state), untold))
            }
            (None, Some(prompts @ Value::Array(_))) => {
                Some(Resume::Begin(Input::Begin(Vec::from_json(prompts)?)))
            }
            (None, Some(_)) => Some(Resume::Begin(Input::Continue)),
            (None, None) => None,
        };
        self.0.usage.set(own.get("usage").map_or(Ok(Usage::default()), Usage::from_json)?);
        *self.0.session.borrow_mut() = session;
        *self.0.resume.borrow_mut() = resume;
        mail.into_iter().for_each(|command| self.0.inbox.borrow().post(command));
        Ok(())
    }

    /// Whether messages wait for the next run.
    pub fn has_waiting(&self) -> bool {
        let published = self.0.published.borrow();
        let published = published.borrow();
        let left = !published.steering.is_empty() || !published.follow_up.is_empty();
        left || self.0.inbox.borrow().has_messages()
    }

    /// Calls `listener` with every event from now on, in order of subscription, before the loop goes on. One that
    /// panics is removed.
    pub fn subscribe(&self, listener: impl Fn(&AgentEvent) + 'static) -> SubscriptionId {
        let id = SubscriptionId(self.0.number());
        self.0.subscribers.borrow_mut().insert(id, Rc::new(listener));
        self.0.has_subscribers.set(true);
        id
    }

    /// Ends a subscription. During a dispatch it takes effect after it.
    pub fn unsubscribe(&self, id: SubscriptionId) {
        self.0.subscribers.borrow_mut().remove(&id);
    }

    /// Posts a message that interrupts the run; between runs it waits for the next.
    pub fn steer(&self, message: AgentMessage) -> oneshot::Receiver<Delivery> {
        let (settle, receipt) = receipt();
        self.post_steering(message, settle);
        receipt
    }

    /// Posts a message for when the run would end.
    pub fn follow_up(&self, message: AgentMessage) -> oneshot::Receiver<Delivery> {
        let (settle, receipt) = receipt();
        self.post_follow_up(message, settle);
        receipt
    }

    /// As [`Agent::steer`], and calls `settle` when it is known what became of the message.
    pub(crate) fn post_steering(&self, message: AgentMessage, settle: Box<Settle>) {
        let letter = self.letter(message, settle);
        self.0.inbox.borrow().post(AgentCommand::Steer(letter));
    }

    /// The same of [`Agent::follow_up`].
    pub(crate) fn post_follow_up(&self, message: AgentMessage, settle: Box<Settle>) {
        let letter = self.letter(message, settle);
        self.0.inbox.borrow().post(AgentCommand::FollowUp(letter));
    }

    fn letter(&self, message: AgentMessage, settle: Box<Settle>) -> Letter {
        let receipt = self.0.number();
        self.0.receipts.borrow_mut().insert(receipt, settle);
        Letter { message, receipt }
    }

    /// Empties both queues.
    pub fn clear_queues(&self) {
        let inbox = self.0.inbox.borrow().clone();
        if self.is_running() {
            return inbox.post(AgentCommand::ClearQueues);
        }
        let published = self.published();
        let steering = std::mem::take(&mut published.borrow_mut().steering);
        let follow_up = std::mem::take(&mut published.borrow_mut().follow_up);
        steering.iter().chain(&follow_up).for_each(|letter| self.0.settle(letter.receipt, Receipt::Cleared));
        if let Some(Resume::Run(state, _)) = &mut *self.0.resume.borrow_mut() {
            state.clear_queues();
        }
        for command in inbox.take_all() {
            match command {
                AgentCommand::Steer(letter) | AgentCommand::FollowUp(letter) => {
                    self.0.settle(letter.receipt, Receipt::Cleared);
                }
                other => inbox.post(other),
            }
        }
    }

    /// Decides about a call; also before it is asked for.
    pub fn resolve_tool(&self, call_id: impl Into<String>, decision: ToolDecision) {
        self.0.inbox.borrow().post(AgentCommand::ResolveTool { call_id: call_id.into(), decision });
    }

    /// Decides about several calls: all or none.
    pub fn resolve_tools(&self, decisions: Vec<(String, ToolDecision)>) {
        self.0.inbox.borrow().post(AgentCommand::ResolveTools(decisions));
    }

    /// Stops the run, if there is one.
    pub fn abort(&self, reason: &str) {
        // The token of a run that is over may be that of others too.
        if self.is_running() {
            self.0.cancel.borrow().cancel(reason);
        }
    }

    /// Ready when no run is on.
    pub async fn wait_for_idle(&self) {
        poll_fn(|cx| {
            if !self.is_running() {
                return Poll::Ready(());
            }
            let mut idle = self.0.idle.borrow_mut();
            if !idle.iter().any(|waiting| waiting.will_wake(cx.waker())) {
                idle.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Stops the run and forgets the history, the queues and the session state. Settings and subscribers stay.
    pub fn reset(&self) {
        self.abort("the agent was reset");
        // The old run keeps its own box and board: whatever it still does changes nothing here.
        *self.0.inbox.borrow_mut() = Inbox::default();
        let published = Published { ended: true, ..Published::default() };
        *self.0.published.borrow_mut() = Rc::new(RefCell::new(published));
        let session = SessionState::new(self.0.config.borrow().rules.session_state.clone());
        *self.0.session.borrow_mut() = session;
        self.0.usage.set(Usage::default());
        self.0.resume.take();
        let receipts = self.0.receipts.take();
        for (_, settle) in receipts {
            settle(Delivery::NotDelivered);
        }
        self.0.wake_waiting();
    }

    /// The history.
    pub fn messages(&self) -> Vec<AgentMessage> {
        self.0.published.borrow().borrow().messages.clone()
    }

    /// What anybody may read of the run: changes as it goes.
    pub fn published(&self) -> Rc<RefCell<Published>> {
        self.0.published.borrow().clone()
    }

    /// The calls that wait for somebody's decision.
    pub fn pending_approvals(&self) -> Vec<ToolCallBlock> {
        self.0.published.borrow().borrow().pending_approvals.clone()
    }

    /// Whether a run is on.
    pub fn is_running(&self) -> bool {
        !self.0.published.borrow().borrow().ended
    }

    /// What all runs used together.
    pub fn usage(&self) -> Usage {
        let mut usage = self.0.usage.get();
        if self.is_running() {
            usage.add(&self.0.published.borrow().borrow().usage);
        }
        usage
    }

    /// Changes the configuration. A run that is on uses it from its next turn on.
    pub fn configure(&self, change: impl FnOnce(&mut AgentLoopConfig)) {
        let mut config = self.0.config.borrow().as_ref().clone();
        let before: Option<Rc<ConvertToLlm>> = config.rules.convert_to_llm.clone();
        change(&mut config);
        let place = |convert: &Option<Rc<ConvertToLlm>>| {
            convert.as_ref().map(|convert| Rc::as_ptr(convert).cast::<()>())
        };
        if place(&before) != place(&config.rules.convert_to_llm) {
            self.0.converts_anew.set(true);
        }
        self.reconfigure(config);
    }

    /// Puts another configuration in place. A run that is on uses it from its next turn on.
    pub fn reconfigure(&self, config: AgentLoopConfig) {
        *self.0.config.borrow_mut() = Rc::new(config);
        if self.is_running() {
            self.0.inbox.borrow().post(AgentCommand::SwitchModel);
        }
    }
}

impl Shared {
    fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    fn add(&self, usage: &Usage) {
        let mut all = self.usage.get();
        all.add(usage);
        self.usage.set(all);
    }

    fn dispatch(&self, event: &AgentEvent) {
        let subscribers: Vec<_> = self.subscribers.borrow().iter().map(|(id, s)| (*id, s.clone())).collect();
        for (id, subscriber) in subscribers {
            if guard(|| {
                subscriber(event);
                Ok(())
            })
            .is_err()
            {
                self.subscribers.borrow_mut().remove(&id);
            }
        }
    }

    fn wake_waiting(&self) {
        for waiting in self.idle.take() {
            waiting.wake();
        }
    }

    fn settle(&self, id: u64, receipt: Receipt) {
        let delivery = match receipt {
            Receipt::Delivered { turn_index } => Delivery::Delivered { turn_index },
            Receipt::Cleared => Delivery::NotDelivered,
        };
        let settle = self.receipts.borrow_mut().remove(&id);
        if let Some(settle) = settle {
            settle(delivery);
        }
    }
}

/// A receipt, and what settles it.
fn receipt() -> (Box<Settle>, oneshot::Receiver<Delivery>) {
    let (sender, receiver) = oneshot::channel();
    let settle = Box::new(move |delivery| {
        let _ = sender.send(delivery);
    });
    (settle, receiver)
}
