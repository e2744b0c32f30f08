//! The stateful agent: a history, an inbox and subscribers that outlive a single run.

mod answers;
mod checkpoint;
#[cfg(feature = "spawn")]
mod clock;
#[cfg(feature = "durable")]
mod journal;
mod letters;
mod runs;
pub mod subagent;
mod subscribers;

pub use crate::machine::Receipt;
pub use subscribers::SubscriptionId;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use crate::data::table::Table;
use crate::driver::{Inbox, OpenQuestions, Published, SeamOfAgent, TrackQuestions};
use crate::host::cancel::CancelToken;
use crate::host::config::{AgentLoopConfig, ConvertToLlm};
use crate::host::state::SessionState;
use crate::machine::AgentCommand;
use crate::rules::budget::Ledger;
use crate::words::error::{AgentError, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, ToolCallBlock, Usage};
use crate::words::question::{Question, QuestionKind};
use checkpoint::Resume;
use letters::Settle;
use subscribers::{OnListenerPanic, Subscriber};

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
    subscribers: RefCell<Table<SubscriptionId, Subscriber>>,
    on_listener_panic: RefCell<Option<Rc<OnListenerPanic>>>,
    /// Whether there ever was a subscriber. Most events are read only by whoever polls the run.
    has_subscribers: Rc<Cell<bool>>,
    receipts: RefCell<Table<u64, Box<Settle>>>,
    next: Cell<u64>,
    idle_wakers: RefCell<Vec<Waker>>,
    usage: Rc<Cell<Usage>>,
    spent: RefCell<Rc<Cell<Ledger>>>,
    /// Whether `convert_to_llm` has changed since the last run began.
    is_conversion_stale: Cell<bool>,
    /// A run that was restored from a checkpoint and waits for [`Agent::continue_run`].
    resume: RefCell<Option<Resume>>,
    /// Keeps the list of open questions.
    track: Option<TrackQuestions>,
    /// Who sees what enters its runs, and decides about it.
    seam: SeamOfAgent,
}

impl Agent {
    /// Creates an agent with a history, which may be empty.
    pub fn new(config: AgentLoopConfig, messages: Vec<AgentMessage>) -> Self {
        Agent::tracking(config, messages, Some(OpenQuestions::take))
    }

    /// Like [`Agent::new`], for a host that keeps its own list of open questions and posts answers as commands.
    pub fn without_questions(config: AgentLoopConfig, messages: Vec<AgentMessage>) -> Self {
        Agent::tracking(config, messages, None)
    }

    fn tracking(config: AgentLoopConfig, messages: Vec<AgentMessage>, track: Option<TrackQuestions>) -> Self {
        let session = SessionState::new(config.rules.session_state.clone());
        let published = Published { messages, ended: true, ..Published::default() };
        Agent(Rc::new(Shared {
            config: Rc::new(RefCell::new(Rc::new(config))),
            inbox: RefCell::default(),
            published: RefCell::new(Rc::new(RefCell::new(published))),
            cancel: RefCell::default(),
            session: RefCell::new(session),
            subscribers: RefCell::default(),
            on_listener_panic: RefCell::default(),
            has_subscribers: Rc::default(),
            receipts: RefCell::default(),
            next: Cell::new(1),
            idle_wakers: RefCell::default(),
            usage: Rc::default(),
            spent: RefCell::default(),
            is_conversion_stale: Cell::default(),
            resume: RefCell::default(),
            track,
            seam: SeamOfAgent::default(),
        }))
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
        // What the old run has used is its own.
        *self.0.spent.borrow_mut() = Rc::default();
        self.0.resume.take();
        let receipts = self.0.receipts.take();
        for (_, settle) in receipts {
            settle(Receipt::Cleared);
        }
        self.0.wake_idle();
    }

    /// Takes the history back to its first `length` messages, with those of `branch` after them. The configuration, the session
    /// state, the usage, the queues and the subscribers stay; a run that waits to go on from a checkpoint is given up. Returns
    /// the messages that were cut; `agent.rewind(length, cut)` goes back to them. The subscribers hear
    /// [`HistoryRewound`](AgentEvent::HistoryRewound).
    ///
    /// # Errors
    /// Misuse, if a run is active, or the history is shorter.
    pub fn rewind(&self, length: usize, branch: Vec<AgentMessage>) -> Result<Vec<AgentMessage>, AgentError> {
        if self.is_running() {
            let text = "a run is in progress; abort it, wait for its end, and rewind then";
            return Err(AgentError::new(ErrorKind::Misuse, text));
        }
        let published = self.published();
        let mut now = published.borrow_mut();
        if length > now.messages.len() {
            return Err(AgentError::new(
                ErrorKind::Misuse,
                "the history has fewer messages than are to stay",
            ));
        }
        if let Some(Resume::Run(mut state, _)) = self.0.resume.take() {
            (now.steering, now.follow_up) = state.take_queues();
        }
        let cut = now.messages.split_off(length);
        let event = AgentEvent::HistoryRewound {
            length: long(length),
            cut: long(cut.len()),
            added: long(branch.len()),
        };
        now.messages.extend(branch);
        now.known = None;
        now.questions = OpenQuestions::default();
        drop(now);
        self.0.inbox.borrow().drop_decisions();
        self.0.dispatch(&event);
        Ok(cut)
    }

    /// The history.
    pub fn messages(&self) -> Vec<AgentMessage> {
        self.0.published.borrow().borrow().messages.clone()
    }

    /// What anyone may read of the run at any time. It changes as the run goes on.
    pub fn published(&self) -> Rc<RefCell<Published>> {
        self.0.published.borrow().clone()
    }

    /// What waits for a person, in the order in which it was asked. [`Agent::resolve`] answers.
    pub fn pending_questions(&self) -> Vec<Question> {
        self.published().borrow().questions.iter().cloned().collect()
    }

    /// The tool calls that wait for a decision; [`Agent::pending_questions`] has the ids of the questions about them.
    pub fn pending_approvals(&self) -> Vec<ToolCallBlock> {
        let published = self.published();
        let published = published.borrow();
        let is_tool = |question: &&Question| question.kind == QuestionKind::Tool;
        published.questions.iter().filter(is_tool).filter_map(|question| question.call.clone()).collect()
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

fn long(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
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
}
