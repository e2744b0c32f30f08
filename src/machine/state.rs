//! The state of a run: plain data.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::data::id_map::IdMap;
use crate::data::json::{Map, RawJson};
use crate::data::table::Table;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::host::tool::Transfer;
use crate::rules::approval::ApprovalStateMachine;
use crate::rules::call_ids::CallIds;
use crate::rules::context::{
    CleanPrefix, SameRole, estimate_tokens, hygiene, is_empty_message, reported_tokens,
};
use crate::rules::event::RunStopReason;
use crate::rules::stream::{Assembler, CallFault, ModelRequest, ToolSchema};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, ToolCallBlock, ToolResultMessage, Usage,
};

use super::infer::with_arguments;
use super::{EffectId, Queue};

/// A message on its way into the history, with the receipt that its sender holds (0 for none).
#[derive(Clone, Debug)]
pub struct Letter {
    /// The message.
    pub message: AgentMessage,
    /// Identifies the receipt.
    pub receipt: u64,
}

/// The state of one run.
pub struct LoopState {
    pub(crate) context: AgentRunContext,
    pub(crate) phase: Phase,
    pub(crate) history: History,
    /// Every message appended since the start.
    pub(crate) new_messages: Vec<AgentMessage>,
    /// The number of `new_messages` that the last turn has seen.
    pub(crate) seen: usize,
    /// Messages for the next turn.
    pub(crate) pending: Vec<Letter>,
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// The decisions about the batch, and those that arrived before their batch.
    pub(crate) table: ApprovalStateMachine,
    pub(crate) turn: Turn,
    /// Polls that run alongside something else.
    pub(crate) polls: Table<EffectId, Queue>,
    pub(crate) turn_index: u32,
    /// The number of turns that called the model.
    pub(crate) turns: u32,
    /// The number of consecutive answers that asked for another call without a new message.
    pub(crate) pauses: u32,
    pub(crate) usage: Usage,
    pub(crate) session: SessionState,
    /// The id of the model that the last turn called.
    pub(crate) model: Option<Rc<str>>,
    /// The offered tools, if one of them is for the answer.
    pub(crate) offered: Option<Offered>,
    /// The structured answer.
    pub(crate) output: Option<RawJson>,
    /// The number of answers that did not fit the schema.
    pub(crate) output_tries: u32,
    pub(crate) cache: CacheState,
    pub(crate) total_timer: Option<EffectId>,
    /// When the run began, not counting the time it spent in a checkpoint.
    pub(crate) began: u64,
    /// How it ended.
    pub(crate) end: Option<(RunStopReason, Option<ErrorInfo>)>,
    /// If the run was restored from a checkpoint and has not continued yet: how long it had run.
    pub(crate) restored: Option<u64>,
    pub(crate) next_effect: EffectId,
}

/// A list of tools, and the same list with the one for the answer.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) tools: Rc<[ToolSchema]>,
    pub(crate) schema: RawJson,
    pub(crate) all: Rc<[ToolSchema]>,
}

/// What is known about the provider's cache.
#[derive(Debug, Default)]
pub(crate) struct CacheState {
    /// Turns since it was written, including that one; 0 if it was never written.
    pub(crate) turns: u32,
    /// When it was written.
    pub(crate) written: u64,
    pub(crate) prefix_tokens: u64,
}

/// The phase of a run.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// Not begun.
    #[default]
    Idle,
    /// The transformers are running.
    Preparing { effect: EffectId, overflow: bool },
    /// The compaction engine is running.
    Compacting { effect: EffectId },
    /// The model is being called.
    Asking(Box<Ask>),
    /// Tools are approved and run.
    Dispatching(Box<Batch>),
    /// Between turns: the queues are polled.
    Polling { effect: EffectId, queue: Queue, then: AfterPoll },
    /// The error hooks are called.
    Closing { effect: EffectId, reason: RunStopReason, error: Option<ErrorInfo> },
    /// Over.
    Ended,
}

/// The purpose of a poll between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterPoll {
    /// A turn follows in any case.
    Turn,
    /// A turn follows if there is anything for it.
    TurnIfPending,
}

/// The open turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Between `turn_start` and `turn_end`.
    pub(crate) open: bool,
    /// Between `message_start` and `message_end`.
    pub(crate) message_open: bool,
    pub(crate) recoveries: u32,
    pub(crate) dynamic_prompt: Option<AgentMessage>,
    /// The transformers' view of the history, for this turn's request.
    pub(crate) view: Option<Vec<AgentMessage>>,
    pub(crate) overflow_signal: bool,
    /// Where the messages for this turn begin in `new_messages`; used by the policies before the call.
    pub(crate) fresh_from: Option<usize>,
    /// The index of the model called last.
    pub(crate) asked: usize,
    /// Whether the turn tried to make room before the call.
    pub(crate) sought_room: bool,
    /// The error that a recovery is to resolve.
    pub(crate) overflow: Option<ErrorInfo>,
    /// What the model had said when it refused the conversation as too long. Kept for the case that no room
    /// can be made.
    pub(crate) shown: Assembler,
}

/// The model is being called: one turn, one or more attempts.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) request: ModelRequest,
    /// The index of the model.
    pub(crate) model: usize,
    /// The attempt with this model, counted from 1.
    pub(crate) attempt: u32,
    /// The last error of this model that was worth another attempt.
    pub(crate) last_error: Option<ErrorKind>,
    pub(crate) step: AskStep,
}

impl Default for AskStep {
    /// A placeholder while a step moves to the next state.
    fn default() -> Self {
        AskStep::BeforeHook(0)
    }
}

/// The stage of an attempt.
#[derive(Debug)]
pub(crate) enum AskStep {
    /// Hooks before the call.
    BeforeHook(EffectId),
    /// The answer is streaming.
    Streaming(Streaming),
    /// The delay before the next attempt, and when it ends.
    BackingOff(EffectId, u64),
    /// The process that was reading the answer is gone.
    Cut(Cut),
    /// Hooks after the call; the answer is in the history.
    AfterHook(EffectId, Answer),
}

/// What had arrived of an answer when its process ended.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Whether any of it was shown.
    pub(crate) shown: bool,
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) usage: Usage,
}

/// An answer that is streaming.
#[derive(Debug)]
pub(crate) struct Streaming {
    pub(crate) effect: EffectId,
    pub(crate) assembler: Assembler,
    pub(crate) watchdog: Option<EffectId>,
    pub(crate) last_activity: u64,
    pub(crate) has_received: bool,
}

/// An answer that is in the history.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) message: Rc<AssistantMessage>,
    /// Its index in the history.
    pub(crate) place: usize,
    pub(crate) faults: Vec<(String, CallFault)>,
    /// The arguments of faulty calls, as the model gave them.
    pub(crate) own_arguments: Table<String, RawJson>,
}

/// The calls of one answer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) answer: Answer,
    pub(crate) calls: Vec<Call>,
    /// The index of each call id.
    pub(crate) places: IdMap<String, u64>,
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
    pub(crate) ending: Ending,
}

/// How a batch will end.
#[derive(Debug, Default)]
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
#[derive(Debug)]
pub(crate) struct Call {
    /// The call, as it is in the history.
    pub(crate) block: ToolCallBlock,
    /// The arguments, as changed by policies and the approver.
    pub(crate) arguments: RawJson,
    pub(crate) status: CallStatus,
    pub(crate) result: Option<Rc<ToolResultMessage>>,
    /// Whether a decision was asked for.
    pub(crate) asked: bool,
    /// Whether a tool ran, so that the hooks are called.
    pub(crate) executed: bool,
    /// The index of the tool, once it was looked up.
    pub(crate) tool: usize,
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
    /// The call has its result.
    Done,
}

impl Call {
    /// The arguments as the tool receives them.
    #[inline(never)]
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

    pub(crate) fn is_ready(self) -> bool {
        matches!(self, CallStatus::Ready)
    }
}

/// The messages of a conversation, each with what the model is shown of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    messages: Vec<AgentMessage>,
    /// The result of `convert_to_llm` for each message, kept because it is called once per message.
    conversions: Vec<Conversion>,
    /// The number of messages, from the first, that have been converted.
    converted: usize,
    /// What the model is shown of the first messages. Requests share it, and it grows in place.
    listed: usize,
    list: Rc<Vec<LlmMessage>>,
    clean: CleanPrefix,
    weight: Weight,
    /// Every call id that was ever used.
    pub(crate) call_ids: CallIds,
    /// Increases with every change that is not an append.
    pub(crate) epoch: u64,
}

/// The length of a history in tokens. Each message is examined once.
#[derive(Clone, Debug, Default)]
struct Weight {
    /// The number of messages, from the first, that have been examined.
    messages: usize,
    /// Their estimated tokens.
    estimated: u64,
    /// The tokens that the provider reported for the newest answer, and the estimate up to it.
    reported: (u64, u64),
    /// Reports about this many first messages also counted other messages, which are gone.
    stale: usize,
}

/// What the model is shown of a message.
#[derive(Clone, Debug, Default)]
pub(crate) enum Conversion {
    #[default]
    Unconverted,
    Hidden,
    Shown(LlmMessage),
}

impl History {
    #[inline(never)]
    fn of(messages: Vec<AgentMessage>) -> Self {
        let mut history = History::default();
        history.replace(messages);
        (history.weight, history.epoch) = (Weight::default(), 0);
        history
    }

    /// Reuses the messages of the last run in another one: what is known about them is kept. If others
    /// replaced them, the ids of those that are gone become free again, so that they do not accumulate for
    /// ever.
    #[inline(never)]
    pub(crate) fn reuse(known: Option<Box<History>>, messages: Vec<AgentMessage>) -> Self {
        match known {
            Some(known) if known.conversions.len() == messages.len() => {
                let History { conversions, weight, .. } = *known;
                if weight.stale > 0 {
                    return History { conversions, weight, ..History::of(messages) };
                }
                History { messages, conversions, weight, epoch: 0, ..*known }
            }
            _ => History::of(messages),
        }
    }

    pub(crate) fn messages(&self) -> &[AgentMessage] {
        &self.messages
    }

    pub(crate) fn push(&mut self, message: AgentMessage) {
        // A prompt may contain calls of another conversation.
        self.call_ids.learn(std::slice::from_ref(&message));
        self.messages.push(message);
        self.conversions.push(Conversion::Unconverted);
    }

    pub(crate) fn amend(&mut self, place: usize, message: AgentMessage) {
        if let Some(slot) = self.messages.get_mut(place) {
            *slot = message;
            self.converted = self.converted.min(place);
            // Usually this is the newest answer, which has not been examined yet.
            if place < self.listed {
                self.listed = 0;
            }
            if place < self.weight.messages {
                self.weight = Weight { stale: self.weight.stale, ..Weight::default() };
            }
            self.epoch += 1;
        }
        if let Some(conversion) = self.conversions.get_mut(place) {
            *conversion = Conversion::Unconverted;
        }
    }

    /// Replaces the messages. Those that remain keep their conversion, and ids remain in use.
    pub(crate) fn replace(&mut self, messages: Vec<AgentMessage>) {
        let mut from = 0;
        let mut conversions = vec![Conversion::Unconverted; messages.len()];
        for (message, conversion) in messages.iter().zip(&mut conversions) {
            let Some(place) = self.place_of(message, from) else { continue };
            from = place + 1;
            if let Some(known) = self.conversions.get_mut(place) {
                *conversion = std::mem::take(known);
            }
        }
        self.call_ids.learn(&messages);
        self.weight = Weight { stale: messages.len(), ..Weight::default() };
        self.messages = messages;
        self.conversions = conversions;
        self.converted = 0;
        self.listed = 0;
        self.epoch += 1;
    }

    /// Returns the tokens, estimated in two ways: for everything, and from the provider's report for the
    /// newest answer plus an estimate for what came after it.
    #[inline(never)]
    pub(crate) fn tokens(&mut self) -> (u64, u64) {
        let weight = &mut self.weight;
        for message in self.messages.get(weight.messages..).unwrap_or_default() {
            weight.estimated = weight.estimated.saturating_add(estimate_tokens(message));
            weight.messages += 1;
            if let AgentMessage::Assistant(answer) = message
                && weight.messages > weight.stale
                && let Some(reported) = reported_tokens(answer)
            {
                weight.reported = (reported, weight.estimated);
            }
        }
        let (reported, estimated) = weight.reported;
        (weight.estimated, reported.saturating_add(weight.estimated - estimated))
    }

    /// Returns where the same message object is, searching from `from`.
    pub(crate) fn place_of(&self, message: &AgentMessage, from: usize) -> Option<usize> {
        let tail = self.messages.get(from..)?;
        tail.iter().position(|m| m.is_same(message)).map(|at| from + at)
    }

    /// Returns the first message that has not been converted yet.
    pub(crate) fn unconverted(&mut self) -> Option<AgentMessage> {
        let left = self.conversions.get(self.converted..)?;
        self.converted += left.iter().position(|known| matches!(known, Conversion::Unconverted))?;
        self.messages.get(self.converted).cloned()
    }

    /// Stores what the model is shown of the first message that has not been converted yet.
    pub(crate) fn keep_conversion(&mut self, shown: Option<LlmMessage>) {
        if let Some(conversion) = self.conversions.get_mut(self.converted) {
            *conversion = shown.map_or(Conversion::Hidden, Conversion::Shown);
        }
    }

    /// Returns what the model is shown of a message.
    pub(crate) fn shown(&self, place: usize) -> Option<LlmMessage> {
        self.conversions.get(place)?.shown().cloned()
    }

    /// Makes a request of what the model is shown of the history, as far as it has been converted.
    pub(crate) fn all_shown(&mut self) -> Rc<Vec<LlmMessage>> {
        // First checks only what was added after the part known to be right; if that fails, starts from the
        // beginning.
        let mut from = self.listed;
        loop {
            if from == 0 {
                self.list = Rc::default();
                self.clean = CleanPrefix::default();
            }
            let fresh = self.conversions.get(from..).unwrap_or_default();
            // A message that failed long ago must not make every later turn examine all messages.
            let fresh = fresh
                .iter()
                .filter_map(Conversion::shown)
                .filter(|message| !is_empty_message(message))
                .cloned();
            Rc::make_mut(&mut self.list).extend(fresh);
            self.listed = self.conversions.len();
            if self.clean.covers(&self.list) {
                return self.list.clone();
            }
            if from == 0 {
                break;
            }
            from = 0;
        }
        self.list = Rc::new(hygiene(self.list.to_vec(), SameRole::Keep));
        self.clean = CleanPrefix::default();
        if !self.clean.covers(&self.list) {
            self.listed = 0;
        }
        self.list.clone()
    }
}

impl Conversion {
    fn shown(&self) -> Option<&LlmMessage> {
        match self {
            Conversion::Shown(message) => Some(message),
            Conversion::Unconverted | Conversion::Hidden => None,
        }
    }
}

impl LoopState {
    /// Creates a run that has not begun, with a history.
    pub fn new(context: AgentRunContext, history: Vec<AgentMessage>, session: SessionState) -> Self {
        LoopState::with_history(context, History::of(history), session)
    }

    #[inline(never)]
    pub(crate) fn with_history(context: AgentRunContext, history: History, session: SessionState) -> Self {
        LoopState {
            context,
            phase: Phase::Idle,
            history,
            new_messages: Vec::new(),
            seen: 0,
            pending: Vec::new(),
            steering: Vec::new(),
            follow_up: Vec::new(),
            table: ApprovalStateMachine::default(),
            turn: Turn::default(),
            polls: Table::new(),
            turn_index: 0,
            turns: 0,
            pauses: 0,
            usage: Usage::default(),
            session,
            model: None,
            offered: None,
            output: None,
            output_tries: 0,
            cache: CacheState::default(),
            total_timer: None,
            began: 0,
            end: None,
            restored: None,
            next_effect: 1,
        }
    }

    /// Whether the run was restored from a checkpoint and has not continued yet.
    pub fn is_restored(&self) -> bool {
        self.restored.is_some()
    }

    /// Returns the ids of the run.
    pub fn context(&self) -> &AgentRunContext {
        &self.context
    }

    /// Gives the run different ids.
    pub(crate) fn set_context(&mut self, context: AgentRunContext) {
        self.context = context;
    }

    /// Puts letters that an earlier run left there into the queues.
    pub fn with_queues(mut self, steering: Vec<Letter>, follow_up: Vec<Letter>) -> Self {
        self.steering = steering;
        self.follow_up = follow_up;
        self
    }

    /// Takes what is known about the messages when the run is over. The messages stay.
    pub(crate) fn take_history(&mut self) -> History {
        let mut history = std::mem::take(&mut self.history);
        self.history.messages = std::mem::take(&mut history.messages);
        history
    }

    /// Takes what is left in the queues, starting with what was taken for a turn that never came.
    pub fn take_queues(&mut self) -> (Vec<Letter>, Vec<Letter>) {
        let mut steering: Vec<Letter> = std::mem::take(&mut self.pending);
        steering.retain(|letter| letter.receipt > 0);
        steering.append(&mut self.steering);
        (steering, std::mem::take(&mut self.follow_up))
    }

    /// Empties the queues of a run that was restored from a checkpoint; nobody waits for receipts of its
    /// letters.
    pub(crate) fn clear_queues(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }

    /// Returns the history.
    pub fn messages(&self) -> &[AgentMessage] {
        self.history.messages()
    }

    /// Increases whenever the history changes in any way other than by appending.
    pub fn epoch(&self) -> u64 {
        self.history.epoch
    }

    /// Returns the usage of the whole run so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns every message appended since the run began.
    pub fn new_messages(&self) -> &[AgentMessage] {
        &self.new_messages
    }

    /// Returns the calls that wait for a decision.
    pub fn pending_approvals(&self) -> Vec<ToolCallBlock> {
        self.open_approvals().cloned().collect()
    }

    /// Returns the same calls by reference.
    pub(crate) fn open_approvals(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.table.pending()
    }

    /// Whether a call waits for a decision.
    pub fn has_open_approvals(&self) -> bool {
        self.table.is_waiting_for_user()
    }

    /// Returns the structured answer, once the model has given one that fits the schema.
    pub fn output(&self) -> Option<&RawJson> {
        self.output.as_ref()
    }

    /// Returns the session state.
    pub fn session(&self) -> &SessionState {
        &self.session
    }

    /// Whether the run is over.
    pub fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Whether this turn has not tried to make room yet, neither before the model's answer nor after it.
    pub(crate) fn is_turn_new(&self) -> bool {
        !self.turn.sought_room && self.turn.recoveries == 0
    }

    pub(crate) fn new_effect(&mut self) -> EffectId {
        self.next_effect += 1;
        self.next_effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::{FromJson, ToJson, Value};

    #[test]
    fn a_request_shares_a_list_that_grows_in_place() {
        let mut history = History::default();
        let mut list = Rc::default();
        for turn in 0..40 {
            let before = Rc::as_ptr(&list);
            drop(std::mem::take(&mut list));
            history.push(AgentMessage::user("on"));
            // As a policy that looks at every answer does.
            history.amend(turn, AgentMessage::user("go on"));
            while let Some(message) = history.unconverted() {
                history.keep_conversion(message.as_llm());
            }
            list = history.all_shown();
            assert_eq!(list.len(), turn + 1);
            assert!(turn == 0 || Rc::as_ptr(&list) == before);
        }
        history.amend(3, AgentMessage::user("else"));
        assert!(history.unconverted().is_some());
    }

    #[test]
    fn a_list_grows_in_place_also_behind_what_is_never_shown() {
        let mut history = History::default();
        let mut list = Rc::default();
        for turn in 0..20 {
            let stop_reason = if turn == 3 { "error" } else { "stop" };
            let text = if turn == 5 { "" } else { "so it is" };
            history.push(AgentMessage::user("on"));
            history.push(answer(text, &[], stop_reason));
            let before = Rc::as_ptr(&list);
            drop(std::mem::take(&mut list));
            while let Some(message) = history.unconverted() {
                history.keep_conversion(message.as_llm());
            }
            list = history.all_shown();
            let void = [3, 5].iter().filter(|at| **at <= turn).count();
            assert_eq!(list.len(), 2 * (turn + 1) - void);
            assert!(turn == 0 || Rc::as_ptr(&list) == before);
        }
    }

    fn message(json: &str) -> AgentMessage {
        AgentMessage::from_json(&Value::parse(json).unwrap()).unwrap()
    }

    fn answer(text: &str, calls: &[&str], stop_reason: &str) -> AgentMessage {
        let call = |id| format!(r#",{{"type":"tool_call","callId":"{id}","toolName":"t","arguments":{{}}}}"#);
        let calls: String = calls.iter().map(call).collect();
        message(&format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}{calls}],"stopReason":"{stop_reason}"}}"#
        ))
    }

    fn result(id: &str) -> AgentMessage {
        message(&format!(r#"{{"role":"tool_result","callId":"{id}","toolName":"t","content":"done"}}"#))
    }

    fn shown_of(history: &mut History, message: AgentMessage) -> Rc<Vec<LlmMessage>> {
        history.push(message);
        while let Some(message) = history.unconverted() {
            history.keep_conversion(message.as_llm());
        }
        history.all_shown()
    }

    #[test]
    fn what_is_known_of_a_history_goes_on_to_the_next_run() {
        let mut history = History::default();
        for message in [AgentMessage::user("go"), answer("so", &["a"], "tool_use"), result("a")] {
            drop(shown_of(&mut history, message));
        }
        let list = Rc::as_ptr(&history.all_shown());
        let messages = history.messages().to_vec();
        let mut next = History::reuse(Some(Box::new(history)), messages);
        assert!(next.unconverted().is_none() && next.call_ids.is_taken("a"));
        assert_eq!((next.epoch, Rc::as_ptr(&next.all_shown())), (0, list));
        // Their replacements know nothing about them.
        let kept = next.messages()[..1].to_vec();
        next.replace(kept.clone());
        assert!(next.unconverted().is_none() && next.call_ids.is_taken("a"));
        let mut last = History::reuse(Some(Box::new(next)), kept.clone());
        assert!(last.unconverted().is_none() && !last.call_ids.is_taken("a"));
        assert_eq!(last.all_shown().len(), 1);
        assert!(History::reuse(Some(Box::new(last)), Vec::new()).messages().is_empty());
        assert!(History::reuse(None, kept).unconverted().is_some());
    }

    #[test]
    fn a_history_with_a_hole_is_made_right_once() {
        let mut history = History::default();
        let holed = [AgentMessage::user("go"), answer("wait", &["lost"], "aborted"), result("of nobody")];
        for message in holed {
            shown_of(&mut history, message);
        }
        let mut list = Rc::default();
        for turn in 0..40 {
            let before = Rc::as_ptr(&list);
            drop(std::mem::take(&mut list));
            list = shown_of(&mut history, AgentMessage::user("on"));
            assert_eq!(list.len(), turn + 3);
            assert!(turn == 0 || Rc::as_ptr(&list) == before);
        }
    }

    #[test]
    fn whatever_comes_is_shown_as_if_it_had_come_at_once() {
        let mut state = 1_u64;
        let mut dice = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % limit
        };
        for _ in 0..300 {
            let mut history = History::default();
            let (mut raw, mut ids) = (Vec::new(), Vec::new());
            for at in 0..12 {
                let message = match dice(6) {
                    0 => AgentMessage::user(["hello", "", "more"][dice(3)]),
                    1..4 => {
                        let own: Vec<String> = (0..dice(4)).map(|n| format!("{at}.{n}")).collect();
                        ids.extend(own.clone());
                        let own: Vec<&str> = own.iter().map(String::as_str).collect();
                        let stop = ["tool_use", "tool_use", "aborted", "error", "stop"][dice(5)];
                        answer(["so", ""][dice(2)], &own, stop)
                    }
                    _ if ids.is_empty() => result("nobody"),
                    4 => result(&ids[dice(ids.len())]),
                    _ => result(ids.last().unwrap()),
                };
                raw.extend(message.as_llm());
                let list = shown_of(&mut history, message);
                assert_eq!(list.to_json(), hygiene(raw.clone(), SameRole::Keep).to_json());
            }
        }
    }
}
