//! What reaches a run from outside rides in the record of the next step that ends, and enters right before what that step
//! answered: in this process, and in every later one.

use std::rc::Rc;

use crate::data::json::{ToJson, Value};
use crate::data::text;
use crate::driver::AgentStream;
use crate::host::config::{InFlight, SteeringTime};
use crate::host::ports::StepEffect;
use crate::machine::{AgentCommand, EffectId};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::question::QuestionKind;

use super::enter::value_of_events;
use super::journal::{Journal, object_of};
use super::open::{Open, What};
use super::record::{Mail, Outcome};
use super::seat::{Place, Seat};

/// Whether a step is one of a run inside a call.
fn is_inside(step: &str, call: &str) -> bool {
    step.strip_prefix(call).is_some_and(|rest| rest.starts_with('/'))
}

impl Journal {
    pub(super) fn has_mail(&self) -> bool {
        !self.mail.borrow().is_empty()
    }

    /// A command has reached a run.
    pub(super) fn post(&self, seat: &Seat, command: AgentCommand) {
        let json = Value::parse(&command.to_json()).unwrap_or_default();
        let id = self.post_json(seat, json);
        self.posted.borrow_mut().insert(id, command);
    }

    /// Whether mail that is in no record yet will end the run that a step belongs to.
    pub(super) fn is_ending(&self, name: &str) -> bool {
        self.mail.borrow().iter().any(|mail| match mail.command.text_at("kind") {
            Some("cancel") => true,
            Some("limit") => match mail.command.text_at("name") {
                Some(call) => is_inside(name, call),
                None => name.starts_with(&mail.run),
            },
            _ => false,
        })
    }

    pub(super) fn post_json(&self, seat: &Seat, command: Value) -> String {
        self.mails.set(self.mails.get() + 1);
        let id = [&self.life, ":", &text::number(self.mails.get())].concat();
        self.mail.borrow_mut().push(Mail { id: id.clone(), run: seat.prefix.clone(), command });
        let waiting = self.open.borrow().iter().find(|open| matches!(open.what, What::Mail)).cloned();
        if let Some(open) = waiting.filter(|open| open.begun.get()) {
            open.end(Outcome::Value(crate::data::json::RawJson::null()));
        }
        id
    }

    /// The time of a run is over, or that of a call with an agent inside, which has this name.
    pub(super) fn post_limit(&self, seat: &Seat, call: Option<&str>) {
        let limit = object_of(|object| {
            object.field("kind", "limit");
            if let Some(call) = call {
                object.field("name", call);
            }
        });
        self.post_json(seat, limit.to_value());
    }

    /// The runs inside a run, or inside a call of it: what comes before the names of their steps.
    pub(super) fn inside(&self, prefix: &str, except: &Seat) -> Vec<Rc<Seat>> {
        let is_inside =
            |other: &Rc<Seat>| other.prefix.starts_with(prefix) && !std::ptr::eq(&raw const **other, except);
        self.seats().into_iter().filter(is_inside).collect()
    }
}

impl AgentStream {
    /// Takes what has reached the run from outside, for the journal. `None` if the run takes its commands itself.
    pub(in crate::driver) fn diverts(&mut self) -> Option<bool> {
        let takes_mail = |seat: &Rc<Seat>| seat.place != Place::Inside && !seat.journal.is_given_up.get();
        let seat = self.seat.clone().filter(|seat| takes_mail(seat) && self.begin.is_none())?;
        if !seat.is_root() && self.abort.is_waiting() {
            // The run around it ends it, and does so again when it is replayed.
            self.takes_back();
            return None;
        }
        if self.state.is_ended() || seat.entry.borrow().is_some() {
            return Some(false);
        }
        let mut has_handled = false;
        if let Some(reason) = self.abort.take() {
            for command in self.handover.inbox.take_decisions_before_abort() {
                seat.journal.post(&seat, command);
            }
            let journal = &seat.journal;
            if journal.is_waiting() && journal.open.borrow().is_empty() && journal.queue.borrow().is_empty() {
                // Nothing is stored that could carry it until the engine has a decision.
                self.enter_abort(&reason);
                has_handled = true;
            } else {
                seat.journal.post(&seat, AgentCommand::Cancel(reason));
                self.force_all(&seat);
            }
        }
        while !self.state.is_ended()
            && let Some(command) = self.handover.inbox.take()
        {
            if self.is_of_running_tool(&command) {
                self.handle_command(command);
                has_handled = true;
                continue;
            }
            let ends_tools = self.ends_tools(&command);
            let is_cancel = matches!(command, AgentCommand::Cancel(_));
            seat.journal.post(&seat, command);
            if is_cancel {
                self.force_all(&seat);
            } else if ends_tools {
                self.force_tool(&seat);
            }
        }
        Some(has_handled)
    }

    /// What a running tool asks is part of its work, so the answer is too.
    fn is_of_running_tool(&self, command: &AgentCommand) -> bool {
        let AgentCommand::Resolve(answers) = command else { return false };
        let published = self.handover.published.borrow();
        let is_elicitation = |id: &str| {
            published.questions.subject_of(id).is_some_and(|(kind, _)| kind == QuestionKind::Elicitation)
        };
        answers.iter().any(|(id, _)| is_elicitation(id))
    }

    /// Whether a command would end running tools as soon as it enters.
    fn ends_tools(&self, command: &AgentCommand) -> bool {
        let AgentCommand::Steer(letter) = command else { return false };
        let steering = &self.config.rules.steering;
        letter.when.unwrap_or(steering.when) == SteeringTime::Immediate
            && steering.in_flight == InFlight::Cancel
    }

    /// Ends a tool, so that the mail that would end it has a record to ride in, and the answers of the agents inside.
    fn force_tool(&mut self, seat: &Rc<Seat>) {
        let is_tool = |open: &Rc<Open>| matches!(open.what, What::Tool(..)) && open.is_undecided();
        let first = |seat: &Seat| {
            seat.open.borrow().iter().find(|(_, open)| is_tool(open)).map(|(id, open)| (*id, open.clone()))
        };
        let inside = seat.journal.inside(&seat.prefix, seat);
        if let Some((id, open)) = first(seat) {
            self.force(id, &open);
        } else if let Some((_, open)) = inside.iter().find_map(|other| first(other)) {
            open.end(Outcome::Cancelled);
        }
        inside.iter().for_each(|other| other.cut_answer());
    }

    /// The answer in progress ends, with what has arrived of it.
    pub(super) fn cut_answer(&mut self, seat: &Seat) {
        let is_cut = |open: &Rc<Open>| open.is_answer() && open.begun.get() && open.is_undecided();
        let id = seat.open.borrow().iter().find(|(_, open)| is_cut(open)).map(|(id, _)| *id);
        if let Some(id) = id {
            self.end_answer(id, ErrorInfo::new(ErrorKind::Aborted, "not wanted any more"));
        }
    }

    /// Ends every step, of the runs inside calls too.
    fn force_all(&mut self, seat: &Rc<Seat>) {
        for other in seat.journal.seats() {
            if !Rc::ptr_eq(&other, seat) {
                other.end_steps();
            }
        }
        let waiting = seat.journal.open.borrow().iter().find(|open| matches!(open.what, What::Mail)).cloned();
        if let Some(open) = waiting {
            open.end(Outcome::Value(crate::data::json::RawJson::null()));
        }
        self.force_own(seat);
    }

    /// Ends every step of this run.
    pub(super) fn force_own(&mut self, seat: &Rc<Seat>) {
        let open: Vec<_> = seat.open.borrow().iter().map(|(id, open)| (*id, open.clone())).collect();
        for (id, open) in open {
            if open.is_undecided() {
                self.force(id, &open);
            }
        }
    }

    /// Ends the work of a step now. Of an answer, what has arrived is kept.
    fn force(&mut self, id: EffectId, open: &Open) {
        if matches!(open.what, What::Model(_)) && open.begun.get() {
            self.end_answer(id, ErrorInfo::new(ErrorKind::Aborted, "not wanted any more"));
        } else {
            self.round.remove(id);
            open.end(Outcome::Cancelled);
        }
    }

    /// Ends the answer of a model here, with an error.
    pub(super) fn end_answer(&mut self, id: EffectId, error: ErrorInfo) {
        let Some(seat) = self.seat.clone() else { return };
        let mut events = self.state.arrived_of(id);
        events.push(AssistantMessageEvent::Error(error));
        self.round.remove(id);
        seat.streaming.set(None);
        let open = seat.open.borrow().get(&id).cloned();
        if let Some(open) = open {
            open.end(Outcome::Value(value_of_events(&events)));
        }
    }

    /// The run waits for nobody but its host: that is a step too.
    pub(super) fn wait_for_mail(&mut self, seat: &Rc<Seat>) {
        let name = seat.names.borrow_mut().mail(&self.state);
        let open = Open::new(name, seat, What::Mail, None);
        seat.journal.open(open, StepEffect::Mail);
    }

    /// Stops the run.
    pub(super) fn enter_abort(&mut self, reason: &Rc<str>) {
        if let Some(seat) = &self.seat {
            seat.journal.engine.abort_entered(reason);
        }
        self.close_children(reason);
        self.handle_progress();
        self.step(crate::machine::Input::Abort(reason.clone()));
    }
}
