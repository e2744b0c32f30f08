//! Who hears the events of an agent.

use std::rc::Rc;

use crate::host::isolate::guard;
use crate::words::event::AgentEvent;

use super::{Agent, Shared};

/// Identifies a subscription. Subscribers are called in the order of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionId(u64);

pub(super) type Subscriber = dyn Fn(&AgentEvent);

impl Agent {
    /// Calls `listener` with every event from now on, in order of subscription, before the loop continues. A listener that
    /// panics is removed.
    pub fn subscribe(&self, listener: impl Fn(&AgentEvent) + 'static) -> SubscriptionId {
        let id = SubscriptionId(self.0.number());
        self.0.subscribers.borrow_mut().insert(id, Rc::new(listener));
        self.0.has_subscribers.set(true);
        id
    }

    /// Ends a subscription. While an event is being dispatched, this takes effect after that event.
    pub fn unsubscribe(&self, id: SubscriptionId) {
        self.0.subscribers.borrow_mut().remove(&id);
    }
}

impl Shared {
    pub(super) fn dispatch(&self, event: &AgentEvent) {
        let subscribers: Vec<_> = self.subscribers.borrow().iter().map(|(id, s)| (*id, s.clone())).collect();
        for (id, subscriber) in subscribers {
            if guard(|| {
                subscriber(event);
                Ok(())
            })
            .is_err()
            {
                self.subscribers.borrow_mut().remove(&id);
            }
        }
    }
}
