//! What a run and its owner share, and what the run leaves to its owner.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::data::json::RawJson;
use crate::host::cancel::CancelToken;
use crate::host::config::AgentLoopConfig;
use crate::machine::{History, Letter, LoopState, Receipt};
use crate::rules::budget::Ledger;
use crate::words::error::{AgentError, ErrorKind};
use crate::words::event::{AgentEvent, RunStopReason};
use crate::words::message::{AgentMessage, Usage};

use super::SeamOfAgent;
use super::inbox::Inbox;
use super::questions::{OpenQuestions, TrackQuestions};

/// What a run and its owner share.
#[derive(Clone)]
pub(crate) struct Handover {
    pub(crate) config: Rc<RefCell<Rc<AgentLoopConfig>>>,
    pub(crate) inbox: Inbox,
    /// The usage of the earlier runs.
    pub(crate) used: Rc<Cell<Usage>>,
    /// What the earlier runs have used of a budget for all of them.
    pub(crate) spent: Rc<Cell<Ledger>>,
    pub(crate) cancel: CancelToken,
    pub(crate) published: Rc<RefCell<Published>>,
    /// Keeps the list of open questions, if anybody reads it.
    pub(crate) track: Option<TrackQuestions>,
    pub(crate) listener: Rc<dyn Fn(&AgentEvent)>,
    pub(crate) receipts: Rc<dyn Fn(u64, Receipt)>,
    /// Called once, when the run is over and its end has been emitted, or when it is dropped.
    pub(crate) ended: Rc<dyn Fn()>,
    #[cfg_attr(not(feature = "durable"), expect(dead_code, reason = "nobody sits there"))]
    pub(crate) seam: SeamOfAgent,
}

impl Handover {
    /// Shares with nobody.
    pub(super) fn standalone(config: AgentLoopConfig, cancel: CancelToken) -> Self {
        Handover {
            config: Rc::new(RefCell::new(Rc::new(config))),
            inbox: Inbox::default(),
            used: Rc::default(),
            spent: Rc::default(),
            cancel,
            published: Rc::default(),
            track: None,
            listener: Rc::new(|_| {}),
            receipts: Rc::new(|_, _| {}),
            ended: Rc::new(|| {}),
            seam: SeamOfAgent::default(),
        }
    }

    /// Publishes what has changed.
    pub(super) fn publish(&self, state: &LoopState) {
        let mut published = self.published.borrow_mut();
        let messages = state.messages();
        if published.epoch != state.epoch() {
            published.epoch = state.epoch();
            published.messages = messages.to_vec();
        } else if let Some(fresh) = messages.get(published.messages.len()..) {
            published.messages.extend_from_slice(fresh);
        }
        published.usage = *state.usage();
    }

    /// Leaves what is in the queues, and what is known about the messages, to the next run.
    pub(super) fn hand_over(&self, state: &mut LoopState) {
        let mut published = self.published.borrow_mut();
        published.ended = true;
        published.questions = OpenQuestions::default();
        (published.steering, published.follow_up) = state.take_queues();
        published.known = Some(Box::new(state.take_history()));
    }
}

/// What may be read of a run at any time, even inside a callback.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// The history.
    pub messages: Vec<AgentMessage>,
    /// Increases whenever the history changes in any way other than by appending.
    pub epoch: u64,
    /// The usage of the run so far.
    pub usage: Usage,
    /// The open questions.
    pub questions: OpenQuestions,
    /// What is left in the queues; set when the run is over.
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// What the machine knows about the messages; set when the run is over.
    pub(crate) known: Option<Box<History>>,
    /// Whether the run is over.
    pub ended: bool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct AgentLoopResult {
    /// The id of the run.
    pub run_id: Rc<str>,
    /// Every message appended since the start.
    pub messages: Vec<AgentMessage>,
    /// The text of the last answer, or the JSON of a structured one.
    pub text: String,
    /// The structured answer, if one was requested and given.
    pub output: Option<RawJson>,
    /// The usage of the run, its sub-agents included.
    pub usage: Usage,
    /// The usage of the run without that of its sub-agents, if it had any.
    pub own_usage: Option<Usage>,
    /// The number of turns that called the model.
    pub turns: u32,
    /// Why the run ended.
    pub stop_reason: RunStopReason,
    /// The error, if the stop reason is error or aborted.
    pub error: Option<AgentError>,
}

impl AgentLoopResult {
    /// Reads the result from the end of a run.
    pub(super) fn of_end(event: &AgentEvent, state: &LoopState) -> Option<Self> {
        let AgentEvent::AgentEnd { messages, stop_reason, usage, own_usage, turns, error, .. } = event else {
            return None;
        };
        let last = messages.iter().rev().find_map(|message| match message {
            AgentMessage::Assistant(answer) => Some(answer.text()),
            _ => None,
        });
        let output = state.output().cloned();
        Some(AgentLoopResult {
            run_id: state.context().run_id.clone(),
            messages: messages.clone(),
            text: output.as_ref().map(|json| json.as_str().to_owned()).or(last).unwrap_or_default(),
            output,
            usage: *usage,
            own_usage: *own_usage,
            turns: *turns,
            stop_reason: *stop_reason,
            error: error.clone().map(AgentError::from),
        })
    }

    /// The result of a run whose end was never emitted.
    pub(crate) fn of_silence(state: &LoopState) -> Self {
        AgentLoopResult {
            run_id: state.context().run_id.clone(),
            messages: Vec::new(),
            text: String::new(),
            output: None,
            usage: Usage::default(),
            own_usage: None,
            turns: 0,
            stop_reason: RunStopReason::Error,
            error: Some(AgentError::new(ErrorKind::Internal, "the run ended in silence")),
        }
    }
}
