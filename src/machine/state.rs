//! The state of a run: plain data.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::approval::ApprovalStateMachine;
use crate::call_ids::CallIds;
use crate::context::{Clean, SameRole, estimate_tokens, hygiene, is_void, told_tokens};
use crate::error::{ErrorInfo, ErrorKind};
use crate::event::RunStopReason;
use crate::id_map::IdMap;
use crate::json::{Map, RawJson};
use crate::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, ToolCallBlock, ToolResultMessage, Usage,
};
use crate::ports::AgentRunContext;
use crate::state::SessionState;
use crate::stream::{Assembler, CallFault, ModelRequest, ToolSchema};
use crate::table::Table;
use crate::tool::Transfer;

use super::infer::with_arguments;
use super::{EffectId, Queue};

/// A message on its way into the history, and the receipt that its sender holds (0 for none).
#[derive(Clone, Debug)]
pub struct Letter {
    /// The message.
    pub message: AgentMessage,
    /// Names the receipt.
    pub receipt: u64,
}

/// The state of one run.
pub struct LoopState {
    pub(crate) context: AgentRunContext,
    pub(crate) phase: Phase,
    pub(crate) history: History,
    /// Everything appended since the start.
    pub(crate) new_messages: Vec<AgentMessage>,
    /// How many of `new_messages` the last turn has seen.
    pub(crate) seen: usize,
    /// For the next turn.
    pub(crate) pending: Vec<Letter>,
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// The decisions about the batch, and those that came before theirs.
    pub(crate) table: ApprovalStateMachine,
    pub(crate) turn: Turn,
    /// Polls that go on beside something else.
    pub(crate) polls: Table<EffectId, Queue>,
    pub(crate) turn_index: u32,
    /// Turns that called the model.
    pub(crate) turns: u32,
    /// Answers in a row that asked for another call without a new message.
    pub(crate) pauses: u32,
    pub(crate) usage: Usage,
    pub(crate) session: SessionState,
    /// The id of the model that the last turn asked.
    pub(crate) model: Option<Rc<str>>,
    /// The tools on offer, where one is for the answer.
    pub(crate) offered: Option<Offered>,
    /// The structured answer.
    pub(crate) output: Option<RawJson>,
    /// Answers that did not fit.
    pub(crate) output_tries: u32,
    pub(crate) cache: CacheState,
    pub(crate) total_timer: Option<EffectId>,
    /// When the run began; time that it slept in a checkpoint is left out.
    pub(crate) began: u64,
    /// How it ended.
    pub(crate) end: Option<(RunStopReason, Option<ErrorInfo>)>,
    /// It was read from a checkpoint and has not gone on: how long it had run.
    pub(crate) restored: Option<u64>,
    pub(crate) next_effect: EffectId,
}

/// A list of tools, and the same with the one for the answer.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) tools: Rc<[ToolSchema]>,
    pub(crate) schema: RawJson,
    pub(crate) all: Rc<[ToolSchema]>,
}

/// What is known of the provider's cache.
#[derive(Debug, Default)]
pub(crate) struct CacheState {
    /// Turns since it was written, that one included; 0: it never was.
    pub(crate) turns: u32,
    /// When it was written.
    pub(crate) written: u64,
    pub(crate) prefix_tokens: u64,
}

/// Where a run is.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// Not begun.
    #[default]
    Idle,
    /// The transformers work.
    Preparing { effect: EffectId, overflow: bool },
    /// The compaction engine works.
    Compacting { effect: EffectId },
    /// The model is asked.
    Asking(Box<Ask>),
    /// Tools are decided about and run.
    Dispatching(Box<Batch>),
    /// Between turns: the queues are asked.
    Polling { effect: EffectId, queue: Queue, then: AfterPoll },
    /// The error hooks are told.
    Closing { effect: EffectId, reason: RunStopReason, error: Option<ErrorInfo> },
    /// Over.
    Ended,
}

/// What a poll between turns was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterPoll {
    /// A turn follows in any case.
    Turn,
    /// A turn follows if there is something for it.
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
    /// Where the messages for this turn begin in `new_messages`; for the policies before the call.
    pub(crate) fresh_from: Option<usize>,
    /// Which of the models was asked last.
    pub(crate) asked: usize,
    /// Room was looked for before the call.
    pub(crate) sought_room: bool,
    /// The error that a recovery is to get around.
    pub(crate) overflow: Option<ErrorInfo>,
    /// What the model had said when it refused the conversation as too long; it stays where no room can be made.
    pub(crate) shown: Assembler,
}

/// The model is asked: one turn, one or more attempts.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) request: ModelRequest,
    /// Which of the models.
    pub(crate) model: usize,
    /// Of this model, from 1.
    pub(crate) attempt: u32,
    /// The last error of this model that was worth another attempt.
    pub(crate) tried: Option<ErrorKind>,
    pub(crate) step: AskStep,
}

impl Default for AskStep {
    /// What stands there while a step is on its way to the next.
    fn default() -> Self {
        AskStep::BeforeHook(0)
    }
}

/// Where an attempt is.
#[derive(Debug)]
pub(crate) enum AskStep {
    /// Hooks before the call.
    BeforeHook(EffectId),
    /// The answer streams.
    Streaming(Streaming),
    /// The wait before the next attempt; until when.
    BackingOff(EffectId, u64),
    /// The process that read the answer is gone.
    Cut(Cut),
    /// Hooks after the call; the answer is in the history.
    AfterHook(EffectId, Answer),
}

/// What there was of an answer when its process ended.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Whether any of it was shown.
    pub(crate) shown: bool,
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) usage: Usage,
}

/// The answer streams.
#[derive(Debug)]
pub(crate) struct Streaming {
    pub(crate) effect: EffectId,
    pub(crate) assembler: Assembler,
    pub(crate) watchdog: Option<EffectId>,
    pub(crate) last_life: u64,
    pub(crate) alive: bool,
}

/// An answer that is in the history.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) message: Rc<AssistantMessage>,
    /// Its place in the history.
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
    /// Which call has an id.
    pub(crate) places: IdMap<String, u64>,
    /// Which call an effect belongs to.
    pub(crate) effects: Table<EffectId, usize>,
    /// The poll for steering that goes on beside the tools.
    pub(crate) poll: Option<EffectId>,
    /// Calls that may run and are in no group yet.
    pub(crate) cleared: Vec<usize>,
    /// Groups that have not started, in order.
    pub(crate) groups: VecDeque<Vec<usize>>,
    /// Calls of the current group that have not started, in order.
    pub(crate) ready: VecDeque<usize>,
    pub(crate) running: usize,
    /// How many results are in the history.
    pub(crate) committed: usize,
    /// How many of them the hooks were told of.
    pub(crate) told: usize,
    pub(crate) after_hook: Option<EffectId>,
    /// Messages of policies, for after the results.
    pub(crate) injected: Vec<AgentMessage>,
    /// The session state as the policies see it: as it was when the batch began.
    pub(crate) state: Map,
    /// Whether it has a call of the tool for the answer.
    pub(crate) is_answer: bool,
    pub(crate) ending: Ending,
}

/// How a batch will end.
#[derive(Debug, Default)]
pub(crate) enum Ending {
    /// By another turn.
    #[default]
    Normal,
    /// The user steered.
    Interrupted,
    /// A policy stopped it.
    PolicyStop,
    /// A tool handed over.
    Transfer(Transfer),
    /// Somebody stopped the run, or it took too long, or a hook or a fatal tool failed. Only the first may wait for hooks.
    Stopped(ErrorInfo),
}

/// One call of a batch.
#[derive(Debug)]
pub(crate) struct Call {
    /// As it stands in the history.
    pub(crate) block: ToolCallBlock,
    /// What policies and approver made of the arguments.
    pub(crate) arguments: RawJson,
    pub(crate) status: CallStatus,
    pub(crate) result: Option<Rc<ToolResultMessage>>,
    /// Whether somebody was asked about it.
    pub(crate) asked: bool,
    /// Whether a tool ran, so that the hooks are told.
    pub(crate) executed: bool,
    /// Index of the tool, once it was looked up.
    pub(crate) tool: usize,
}

/// Where a call is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallStatus {
    /// Not cleared by policies, approval, look-up and schema.
    Waiting,
    /// The approver was asked.
    Asked(EffectId),
    /// Waits for its turn.
    Ready,
    /// Hooks before the tool.
    BeforeHook(EffectId),
    /// The tool runs; the second effect is its time limit.
    Running(EffectId, Option<EffectId>),
    /// Has its result.
    Done,
}

impl Call {
    /// As the tool gets it.
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
    /// What `convert_to_llm` answered, message by message; kept, because it is asked once per message.
    conversions: Vec<Conversion>,
    /// So many of the first messages are converted.
    converted: usize,
    /// What the model is shown of so many of the first messages. A request shares it; it grows in place.
    listed: usize,
    list: Rc<Vec<LlmMessage>>,
    clean: Clean,
    weight: Weight,
    /// Every call id there ever was.
    pub(crate) call_ids: CallIds,
    /// Grows whenever anything but an append happens.
    pub(crate) epoch: u64,
}

/// How long a history is, in tokens. Each message is looked at once.
#[derive(Clone, Debug, Default)]
struct Weight {
    /// So many of the first messages were looked at.
    messages: usize,
    /// What they are by estimate.
    estimated: u64,
    /// What the provider told of the newest answer, and what was estimated up to it.
    told: (u64, u64),
    /// What was told of the first so many messages was told of others beside them, which are gone.
    stale: usize,
}

/// What the model is shown of a message.
#[derive(Clone, Debug, Default)]
pub(crate) enum Conversion {
    #[default]
    Unasked,
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

    /// The messages of the last run, for another one: what is known of them stays. Where others took their place, the
    /// ids of those that are gone are free again, so that they do not add up for ever.
    #[inline(never)]
    pub(crate) fn again(known: Option<Box<History>>, messages: Vec<AgentMessage>) -> Self {
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
        // Who prompts may show the model calls of another conversation.
        self.call_ids.learn(std::slice::from_ref(&message));
        self.messages.push(message);
        self.conversions.push(Conversion::Unasked);
    }

    pub(crate) fn amend(&mut self, place: usize, message: AgentMessage) {
        if let Some(slot) = self.messages.get_mut(place) {
            *slot = message;
            self.converted = self.converted.min(place);
            // Mostly it is the newest answer, which was not looked at yet.
            if place < self.listed {
                self.listed = 0;
            }
            if place < self.weight.messages {
                self.weight = Weight { stale: self.weight.stale, ..Weight::default() };
            }
            self.epoch += 1;
        }
        if let Some(conversion) = self.conversions.get_mut(place) {
            *conversion = Conversion::Unasked;
        }
    }

    /// Takes other messages in place of those there are. What stays keeps its conversion, ids stay taken.
    pub(crate) fn replace(&mut self, messages: Vec<AgentMessage>) {
        let mut from = 0;
        let mut conversions = vec![Conversion::Unasked; messages.len()];
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

    /// How many tokens it is: by estimate, and by what the provider told of the newest answer, with an estimate for what
    /// came since.
    #[inline(never)]
    pub(crate) fn tokens(&mut self) -> (u64, u64) {
        let weight = &mut self.weight;
        for message in self.messages.get(weight.messages..).unwrap_or_default() {
            weight.estimated = weight.estimated.saturating_add(estimate_tokens(message));
            weight.messages += 1;
            if let AgentMessage::Assistant(answer) = message
                && weight.messages > weight.stale
                && let Some(told) = told_tokens(answer)
            {
                weight.told = (told, weight.estimated);
            }
        }
        let (told, estimated) = weight.told;
        (weight.estimated, told.saturating_add(weight.estimated - estimated))
    }

    /// Where the very same message stands, looked for from `from` on.
    pub(crate) fn place_of(&self, message: &AgentMessage, from: usize) -> Option<usize> {
        let tail = self.messages.get(from..)?;
        tail.iter().position(|m| m.is_same(message)).map(|at| from + at)
    }

    /// The first message that was not converted yet.
    pub(crate) fn unconverted(&mut self) -> Option<AgentMessage> {
        let left = self.conversions.get(self.converted..)?;
        self.converted += left.iter().position(|known| matches!(known, Conversion::Unasked))?;
        self.messages.get(self.converted).cloned()
    }

    /// Keeps what the model is shown of the first message that was not converted yet.
    pub(crate) fn keep_conversion(&mut self, shown: Option<LlmMessage>) {
        if let Some(conversion) = self.conversions.get_mut(self.converted) {
            *conversion = shown.map_or(Conversion::Hidden, Conversion::Shown);
        }
    }

    /// What the model is shown of a message.
    pub(crate) fn shown(&self, place: usize) -> Option<LlmMessage> {
        self.conversions.get(place)?.shown().cloned()
    }

    /// What the model is shown of the history, so far as it was converted, made a request of.
    pub(crate) fn all_shown(&mut self) -> Rc<Vec<LlmMessage>> {
        // Once behind what was made right before, and where that does not do, from the beginning.
        let mut from = self.listed;
        loop {
            if from == 0 {
                self.list = Rc::default();
                self.clean = Clean::default();
            }
            let fresh = self.conversions.get(from..).unwrap_or_default();
            // One that failed long ago must not cost every later turn a look at all messages.
            let fresh =
                fresh.iter().filter_map(Conversion::shown).filter(|message| !is_void(message)).cloned();
            Rc::make_mut(&mut self.list).extend(fresh);
            self.listed = self.conversions.len();
            if self.clean.has(&self.list) {
                return self.list.clone();
            }
            if from == 0 {
                break;
            }
            from = 0;
        }
        self.list = Rc::new(hygiene(self.list.to_vec(), SameRole::Keep));
        self.clean = Clean::default();
        if !self.clean.has(&self.list) {
            self.listed = 0;
        }
        self.list.clone()
    }
}

impl Conversion {
    fn shown(&self) -> Option<&LlmMessage> {
        match self {
            Conversion::Shown(message) => Some(message),
            Conversion::Unasked | Conversion::Hidden => None,
        }
    }
}

impl LoopState {
    /// A run that has not begun, over a history.
    pub fn new(context: AgentRunContext, history: Vec<AgentMessage>, session: SessionState) -> Self {
        LoopState::over(context, History::of(history), session)
    }

    #[inline(never)]
    pub(crate) fn over(context: AgentRunContext, history: History, session: SessionState) -> Self {
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

    /// Whether it was read from a checkpoint and has not gone on.
    pub fn is_restored(&self) -> bool {
        self.restored.is_some()
    }

    /// Whose run it is.
    pub fn context(&self) -> &AgentRunContext {
        &self.context
    }

    /// Gives the run other ids.
    pub(crate) fn rename(&mut self, context: AgentRunContext) {
        self.context = context;
    }

    /// Puts letters into the queues that an earlier run left there.
    pub fn with_queues(mut self, steering: Vec<Letter>, follow_up: Vec<Letter>) -> Self {
        self.steering = steering;
        self.follow_up = follow_up;
        self
    }

    /// Takes out what is known of the messages, when the run is over. They stay.
    pub(crate) fn take_history(&mut self) -> History {
        let mut history = std::mem::take(&mut self.history);
        self.history.messages = std::mem::take(&mut history.messages);
        history
    }

    /// Takes what is left in the queues; what was taken for a turn that never came stands in front.
    pub fn take_queues(&mut self) -> (Vec<Letter>, Vec<Letter>) {
        let mut steering: Vec<Letter> = std::mem::take(&mut self.pending);
        steering.retain(|letter| letter.receipt > 0);
        steering.append(&mut self.steering);
        (steering, std::mem::take(&mut self.follow_up))
    }

    /// Empties the queues of a run that was read from a checkpoint: nobody waits for what becomes of its letters.
    pub(crate) fn clear_queues(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }

    /// The history.
    pub fn messages(&self) -> &[AgentMessage] {
        self.history.messages()
    }

    /// Grows whenever the history changes by anything but an append.
    pub fn epoch(&self) -> u64 {
        self.history.epoch
    }

    /// Everything the run used so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Everything appended since the run began.
    pub fn new_messages(&self) -> &[AgentMessage] {
        &self.new_messages
    }

    /// The calls that wait for somebody's decision.
    pub fn pending_approvals(&self) -> Vec<ToolCallBlock> {
        self.open_approvals().cloned().collect()
    }

    /// The same, to be looked at.
    pub(crate) fn open_approvals(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.table.pending()
    }

    /// Whether some call waits for somebody's decision.
    pub fn has_open_approvals(&self) -> bool {
        self.table.is_waiting_for_user()
    }

    /// The structured answer, once the model gave one that fits.
    pub fn output(&self) -> Option<&RawJson> {
        self.output.as_ref()
    }

    /// The session state.
    pub fn session(&self) -> &SessionState {
        &self.session
    }

    /// Whether the run is over.
    pub fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Whether nobody has looked for room in this turn, neither before the model's answer nor after it.
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
    use crate::json::{FromJson, ToJson, Value};

    #[test]
    fn a_request_shares_a_list_that_grows_in_place() {
        let mut history = History::default();
        let mut list = Rc::default();
        for turn in 0..40 {
            let before = Rc::as_ptr(&list);
            drop(std::mem::take(&mut list));
            history.push(AgentMessage::user("on"));
            // As a policy does that has a look at every answer.
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
            let said = if turn == 5 { "" } else { "so it is" };
            history.push(AgentMessage::user("on"));
            history.push(answer(said, &[], stop_reason));
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

    fn answer(said: &str, calls: &[&str], stop_reason: &str) -> AgentMessage {
        let call = |id| format!(r#",{{"type":"tool_call","callId":"{id}","toolName":"t","arguments":{{}}}}"#);
        let calls: String = calls.iter().map(call).collect();
        message(&format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"{said}"}}{calls}],"stopReason":"{stop_reason}"}}"#
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
        let mut next = History::again(Some(Box::new(history)), messages);
        assert!(next.unconverted().is_none() && next.call_ids.is_taken("a"));
        assert_eq!((next.epoch, Rc::as_ptr(&next.all_shown())), (0, list));
        // What took their place knows nothing of them.
        let kept = next.messages()[..1].to_vec();
        next.replace(kept.clone());
        assert!(next.unconverted().is_none() && next.call_ids.is_taken("a"));
        let mut last = History::again(Some(Box::new(next)), kept.clone());
        assert!(last.unconverted().is_none() && !last.call_ids.is_taken("a"));
        assert_eq!(last.all_shown().len(), 1);
        assert!(History::again(Some(Box::new(last)), Vec::new()).messages().is_empty());
        assert!(History::again(None, kept).unconverted().is_some());
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
