//! What a host chooses among: order, queues, steering, time limits, cache hints.

use std::cell::Cell;
use std::rc::Rc;

use crate::rules::policy::RunInfo;
use crate::words::message::ToolCallBlock;

/// In which order the calls of a batch run.
#[derive(Clone, Default)]
pub enum ToolExecutionPolicy {
    /// All concurrently.
    #[default]
    Concurrent,
    /// One after the other.
    Sequential,
    /// By [`ToolSpec::priority`](crate::host::tool::ToolSpec::priority), higher first; calls of equal priority concurrently.
    Priority,
    /// In groups, one after the other: lists of indices into the calls that were allowed, each index exactly once.
    Custom(Rc<Partition>),
}

/// Divides the calls of a batch into groups.
pub type Partition = dyn Fn(&[ToolCallBlock], &RunInfo<'_>) -> Result<Vec<Vec<usize>>, String>;

/// How many of the waiting messages a poll takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// All.
    #[default]
    All,
    /// Only the oldest.
    OneAtATime,
}

/// When a steering message acts on a batch. Of several that wait, the greatest decides for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SteeringTime {
    /// When every call has its result, those that people decide about included. Nothing is cancelled; the message is read
    /// before the next model call.
    AfterBatch,
    /// When the next tool has finished; at once if only people are waited for.
    #[default]
    AfterTool,
    /// Immediately: running tools are cancelled. An answer of the model that is streaming is finished first.
    Immediate,
    /// Immediately, also where an answer of the model is streaming: it is cut off. Messages that wait are read too.
    Now,
}

impl SteeringTime {
    /// All of them, the most patient first.
    pub const ALL: [Self; 4] = [Self::AfterBatch, Self::AfterTool, Self::Immediate, Self::Now];

    /// Returns the word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            SteeringTime::AfterBatch => "after_batch",
            SteeringTime::AfterTool => "after_tool",
            SteeringTime::Immediate => "immediate",
            SteeringTime::Now => "now",
        }
    }

    /// Returns what a word in JSON stands for.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|time| time.as_str() == word)
    }
}

/// What happens to running tools when the user steers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlight {
    /// They are cancelled.
    #[default]
    Cancel,
    /// They may finish.
    Finish,
}

/// What becomes of a decision about a call that is not asked about yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyDecisions {
    /// It is kept until the call of this run is asked about. It is gone when the answer is reset, when the run ends, and
    /// when the run is restored from a checkpoint.
    #[default]
    Park,
    /// It is refused.
    Refuse,
}

/// How steering works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteeringRules {
    /// When messages act that do not say it themselves.
    pub when: SteeringTime,
    /// What happens to running tools.
    pub in_flight: InFlight,
    /// How many of the waiting messages a poll takes.
    pub delivery: QueueMode,
    /// Whether the queue is also polled before the first model call of a run.
    pub before_first_call: bool,
}

/// Time limits in milliseconds; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of a model call to its first sign of life.
    pub first_chunk: Option<u64>,
    /// Between two signs of life of a model call.
    pub chunk: Option<u64>,
    /// For one call of a model, from its start to the end of its answer. Without it, an answer that still sends signs of
    /// life after [`Timeouts::LONGEST_ANSWER`] ends with an error; `Some(u64::MAX)` is no limit.
    pub model: Option<u64>,
    /// For each call of a tool that has no limit of its own.
    pub tool: Option<u64>,
    /// For the whole run.
    pub total: Option<u64>,
}

impl Timeouts {
    /// How long an answer may take that nobody has set a limit for: bytes that trickle in for ever must not hold a run
    /// for ever.
    pub const LONGEST_ANSWER: u64 = 30 * 60_000;

    /// Until when an answer may come that began at this time.
    pub(crate) fn end_of_answer(&self, began: u64) -> u64 {
        began.saturating_add(self.model.unwrap_or(Self::LONGEST_ANSWER))
    }
}

/// When the provider's prompt cache is written and when it is only read, by estimate.
#[derive(Clone, Debug)]
pub struct CacheHints {
    /// How long the provider keeps the cache, in milliseconds.
    pub ttl_ms: u64,
    /// How many tokens a conversation needs before caching is worthwhile.
    pub min_tokens: u64,
    /// The cache is written again after this many turns.
    pub intervals: u32,
    /// How many of the first messages are cached. Set by the engine, for transformers that should leave them alone.
    pub prefix: Rc<Cell<usize>>,
}

impl CacheHints {
    /// Hints for a cache that is kept for this many milliseconds.
    pub fn new(ttl_ms: u64, min_tokens: u64, intervals: u32) -> Self {
        CacheHints { ttl_ms, min_tokens, intervals, prefix: Rc::default() }
    }
}
