//! How a run takes its slot, begins, and leaves.

use std::rc::Rc;
use std::task::Context;

use crate::data::json::{FromJson, ToJson};
use crate::data::json::{RawJson, Value};
use crate::data::list::ListWriter;
use crate::data::text;
use crate::driver::{AgentLoopResult, AgentStream, Beginning};
use crate::host::ports::{AgentRunContext, StepEffect};
use crate::journal::steps::{Chance, Inside, Journal, Open, Outcome, Place, RunSlot, What, object_of};
use crate::machine::{AgentCommand, Input, Output, hash_of};
use crate::words::error::{AgentError, ErrorInfo, ErrorKind};
use crate::words::event::RunStopReason;

/// Why a journal is not replayed.
const OTHER_PROMPT: &str = "the journal is that of a run with another prompt: give the run the prompt that it began with, \
    which the engine has in its input";

/// JSON without the times of messages.
fn without_times(json: &str) -> String {
    let mut parts = json.split("\"timestamp\":");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        said.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    said
}

impl AgentStream {
    /// Whether the run only repeats what an earlier process has lived: nothing new has happened yet. Always false for a run
    /// without [`Steps`](crate::ports::Steps).
    pub fn is_replaying(&self) -> bool {
        self.seam.slot.as_ref().is_some_and(|slot| slot.journal.replaying.get())
    }

    /// Takes a slot, if the run is durable.
    pub(in crate::driver) fn enter_own_journal(mut self) -> Self {
        let Some(engine) = self.config.ports.steps.clone() else { return self };
        let journal = self.handover.seam.journal.borrow().clone();
        let journal = journal.unwrap_or_else(|| {
            let life = (self.config.rules.new_id)();
            let journal = Journal::new(engine, self.config.ports.timer.clone(), life);
            *self.handover.seam.journal.borrow_mut() = Some(journal.clone());
            journal
        });
        journal.runs.set(journal.runs.get() + 1);
        let number = journal.runs.get();
        let prefix =
            if number > 1 { ["r", &crate::data::text::number(number)].concat() } else { String::new() };
        let run_id = self.state.context().run_id.clone();
        let slot = RunSlot::new(&journal, &prefix, Place::Root, self.mail_check(), &run_id);
        self.take_slot(slot);
        self
    }

    /// Takes a slot in the journal of the run around it, which also polls this one.
    #[must_use]
    pub(crate) fn inside(mut self, inside: Option<&Rc<dyn std::any::Any>>) -> Self {
        self.take_slot_inside(inside, Place::Inside);
        self
    }

    /// Takes a slot in the journal of the run around it: `inside` is what [`ToolContext::durable`](crate::tool::ToolContext::durable)
    /// says. The host polls both runs, and posts to each by itself.
    pub fn enter_journal(&mut self, inside: Option<&Rc<dyn std::any::Any>>) {
        self.take_slot_inside(inside, Place::Hosted);
    }

    fn take_slot_inside(&mut self, inside: Option<&Rc<dyn std::any::Any>>, place: Place) {
        let Some(Inside { journal, call }) = inside.and_then(|inside| inside.downcast_ref()) else { return };
        let run_id = self.state.context().run_id.clone();
        let slot = RunSlot::new(journal, call, place, self.mail_check(), &run_id);
        *slot.progress.borrow_mut() = Some(self.round.progress_flag());
        self.take_slot(slot);
    }

    fn take_slot(&mut self, slot: Rc<RunSlot>) {
        self.config = Rc::new(slot.configure(&self.config));
        self.seam.slot = Some(slot);
    }

    /// Says whether anything waits in the inbox.
    fn mail_check(&self) -> Box<dyn Fn() -> bool> {
        let inbox = self.handover.inbox.clone();
        Box::new(move || !inbox.is_empty())
    }

    /// Nobody will replay the run: it ends as if it were not part of a journal.
    pub fn give_up_journal(&mut self) {
        if let Some(slot) = &self.seam.slot {
            slot.journal.is_given_up.set(true);
        }
    }

    /// The time of the journal that the run is part of, in milliseconds.
    pub fn journal_now(&self) -> Option<u64> {
        self.seam.slot.as_ref().map(|slot| slot.journal.clock.get())
    }

    /// A run inside a call is ended by the run around it. What it has shown of an answer is in no record, so it is taken back:
    /// replayed, the run ends in the same way.
    pub(in crate::driver) fn take_back_unstored(&mut self) {
        let Some(slot) = self.seam.slot.as_ref().filter(|slot| !slot.is_root()) else { return };
        slot.clock.end_answer();
        if slot.unstored_answer().is_none() {
            return;
        }
        let event = self.state.take_back("the answer was cut before it was stored");
        event.into_iter().for_each(|event| self.outputs.put_back(Output::Event(event)));
    }

    // ---- the beginning

    /// Whether the run waits until what it begins with is stored.
    pub(in crate::driver) fn await_begin(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(slot) = self.seam.slot.clone().filter(|slot| slot.is_root()) else { return false };
        let journal = slot.journal.clone();
        if journal.failure.borrow().is_some() {
            self.fail();
            return false;
        }
        let name = [&slot.prefix, "begin"].concat();
        let known = journal.open.borrow().iter().find(|open| open.name == name).cloned();
        let open = known.unwrap_or_else(|| {
            // What was posted before belongs to the beginning.
            while let Some(command) = self.handover.inbox.take() {
                journal.post(&slot, command);
            }
            let open = Open::new(name, &slot, What::Begin(self.seen()), None);
            journal.open(open.clone(), StepEffect::Begin);
            open
        });
        journal.poll(cx);
        let record = open.record.borrow().clone();
        let Some(record) = record else { return journal.failure.borrow().is_none() || self.fail() };
        journal.open.borrow_mut().retain(|known| !Rc::ptr_eq(known, &open));
        journal.clock.set(journal.clock.get().max(record.at));
        if let Outcome::Value(seen) = &record.outcome {
            let seen = seen.to_value();
            if let Some(why) = self.refuses(&seen) {
                *journal.failure.borrow_mut() = Some(why);
                return self.fail();
            }
            self.take_seen(&seen);
        }
        let later = self.handover.inbox.take_all();
        for mail in &record.mail {
            let own = journal.posted.borrow_mut().remove(&mail.id);
            match own.map_or_else(|| AgentCommand::from_json(&mail.command), Ok) {
                Ok(command) => self.handover.inbox.post(command),
                Err(why) => {
                    journal.cannot_read(&open.name, &why);
                    return self.fail();
                }
            }
        }
        if let Some(begin) = self.begin.take() {
            self.begin(begin);
        }
        later.into_iter().for_each(|command| self.handover.inbox.post(command));
        false
    }

    /// What a journal begins with.
    fn seen(&self) -> RawJson {
        object_of(|object| {
            object.field("engine", env!("CARGO_PKG_VERSION"));
            let mut tools = ListWriter::new(object.key("tools"));
            for spec in self.config.rules.tools.iter() {
                spec.schema.name.write_json(tools.item());
            }
            tools.end();
            object.field("systemPrompt", &self.config.rules.system_prompt);
            object.field("runId", &self.context().run_id).field("sessionId", &self.context().session_id);
            object.optional("prompt", &self.mark_of_prompt());
        })
    }

    /// Why a journal that began like this is not that of this run.
    fn refuses(&self, seen: &Value) -> Option<String> {
        (seen.text_at("prompt") != self.mark_of_prompt().as_deref()).then(|| OTHER_PROMPT.to_owned())
    }

    /// By what a prompt is known again: how long it is, and a hash. When it was said is another matter.
    fn mark_of_prompt(&self) -> Option<String> {
        let Some(Beginning::Start(Input::Begin(prompts))) = &self.begin else { return None };
        let said = without_times(&prompts.to_json());
        Some([&text::number(said.len()), "-", &text::number(hash_of(said.as_bytes()))].concat())
    }

    /// The run has the ids that it began with, so that what follows from them is the same.
    fn take_seen(&mut self, seen: &Value) {
        let own = self.context().clone();
        let id = |key: &str, own: &Rc<str>| seen.text_at(key).map_or(own.clone(), Rc::from);
        let (run_id, session_id) = (id("runId", &own.run_id), id("sessionId", &own.session_id));
        if let Some(slot) = &self.seam.slot {
            *slot.chance.borrow_mut() = Chance::new(&[&slot.prefix, &*run_id].concat());
        }
        self.state.set_context(AgentRunContext { run_id, session_id, ..own });
    }

    // ---- the end

    /// The run is over. Returns whether it waits until everything that was open is stored.
    pub(super) fn await_end(&mut self, journal: &Journal, cx: &mut Context<'_>) -> bool {
        journal.poll(cx);
        if !journal.is_given_up.get()
            && journal.failure.borrow().is_none()
            && journal.open.borrow().iter().any(|open| open.record.borrow().is_none())
        {
            return true;
        }
        journal.abandon();
        false
    }

    /// The run leaves its journal, when it is over or gone.
    pub(in crate::driver) fn leave_journal(&mut self) {
        let Some(slot) = &self.seam.slot else { return };
        slot.leave();
        if slot.is_root() && self.result.is_none() {
            // The process ends, or nobody wants the run any more: what is open is not stored.
            slot.journal.abandon();
        }
    }

    /// The engine could not store a step: the run cannot go on in this process. Returns false.
    pub(super) fn fail(&mut self) -> bool {
        let Some(slot) = self.seam.slot.clone() else { return false };
        if self.result.is_none() {
            let text = slot.journal.failure.borrow().clone().unwrap_or_default();
            let error =
                ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Internal, text).in_phase("step") };
            self.result = Some(AgentLoopResult {
                stop_reason: RunStopReason::Error,
                error: Some(AgentError::from(error)),
                ..AgentLoopResult::of_silence(&self.state)
            });
            self.begin = None;
            self.handover.hand_over(&mut self.state);
            (self.handover.ended)();
        }
        slot.leave();
        slot.journal.abandon();
        false
    }

    /// Whether the run cannot go on in this process. Then its result says why.
    pub(in crate::driver) fn has_failed(&mut self) -> bool {
        let failed = self
            .seam
            .slot
            .as_ref()
            .is_some_and(|slot| slot.is_root() && slot.journal.failure.borrow().is_some());
        if failed {
            self.fail();
        }
        failed
    }
}
