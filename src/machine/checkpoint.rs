//! Writes a run to a checkpoint and reads it back. Messages of the history are referred to by index, so a
//! run takes little more space than its history. Effects are not written: whatever waits for one starts it
//! again.

use std::cell::RefCell;
use std::rc::Rc;

use crate::data::json::{FromJson, Map, ObjectWriter, ToJson, Value};
use crate::data::list::{ListWriter, read_all, read_each};
use crate::data::table::Table;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::host::tool::Transfer;
use crate::rules::approval::{ApprovalState, read_decision};
use crate::rules::event::{AgentEvent, RunStopReason};
use crate::rules::stream::{Assembler, CallFault, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::AgentMessage;

use super::state::{
    AfterPoll, Answer, Ask, AskStep, Batch, CacheState, Call, CallStatus, Cut, Ending, History, Letter,
    Phase, Turn,
};
use super::{AgentCommand, EffectId, LoopState, Output, Queue};

/// The receipt of a letter whose sender is gone.
const SENDER_GONE: u64 = u64::MAX;

type Read<T> = Result<T, String>;

impl LoopState {
    /// Writes the run as a JSON object. `unannounced` are the tools whose start has not been emitted: they
    /// wait for their turn.
    pub fn write_checkpoint(&self, now: u64, unannounced: &[EffectId], out: &mut String) {
        let mut run = ObjectWriter::new(out);
        run.field("runId", &self.context.run_id).field("sessionId", &self.context.session_id);
        run.field("turnIndex", &self.turn_index).field("turns", &self.turns).field("pauses", &self.pauses);
        let elapsed = self.restored.unwrap_or(now.saturating_sub(self.began));
        // Only the usage is kept of an answer that is about to be discarded.
        let mut usage = self.usage;
        usage.add(&self.turn.shown.usage.totalled());
        run.field("usage", &usage).field("elapsedMs", &elapsed);
        run.optional("model", &self.model).optional("output", &self.output);
        run.field("outputTries", &self.output_tries);
        let mut cache = ObjectWriter::new(run.key("cache"));
        cache.field("turns", &self.cache.turns).field("written", &self.cache.written);
        cache.field("prefixTokens", &self.cache.prefix_tokens);
        cache.end();
        write_places(&self.history, &self.new_messages, run.key("newMessages"));
        run.field("seen", &long(self.seen));
        run.field("pending", &self.pending).field("steering", &self.steering);
        run.field("followUp", &self.follow_up).field("table", &self.table);
        self.write_turn(run.key("turn"));
        let mut phase = ObjectWriter::new(run.key("phase"));
        self.write_phase(&mut phase, unannounced);
        phase.end();
        run.end();
    }

    fn write_turn(&self, out: &mut String) {
        let turn = &self.turn;
        let mut object = ObjectWriter::new(out);
        object.field("open", &turn.open).field("messageOpen", &turn.message_open);
        object.field("recoveries", &turn.recoveries).field("asked", &long(turn.asked));
        object.field("overflowSignal", &turn.overflow_signal).optional("overflow", &turn.overflow);
        object
            .optional("dynamicPrompt", &turn.dynamic_prompt)
            .optional("freshFrom", &turn.fresh_from.map(long))
            .optional("soughtRoom", &turn.sought_room.then_some(true));
        if let Some(view) = &turn.view {
            write_places(&self.history, view, object.key("view"));
        }
        object.end();
    }

    fn write_phase(&self, out: &mut ObjectWriter<'_>, unannounced: &[EffectId]) {
        match &self.phase {
            Phase::Idle => drop(out.field("kind", "idle")),
            Phase::Preparing { overflow, .. } => {
                out.field("kind", "preparing").field("overflow", overflow);
            }
            Phase::Compacting { .. } => drop(out.field("kind", "compacting")),
            Phase::Asking(ask) => {
                out.field("kind", "asking").field("model", &long(ask.model)).field("attempt", &ask.attempt);
                write_step(&ask.step, out);
            }
            Phase::Dispatching(batch) => {
                out.field("kind", "dispatching");
                // In a batch that was just read, the poll is still to come.
                let polled = batch.poll.is_some_and(|id| id == 0 || self.polls.contains_key(&id));
                batch.write(out, unannounced, polled);
            }
            Phase::Polling { queue, then, .. } => {
                out.field("kind", "polling").field("followUp", &(*queue == Queue::FollowUp));
                out.field("turn", &(*then == AfterPoll::Turn));
            }
            Phase::Closing { reason, error, .. } => {
                out.field("kind", "closing").field("reason", reason.as_str()).optional("error", error);
            }
            Phase::Ended => {
                out.field("kind", "ended");
                if let Some((reason, error)) = &self.end {
                    out.field("reason", reason.as_str()).optional("error", error);
                }
            }
        }
    }

    /// Reads a run back, with its history.
    ///
    /// # Errors
    /// Names the field that cannot be read.
    #[inline(never)]
    pub fn read_checkpoint(history: Vec<AgentMessage>, session: SessionState, run: &Value) -> Read<Self> {
        let first_error = FirstError::default();
        let run = Part { value: run, first_error: &first_error };
        let context =
            AgentRunContext { run_id: run.word("runId").into(), session_id: run.word("sessionId").into() };
        let mut state = LoopState::new(context, history, session);
        let history = &mut state.history;
        state.turn_index = run.int("turnIndex");
        state.turns = run.int("turns");
        state.pauses = run.int("pauses");
        state.usage = run.read("usage");
        state.restored = Some(run.long("elapsedMs"));
        state.model = run.get("model").and_then(Value::as_str).map(Rc::from);
        state.output = run.get("output").map(ToJson::to_raw);
        state.output_tries = run.int("outputTries");
        let cache = run.part("cache");
        state.cache = CacheState {
            turns: cache.int("turns"),
            written: cache.long("written"),
            prefix_tokens: cache.long("prefixTokens"),
        };
        state.new_messages = run.messages("newMessages", history);
        // Includes those that a compaction has removed, because their ids remain in use.
        history.call_ids.learn(&state.new_messages);
        state.seen = run.size("seen");
        state.pending = run.letters("pending");
        state.steering = run.letters("steering");
        state.follow_up = run.letters("followUp");
        state.table = run.read("table");
        state.turn = read_turn(history, &run.part("turn"));
        state.phase = read_phase(history, &mut state.end, &run.part("phase"));
        if let Phase::Dispatching(batch) = &state.phase {
            // Both are in the order of the calls. Without this check, the run would wait for a call that
            // nobody can decide about.
            let mut open =
                state.table.entries().iter().filter(|entry| entry.state != ApprovalState::Dispatched);
            let is_open = |call: &Call| open.any(|entry| entry.call.call_id == call.block.call_id);
            let waits = |call: &&Call| matches!(call.status, CallStatus::Waiting | CallStatus::Asked(_));
            if !batch.calls.iter().filter(waits).all(is_open) {
                run.report("table", "must hold the calls that wait");
            }
        }
        match first_error.0.into_inner() {
            None => Ok(state),
            Some(first_error) => Err(first_error),
        }
    }
}

#[inline(never)]
fn read_phase(
    history: &History,
    end: &mut Option<(RunStopReason, Option<ErrorInfo>)>,
    phase: &Part<'_>,
) -> Phase {
    let effect = 0;
    match phase.word("kind") {
        "preparing" => Phase::Preparing { effect, overflow: phase.flag("overflow") },
        "compacting" => Phase::Compacting { effect },
        "asking" => Phase::Asking(Box::new(Ask {
            request: empty_request(),
            model: phase.size("model"),
            attempt: phase.int("attempt"),
            last_error: None,
            step: read_step(history, phase),
        })),
        "dispatching" => {
            Batch::read(history, phase).map_or(Phase::Ended, |batch| Phase::Dispatching(Box::new(batch)))
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
            *end = Some((reason, error));
            Phase::Ended
        }
        other => {
            phase.unknown("kind", other);
            Phase::Ended
        }
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

fn write_step(step: &AskStep, out: &mut ObjectWriter<'_>) {
    let cut;
    match step {
        AskStep::BeforeHook(_) => drop(out.field("step", "before_hook")),
        AskStep::BackingOff(_, until) => drop(out.field("step", "backing_off").field("until", until)),
        AskStep::AfterHook(_, answer) => {
            out.field("step", "after_hook");
            answer.write(out);
        }
        AskStep::Streaming(streaming) => {
            let assembler = streaming.assembler.clone();
            let (shown, usage) = (!assembler.is_empty(), assembler.usage.totalled());
            cut = Cut { shown, usage, content: assembler.partial() };
            cut.write(out);
        }
        AskStep::Cut(cut) => cut.write(out),
    }
}

#[inline(never)]
fn read_step(history: &History, ask: &Part<'_>) -> AskStep {
    match ask.word("step") {
        "before_hook" => AskStep::BeforeHook(0),
        "backing_off" => AskStep::BackingOff(0, ask.long("until")),
        "after_hook" => match Answer::read(history, ask) {
            Some(answer) => AskStep::AfterHook(0, answer),
            None => AskStep::BeforeHook(0),
        },
        "streaming" => {
            let (content, usage) = (ask.read("content"), ask.read("usage"));
            AskStep::Cut(Cut { shown: ask.flag("shown"), content, usage })
        }
        other => {
            ask.unknown("step", other);
            AskStep::BeforeHook(0)
        }
    }
}

impl Cut {
    fn write(&self, out: &mut ObjectWriter<'_>) {
        out.field("step", "streaming").field("shown", &self.shown);
        out.field("content", &self.content).field("usage", &self.usage);
    }
}

impl Answer {
    fn write(&self, out: &mut ObjectWriter<'_>) {
        out.field("place", &long(self.place));
        let mut faults = ObjectWriter::new(out.key("faults"));
        for (id, fault) in &self.faults {
            let word = match fault {
                CallFault::Cut => "cut",
                CallFault::NotAnObject => "not_an_object",
                CallFault::Malformed(error) => error,
            };
            faults.field(id, word);
        }
        faults.end();
        let mut own = ObjectWriter::new(out.key("ownArguments"));
        for (id, arguments) in self.own_arguments.iter() {
            own.field(id, arguments);
        }
        own.end();
    }

    fn read(history: &History, answer: &Part<'_>) -> Option<Answer> {
        let place = answer.size("place");
        let Some(AgentMessage::Assistant(message)) = history.messages().get(place) else {
            answer.report("place", "must be that of an answer");
            return None;
        };
        let faults = answer.map("faults");
        let mut read =
            Answer { message: message.clone(), place, faults: Vec::new(), own_arguments: Table::new() };
        for (id, fault) in faults.iter() {
            let fault = match fault.as_str().unwrap_or_default() {
                "cut" => CallFault::Cut,
                "not_an_object" => CallFault::NotAnObject,
                error => CallFault::Malformed(error.to_owned()),
            };
            read.faults.push((id.to_owned(), fault));
        }
        for (id, arguments) in answer.map("ownArguments").iter() {
            read.own_arguments.insert(id.to_owned(), arguments.to_raw());
        }
        Some(read)
    }
}

impl Batch {
    fn write(&self, out: &mut ObjectWriter<'_>, unannounced: &[EffectId], polled: bool) {
        self.answer.write(out);
        let waits = |call: &Call| match call.status {
            CallStatus::BeforeHook(effect) | CallStatus::Running(effect, _) => unannounced.contains(&effect),
            _ => false,
        };
        let mut calls = ListWriter::new(out.key("calls"));
        for (at, call) in self.calls.iter().enumerate() {
            call.write(calls.item(), waits(call), at >= self.committed);
        }
        calls.end();
        let mut ready = ListWriter::new(out.key("ready"));
        for (at, call) in self.calls.iter().enumerate() {
            if waits(call) {
                ready.place(at);
            }
        }
        self.ready.iter().for_each(|at| ready.place(*at));
        ready.end();
        write_numbers(&self.cleared, out.key("cleared"));
        let mut groups = ListWriter::new(out.key("groups"));
        self.groups.iter().for_each(|group| write_numbers(group, groups.item()));
        groups.end();
        out.field("committed", &long(self.committed));
        // The hook that was being called is called again.
        let hooks_called = self.hooks_called.saturating_sub(usize::from(self.after_hook.is_some()));
        out.field("told", &long(hooks_called)).field("polled", &polled);
        out.field("injected", &self.injected).field("isAnswer", &self.is_answer);
        if !self.state.is_empty() {
            out.field("state", &self.state);
        }
        let mut ending = ObjectWriter::new(out.key("ending"));
        self.ending.write(&mut ending);
        ending.end();
    }

    #[inline(never)]
    fn read(history: &History, part: &Part<'_>) -> Option<Batch> {
        let answer = Answer::read(history, part)?;
        let calls = part.list("calls");
        let results = history.messages().get(answer.place..).unwrap_or_default();
        let mut batch = super::dispatch::new_batch(answer);
        let count = batch.calls.len();
        if calls.len() != count {
            part.report("calls", "must be those of the answer");
        }
        for (call, value) in batch.calls.iter_mut().zip(calls) {
            call.read(&Part { value, first_error: part.first_error }, results);
        }
        batch.ready = part.places(part.required("ready"), count).into();
        batch.cleared = part.places(part.required("cleared"), count);
        for group in part.list("groups") {
            batch.groups.push_back(part.places(group, count));
        }
        let queued = |place| {
            let mut places = batch.ready.iter().chain(&batch.cleared).chain(batch.groups.iter().flatten());
            places.any(|at| *at == place)
        };
        if !batch.calls.iter().enumerate().all(|(at, call)| !call.status.is_ready() || queued(at)) {
            part.report("ready", "must name the calls that are to run");
        }
        batch.committed = part.size("committed");
        batch.hooks_called = part.size("told");
        let done = batch.calls.iter().take_while(|call| call.result.is_some()).count();
        if batch.committed > done || batch.hooks_called > batch.committed {
            part.report("committed", "must not be more than there is");
        }
        batch.poll = part.flag("polled").then_some(0);
        batch.injected = part.read("injected");
        batch.state = part.get("state").and_then(Value::as_object).cloned().unwrap_or_default();
        batch.is_answer = part.flag("isAnswer");
        batch.ending = Ending::read(&part.part("ending"));
        Some(batch)
    }
}

impl Call {
    fn write(&self, out: &mut String, waits: bool, uncommitted: bool) {
        let mut object = ObjectWriter::new(out);
        let status = match self.status {
            _ if waits => "ready",
            CallStatus::Waiting => "waiting",
            CallStatus::Asked(_) => "asked",
            CallStatus::Ready => "ready",
            CallStatus::BeforeHook(_) | CallStatus::Running(..) => "running",
            CallStatus::Done => "done",
        };
        object.field("callId", &self.block.call_id).field("status", status);
        if !self.arguments.is_same(&self.block.arguments) {
            object.field("arguments", &self.arguments);
        }
        object.field("asked", &self.asked).field("executed", &(self.executed && !waits));
        object.optional("result", &self.result.clone().filter(|_| uncommitted));
        object.end();
    }

    #[inline(never)]
    fn read(&mut self, part: &Part<'_>, results: &[AgentMessage]) {
        let id = self.block.call_id.as_str();
        if part.word("callId") != id {
            part.report("callId", "must be that of the call in the answer");
        }
        if let Some(arguments) = part.get("arguments") {
            self.arguments = arguments.to_raw();
        }
        self.asked = part.flag("asked");
        self.executed = part.flag("executed");
        self.status = match part.word("status") {
            "waiting" => CallStatus::Waiting,
            "asked" => CallStatus::Asked(0),
            "ready" => CallStatus::Ready,
            "running" => CallStatus::Running(0, None),
            "done" => CallStatus::Done,
            other => return part.unknown("status", other),
        };
        if !self.status.is_done() {
            return;
        }
        let stored = || {
            results.iter().find_map(|message| match message {
                AgentMessage::ToolResult(result) if result.call_id == id => Some(result.clone()),
                _ => None,
            })
        };
        self.result = part.optional("result").map(Rc::new).or_else(stored);
        if self.result.is_none() {
            part.report("result", "is missing");
        }
    }
}

impl Ending {
    fn write(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Ending::Normal => drop(out.field("kind", "normal")),
            Ending::Interrupted => drop(out.field("kind", "interrupted")),
            Ending::PolicyStop => drop(out.field("kind", "policy_stop")),
            Ending::Transfer(transfer) => {
                out.field("kind", "transfer").field("to", &transfer.to).optional("reason", &transfer.reason);
            }
            // Only an abort can be waiting here: a failure ends the run at once.
            Ending::Stopped(error) => drop(out.field("kind", "aborted").field("reason", &error.message)),
        }
    }

    #[inline(never)]
    fn read(part: &Part<'_>) -> Ending {
        let reason = part.get("reason").and_then(Value::as_str);
        match part.word("kind") {
            "normal" => Ending::Normal,
            "interrupted" => Ending::Interrupted,
            "policy_stop" => Ending::PolicyStop,
            "transfer" => Ending::Transfer(Transfer {
                to: part.word("to").to_owned(),
                reason: reason.map(str::to_owned),
            }),
            "aborted" => Ending::Stopped(ErrorInfo::new(ErrorKind::Aborted, reason.unwrap_or_default())),
            kind => {
                part.unknown("kind", kind);
                Ending::Normal
            }
        }
    }
}

fn write_numbers(places: &[usize], out: &mut String) {
    let mut list = ListWriter::new(out);
    places.iter().for_each(|place| list.place(*place));
    list.end();
}

impl ToJson for Letter {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("message", &self.message).field("posted", &(self.receipt > 0));
        object.end();
    }
}

impl Letter {
    fn write_command(&self, kind: &str, out: &mut ObjectWriter<'_>) {
        out.field("kind", kind).field("letter", self);
    }

    /// Writes letters as the commands that post them.
    pub(crate) fn write_mail(letters: &[Letter], kind: &str, mail: &mut ListWriter<'_>) {
        for letter in letters {
            let mut object = ObjectWriter::new(mail.item());
            letter.write_command(kind, &mut object);
            object.end();
        }
    }
}

impl FromJson for Letter {
    fn from_json(value: &Value) -> Read<Letter> {
        let message = AgentMessage::from_json(value.get("message").unwrap_or(&Value::Null))?;
        let posted = value.flag_at("posted");
        Ok(Letter { message, receipt: if posted == Some(true) { SENDER_GONE } else { 0 } })
    }
}

#[inline(never)]
fn read_turn(history: &History, turn: &Part<'_>) -> Turn {
    Turn {
        open: turn.flag("open"),
        message_open: turn.flag("messageOpen"),
        recoveries: turn.int("recoveries"),
        dynamic_prompt: turn.optional("dynamicPrompt"),
        view: turn.get("view").map(|_| turn.messages("view", history)),
        overflow_signal: turn.flag("overflowSignal"),
        fresh_from: turn.get("freshFrom").map(|_| turn.size("freshFrom")),
        asked: turn.size("asked"),
        sought_room: turn.flag("soughtRoom"),
        overflow: turn.optional("overflow"),
        shown: Assembler::default(),
    }
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

fn long(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The first thing that cannot be read.
#[derive(Default)]
struct FirstError(RefCell<Option<String>>);

/// A piece of the written state. If it cannot be read, that is recorded, and a placeholder takes its place.
struct Part<'a> {
    value: &'a Value,
    first_error: &'a FirstError,
}

impl<'a> Part<'a> {
    #[inline(never)]
    fn report(&self, key: &str, problem: &str) {
        let mut first_error = self.first_error.0.borrow_mut();
        if first_error.is_none() {
            *first_error = Some(["`", key, "` ", problem].concat());
        }
    }

    fn unknown(&self, key: &str, word: &str) {
        self.report(key, &["is the unknown word `", word, "`"].concat());
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key)
    }

    #[inline(never)]
    fn required(&self, key: &str) -> &'a Value {
        self.value.get(key).unwrap_or_else(|| {
            self.report(key, "is missing");
            &Value::Null
        })
    }

    fn part(&self, key: &str) -> Part<'a> {
        Part { value: self.required(key), first_error: self.first_error }
    }

    #[inline(never)]
    fn long(&self, key: &str) -> u64 {
        self.required(key).as_u64().unwrap_or_else(|| {
            self.report(key, "must be a whole number");
            0
        })
    }

    /// Reads a number small enough to be counted up from.
    #[inline(never)]
    fn int(&self, key: &str) -> u32 {
        let number = self.long(key);
        u32::try_from(number).ok().filter(|n| *n < 1 << 31).unwrap_or_else(|| {
            self.report(key, "is too large");
            0
        })
    }

    fn size(&self, key: &str) -> usize {
        usize::try_from(self.int(key)).unwrap_or(0)
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    #[inline(never)]
    fn word(&self, key: &str) -> &'a str {
        self.required(key).as_str().unwrap_or_else(|| {
            self.report(key, "must be a text");
            ""
        })
    }

    #[inline(never)]
    fn list(&self, key: &str) -> &'a [Value] {
        self.required(key).as_array().unwrap_or_else(|| {
            self.report(key, "must be a list");
            &[]
        })
    }

    fn map(&self, key: &str) -> Map {
        self.required(key).as_object().cloned().unwrap_or_else(|| {
            self.report(key, "must be an object");
            Map::new()
        })
    }

    fn read<T: FromJson + Default>(&self, key: &str) -> T {
        self.ok_or_report(key, T::from_json(self.required(key))).unwrap_or_default()
    }

    fn letters(&self, key: &str) -> Vec<Letter> {
        self.ok_or_report(key, read_all(self.required(key), Letter::from_json)).unwrap_or_default()
    }

    fn optional<T: FromJson>(&self, key: &str) -> Option<T> {
        self.ok_or_report(key, T::from_json(self.get(key)?))
    }

    fn ok_or_report<T>(&self, key: &str, read: Read<T>) -> Option<T> {
        read.map_err(|why| self.report(key, &["cannot be read: ", &why].concat())).ok()
    }

    /// Reads messages; a number is an index into the history.
    fn messages(&self, key: &str, history: &History) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        for item in self.list(key) {
            messages.extend(match item.as_u64() {
                None => self.ok_or_report(key, AgentMessage::from_json(item)),
                Some(place) => {
                    let known = usize::try_from(place).ok().and_then(|place| history.messages().get(place));
                    if known.is_none() {
                        self.report(key, "has a place that is not in the history");
                    }
                    known.cloned()
                }
            });
        }
        messages
    }

    /// Reads indexes of calls, all below `count`.
    fn places(&self, list: &Value, count: usize) -> Vec<usize> {
        let mut places = Vec::new();
        let read = read_each(list, &mut |place| {
            let place = place.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < count);
            places.push(place.ok_or_else(String::new)?);
            Ok(())
        });
        if read.is_err() {
            self.report("ready", "must be places of calls");
        }
        places
    }
}

impl ToJson for AgentCommand {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            AgentCommand::Steer(letter) => letter.write_command("steer", &mut object),
            AgentCommand::FollowUp(letter) => letter.write_command("follow_up", &mut object),
            AgentCommand::ResolveTool { call_id, decision } => {
                object.field("kind", "resolve").field("callId", call_id).field("decision", decision);
            }
            AgentCommand::ResolveTools(decisions) => {
                object.field("kind", "resolve_all");
                let mut all = ObjectWriter::new(object.key("decisions"));
                for (call_id, decision) in decisions {
                    all.field(call_id, decision);
                }
                all.end();
            }
            AgentCommand::SwitchModel => drop(object.field("kind", "switch_model")),
            AgentCommand::ClearQueues => drop(object.field("kind", "clear_queues")),
            AgentCommand::Cancel(reason) => drop(object.field("kind", "cancel").field("reason", reason)),
        }
        object.end();
    }
}

impl FromJson for AgentCommand {
    #[inline(never)]
    fn from_json(value: &Value) -> Read<AgentCommand> {
        let get = |key: &str| value.get(key).unwrap_or(&Value::Null);
        let word = |key: &str| get(key).as_str().unwrap_or_default();
        Ok(match word("kind") {
            "steer" => AgentCommand::Steer(Letter::from_json(get("letter"))?),
            "follow_up" => AgentCommand::FollowUp(Letter::from_json(get("letter"))?),
            "resolve" => AgentCommand::ResolveTool {
                call_id: word("callId").to_owned(),
                decision: read_decision(get("decision"))?,
            },
            "resolve_all" => {
                let mut all = Vec::new();
                if let Value::Object(decisions) = get("decisions") {
                    for (id, decision) in decisions.iter() {
                        all.push((id.to_owned(), read_decision(decision)?));
                    }
                }
                AgentCommand::ResolveTools(all)
            }
            "switch_model" => AgentCommand::SwitchModel,
            "clear_queues" => AgentCommand::ClearQueues,
            "cancel" => AgentCommand::Cancel(word("reason").into()),
            other => return Err(["`mail` has the unknown word `", other, "`"].concat()),
        })
    }
}
