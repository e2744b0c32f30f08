//! The phases of a run, and which reply each of them takes.

use std::rc::Rc;

use crate::data::json::RawJson;
use crate::data::table::Table;
use crate::rules::stream::{Assembler, CallFault, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::RunStopReason;
use crate::words::message::{AssistantMessage, ContentBlock, MessageStopReason, Usage};
use crate::words::question::Question;

use super::batch::Batch;
use super::input::{Queue, Reply};
use super::output::EffectId;
use super::state::LoopState;

/// The phase of a run.
#[derive(Clone, Debug, Default)]
pub(crate) enum Phase {
    /// Not begun.
    #[default]
    Idle,
    /// The host chooses what holds for the turn; then this phase begins.
    Choosing { effect: EffectId, then: Box<Phase> },
    /// The transformers are running.
    Preparing { effect: EffectId, overflow: bool },
    /// The compaction engine is running.
    Compacting { effect: EffectId },
    /// There is no room in a budget, and a person is asked.
    Questioned(Box<Question>),
    /// The model is being called.
    Inferring(Box<Inference>),
    /// Tools are approved and run.
    Dispatching(Box<Batch>),
    /// Policies decide about a turn that begins, or about a batch, as soon as the listeners have received every event
    /// before.
    Flushing { then: Box<Phase> },
    /// Between turns: the queues are polled.
    Polling { effect: EffectId, queue: Queue, then: AfterPoll },
    /// The error hooks are called.
    Closing { effect: EffectId, reason: RunStopReason, error: Option<ErrorInfo> },
    /// Over.
    Ended { reason: RunStopReason, error: Option<ErrorInfo> },
}

impl Phase {
    /// Returns the name of the phase.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Choosing { .. } => "choosing",
            Phase::Preparing { .. } => "preparing",
            Phase::Compacting { .. } => "compacting",
            Phase::Inferring(_) => "inferring",
            Phase::Dispatching(_) => "dispatching",
            Phase::Flushing { .. } => "flushing",
            Phase::Polling { .. } => "polling",
            Phase::Closing { .. } => "closing",
            Phase::Questioned(_) => "questioned",
            Phase::Ended { .. } => "ended",
        }
    }

    /// Whether the turn has no complete answer yet.
    pub(super) fn is_before_answer(&self) -> bool {
        match self {
            Phase::Preparing { .. } | Phase::Compacting { .. } => true,
            Phase::Inferring(inference) => !matches!(inference.stage, AttemptStage::AfterHook(..)),
            _ => false,
        }
    }
}

/// The purpose of a poll between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterPoll {
    /// A turn follows in any case.
    Turn,
    /// A turn follows if there is anything for it.
    TurnIfPending,
}

/// The model is being called: one turn, one or more attempts.
#[derive(Clone, Debug)]
pub(crate) struct Inference {
    pub(crate) request: ModelRequest,
    /// The index of the model.
    pub(crate) model: usize,
    /// The attempt with this model, counted from 1.
    pub(crate) attempt: u32,
    /// The last error of this model that was worth another attempt.
    pub(crate) last_error: Option<ErrorKind>,
    pub(crate) stage: AttemptStage,
}

/// The stage of an attempt.
#[derive(Clone, Debug)]
pub(crate) enum AttemptStage {
    /// Hooks before the call.
    BeforeHook(EffectId),
    /// The answer is streaming.
    Streaming(Streaming),
    /// The delay before the next attempt, and when it ends.
    BackingOff(EffectId, u64),
    /// The process that was reading the answer is gone.
    Cut(Cut),
    /// Hooks after the call; the answer is in the history.
    AfterHook(EffectId, StoredAnswer),
    /// Hooks after a call that failed.
    FailedHook(EffectId, Box<FailedAttempt>),
}

impl Default for AttemptStage {
    /// A placeholder while a step moves to the next state.
    fn default() -> Self {
        AttemptStage::BeforeHook(0)
    }
}

/// An attempt that has failed, before anything is done about it.
#[derive(Clone, Debug)]
pub(crate) struct FailedAttempt {
    pub(crate) streaming: Streaming,
    pub(crate) error: ErrorInfo,
    /// The provider's own stop reason, if that is what ended the answer: then there is nothing to be done about it.
    pub(crate) stop_reason: Option<MessageStopReason>,
}

/// What had arrived of an answer when its process ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    /// Whether any of it was shown.
    pub(crate) shown: bool,
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) usage: Usage,
}

/// An answer that is streaming.
#[derive(Clone, Debug)]
pub(crate) struct Streaming {
    pub(crate) effect: EffectId,
    pub(crate) assembler: Assembler,
    pub(crate) watchdog: Option<EffectId>,
    pub(crate) last_activity: u64,
    /// When it began, and when it has taken too long.
    pub(crate) began: u64,
    pub(crate) ends: u64,
    pub(crate) has_received: bool,
}

/// An answer that is in the history.
#[derive(Clone, Debug)]
pub(crate) struct StoredAnswer {
    pub(crate) message: Rc<AssistantMessage>,
    /// Its index in the history.
    pub(crate) place: usize,
    pub(crate) faults: Vec<(String, CallFault)>,
    /// The arguments of faulty calls, as the model gave them.
    pub(crate) own_arguments: Table<String, RawJson>,
}

impl LoopState {
    /// Whether a reply fits: either it is of the kind that its effect is waited for, or nothing waits for its
    /// effect any more. A reply to an effect that was never started fits nowhere.
    pub(crate) fn fits(&self, id: EffectId, reply: &Reply) -> bool {
        let is_hook = matches!(reply, Reply::Hook(_));
        let is_poll = matches!(reply, Reply::Polled(_));
        let is_sleep = matches!(reply, Reply::Slept);
        let of = |effect: EffectId, is_kind: bool| effect != id || is_kind;
        let of_some =
            |effect: Option<EffectId>, is_kind: bool| effect.is_none_or(|effect| of(effect, is_kind));
        let in_phase = match &self.phase {
            Phase::Idle | Phase::Questioned(_) | Phase::Flushing { .. } | Phase::Ended { .. } => true,
            Phase::Choosing { effect, .. } => of(*effect, matches!(reply, Reply::Chosen(_))),
            Phase::Preparing { effect, .. } => of(*effect, matches!(reply, Reply::Prepared(_))),
            Phase::Compacting { effect } => of(*effect, matches!(reply, Reply::Compacted(_))),
            Phase::Inferring(inference) => match &inference.stage {
                AttemptStage::BeforeHook(effect)
                | AttemptStage::AfterHook(effect, _)
                | AttemptStage::FailedHook(effect, _) => of(*effect, is_hook),
                AttemptStage::BackingOff(effect, _) => of(*effect, is_sleep),
                AttemptStage::Streaming(streaming) => {
                    let is_piece = matches!(reply, Reply::Stream(_) | Reply::StreamEnded);
                    of(streaming.effect, is_piece) && of_some(streaming.watchdog, is_sleep)
                }
                AttemptStage::Cut(_) => true,
            },
            Phase::Dispatching(batch) => of_some(batch.after_hook, is_hook) && batch.fits(id, reply),
            Phase::Polling { effect, .. } => of(*effect, is_poll),
            Phase::Closing { effect, .. } => of(*effect, is_hook),
        };
        let is_alongside = self.queues.polls.contains_key(&id);
        id <= self.last_effect
            && in_phase
            && of_some(self.timing.limit, is_sleep)
            && (!is_alongside || is_poll)
    }
}
