//! The stateful agent: a history, an inbox and subscribers that outlive a single run.

pub mod subagent;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::channel::oneshot;

use crate::data::json::{FromJson, ObjectWriter, Value};
use crate::data::list::{ListWriter, read_all};
use crate::data::table::Table;
use crate::driver::{AgentStream, Handover, Inbox, Published};
use crate::host::cancel::CancelToken;
use crate::host::config::{AgentLoopConfig, ConvertToLlm};
use crate::host::isolate::guard;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
pub use crate::machine::Receipt;
use crate::machine::{AgentCommand, History, Input, Letter, LoopState};
use crate::rules::approval::ToolDecision;
use crate::rules::checkpoint::{CheckpointEnvelopeV1, CheckpointError};
use crate::words::error::{AgentError, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, ToolCallBlock, Usage};

/// Identifies a subscription. Subscribers are called in the order of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionId(u64);

/// An agent: one conversation, one run at a time. A clone is a handle to the same agent.
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
    /// Whether there ever was a subscriber. Most events are read only by whoever polls the run.
    has_subscribers: Rc<Cell<bool>>,
    receipts: RefCell<Table<u64, Box<Settle>>>,
    next: Cell<u64>,
    idle_wakers: RefCell<Vec<Waker>>,
    usage: Rc<Cell<Usage>>,
    /// Whether `convert_to_llm` has changed since the last run began.
    is_conversion_stale: Cell<bool>,
    /// A run that was restored from a checkpoint and waits for [`Agent::continue_run`].
    resume: RefCell<Option<Resume>>,
}

/// How a restored run continues.
enum Resume {
    /// It had not begun yet.
    Begin(Input),
    /// Its state, and the events that were not emitted yet.
    Run(Box<LoopState>, Vec<AgentEvent>),
}

type Subscriber = dyn Fn(&AgentEvent);

/// Is called with what became of a message.
type Settle = dyn FnOnce(Receipt);

impl Agent {
    /// Creates an agent with a history, which may be empty.
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
            idle_wakers: RefCell::default(),
            usage: Rc::default(),
            is_conversion_stale: Cell::default(),
            resume: RefCell::default(),
        }))
    }

    /// Restores an agent from a checkpoint. What a checkpoint cannot contain (models, tools, rules) comes from `config`.
    /// If there was a run, [`Agent::continue_run`] continues it. A checkpoint of another engine is restored as a history.
    ///
    /// # Errors
    /// If messages or state cannot be read; the error names which.
    pub fn restore(
        config: AgentLoopConfig,
        checkpoint: &CheckpointEnvelopeV1,
    ) -> Result<Self, CheckpointError> {
        let agent = Agent::new(config, checkpoint.agent_messages()?);
        let Some(own) = checkpoint.checked_state()? else { return Ok(agent) };
        let unemitted = own.get("untold").map_or(Ok(Vec::new()), Vec::from_json);
        let read = unemitted.and_then(|unemitted| agent.read_checkpoint(own, unemitted));
        read.map_err(CheckpointError::InvalidPayload)?;
        Ok(agent)
    }

    /// A checkpoint of the agent while none of its runs is active; `now` is in milliseconds since 1970. For an active run,
    /// use [`AgentStream::checkpoint`].
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

    /// The ids of the restored run that waits to be continued, to pass to [`Agent::continue_run`]; other ids work too.
    pub fn resumable(&self) -> Option<AgentRunContext> {
        match &*self.0.resume.borrow() {
            Some(Resume::Run(state, _)) => Some(state.context().clone()),
            _ => None,
        }
    }

    /// Starts a run with these messages. It makes progress while the stream is polled.
    ///
    /// # Errors
    /// Misuse, if another run is active or waits to be continued, or if `prompts` is empty.
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

    /// Continues the run that was restored from a checkpoint, or else starts one from the history as it is.
    ///
    /// # Errors
    /// Misuse, if another run is active, if the history is empty, or if its last message is the model's own and the queues
    /// are empty.
    pub fn continue_run(
        &self,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        match self.0.resume.take() {
            None => {}
            Some(Resume::Begin(begin)) => return self.run(begin, context, cancel),
            Some(Resume::Run(mut state, unemitted)) => {
                state.set_context(context);
                let handover = self.handover(cancel);
                return Ok(AgentStream::resumed(handover, *state, unemitted));
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
            let known = published.known.take().filter(|_| !self.0.is_conversion_stale.take());
            let history = History::reuse(known, published.messages.clone());
            LoopState::with_history(context, history, session).with_queues(queues.0, queues.1)
        };
        Ok(AgentStream::new(self.handover(cancel), state, begin))
    }

    /// What the agent shares with its next run.
    fn handover(&self, cancel: CancelToken) -> Handover {
        let messages = std::mem::take(&mut self.0.published.borrow().borrow_mut().messages);
        let published = Rc::new(RefCell::new(Published { messages, ..Published::default() }));
        *self.0.published.borrow_mut() = published.clone();
        *self.0.cancel.borrow_mut() = cancel.clone();
        let (listening, receiving, ending) =
            (Rc::downgrade(&self.0), Rc::downgrade(&self.0), Rc::downgrade(&self.0));
        let own_published = Rc::downgrade(&published);
        let has_subscribers = self.0.has_subscribers.clone();
        Handover {
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
                        && own_published.upgrade().is_some_and(|b| Rc::ptr_eq(&b, &shared.published.borrow()))
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
                    shared.wake_idle();
                }
            }),
        }
    }

    /// Writes the members of a checkpoint's state, while no run is active.
    pub fn write_checkpoint(&self, now: u64, out: &mut ObjectWriter<'_>) {
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
            Some(Resume::Run(state, unemitted)) => {
                state.write_checkpoint(now, &[], out.key("run"));
                out.field("untold", unemitted);
            }
        }
    }

    /// Reads the state of a checkpoint; [`Agent::continue_run`] then continues its run. The history is already that of the
    /// checkpoint. `unemitted` are the events of the run that were not emitted yet.
    ///
    /// # Errors
    /// If something cannot be read; the text names it, and nothing has changed.
    pub fn read_checkpoint(&self, own: &Value, unemitted: Vec<AgentEvent>) -> Result<(), String> {
        let map = |key: &str| own.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        let session = SessionState::restored(map("session"), map("changes"));
        let mail = own.get("mail").map_or(Ok(Vec::new()), |list| read_all(list, AgentCommand::from_json))?;
        let resume = match (own.get("run"), own.get("prompts")) {
            (Some(run), _) => {
                let state = LoopState::read_checkpoint(self.messages(), session.clone(), run);
                let state =
                    state.map_err(|why| ["the run of the checkpoint cannot be read: ", &why].concat())?;
                state.approvals.update_pending(&mut self.published().borrow_mut().pending_approvals);
                Some(Resume::Run(Box::new(state), unemitted))
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

    /// Whether posted messages wait for the next run.
    pub fn has_waiting(&self) -> bool {
        let published = self.0.published.borrow();
        let published = published.borrow();
        let left = !published.steering.is_empty() || !published.follow_up.is_empty();
        left || self.0.inbox.borrow().has_messages()
    }

    /// Calls `listener` with every event from now on, in order of subscription, before the loop continues. A listener that
    /// panics is removed.
    pub fn subscribe(&self, listener: impl Fn(&AgentEvent) + 'static) -> SubscriptionId {
        let id = SubscriptionId(self.0.number());
        self.0.subscribers.borrow_mut().insert(id, Rc::new(listener));
        self.0.has_subscribers.set(true);
        id
    }

    /// Ends a subscription. While an event is being dispatched, this takes effect after that event.
    pub fn unsubscribe(&self, id: SubscriptionId) {
        self.0.subscribers.borrow_mut().remove(&id);
    }

    /// Posts a message that interrupts the run. Between runs, it waits for the next one.
    pub fn steer(&self, message: AgentMessage) -> oneshot::Receiver<Receipt> {
        let (settle, receipt) = receipt();
        self.post_steering(message, settle);
        receipt
    }

    /// Posts a message that is read when the run would otherwise end.
    pub fn follow_up(&self, message: AgentMessage) -> oneshot::Receiver<Receipt> {
        let (settle, receipt) = receipt();
        self.post_follow_up(message, settle);
        receipt
    }

    /// Like [`Agent::steer`], but calls `settle` once it is known what became of the message.
    pub fn post_steering(&self, message: AgentMessage, settle: Box<Settle>) {
        let letter = self.letter(message, settle);
        self.0.inbox.borrow().post(AgentCommand::Steer(letter));
    }

    /// Like [`Agent::follow_up`], but calls `settle` once it is known what became of the message.
    pub fn post_follow_up(&self, message: AgentMessage, settle: Box<Settle>) {
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

    /// Decides about a tool call. May be called before the decision is requested.
    pub fn resolve_tool(&self, call_id: impl Into<String>, decision: ToolDecision) {
        self.0.inbox.borrow().post(AgentCommand::ResolveTool { call_id: call_id.into(), decision });
    }

    /// Decides about several tool calls: either all decisions are accepted, or none.
    pub fn resolve_tools(&self, decisions: Vec<(String, ToolDecision)>) {
        self.0.inbox.borrow().post(AgentCommand::ResolveTools(decisions));
    }

    /// Aborts the active run, if there is one.
    pub fn abort(&self, reason: &str) {
        // The token of a run that is over may be that of others too.
        if self.is_running() {
            self.0.cancel.borrow().cancel(reason);
        }
    }

    /// Resolves when no run is active.
    pub async fn wait_for_idle(&self) {
        poll_fn(|cx| {
            if !self.is_running() {
                return Poll::Ready(());
            }
            let mut idle_wakers = self.0.idle_wakers.borrow_mut();
            if !idle_wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                idle_wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Aborts the run and clears the history, the queues and the session state. Configuration and subscribers stay.
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
            settle(Receipt::Cleared);
        }
        self.0.wake_idle();
    }

    /// The history.
    pub fn messages(&self) -> Vec<AgentMessage> {
        self.0.published.borrow().borrow().messages.clone()
    }

    /// What anyone may read of the run at any time. It changes as the run goes on.
    pub fn published(&self) -> Rc<RefCell<Published>> {
        self.0.published.borrow().clone()
    }

    /// The tool calls that wait for a decision.
    pub fn pending_approvals(&self) -> Vec<ToolCallBlock> {
        self.0.published.borrow().borrow().pending_approvals.iter().cloned().collect()
    }

    /// Whether a run is active.
    pub fn is_running(&self) -> bool {
        !self.0.published.borrow().borrow().ended
    }

    /// The total usage of all runs.
    pub fn usage(&self) -> Usage {
        let mut usage = self.0.usage.get();
        if self.is_running() {
            usage.add(&self.0.published.borrow().borrow().usage);
        }
        usage
    }

    /// Changes the configuration. An active run uses it from its next turn on.
    pub fn configure(&self, change: impl FnOnce(&mut AgentLoopConfig)) {
        let mut config = self.0.config.borrow().as_ref().clone();
        let before: Option<Rc<ConvertToLlm>> = config.rules.convert_to_llm.clone();
        change(&mut config);
        let address = |convert: &Option<Rc<ConvertToLlm>>| {
            convert.as_ref().map(|convert| Rc::as_ptr(convert).cast::<()>())
        };
        if address(&before) != address(&config.rules.convert_to_llm) {
            self.0.is_conversion_stale.set(true);
        }
        self.reconfigure(config);
    }

    /// Replaces the configuration. An active run uses it from its next turn on.
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

    fn wake_idle(&self) {
        for waker in self.idle_wakers.take() {
            waker.wake();
        }
    }

    fn settle(&self, id: u64, receipt: Receipt) {
        let settle = self.receipts.borrow_mut().remove(&id);
        if let Some(settle) = settle {
            settle(receipt);
        }
    }
}

/// A receipt, and the function that settles it.
fn receipt() -> (Box<Settle>, oneshot::Receiver<Receipt>) {
    let (sender, receiver) = oneshot::channel();
    let settle = Box::new(move |receipt| {
        let _ = sender.send(receipt);
    });
    (settle, receiver)
}
