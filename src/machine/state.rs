//! The state of a run: plain data.

use std::rc::Rc;

use crate::data::json::RawJson;
use crate::data::table::Table;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::rules::approval::{ApprovalEntry, ApprovalStateMachine};
use crate::rules::budget::Accounts;
use crate::rules::policy::RunInfo;
use crate::rules::stream::{Assembler, ToolSchema};
use crate::words::error::ErrorInfo;
use crate::words::message::{AgentMessage, ToolCallBlock, Usage};
use crate::words::question::Question;

use super::budget::Spending;
use super::checkpoint::child::{ReadChild, plain};
use super::children::ChildState;
use super::history::History;
use super::input::{Letter, Queue};
use super::output::EffectId;
use super::phase::Phase;

/// The state of one run. A clone shares the session state and the books of budgets with it; `apart` makes one with its own.
#[derive(Clone)]
pub struct LoopState {
    pub(crate) context: AgentRunContext,
    pub(crate) session: SessionState,
    pub(crate) history: History,
    pub(crate) phase: Phase,
    pub(crate) turn: Turn,
    /// The decisions about the batch, and those that arrived before their batch.
    pub(crate) approvals: ApprovalStateMachine,
    pub(crate) queues: Queues,
    pub(crate) appended: Appended,
    pub(crate) tally: Tally,
    pub(crate) provider: ProviderMemory,
    pub(crate) structured: Structured,
    pub(crate) timing: Timing,
    pub(crate) spending: Spending,
    /// The budgets that its sub-agents use.
    pub(crate) shared_accounts: Accounts,
    /// The options of the run, as data.
    pub(crate) options: Option<RawJson>,
    /// The checkpoints of the sub-agents that were running when the run was, by the ids of their calls, until they go on.
    pub(crate) children: Table<String, RawJson>,
    /// How those are read.
    pub(crate) reads_child: ReadChild,
    /// What is known of those whose batch is over, which may have something to tell still, by the ids of their calls.
    pub(crate) ended_children: Table<String, Box<ChildState>>,
    /// The calls of those that were ended in place of going on.
    pub(crate) closed_children: Vec<String>,
    /// The open questions of those sub-agents.
    pub(crate) child_questions: Vec<Question>,
    /// Whether the messages of the run get ids.
    pub(crate) names_messages: bool,
    /// The effect started last.
    pub(crate) last_effect: EffectId,
}

/// The messages that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// For the next turn.
    pub(crate) pending: Vec<Letter>,
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// The reason of an abort that came before the run began.
    pub(crate) abort: Option<Rc<str>>,
    /// Polls for more that run alongside something else.
    pub(crate) polls: Table<EffectId, Queue>,
}

/// What the run has added to the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Appended {
    /// Every message appended since the start.
    pub(crate) messages: Vec<AgentMessage>,
    /// The number of them that the last turn has seen.
    pub(crate) seen: usize,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) turn_index: u32,
    /// The number of turns that called the model.
    pub(crate) turns: u32,
    /// The number of consecutive answers that asked for another call without a new message.
    pub(crate) pauses: u32,
    /// That of sub-agents too.
    pub(crate) usage: Usage,
    /// That of sub-agents alone.
    pub(crate) children: Usage,
}

/// What the provider knows from the turns before.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProviderMemory {
    /// The id of the model that the last turn called.
    pub(crate) model: Option<Rc<str>>,
    pub(crate) cache: CacheState,
}

/// What is known about the provider's cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct CacheState {
    /// Turns since it was written, including that one; 0 if it was never written.
    pub(crate) turns: u32,
    /// When it was written.
    pub(crate) written: u64,
    pub(crate) prefix_tokens: u64,
}

/// The structured answer, if one is requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Structured {
    /// The offered tools, if one of them is for the answer.
    pub(crate) offered: Option<Offered>,
    pub(crate) output: Option<RawJson>,
    /// The number of answers that did not fit the schema.
    pub(crate) tries: u32,
    /// One of them was no JSON.
    pub(crate) had_prose: bool,
}

/// A list of tools, and the same list with the one for the answer.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    pub(crate) tools: Rc<[ToolSchema]>,
    pub(crate) schema: RawJson,
    pub(crate) all: Rc<[ToolSchema]>,
}

/// How long the run has lived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing {
    /// When it began, not counting the time it spent in a checkpoint.
    pub(crate) began: u64,
    /// The timer of its time limit.
    pub(crate) limit: Option<EffectId>,
    /// If it was restored from a checkpoint and has not continued yet: how long it had run.
    pub(crate) restored: Option<u64>,
}

/// The open turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// Between `turn_start` and `turn_end`.
    pub(crate) open: bool,
    /// Between `message_start` and `message_end`.
    pub(crate) message_open: bool,
    pub(crate) recoveries: u32,
    pub(crate) dynamic_prompt: Option<AgentMessage>,
    /// What the host has chosen to show of the history in this turn, before the transformers.
    pub(crate) chosen_view: Option<Vec<AgentMessage>>,
    /// The transformers' view of the history, for this turn's request.
    pub(crate) view: Option<Vec<AgentMessage>>,
    /// Whether it was read from a checkpoint, and what holds for it was not chosen again.
    pub(crate) is_restored: bool,
    /// Where the messages for this turn begin in `new_messages`; used by the policies before the call.
    pub(crate) fresh_from: Option<usize>,
    /// The index of the model called last.
    pub(crate) model: usize,
    /// Whether the turn tried to make room before the call.
    pub(crate) sought_room: bool,
    /// The error that a recovery is to resolve.
    pub(crate) overflow: Option<ErrorInfo>,
    /// What the model had said when it refused the conversation as too long. Kept for the case that no room
    /// can be made.
    pub(crate) shown: Assembler,
    /// Whether an earlier process had shown something of the answer that was refused. A checkpoint keeps no more of it.
    pub(crate) has_shown: bool,
}

impl LoopState {
    /// Creates a run that has not begun, with a history.
    pub fn new(context: AgentRunContext, history: Vec<AgentMessage>, session: SessionState) -> Self {
        LoopState::with_history(context, History::of(history), session)
    }

    pub(crate) fn with_history(context: AgentRunContext, history: History, session: SessionState) -> Self {
        LoopState {
            context,
            session,
            history,
            phase: Phase::default(),
            turn: Turn::default(),
            approvals: ApprovalStateMachine::default(),
            queues: Queues::default(),
            appended: Appended::default(),
            tally: Tally::default(),
            provider: ProviderMemory::default(),
            structured: Structured::default(),
            timing: Timing::default(),
            spending: Spending::default(),
            shared_accounts: Accounts::default(),
            options: None,
            children: Table::new(),
            reads_child: plain,
            ended_children: Table::new(),
            closed_children: Vec::new(),
            child_questions: Vec::new(),
            names_messages: true,
            last_effect: 0,
        }
    }

    /// Returns a copy that shares nothing that changes.
    pub(crate) fn apart(&self) -> Self {
        let session = SessionState::restored(self.session.snapshot(), self.session.changes());
        LoopState { session, spending: self.spending.apart(), ..self.clone() }
    }

    /// Whether the run was restored from a checkpoint and has not continued yet.
    pub fn is_restored(&self) -> bool {
        self.timing.restored.is_some()
    }

    /// Returns the ids of the run.
    pub fn context(&self) -> &AgentRunContext {
        &self.context
    }

    /// Whose run it is.
    pub(crate) fn about(&self) -> RunInfo<'_> {
        self.context.about()
    }

    /// Gives the run different ids, and other metadata if there is any.
    pub(crate) fn set_context(&mut self, context: AgentRunContext) {
        let metadata = context.metadata.or(self.context.metadata.take());
        self.context = AgentRunContext { metadata, turn_index: self.tally.turn_index, ..context };
    }

    /// What the turn shows of the history to whoever is asked before its request.
    pub(crate) fn chosen_messages(&self) -> &[AgentMessage] {
        self.turn.chosen_view.as_deref().unwrap_or(self.history.messages())
    }

    /// Puts letters that an earlier run left there into the queues.
    pub fn with_queues(mut self, steering: Vec<Letter>, follow_up: Vec<Letter>) -> Self {
        self.queues.steering = steering;
        self.queues.follow_up = follow_up;
        self
    }

    /// Takes what is known about the messages when the run is over. The messages stay.
    pub(crate) fn take_history(&mut self) -> History {
        self.history.take_known()
    }

    /// Takes what is left in the queues, starting with what was taken for a turn that never came.
    pub fn take_queues(&mut self) -> (Vec<Letter>, Vec<Letter>) {
        let mut steering: Vec<Letter> = std::mem::take(&mut self.queues.pending);
        steering.retain(|letter| letter.receipt > 0);
        steering.append(&mut self.queues.steering);
        (steering, std::mem::take(&mut self.queues.follow_up))
    }

    /// Empties the queues of a run that was restored from a checkpoint; nobody waits for receipts of its
    /// letters.
    pub(crate) fn clear_queues(&mut self) {
        self.queues.steering.clear();
        self.queues.follow_up.clear();
    }

    /// Returns the history.
    pub fn messages(&self) -> &[AgentMessage] {
        self.history.messages()
    }

    /// Increases whenever the history changes in any way other than by appending.
    pub fn epoch(&self) -> u64 {
        self.history.epoch
    }

    /// Returns the current turn, counted from 0; between two turns, the next one.
    pub fn turn_index(&self) -> u32 {
        self.tally.turn_index
    }

    /// Returns the usage of the run without that of its sub-agents, if it had any.
    pub fn own_usage(&self) -> Option<Usage> {
        let Tally { usage, children, .. } = &self.tally;
        (*children != Usage::default()).then(|| usage.beyond(children))
    }

    /// Returns the usage of the whole run so far, sub-agents included.
    pub fn usage(&self) -> &Usage {
        &self.tally.usage
    }

    /// Returns every message appended since the run began.
    pub fn new_messages(&self) -> &[AgentMessage] {
        &self.appended.messages
    }

    /// Returns the calls that wait for a decision.
    pub fn pending_approvals(&self) -> Vec<ToolCallBlock> {
        self.approvals.pending().cloned().collect()
    }

    /// Returns the open questions, in the order in which they were asked.
    pub fn questions(&self) -> Vec<Question> {
        let batch = match &self.phase {
            Phase::Dispatching(batch) => batch,
            Phase::Questioned(question) => return vec![question.as_ref().clone()],
            _ => return Vec::new(),
        };
        let mut questions = Vec::new();
        for call in &batch.calls {
            let entry = self.approvals.entry(&call.block.call_id);
            if let Some(asked) = &call.question
                && !call.status.is_done()
                && entry.is_some_and(ApprovalEntry::is_pending)
            {
                questions.push(Question::about(call.effective().into_owned(), asked.id.clone(), asked.at));
            }
            questions.extend(call.asks.iter().map(|open| open.question.as_ref().clone()));
        }
        questions
    }

    /// Returns the structured answer, once the model has given one that fits the schema.
    pub fn output(&self) -> Option<&RawJson> {
        self.structured.output.as_ref()
    }

    /// Returns the session state.
    pub fn session(&self) -> &SessionState {
        &self.session
    }

    /// The attempt that is being made to call the model, counted from 1.
    pub(crate) fn attempt(&self) -> u32 {
        match &self.phase {
            Phase::Inferring(inference) => inference.attempt,
            _ => 1,
        }
    }

    /// Whether running tools wait for answers.
    pub(crate) fn has_asks(&self) -> bool {
        let Phase::Dispatching(batch) = &self.phase else { return false };
        batch.calls.iter().any(|call| !call.asks.is_empty())
    }

    /// Whether the run is over.
    pub fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    /// Whether this turn has not tried to make room yet, neither before the model's answer nor after it.
    pub(crate) fn is_turn_new(&self) -> bool {
        !self.turn.sought_room && self.turn.recoveries == 0
    }

    pub(crate) fn new_effect(&mut self) -> EffectId {
        self.last_effect += 1;
        self.last_effect
    }
}
