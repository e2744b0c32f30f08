//! What the engine itself waits for, and is no step: decisions of people, and delays between attempts. They come whenever they
//! like, and in another life at another time. So that they enter at the same place again, they ride in the record of the next
//! step that ends, like mail; an engine that fixes the order of results fixes theirs too.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use futures::future::{FutureExt, LocalBoxFuture};

use crate::data::json::{RawJson, Value};
use crate::journal::tape::{read_reply, write_reply};
use crate::machine::{EffectId, Reply};

use super::journal::{Came, Journal, object_of};
use super::slot::{Entry, RunSlot};

/// One thing that the engine waits for.
pub(crate) struct Waiting {
    pub(crate) name: String,
    slot: Weak<RunSlot>,
    id: EffectId,
    /// What time it is when it has come, at least.
    until: u64,
    /// What has come, as a tape writes it.
    reply: RefCell<Option<RawJson>>,
    /// How many records and others had come from the engine before it.
    arrival: Cell<u64>,
    /// Whether it rides in the next record.
    rides: Cell<bool>,
}

impl Journal {
    /// Waits for something that the engine does by itself.
    pub(crate) fn wait_for(
        &self,
        slot: &Rc<RunSlot>,
        id: EffectId,
        name: String,
        until: u64,
        reply: LocalBoxFuture<'static, Reply>,
    ) {
        let waiting = Rc::new(Waiting {
            name,
            slot: Rc::downgrade(slot),
            id,
            until,
            reply: RefCell::default(),
            arrival: Cell::default(),
            rides: Cell::default(),
        });
        slot.waiting.borrow_mut().push(id);
        self.outside.borrow_mut().push(waiting.clone());
        self.ask_engine(reply.map(move |reply| Came::Outside(waiting, reply)).boxed_local());
        // An answer may come before the run is polled again, and its arrival counts when it comes.
        self.poll_now();
    }

    /// It has come. Perhaps nobody waits for it any more.
    pub(crate) fn came_outside(&self, waiting: &Waiting, reply: &Reply) {
        let mut json = String::new();
        write_reply(&[], &[], reply, &mut json);
        *waiting.reply.borrow_mut() = RawJson::parse(&json).ok();
        waiting.arrival.set(self.next_arrival());
        self.wake();
    }

    /// Nobody wants to know any more what the engine does by itself.
    pub(crate) fn stop_waiting(&self, slot: &RunSlot, id: EffectId) {
        slot.waiting.borrow_mut().retain(|known| *known != id);
        let is_it = |waiting: &Rc<Waiting>| waiting.id == id && std::ptr::eq(waiting.slot.as_ptr(), slot);
        self.outside.borrow_mut().retain(|waiting| !is_it(waiting));
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.outside.borrow().is_empty()
    }

    /// The first that has come: its arrival.
    pub(crate) fn first_outside(&self) -> Option<u64> {
        self.come().map(|waiting| waiting.arrival.get())
    }

    fn come(&self) -> Option<Rc<Waiting>> {
        let outside = self.outside.borrow();
        let come = outside.iter().filter(|waiting| waiting.reply.borrow().is_some());
        come.min_by_key(|waiting| waiting.arrival.get()).cloned()
    }

    /// The first that has come enters.
    pub(crate) fn enter_first_outside(&self) -> bool {
        let Some(waiting) = self.come() else { return false };
        let reply = waiting.reply.borrow().as_ref().map(RawJson::to_value).unwrap_or_default();
        self.enter_outside(&waiting.name, &reply)
    }

    /// What the engine waited for under a name enters.
    pub(crate) fn enter_outside(&self, name: &str, reply: &Value) -> bool {
        let place = self.outside.borrow().iter().position(|waiting| waiting.name == name);
        let Some(place) = place else { return false };
        let waiting = self.outside.borrow_mut().remove(place);
        let Ok(reply) = read_reply(&[], &[], reply) else { return false };
        let entry = Entry::Outside { id: waiting.id, reply, at: waiting.until };
        self.queue.borrow_mut().push_back((waiting.slot.clone(), entry));
        true
    }

    /// All open steps are at work in this process: what has come rides in the record of the first that ends.
    pub(crate) fn ride(&self) {
        let outside = self.outside.borrow().clone();
        for waiting in outside {
            let reply = waiting.reply.borrow().clone();
            let (Some(reply), Some(slot)) = (reply, waiting.slot.upgrade()) else { continue };
            if waiting.rides.replace(true) {
                continue;
            }
            let come = object_of(|object| {
                object.field("kind", "come").field("name", &waiting.name).field("reply", &reply);
            });
            self.post_json(&slot, come.to_value());
        }
    }

    /// No step is open. The only one that can come may enter; of several, a step says which did, and then this returns true.
    pub(crate) fn needs_a_step(&self) -> bool {
        self.outside.borrow().len() > 1 && self.come().is_some()
    }
}
