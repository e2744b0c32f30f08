//! A run as it is written down, and read again. Messages of the history are told by their place, so a run costs little
//! more than its history. Effects are not written: what waits for one starts it anew.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::approval::{ApprovalStateMachine, read_decision};
use crate::error::ErrorInfo;
use crate::event::{AgentEvent, RunStopReason};
use crate::json::{FromJson, Map, ObjectWriter, ToJson, Value, write_list};
use crate::message::{AgentMessage, ToolResultMessage, Usage};
use crate::ports::AgentRunContext;
use crate::state::SessionState;
use crate::stream::{CallFault, ModelRequest};
use crate::tool::Transfer;

use super::state::{
    AfterPoll, Answer, Ask, AskStep, Batch, CacheState, Call, CallStatus, Cut, Ending, History, Letter,
    Phase, Turn,
};
use super::{AgentCommand, EffectId, LoopState, Output, Queue};

/// The receipt of a letter whose sender is gone.
const SENDER_GONE: u64 = u64::MAX;

type Read<T> = Result<T, String>;

impl LoopState {
    /// Writes the run down as a JSON object. `unannounced` are the tools that were not said to start yet: they wait
    /// for their turn.
    pub fn write_checkpoint(&self, now: u64, unannounced: &[EffectId], out: &mut String) {
        let mut run = ObjectWriter::new(out);
        run.field("runId", &self.context.run_id).field("sessionId", &self.context.session_id);
        run.field("turnIndex", &self.turn_index).field("turns", &self.turns).field("pauses", &self.pauses);
        let elapsed = self.restored.unwrap_or(now.saturating_sub(self.began));
        run.field("usage", &self.usage).field("elapsedMs", &elapsed);
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
            .optional("freshFrom", &turn.fresh_from.map(long));
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
                // In a batch that was just read the poll is to come.
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

    /// Reads a run again, over its history.
    ///
    /// # Errors
    /// What cannot be read, by its name.
    pub fn read_checkpoint(history: Vec<AgentMessage>, session: SessionState, run: &Value) -> Read<Self> {
        let context = AgentRunContext {
            run_id: word(run, "runId")?.into(),
            session_id: word(run, "sessionId")?.into(),
        };
        let mut state = LoopState::new(context, history, session);
        state.turn_index = number(run, "turnIndex")?;
        state.turns = number(run, "turns")?;
        state.pauses = number(run, "pauses")?;
        state.usage = Usage::from_json(need(run, "usage")?)?;
        state.restored = Some(number(run, "elapsedMs")?);
        state.model = run.get("model").and_then(Value::as_str).map(Rc::from);
        state.output = run.get("output").map(ToJson::to_raw);
        state.output_tries = number(run, "outputTries")?;
        let cache = need(run, "cache")?;
        state.cache = CacheState {
            turns: number(cache, "turns")?,
            written: number(cache, "written")?,
            prefix_tokens: number(cache, "prefixTokens")?,
        };
        state.new_messages = read_places(&state.history, run, "newMessages")?;
        // Also those that a compaction has dropped: their ids stay taken.
        state.history.call_ids.learn(&state.new_messages);
        state.seen = number(run, "seen")?;
        state.pending = named("pending", Vec::from_json(need(run, "pending")?))?;
        state.steering = named("steering", Vec::from_json(need(run, "steering")?))?;
        state.follow_up = named("followUp", Vec::from_json(need(run, "followUp")?))?;
        state.table = named("table", ApprovalStateMachine::from_json(need(run, "table")?))?;
        state.turn = read_turn(&state.history, need(run, "turn")?)?;
        state.phase = named("phase", state.read_phase(need(run, "phase")?))?;
        Ok(state)
    }

    fn read_phase(&mut self, phase: &Value) -> Read<Phase> {
        let effect = 0;
        Ok(match word(phase, "kind")? {
            "preparing" => Phase::Preparing { effect, overflow: flag(phase, "overflow") },
            "compacting" => Phase::Compacting { effect },
            "asking" => Phase::Asking(Box::new(Ask {
                request: no_request(),
                model: number(phase, "model")?,
                attempt: number(phase, "attempt")?,
                step: read_step(&self.history, phase)?,
            })),
            "dispatching" => Phase::Dispatching(Box::new(Batch::read(&self.history, phase)?)),
            "polling" => Phase::Polling {
                effect,
                queue: if flag(phase, "followUp") { Queue::FollowUp } else { Queue::Steering },
                then: if flag(phase, "turn") { AfterPoll::Turn } else { AfterPoll::TurnIfPending },
            },
            kind @ ("closing" | "ended") => {
                let word = word(phase, "reason")?;
                let reason = RunStopReason::from_word(word)
                    .ok_or_else(|| ["`reason` is the unknown word `", word, "`"].concat())?;
                let error = phase.get("error").map(ErrorInfo::from_json).transpose()?;
                match kind {
                    "closing" => Phase::Closing { effect, reason, error },
                    _ => {
                        self.end = Some((reason, error));
                        Phase::Ended
                    }
                }
            }
            other => return Err(["`kind` is the unknown word `", other, "`"].concat()),
        })
    }
}

/// What waits in a list that a driver has not walked yet: the effects that are not announced, and the events that are
/// not told. The end of a run is left out: it is told anew.
pub fn unsaid<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> (Vec<EffectId>, Vec<AgentEvent>) {
    let (mut unannounced, mut untold) = (Vec::new(), Vec::new());
    for output in outputs {
        match output {
            Output::Start { id, announce: Some(_), .. } => unannounced.push(*id),
            Output::Event(event) if !matches!(event, AgentEvent::AgentEnd { .. }) => {
                untold.push(event.clone())
            }
            _ => {}
        }
    }
    (unannounced, untold)
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

fn read_step(history: &History, ask: &Value) -> Read<AskStep> {
    Ok(match word(ask, "step")? {
        "before_hook" => AskStep::BeforeHook(0),
        "backing_off" => AskStep::BackingOff(0, number(ask, "until")?),
        "after_hook" => AskStep::AfterHook(0, Answer::read(history, ask)?),
        "streaming" => AskStep::Cut(Cut {
            shown: flag(ask, "shown"),
            content: named("content", Vec::from_json(need(ask, "content")?))?,
            usage: Usage::from_json(need(ask, "usage")?)?,
        }),
        other => return Err(["`step` is the unknown word `", other, "`"].concat()),
    })
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

    fn read(history: &History, value: &Value) -> Read<Answer> {
        let place = number(value, "place")?;
        let Some(AgentMessage::Assistant(message)) = history.messages().get(place) else {
            return Err("`place` is no answer of the history".to_owned());
        };
        let faults = map(value, "faults")?.iter().map(|(id, fault)| {
            let fault = match fault.as_str().unwrap_or_default() {
                "cut" => CallFault::Cut,
                "not_an_object" => CallFault::NotAnObject,
                error => CallFault::Malformed(error.to_owned()),
            };
            (id.to_owned(), fault)
        });
        let own =
            map(value, "ownArguments")?.iter().map(|(id, arguments)| (id.to_owned(), arguments.to_raw()));
        Ok(Answer { message: message.clone(), place, faults: faults.collect(), own_arguments: own.collect() })
    }
}

impl Batch {
    fn write(&self, out: &mut ObjectWriter<'_>, unannounced: &[EffectId], polled: bool) {
        self.answer.write(out);
        let waits = |call: &Call| match call.status {
            CallStatus::BeforeHook(effect) | CallStatus::Running(effect, _) => unannounced.contains(&effect),
            _ => false,
        };
        let calls = out.key("calls");
        calls.push('[');
        for (at, call) in self.calls.iter().enumerate() {
            if at > 0 {
                calls.push(',');
            }
            call.write(calls, waits(call), at >= self.committed);
        }
        calls.push(']');
        let places = |places: &mut dyn Iterator<Item = usize>| places.map(long).collect::<Vec<u64>>();
        let mut first = (0..self.calls.len()).filter(|at| self.calls.get(*at).is_some_and(waits));
        let ready = places(&mut first.by_ref().chain(self.ready.iter().copied()));
        out.field("ready", &ready).field("cleared", &places(&mut self.cleared.iter().copied()));
        let groups: Vec<_> = self.groups.iter().map(|group| places(&mut group.iter().copied())).collect();
        out.field("groups", &groups).field("committed", &long(self.committed));
        // The hook that is being told is told again.
        let told = self.told.saturating_sub(usize::from(self.after_hook.is_some()));
        out.field("told", &long(told)).field("polled", &polled);
        out.field("injected", &self.injected).field("isAnswer", &self.is_answer);
        let mut ending = ObjectWriter::new(out.key("ending"));
        self.ending.write(&mut ending);
        ending.end();
    }

    fn read(history: &History, value: &Value) -> Read<Batch> {
        let answer = Answer::read(history, value)?;
        let told = list(value, "calls")?;
        let blocks: Vec<_> = answer.message.tool_calls().cloned().collect();
        if told.len() != blocks.len() {
            return Err("`calls` are not those of the answer".to_owned());
        }
        let results = history.messages().get(answer.place..).unwrap_or_default();
        let mut batch = super::dispatch::new_batch(answer);
        for (call, told) in batch.calls.iter_mut().zip(told) {
            call.read(told, results)?;
        }
        let count = batch.calls.len();
        batch.ready = places(value, "ready", count)?.into();
        batch.cleared = places(value, "cleared", count)?;
        let groups = list(value, "groups")?.iter().map(|group| read_group(group, count));
        batch.groups = groups.collect::<Read<VecDeque<_>>>()?;
        batch.committed = number(value, "committed")?;
        batch.told = number(value, "told")?;
        let done = batch.calls.iter().take_while(|call| call.result.is_some()).count();
        if batch.committed > done || batch.told > batch.committed {
            return Err("`committed` is more than there is".to_owned());
        }
        batch.poll = flag(value, "polled").then_some(0);
        batch.injected = named("injected", Vec::from_json(need(value, "injected")?))?;
        batch.is_answer = flag(value, "isAnswer");
        batch.ending = Ending::read(need(value, "ending")?)?;
        Ok(batch)
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

    fn read(&mut self, told: &Value, results: &[AgentMessage]) -> Read<()> {
        let id = self.block.call_id.as_str();
        if word(told, "callId")? != id {
            return Err("`calls` are not those of the answer".to_owned());
        }
        if let Some(arguments) = told.get("arguments") {
            self.arguments = arguments.to_raw();
        }
        self.asked = flag(told, "asked");
        self.executed = flag(told, "executed");
        self.status = match word(told, "status")? {
            "waiting" => CallStatus::Waiting,
            "asked" => CallStatus::Asked(0),
            "ready" => CallStatus::Ready,
            "running" => CallStatus::Running(0, None),
            "done" => CallStatus::Done,
            other => return Err(["`status` is the unknown word `", other, "`"].concat()),
        };
        if self.status == CallStatus::Done {
            let stored = results.iter().find_map(|message| match message {
                AgentMessage::ToolResult(result) if result.call_id == id => Some(result.clone()),
                _ => None,
            });
            self.result = Some(match told.get("result") {
                Some(result) => Rc::new(ToolResultMessage::from_json(result)?),
                None => stored.ok_or_else(|| ["the result of `", id, "` is missing"].concat())?,
            });
        }
        Ok(())
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
            Ending::Aborted(why) => drop(out.field("kind", "aborted").field("reason", why)),
            Ending::Failed(error) => drop(out.field("kind", "failed").field("error", error)),
        }
    }

    fn read(value: &Value) -> Read<Ending> {
        let reason = value.get("reason").and_then(Value::as_str);
        Ok(match word(value, "kind")? {
            "normal" => Ending::Normal,
            "interrupted" => Ending::Interrupted,
            "policy_stop" => Ending::PolicyStop,
            "transfer" => Ending::Transfer(Transfer {
                to: word(value, "to")?.to_owned(),
                reason: reason.map(str::to_owned),
            }),
            "aborted" => Ending::Aborted(reason.unwrap_or_default().into()),
            "failed" => Ending::Failed(ErrorInfo::from_json(need(value, "error")?)?),
            other => return Err(["`ending` is the unknown word `", other, "`"].concat()),
        })
    }
}

impl ToJson for Letter {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("message", &self.message).field("posted", &(self.receipt > 0));
        object.end();
    }
}

impl FromJson for Letter {
    fn from_json(value: &Value) -> Read<Letter> {
        let message = AgentMessage::from_json(need(value, "message")?)?;
        Ok(Letter { message, receipt: if flag(value, "posted") { SENDER_GONE } else { 0 } })
    }
}

fn read_turn(history: &History, turn: &Value) -> Read<Turn> {
    Ok(Turn {
        open: flag(turn, "open"),
        message_open: flag(turn, "messageOpen"),
        recoveries: number(turn, "recoveries")?,
        dynamic_prompt: turn.get("dynamicPrompt").map(AgentMessage::from_json).transpose()?,
        view: turn.get("view").map(|_| read_places(history, turn, "view")).transpose()?,
        overflow_signal: flag(turn, "overflowSignal"),
        fresh_from: turn.get("freshFrom").map(|_| number(turn, "freshFrom")).transpose()?,
        asked: number(turn, "asked")?,
        overflow: turn.get("overflow").map(ErrorInfo::from_json).transpose()?,
    })
}

/// Writes messages as a list: a number is a place in the history, anything else the message itself.
fn write_places(history: &History, messages: &[AgentMessage], out: &mut String) {
    let mut from = 0;
    let told: Vec<Value> = messages
        .iter()
        .map(|message| match history.place_of(message, from) {
            Some(place) => {
                from = place + 1;
                Value::from(long(place))
            }
            None => Value::parse(&message.to_json()).unwrap_or_default(),
        })
        .collect();
    write_list(&told, out);
}

fn read_places(history: &History, value: &Value, key: &str) -> Read<Vec<AgentMessage>> {
    let read = |told: &Value| match told.as_u64() {
        None => AgentMessage::from_json(told),
        Some(place) => {
            let known = usize::try_from(place).ok().and_then(|place| history.messages().get(place));
            known.cloned().ok_or_else(|| "a place is not in the history".to_owned())
        }
    };
    named(key, list(value, key)?.iter().map(read).collect())
}

fn no_request() -> ModelRequest {
    ModelRequest {
        model: "".into(),
        system_prompt: "".into(),
        messages: Vec::new(),
        tools: Rc::new([]),
        options: Rc::default(),
        api_key: None,
        output: None,
    }
}

fn long(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn named<T>(key: &str, read: Read<T>) -> Read<T> {
    read.map_err(|why| ["`", key, "`: ", &why].concat())
}

fn need<'v>(value: &'v Value, key: &str) -> Read<&'v Value> {
    value.get(key).ok_or_else(|| ["`", key, "` is missing"].concat())
}

fn number<T: TryFrom<u64>>(value: &Value, key: &str) -> Read<T> {
    let read = need(value, key)?.as_u64().and_then(|n| T::try_from(n).ok());
    read.ok_or_else(|| ["`", key, "` must be a whole number"].concat())
}

fn word<'v>(value: &'v Value, key: &str) -> Read<&'v str> {
    need(value, key)?.as_str().ok_or_else(|| ["`", key, "` must be a text"].concat())
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'v>(value: &'v Value, key: &str) -> Read<&'v [Value]> {
    need(value, key)?.as_array().ok_or_else(|| ["`", key, "` must be a list"].concat())
}

fn map<'v>(value: &'v Value, key: &str) -> Read<&'v Map> {
    need(value, key)?.as_object().ok_or_else(|| ["`", key, "` must be an object"].concat())
}

/// Places of calls, below `count`.
fn places(value: &Value, key: &str, count: usize) -> Read<Vec<usize>> {
    named(key, read_group(need(value, key)?, count))
}

fn read_group(group: &Value, count: usize) -> Read<Vec<usize>> {
    let place = |told: &Value| told.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < count);
    let read = group.as_array().map(|places| places.iter().map(place).collect::<Option<Vec<_>>>());
    read.flatten().ok_or_else(|| "the places of calls were expected".to_owned())
}

impl ToJson for AgentCommand {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            AgentCommand::Steer(letter) => drop(object.field("kind", "steer").field("letter", letter)),
            AgentCommand::FollowUp(letter) => drop(object.field("kind", "follow_up").field("letter", letter)),
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
    fn from_json(value: &Value) -> Read<AgentCommand> {
        let letter = || Letter::from_json(need(value, "letter")?);
        Ok(match word(value, "kind")? {
            "steer" => AgentCommand::Steer(letter()?),
            "follow_up" => AgentCommand::FollowUp(letter()?),
            "resolve" => AgentCommand::ResolveTool {
                call_id: word(value, "callId")?.to_owned(),
                decision: read_decision(need(value, "decision")?)?,
            },
            "resolve_all" => {
                let read = |(id, decision): (&str, &Value)| Ok((id.to_owned(), read_decision(decision)?));
                AgentCommand::ResolveTools(map(value, "decisions")?.iter().map(read).collect::<Read<_>>()?)
            }
            "switch_model" => AgentCommand::SwitchModel,
            "clear_queues" => AgentCommand::ClearQueues,
            "cancel" => AgentCommand::Cancel(word(value, "reason")?.into()),
            other => return Err(["`kind` is the unknown word `", other, "`"].concat()),
        })
    }
}
