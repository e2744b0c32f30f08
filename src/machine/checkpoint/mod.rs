//! Writes a run to a checkpoint and reads it back. Messages of the history are referred to by index, so a
//! run takes little more space than its history. Effects are not written: whatever waits for one starts it
//! again.

mod answer;
mod batch;
pub(super) mod child;
mod mail;
mod part;

use std::rc::Rc;

use crate::data::json::{ObjectWriter, ToJson, Value};
use crate::data::list::ListWriter;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::host::tool::Nesting;
use crate::rules::approval::{ApprovalEntry, ApprovalState};
use crate::rules::budget::Amounts;
use crate::rules::stream::{Assembler, ModelRequest};
use crate::words::event::{AgentEvent, BudgetKind, BudgetState, RunStopReason};
use crate::words::message::{AgentMessage, Usage};
use crate::words::question::{Question, QuestionKind};

use super::batch::{Asked, Batch, BatchCall, CallStatus};
use super::budget::Spending;
use super::checkpoint::answer::{read_stage, write_stage};
use super::checkpoint::part::{FirstError, Part};
use super::history::History;
use super::input::Queue;
use super::output::{EffectId, Output};
use super::phase::{AfterPoll, Inference, Phase};
use super::state::{CacheState, LoopState, Turn};

impl LoopState {
    /// Writes the run as a JSON object. `unannounced` are the tools whose start has not been emitted: they
    /// wait for their turn.
    pub fn write_checkpoint(&self, now: u64, unannounced: &[EffectId], out: &mut String) {
        let mut run = ObjectWriter::new(out);
        run.field("runId", &self.context.run_id).field("sessionId", &self.context.session_id);
        run.optional("metadata", &self.context.metadata).optional("options", &self.options);
        run.field("turnIndex", &self.tally.turn_index)
            .field("turns", &self.tally.turns)
            .field("pauses", &self.tally.pauses);
        let elapsed = self.timing.restored.unwrap_or(now.saturating_sub(self.timing.began));
        // Only the usage is kept of an answer that is about to be discarded.
        let mut usage = self.tally.usage;
        usage.add(&self.turn.shown.usage.totalled());
        run.field("usage", &usage).field("elapsedMs", &elapsed);
        if self.tally.children != Usage::default() {
            run.field("childrenUsage", &self.tally.children);
        }
        let mut spent = Amounts { ms: 0, ..self.spending.books.borrow().spent };
        spent.add(&Amounts::of(&self.turn.shown.usage.totalled()));
        if spent != Amounts::default() {
            run.field("spent", &spent);
        }
        let raised = self.spending.books.borrow().raised;
        if raised != Amounts::default() {
            run.field("raised", &raised);
        }
        run.optional("refusedCall", &self.spending.has_refused_call.then_some(true));
        run.optional("wrapsUp", &self.spending.is_wrapping_up.then_some(true));
        if !self.spending.told.is_empty() {
            let mut told = ListWriter::new(run.key("budgetTold"));
            for (kind, state) in &self.spending.told {
                [kind.as_str(), " ", state.as_str()].concat().write_json(told.item());
            }
            told.end();
        }
        run.optional("model", &self.provider.model).optional("output", &self.structured.output);
        run.field("outputTries", &self.structured.tries);
        let mut cache = ObjectWriter::new(run.key("cache"));
        cache.field("turns", &self.provider.cache.turns).field("written", &self.provider.cache.written);
        cache.field("prefixTokens", &self.provider.cache.prefix_tokens);
        cache.end();
        write_places(&self.history, &self.appended.messages, run.key("newMessages"));
        run.field("seen", &long(self.appended.seen));
        run.field("pending", &self.queues.pending).field("steering", &self.queues.steering);
        run.field("followUp", &self.queues.follow_up);
        self.approvals.write_entries(run.key("table"));
        self.write_turn(run.key("turn"));
        let mut phase = ObjectWriter::new(run.key("phase"));
        self.write_phase(&self.phase, &mut phase, unannounced);
        phase.end();
        run.end();
    }

    /// Gives ids to the open questions of a checkpoint that was written before questions had any.
    pub(crate) fn name_questions(&mut self, new_id: &dyn Fn() -> String) {
        let LoopState { phase: Phase::Dispatching(batch), approvals, .. } = self else { return };
        for (call, place) in batch.calls.iter_mut().zip(0..) {
            let entry = approvals.entry(&call.block.call_id);
            if call.question.is_none() && entry.is_some_and(ApprovalEntry::is_pending) {
                let id = new_id();
                batch.questions.insert(id.clone(), place);
                call.question = Some(Asked { id, at: 0 });
            }
        }
    }

    fn write_turn(&self, out: &mut String) {
        let turn = &self.turn;
        let mut object = ObjectWriter::new(out);
        object.field("open", &turn.open).field("messageOpen", &turn.message_open);
        object.field("recoveries", &turn.recoveries).field("asked", &long(turn.model));
        object.optional("overflow", &turn.overflow);
        let has_shown = turn.has_shown || !turn.shown.is_empty();
        object.optional("shown", &has_shown.then_some(true));
        object
            .optional("dynamicPrompt", &turn.dynamic_prompt)
            .optional("freshFrom", &turn.fresh_from.map(long))
            .optional("soughtRoom", &turn.sought_room.then_some(true));
        if let Some(view) = &turn.view {
            write_places(&self.history, view, object.key("view"));
        }
        object.end();
    }

    fn write_phase(&self, phase: &Phase, out: &mut ObjectWriter<'_>, unannounced: &[EffectId]) {
        match phase {
            Phase::Choosing { then, .. } | Phase::Flushing { then } => {
                self.write_phase(then, out, unannounced);
            }
            Phase::Idle => drop(out.field("kind", "idle")),
            Phase::Preparing { overflow, .. } => {
                out.field("kind", "preparing").field("overflow", overflow);
            }
            Phase::Compacting { .. } => drop(out.field("kind", "compacting")),
            Phase::Questioned(question) => {
                out.field("kind", "budget").field("question", question.as_ref());
            }
            Phase::Inferring(inference) => {
                out.field("kind", "asking")
                    .field("model", &long(inference.model))
                    .field("attempt", &inference.attempt);
                write_stage(&inference.stage, out);
            }
            Phase::Dispatching(batch) => {
                out.field("kind", "dispatching");
                // In a batch that was just read, the poll is still to come.
                let polled = batch.poll.is_some_and(|id| id == 0 || self.queues.polls.contains_key(&id));
                batch.write(out, unannounced, polled);
            }
            Phase::Polling { queue, then, .. } => {
                out.field("kind", "polling").field("followUp", &(*queue == Queue::FollowUp));
                out.field("turn", &(*then == AfterPoll::Turn));
            }
            Phase::Closing { reason, error, .. } => {
                out.field("kind", "closing").field("reason", reason.as_str()).optional("error", error);
            }
            Phase::Ended { reason, error } => {
                out.field("kind", "ended").field("reason", reason.as_str()).optional("error", error);
            }
        }
    }

    /// Reads a run back, with its history.
    ///
    /// # Errors
    /// Names the field that cannot be read.
    pub fn read_checkpoint(
        history: Vec<AgentMessage>,
        session: SessionState,
        run: &Value,
    ) -> Result<Self, String> {
        let first_error = FirstError::default();
        let run = Part { value: run, first_error: &first_error };
        let mut state = LoopState::new(read_context(&run), history, session);
        state.options = run.get("options").map(ToJson::to_raw);
        let history = &mut state.history;
        state.tally.turn_index = run.int("turnIndex");
        state.tally.turns = run.int("turns");
        state.tally.pauses = run.int("pauses");
        state.tally.usage = run.read("usage");
        state.tally.children = run.optional("childrenUsage").unwrap_or_default();
        read_spending(&run, &mut state.spending);
        state.timing.restored = Some(run.long("elapsedMs"));
        state.provider.model = run.get("model").and_then(Value::as_str).map(Rc::from);
        state.structured.output = run.get("output").map(ToJson::to_raw);
        state.structured.tries = run.int("outputTries");
        let cache = run.part("cache");
        state.provider.cache = CacheState {
            turns: cache.int("turns"),
            written: cache.long("written"),
            prefix_tokens: cache.long("prefixTokens"),
        };
        state.appended.messages = run.messages("newMessages", history);
        // Includes those that a compaction has removed, because their ids remain in use.
        history.call_ids.learn(&state.appended.messages);
        state.appended.seen = run.size("seen");
        state.queues.pending = run.letters("pending");
        state.queues.steering = run.letters("steering");
        state.queues.follow_up = run.letters("followUp");
        state.approvals = run.read("table");
        // A decision is parked for the run in which it was made.
        state.approvals.forget_parked();
        state.turn = read_turn(history, &run.part("turn"));
        state.phase = read_phase(history, &run.part("phase"));
        if let Phase::Dispatching(batch) = &state.phase {
            // Both are in the order of the calls. Without this check, the run would wait for a call that
            // nobody can decide about.
            let mut open =
                state.approvals.entries().iter().filter(|entry| entry.state != ApprovalState::Dispatched);
            let is_open = |call: &BatchCall| open.any(|entry| entry.call.call_id == call.block.call_id);
            let waits = |call: &&BatchCall| matches!(call.status, CallStatus::Waiting | CallStatus::Asked(_));
            if !batch.is_unseen && !batch.calls.iter().filter(waits).all(is_open) {
                run.report("table", "must hold the calls that wait");
            }
        } else {
            state.approvals.close();
        }
        match first_error.0.into_inner() {
            None => Ok(state),
            Some(first_error) => Err(first_error),
        }
    }
}

fn read_spending(run: &Part<'_>, spending: &mut Spending) {
    spending.books.borrow_mut().spent = run.optional("spent").unwrap_or_default();
    spending.books.borrow_mut().raised = run.optional("raised").unwrap_or_default();
    spending.has_refused_call = run.flag("refusedCall");
    spending.is_wrapping_up = run.flag("wrapsUp");
    for told in run.get("budgetTold").into_iter().flat_map(texts_of) {
        let (kind, told) = told.split_once(' ').unwrap_or_default();
        spending.told.extend(BudgetKind::from_word(kind).zip(BudgetState::from_word(told)));
    }
}

/// The texts in a list.
fn texts_of(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().unwrap_or_default().iter().filter_map(Value::as_str)
}

fn read_phase(history: &History, phase: &Part<'_>) -> Phase {
    let effect = 0;
    match phase.word("kind") {
        "preparing" => Phase::Preparing { effect, overflow: phase.flag("overflow") },
        "budget" => match phase.optional::<Question>("question") {
            Some(question) if question.kind == QuestionKind::Budget && !question.id.is_empty() => {
                Phase::Questioned(Box::new(question))
            }
            _ => {
                phase.report("question", "must be one about a budget");
                Phase::Idle
            }
        },
        "compacting" => Phase::Compacting { effect },
        "asking" => Phase::Inferring(Box::new(Inference {
            request: empty_request(),
            model: phase.size("model"),
            attempt: phase.int("attempt"),
            last_error: None,
            stage: read_stage(history, phase),
        })),
        "dispatching" => {
            Batch::read(history, phase).map_or(Phase::Idle, |batch| Phase::Dispatching(Box::new(batch)))
        }
        "polling" => Phase::Polling {
            effect,
            queue: if phase.flag("followUp") { Queue::FollowUp } else { Queue::Steering },
            then: if phase.flag("turn") { AfterPoll::Turn } else { AfterPoll::TurnIfPending },
        },
        kind @ ("closing" | "ended") => {
            let word = phase.word("reason");
            let reason = RunStopReason::from_word(word).unwrap_or_else(|| {
                phase.unknown("reason", word);
                RunStopReason::Error
            });
            let error = phase.optional("error");
            if kind == "closing" {
                return Phase::Closing { effect, reason, error };
            }
            Phase::Ended { reason, error }
        }
        other => {
            phase.unknown("kind", other);
            Phase::Idle
        }
    }
}

fn read_context(run: &Part<'_>) -> AgentRunContext {
    let metadata = run.get("metadata").filter(|metadata| metadata.as_object().is_some());
    AgentRunContext {
        run_id: run.word("runId").into(),
        session_id: run.word("sessionId").into(),
        metadata: metadata.map(ToJson::to_raw),
        turn_index: run.int("turnIndex"),
        nesting: Nesting::default(),
    }
}

fn read_turn(history: &History, turn: &Part<'_>) -> Turn {
    Turn {
        open: turn.flag("open"),
        message_open: turn.flag("messageOpen"),
        recoveries: turn.int("recoveries"),
        dynamic_prompt: turn.optional("dynamicPrompt"),
        chosen_view: None,
        is_restored: true,
        view: turn.get("view").map(|_| turn.messages("view", history)),
        fresh_from: turn.get("freshFrom").map(|_| turn.size("freshFrom")),
        model: turn.size("asked"),
        sought_room: turn.flag("soughtRoom"),
        overflow: turn.optional("overflow"),
        shown: Assembler::default(),
        has_shown: turn.flag("shown"),
    }
}

/// Returns what remains in a list that a driver has not finished processing: the effects not announced, and
/// the events not emitted. The end of a run is left out, because it is emitted again.
pub fn unsaid<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> (Vec<EffectId>, Vec<&'a AgentEvent>) {
    let (mut unannounced, mut unemitted) = (Vec::new(), Vec::new());
    for output in outputs {
        match output {
            Output::Start { id, announce: Some(_), .. } => unannounced.push(*id),
            Output::Event(event) if !matches!(event, AgentEvent::AgentEnd { .. }) => unemitted.push(event),
            _ => {}
        }
    }
    (unannounced, unemitted)
}

/// Writes messages as a list: a number is an index into the history, anything else is the message itself.
fn write_places(history: &History, messages: &[AgentMessage], out: &mut String) {
    let mut from = 0;
    let mut list = ListWriter::new(out);
    for message in messages {
        match history.place_of(message, from) {
            Some(place) => {
                from = place + 1;
                list.place(place);
            }
            None => message.write_json(list.item()),
        }
    }
    list.end();
}

fn empty_request() -> ModelRequest {
    ModelRequest {
        model: "".into(),
        system_prompt: "".into(),
        messages: Rc::default(),
        tools: Rc::new([]),
        options: Rc::default(),
        api_key: None,
        output: None,
        session_id: None,
    }
}

pub(in crate::machine) fn long(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
