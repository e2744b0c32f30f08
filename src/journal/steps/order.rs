//! What enters next: one thing at a time, in the same order in every process.

use std::cmp::Ordering;
use std::rc::Rc;
use std::task::Context;

use crate::data::json::{FromJson, Value};
use crate::machine::AgentCommand;

use super::journal::Journal;
use super::open::{Open, What};
use super::record::Mail;
use super::slot::{Entry, Place, RunSlot};

impl Journal {
    /// Lets the engine go on, and gives a run what enters next, if that is certain. Returns whether any run has something to do.
    pub(crate) fn pump(&self, cx: &mut Context<'_>) -> bool {
        self.poll(cx);
        if self.failure.borrow().is_some() {
            return true;
        }
        let slots = self.slots();
        let (mut acts, mut acts_later) = (false, false);
        for slot in slots.iter().filter(|slot| slot.has_to_act()) {
            slot.wake();
            // One that the host polls acts when the host has heard of it.
            acts |= slot.place != Place::Hosted;
            acts_later = true;
        }
        if acts_later {
            return acts;
        }
        if slots.iter().any(|slot| slot.is_busy()) {
            return false;
        }
        loop {
            if self.give_next() {
                return true;
            }
            if !self.choose() {
                return false;
            }
        }
    }

    /// Gives a run what is next in the queue.
    fn give_next(&self) -> bool {
        loop {
            let Some((slot, entry)) = self.queue.borrow_mut().pop_front() else { return false };
            let Some(slot) = slot.upgrade() else { continue };
            if let Entry::Outside { at, .. } = &entry {
                self.clock.set(self.clock.get().max(*at));
            }
            if let Entry::Record(open) = &entry {
                let at = open.record.borrow().as_ref().map_or(0, |record| record.at);
                self.clock.set(self.clock.get().max(at));
                if let Some(late) = self.overdue() {
                    self.queue.borrow_mut().push_front((Rc::downgrade(&slot), entry));
                    late.give(Entry::Limit);
                    return true;
                }
                if open.dropped.get() {
                    continue;
                }
            }
            slot.give(entry);
            return true;
        }
    }

    /// A run whose time is over by the clock of the journal.
    fn overdue(&self) -> Option<Rc<RunSlot>> {
        let is_over =
            |slot: &Rc<RunSlot>| slot.total.get().is_some_and(|(_, until)| until <= self.clock.get());
        self.slots().into_iter().find(is_over)
    }

    /// Puts what enters next into the queue. Returns whether there is anything.
    fn choose(&self) -> bool {
        let next = self.next();
        let arrival = next.as_ref().map_or(u64::MAX, |next| next.arrival.get());
        if self.engine.is_ordered() && self.first_outside().is_some_and(|first| first < arrival) {
            return self.enter_first_outside();
        }
        let Some(next) = next else { return self.choose_outside() };
        let Some(record) = next.record.borrow().clone() else { return false };
        self.open.borrow_mut().retain(|open| !Rc::ptr_eq(open, &next));
        next.is_entering.set(true);
        // The pieces of an answer have come before the mail.
        self.queue_pieces(&next);
        for mail in &record.mail {
            self.queue_mail(&next.name, mail, record.at);
        }
        self.queue.borrow_mut().push_back((next.slot.clone(), Entry::Record(next)));
        true
    }

    /// Queues what had arrived of an answer in an earlier process. If the record does not have what has arrived in this one, the
    /// answer begins again without it, as it does in a replay.
    fn queue_pieces(&self, open: &Rc<Open>) {
        let is_model = matches!(open.what, What::Model(_));
        let is_here = open.begun.replace(true) && open.is_whole.get();
        if is_model && !is_here && open.record.borrow().is_some() && !open.dropped.get() {
            self.queue.borrow_mut().push_back((open.slot.clone(), Entry::Pieces(open.clone())));
        }
    }

    fn queue_mail(&self, step: &str, mail: &Mail, at: u64) {
        if mail.command.text_at("kind") == Some("come") {
            let name = mail.command.text_at("name").unwrap_or_default();
            self.enter_outside(name, mail.command.get("reply").unwrap_or(&Value::Null));
            return;
        }
        let Some(slot) = self.slots().into_iter().find(|slot| slot.prefix == mail.run) else { return };
        let entry = if mail.command.text_at("kind") == Some("limit") {
            // It is over when its step was ended.
            self.clock.set(self.clock.get().max(at));
            mail.command.owned_at("name").map_or(Entry::Limit, Entry::CallLimit)
        } else {
            let own = self.posted.borrow_mut().remove(&mail.id);
            let command = match own.map_or_else(|| AgentCommand::from_json(&mail.command), Ok) {
                Ok(command) => command,
                Err(why) => return self.cannot_read(step, &why),
            };
            if let Some((to, Entry::Mail(commands))) = self.queue.borrow_mut().back_mut()
                && to.as_ptr() == Rc::as_ptr(&slot)
            {
                return commands.push(command);
            }
            Entry::Mail(vec![command])
        };
        self.queue.borrow_mut().push_back((Rc::downgrade(&slot), entry));
    }

    /// The step whose answer enters next, if that is certain.
    fn next(&self) -> Option<Rc<Open>> {
        let open = self.open.borrow();
        let stored = |open: &&Rc<Open>| open.record.borrow().is_some();
        if self.engine.is_ordered() {
            return open.iter().filter(stored).min_by_key(|open| open.arrival.get()).cloned();
        }
        if open.iter().any(|open| !open.begun.get() && open.record.borrow().is_none()) {
            return None;
        }
        let first = |one: &&Rc<Open>, other: &&Rc<Open>| match (one.key(), other.key()) {
            (Some(one), Some(other)) => one.cmp(&other),
            (one, other) => other.is_some().cmp(&one.is_some()).then(Ordering::Equal),
        };
        open.iter().min_by(first).filter(stored).cloned()
    }

    /// Nothing that is stored enters now. What the engine has done by itself does if nothing is open; if everything that is open
    /// is at work, it rides.
    fn choose_outside(&self) -> bool {
        let is_empty = self.open.borrow().is_empty();
        if !self.open.borrow().iter().all(|open| open.is_working()) {
            return false;
        }
        if is_empty && !self.needs_a_step() && self.enter_first_outside() {
            return true;
        }
        if !is_empty && !self.engine.is_ordered() {
            self.ride();
        }
        if !is_empty || self.is_waiting() {
            self.replaying.set(false);
        }
        false
    }
}
