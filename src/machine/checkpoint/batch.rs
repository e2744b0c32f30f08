//! A batch in a checkpoint.

use std::rc::Rc;

use crate::data::json::{ObjectWriter, ToJson, Value};
use crate::data::list::ListWriter;
use crate::host::tool::Transfer;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{AgentMessage, Usage};

use crate::machine::batch::{Asked, Batch, BatchCall, CallStatus, Ending, new_batch};
use crate::machine::checkpoint::long;
use crate::machine::checkpoint::part::Part;
use crate::machine::children::ChildState;
use crate::machine::history::History;
use crate::machine::output::EffectId;
use crate::machine::phase::StoredAnswer;
use crate::machine::questions::OpenAsk;

impl Batch {
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>, unannounced: &[EffectId], polled: bool) {
        self.answer.write(out);
        let waits = |call: &BatchCall| match call.status {
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
        out.optional("unseen", &self.is_unseen.then_some(true));
        if !self.state.is_empty() {
            out.field("state", &self.state);
        }
        let mut ending = ObjectWriter::new(out.key("ending"));
        self.ending.write(&mut ending);
        ending.end();
    }

    pub(super) fn read(history: &History, part: &Part<'_>) -> Option<Batch> {
        let answer = StoredAnswer::read(history, part)?;
        let calls = part.list("calls");
        let results = history.messages().get(answer.place..).unwrap_or_default();
        let mut batch = new_batch(answer);
        let count = batch.calls.len();
        if calls.len() != count {
            part.report("calls", "must be those of the answer");
        }
        for (call, value) in batch.calls.iter_mut().zip(calls) {
            call.read(&Part { value, first_error: part.first_error }, results);
        }
        for (call, place) in batch.calls.iter().zip(0..) {
            let elsewhere = call.asks.iter().map(|open| &open.question.id);
            for id in call.question.iter().map(|asked| &asked.id).chain(elsewhere) {
                if id.is_empty() || batch.questions.insert(id.clone(), place).is_some() {
                    part.report("question", "must have an id that no other question has");
                }
            }
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
        batch.is_unseen = part.flag("unseen");
        batch.ending = Ending::read(&part.part("ending"));
        Some(batch)
    }
}

impl BatchCall {
    pub(super) fn write(&self, out: &mut String, waits: bool, uncommitted: bool) {
        let mut object = ObjectWriter::new(out);
        let status = match self.status {
            _ if waits => "ready",
            CallStatus::Waiting => "waiting",
            CallStatus::Asked(_) => "asked",
            CallStatus::Ready => "ready",
            CallStatus::BeforeHook(_) | CallStatus::Running(..) => "running",
            CallStatus::Elsewhere(_) => "elsewhere",
            CallStatus::Done => "done",
        };
        object.field("callId", &self.block.call_id).field("status", status);
        if !self.arguments.is_same(&self.block.arguments) {
            object.field("arguments", &self.arguments);
        }
        object.field("asked", &self.question.is_some()).field("executed", &(self.executed && !waits));
        if let Some(Asked { id, at }) = &self.question {
            write_asked(object.key("question"), id, *at);
        }
        if let (CallStatus::Elsewhere(_), Some(OpenAsk { question, .. })) = (self.status, self.asks.first()) {
            write_asked(object.key("elsewhere"), &question.id, question.asked_at);
        }
        object.optional("given", &self.given);
        object.optional("childUsage", &self.child.as_ref().map(|child| child.counted));
        let keeps = self.child.as_ref().is_some_and(|child| child.keeps_questions);
        object.optional("childKeepsQuestions", &keeps.then_some(true));
        object.optional("announced", &self.announced.then_some(true));
        object.optional("counted", &self.counted.then_some(true));
        object.optional("result", &self.result.clone().filter(|_| uncommitted));
        object.end();
    }

    pub(super) fn read(&mut self, part: &Part<'_>, results: &[AgentMessage]) {
        let id = self.block.call_id.clone();
        if part.word("callId") != id {
            part.report("callId", "must be that of the call in the answer");
        }
        if let Some(arguments) = part.get("arguments") {
            self.arguments = arguments.to_raw();
        }
        self.question = part.get("question").map(read_asked);
        self.given = part.get("given").map(ToJson::to_raw);
        let counted: Option<Usage> = part.optional("childUsage");
        let keeps_questions = part.flag("childKeepsQuestions");
        self.child =
            counted.map(|counted| Box::new(ChildState { counted, keeps_questions, ..ChildState::default() }));
        self.announced = part.flag("announced");
        self.counted = part.flag("counted");
        self.executed = part.flag("executed");
        self.status = match part.word("status") {
            "waiting" => CallStatus::Waiting,
            "asked" => CallStatus::Asked(0),
            "ready" => CallStatus::Ready,
            "running" => CallStatus::Running(0, None),
            "elsewhere" => {
                let Asked { id, at } = read_asked(part.required("elsewhere"));
                self.asks = vec![OpenAsk::elsewhere(self, id, at)];
                CallStatus::Elsewhere(None)
            }
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
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Ending::Normal => drop(out.field("kind", "normal")),
            Ending::Interrupted => drop(out.field("kind", "interrupted")),
            Ending::PolicyStop => drop(out.field("kind", "policy_stop")),
            Ending::Transfer(transfer) => {
                out.field("kind", "transfer").field("to", &transfer.to).optional("reason", &transfer.reason);
            }
            Ending::Stopped(error) if error.code == ErrorKind::Aborted => {
                out.field("kind", "aborted").field("reason", &error.message);
            }
            Ending::Stopped(error) => drop(out.field("kind", "failed").field("error", error)),
        }
    }

    pub(super) fn read(part: &Part<'_>) -> Ending {
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
            "failed" => {
                let unnamed = || ErrorInfo::new(ErrorKind::Unknown, reason.unwrap_or("the run failed"));
                Ending::Stopped(part.optional("error").unwrap_or_else(unnamed))
            }
            kind => {
                part.unknown("kind", kind);
                Ending::Normal
            }
        }
    }
}

fn write_asked(out: &mut String, id: &str, at: u64) {
    let mut question = ObjectWriter::new(out);
    question.field("id", id).field("askedAt", &at);
    question.end();
}

fn read_asked(question: &Value) -> Asked {
    Asked {
        id: question.owned_at("id").unwrap_or_default(),
        at: question.number_at("askedAt").unwrap_or_default(),
    }
}

fn write_numbers(places: &[usize], out: &mut String) {
    let mut list = ListWriter::new(out);
    places.iter().for_each(|place| list.place(*place));
    list.end();
}
