//! The calls of one answer, and what has become of each.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::data::id_map::IdMap;
use crate::data::json::{Map, RawJson};
use crate::data::table::Table;
use crate::host::tool::Transfer;
use crate::words::error::ErrorInfo;
use crate::words::message::{AgentMessage, ToolCallBlock, ToolResultMessage};

use super::children::ChildState;
use super::input::Reply;
use super::output::EffectId;
use super::phase::StoredAnswer;
use super::questions::OpenAsk;

/// The calls of one answer.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) answer: StoredAnswer,
    pub(crate) calls: Vec<BatchCall>,
    /// The index of each call id.
    pub(crate) places: IdMap<String, u64>,
    /// The index of the call of each question that was asked.
    pub(crate) questions: IdMap<String, u64>,
    /// The call of each effect.
    pub(crate) effects: Table<EffectId, usize>,
    /// The poll for steering that runs alongside the tools.
    pub(crate) poll: Option<EffectId>,
    /// Calls that may run and are not in a group yet.
    pub(crate) cleared: Vec<usize>,
    /// Groups that have not started, in order.
    pub(crate) groups: VecDeque<Vec<usize>>,
    /// Calls of the current group that have not started, in order.
    pub(crate) ready: VecDeque<usize>,
    pub(crate) running: usize,
    /// How many of the running ones get their results from elsewhere.
    pub(crate) elsewhere: usize,
    /// The number of results in the history.
    pub(crate) committed: usize,
    /// The number of results for which the hooks have been called.
    pub(crate) hooks_called: usize,
    pub(crate) after_hook: Option<EffectId>,
    /// Messages injected by policies, to be added after the results.
    pub(crate) injected: Vec<AgentMessage>,
    /// The session state as the policies see it: as it was when the batch began.
    pub(crate) state: Map,
    /// Whether the batch contains a call of the answer tool.
    pub(crate) is_answer: bool,
    /// Whether the policies have not seen the calls: the listeners receive what came before.
    pub(crate) is_unseen: bool,
    pub(crate) ending: Ending,
}

/// How a batch will end.
#[derive(Clone, Debug, Default)]
pub(crate) enum Ending {
    /// With another turn.
    #[default]
    Normal,
    /// A steering message arrived.
    Interrupted,
    /// A policy stopped it.
    PolicyStop,
    /// A tool handed the conversation over.
    Transfer(Transfer),
    /// The run was aborted or exceeded its time limit, or a hook or a fatal tool failed. Only an abort may
    /// wait for hooks.
    Stopped(ErrorInfo),
}

/// One call of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchCall {
    /// The call, as it is in the history.
    pub(crate) block: ToolCallBlock,
    /// The arguments, as changed by policies and the approver.
    pub(crate) arguments: RawJson,
    pub(crate) status: CallStatus,
    pub(crate) result: Option<Rc<ToolResultMessage>>,
    /// The question about it that was asked last.
    pub(crate) question: Option<Asked>,
    /// The arguments that a person or the approver gave it in place of the model's, before the policies saw them.
    pub(crate) given: Option<RawJson>,
    /// Whether its start was announced before a checkpoint.
    pub(crate) announced: bool,
    /// Whether the budgets have counted it.
    pub(crate) counted: bool,
    /// Whether a tool ran, so that the hooks are called.
    pub(crate) executed: bool,
    /// Its tool's open questions.
    pub(crate) asks: Vec<OpenAsk>,
    /// When its time is over, if it has a limit and runs.
    pub(crate) times_out: u64,
    /// How much time it has left, in milliseconds, while it waits for a person.
    pub(crate) time_left: Option<u64>,
    /// What is known of the agent that runs inside it.
    pub(crate) child: Option<Box<ChildState>>,
    /// The index of the tool, once it was looked up.
    pub(crate) tool: usize,
}

/// A question that was asked about a call.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: String,
    /// In milliseconds since 1970.
    pub(crate) at: u64,
}

/// The state of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallStatus {
    /// Not cleared yet by policies, approval, lookup and schema.
    Waiting,
    /// The approver has been asked.
    Asked(EffectId),
    /// Waiting for its turn.
    Ready,
    /// Hooks before the tool.
    BeforeHook(EffectId),
    /// The tool is running; the second effect is its time limit.
    Running(EffectId, Option<EffectId>),
    /// Its tool has no implementation here: the answer to its question is its result. The effect is its time limit.
    Elsewhere(Option<EffectId>),
    /// The call has its result.
    Done,
}

pub(super) fn new_batch(answer: StoredAnswer) -> Batch {
    let mut calls: Vec<BatchCall> = Vec::new();
    let mut places = IdMap::default();
    for (block, place) in answer.message.tool_calls().zip(0..) {
        places.insert(block.call_id.clone(), place);
        calls.push(BatchCall {
            block: block.clone(),
            arguments: block.arguments.clone(),
            status: CallStatus::Waiting,
            result: None,
            question: None,
            given: None,
            announced: false,
            counted: false,
            executed: false,
            asks: Vec::new(),
            times_out: 0,
            time_left: None,
            child: None,
            tool: 0,
        });
    }
    Batch {
        answer,
        calls,
        places,
        questions: IdMap::default(),
        effects: Table::new(),
        poll: None,
        cleared: Vec::new(),
        groups: VecDeque::new(),
        ready: VecDeque::new(),
        running: 0,
        elsewhere: 0,
        committed: 0,
        hooks_called: 0,
        after_hook: None,
        injected: Vec::new(),
        state: Map::new(),
        is_answer: false,
        is_unseen: false,
        ending: Ending::Normal,
    }
}

impl Batch {
    pub(super) fn has_called_hooks(&self) -> bool {
        self.after_hook.is_none() && self.hooks_called == self.committed
    }

    /// Whether a reply is of the kind that its call waits for, if a call waits for its effect at all.
    pub(super) fn fits(&self, id: EffectId, reply: &Reply) -> bool {
        let call = self.effects.get(&id).and_then(|place| self.calls.get(*place));
        match call.map(|call| call.status) {
            None => true,
            Some(CallStatus::Asked(_)) => matches!(reply, Reply::Approved(_)),
            Some(CallStatus::BeforeHook(_)) => matches!(reply, Reply::Hook(_)),
            Some(CallStatus::Running(effect, _)) if effect == id => {
                matches!(reply, Reply::Progress(_) | Reply::Executed(_))
            }
            Some(CallStatus::Running(..) | CallStatus::Elsewhere(_)) => matches!(reply, Reply::Slept),
            Some(CallStatus::Waiting | CallStatus::Ready | CallStatus::Done) => false,
        }
    }

    /// Returns the calls as their tools receive them.
    pub(super) fn blocks(&self, which: &dyn Fn(&BatchCall) -> bool) -> Vec<ToolCallBlock> {
        let mut blocks = Vec::with_capacity(self.calls.len());
        for call in self.calls.iter().filter(|call| which(call)) {
            blocks.push(with_arguments(&call.block, &call.arguments));
        }
        blocks
    }

    pub(super) fn results(&self) -> Vec<Rc<ToolResultMessage>> {
        let mut results = Vec::with_capacity(self.calls.len());
        for result in self.calls.iter().filter_map(|call| call.result.as_ref()) {
            results.push(result.clone());
        }
        results
    }

    /// Returns the index of a call.
    pub(super) fn place_of(&self, call_id: &str) -> Option<usize> {
        usize::try_from(*self.places.get(call_id)?).ok()
    }

    /// Returns the call that a question was asked about, if it is the last question about that call.
    pub(super) fn call_asked(&self, question: &str) -> Option<&BatchCall> {
        let call = self.calls.get(usize::try_from(*self.questions.get(question)?).ok()?)?;
        call.question.as_ref().is_some_and(|asked| asked.id == question).then_some(call)
    }

    /// Whether nothing runs that could finish before a person has decided.
    pub(super) fn waits_for_people(&self) -> bool {
        self.running == 0 || self.running == self.calls.iter().filter(|call| call.asks_people()).count()
    }

    /// Whether the call has no result yet.
    pub(super) fn is_open(&self, place: usize) -> bool {
        self.calls.get(place).is_some_and(|call| !call.status.is_done())
    }
}

impl BatchCall {
    /// Whether its tool, or an agent inside it, waits for a person.
    pub(super) fn asks_people(&self) -> bool {
        matches!(self.status, CallStatus::Running(..) | CallStatus::Elsewhere(_))
            && (!self.asks.is_empty() || self.child.as_ref().is_some_and(|child| !child.questions.is_empty()))
    }

    /// The arguments as the tool receives them.
    pub(crate) fn effective(&self) -> Cow<'_, ToolCallBlock> {
        if self.arguments.is_same(&self.block.arguments) {
            return Cow::Borrowed(&self.block);
        }
        Cow::Owned(with_arguments(&self.block, &self.arguments))
    }
}

impl CallStatus {
    pub(crate) fn is_done(self) -> bool {
        matches!(self, CallStatus::Done)
    }

    /// The effect of a tool that runs, and its time limit.
    #[cfg(feature = "durable")]
    pub(super) fn running(self) -> Option<(EffectId, Option<EffectId>)> {
        match self {
            CallStatus::Running(effect, timer) => Some((effect, timer)),
            _ => None,
        }
    }

    pub(crate) fn is_ready(self) -> bool {
        matches!(self, CallStatus::Ready)
    }
}

/// Returns the call as a tool receives it.
pub(super) fn with_arguments(call: &ToolCallBlock, arguments: &RawJson) -> ToolCallBlock {
    ToolCallBlock { arguments: arguments.clone(), ..call.clone() }
}
