//! What reaches a run from outside rides in the record of the next step that ends, and enters right before what that step
//! answered: in this process, and in every later one.

use std::rc::Rc;

use crate::driver::AgentStream;
use crate::host::config::{InFlight, SteeringTime};
use crate::host::ports::StepEffect;
use crate::journal::steps::{Open, Outcome, Place, RunSlot, What};
use crate::machine::{AgentCommand, EffectId};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::question::QuestionKind;

use super::enter::value_of_events;

impl AgentStream {
    /// Takes what has reached the run from outside, for the journal. `None` if the run takes its commands itself.
    pub(in crate::driver) fn post_commands(&mut self) -> Option<bool> {
        let takes_mail = |slot: &Rc<RunSlot>| slot.place != Place::Inside && !slot.journal.is_given_up.get();
        let slot = self.seam.slot.clone().filter(|slot| takes_mail(slot) && self.begin.is_none())?;
        if !slot.is_root() && self.abort.is_waiting() {
            // The run around it ends it, and does so again when it is replayed.
            self.take_back_unstored();
            return None;
        }
        if self.state.is_ended() || slot.entry.borrow().is_some() {
            return Some(false);
        }
        let mut has_handled = false;
        if let Some(reason) = self.abort.take() {
            for command in self.handover.inbox.take_decisions_before_abort() {
                slot.journal.post(&slot, command);
            }
            let journal = &slot.journal;
            if journal.is_waiting() && journal.open.borrow().is_empty() && journal.queue.borrow().is_empty() {
                // Nothing is stored that could carry it until the engine has a decision.
                self.enter_abort(&reason);
                has_handled = true;
            } else {
                slot.journal.post(&slot, AgentCommand::Cancel(reason));
                self.force_all(&slot);
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
            let when = self.time_of(&command);
            let is_cancel = matches!(command, AgentCommand::Cancel(_));
            slot.journal.post(&slot, command);
            if is_cancel {
                self.force_all(&slot);
            }
            if when == Some(SteeringTime::Now) {
                self.cut_answer(&slot);
            }
            if when >= Some(SteeringTime::Immediate)
                && self.config.rules.steering.in_flight == InFlight::Cancel
            {
                self.force_tool(&slot);
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

    /// When a command acts, if it is a steering message.
    fn time_of(&self, command: &AgentCommand) -> Option<SteeringTime> {
        let AgentCommand::Steer(letter) = command else { return None };
        Some(letter.when.unwrap_or(self.config.rules.steering.when))
    }

    /// Ends a tool, so that the mail that would end it has a record to ride in, and the answers of the agents inside.
    fn force_tool(&mut self, slot: &Rc<RunSlot>) {
        let is_tool = |open: &Rc<Open>| matches!(open.what, What::Tool(..)) && open.is_undecided();
        let first = |slot: &RunSlot| {
            slot.open.borrow().iter().find(|(_, open)| is_tool(open)).map(|(id, open)| (*id, open.clone()))
        };
        let inside = slot.journal.inside(&slot.prefix, slot);
        if let Some((id, open)) = first(slot) {
            self.force(id, &open);
        } else if let Some((_, open)) = inside.iter().find_map(|other| first(other)) {
            open.end(Outcome::Cancelled);
        }
        inside.iter().for_each(|other| other.cut_answer());
    }

    /// The answer in progress ends, with what has arrived of it.
    pub(super) fn cut_answer(&mut self, slot: &RunSlot) {
        let is_cut = |open: &Rc<Open>| open.is_answer() && open.begun.get() && open.is_undecided();
        let id = slot.open.borrow().iter().find(|(_, open)| is_cut(open)).map(|(id, _)| *id);
        if let Some(id) = id {
            self.end_answer(id, ErrorInfo::new(ErrorKind::Aborted, "not wanted any more"));
        }
    }

    /// Ends every step, of the runs inside calls too.
    fn force_all(&mut self, slot: &Rc<RunSlot>) {
        for other in slot.journal.slots() {
            if !Rc::ptr_eq(&other, slot) {
                other.end_steps();
            }
        }
        let waiting = slot.journal.open.borrow().iter().find(|open| matches!(open.what, What::Mail)).cloned();
        if let Some(open) = waiting {
            open.end(Outcome::Value(crate::data::json::RawJson::null()));
        }
        self.force_own(slot);
    }

    /// Ends every step of this run.
    pub(super) fn force_own(&mut self, slot: &Rc<RunSlot>) {
        let open: Vec<_> = slot.open.borrow().iter().map(|(id, open)| (*id, open.clone())).collect();
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
        let Some(slot) = self.seam.slot.clone() else { return };
        let mut events = self.state.arrived_of(id);
        events.push(AssistantMessageEvent::Error(error));
        self.round.remove(id);
        slot.clock.end_answer();
        let open = slot.open.borrow().get(&id).cloned();
        if let Some(open) = open {
            open.end(Outcome::Value(value_of_events(&events)));
        }
    }

    /// The run waits for nobody but its host: that is a step too.
    pub(super) fn wait_for_mail(&mut self, slot: &Rc<RunSlot>) {
        let name = slot.names.borrow_mut().mail(&self.state);
        let open = Open::new(name, slot, What::Mail, None);
        slot.journal.open(open, StepEffect::Mail);
    }

    /// Stops the run.
    pub(super) fn enter_abort(&mut self, reason: &Rc<str>) {
        if let Some(slot) = &self.seam.slot {
            slot.journal.engine.abort_entered(reason);
        }
        self.close_children(reason);
        self.handle_progress();
        self.step(crate::machine::Input::Abort(reason.clone()));
    }
}
