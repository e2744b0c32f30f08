//! Who hears the events of an agent.

use std::rc::Rc;

use crate::host::isolate::guard;
use crate::words::event::AgentEvent;

use super::{Agent, Shared};

/// Identifies a subscription. Subscribers are called in the order of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionId(u64);

/// A listener, and whether it stays when it panics.
#[derive(Clone)]
pub(super) struct Subscriber {
    listener: Rc<dyn Fn(&AgentEvent)>,
    is_kept: bool,
}

/// Hears that a listener panicked: which one, and the panic's text.
pub(super) type OnListenerPanic = dyn Fn(SubscriptionId, &str);

impl Agent {
    /// Calls `listener` with every event from now on, in order of subscription, before the loop continues. A listener that
    /// panics is removed; [`Agent::on_listener_panic`] hears of it.
    pub fn subscribe(&self, listener: impl Fn(&AgentEvent) + 'static) -> SubscriptionId {
        self.add_subscriber(Rc::new(listener), false)
    }

    /// Like [`Agent::subscribe`], but the listener stays when it panics: for one that stores checkpoints, say, and must not
    /// end with the first full disk.
    pub fn subscribe_kept(&self, listener: impl Fn(&AgentEvent) + 'static) -> SubscriptionId {
        self.add_subscriber(Rc::new(listener), true)
    }

    fn add_subscriber(&self, listener: Rc<dyn Fn(&AgentEvent)>, is_kept: bool) -> SubscriptionId {
        let id = SubscriptionId(self.0.number());
        self.0.subscribers.borrow_mut().insert(id, Subscriber { listener, is_kept });
        self.0.has_subscribers.set(true);
        id
    }

    /// Calls `hear` with the subscription and the text of the panic, whenever a listener panics. Replaces who heard
    /// before.
    pub fn on_listener_panic(&self, hear: impl Fn(SubscriptionId, &str) + 'static) {
        *self.0.on_listener_panic.borrow_mut() = Some(Rc::new(hear));
    }

    /// Ends a subscription. While an event is being dispatched, this takes effect after that event.
    pub fn unsubscribe(&self, id: SubscriptionId) {
        self.0.subscribers.borrow_mut().remove(&id);
    }
}

impl Shared {
    pub(super) fn dispatch(&self, event: &AgentEvent) {
        let subscribers: Vec<_> = self.subscribers.borrow().iter().map(|(id, s)| (*id, s.clone())).collect();
        for (id, Subscriber { listener, is_kept }) in subscribers {
            let heard = guard(|| {
                listener(event);
                Ok(())
            });
            let Err(panic) = heard else { continue };
            if !is_kept {
                self.subscribers.borrow_mut().remove(&id);
            }
            let hear = self.on_listener_panic.borrow().clone();
            if let Some(hear) = hear {
                drop(guard(|| {
                    hear(id, &panic);
                    Ok(())
                }));
            }
        }
    }
}
