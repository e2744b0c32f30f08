//! Cancellation: a flag with a reason, which many parties can wait for.

use std::cell::{OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use crate::host::isolate::guard;

/// A flag that is set once. Clones share the flag.
#[derive(Clone, Default)]
pub struct CancelToken(Rc<State>);

#[derive(Default)]
struct State {
    reason: OnceCell<Rc<str>>,
    observers: RefCell<Observers>,
}

/// Those who are notified when the flag is set.
#[derive(Default)]
struct Observers {
    wakers: Vec<Waker>,
    listeners: Vec<Box<dyn FnOnce()>>,
    watchers: Vec<Weak<dyn Fn()>>,
}

impl CancelToken {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        CancelToken::default()
    }

    /// Sets the flag. If it is already set, the first reason remains.
    pub fn cancel(&self, reason: &str) {
        if self.is_cancelled() {
            return;
        }
        let _ = self.0.reason.set(reason.into());
        let Observers { wakers, listeners, watchers } = self.0.observers.take();
        wakers.into_iter().for_each(Waker::wake);
        watchers.iter().filter_map(Weak::upgrade).for_each(|watcher| watcher());
        for listener in listeners {
            // The caller is often the loop itself, and a panicking listener must not end it.
            let _ = guard(|| {
                listener();
                Ok(())
            });
        }
    }

    /// Calls `watcher` when the flag is set, for as long as someone else holds the watcher: a flag may
    /// outlive many runs.
    pub(crate) fn watch(&self, watcher: &Rc<dyn Fn()>) {
        let watchers = &mut self.0.observers.borrow_mut().watchers;
        watchers.retain(|known| known.strong_count() > 0);
        watchers.push(Rc::downgrade(watcher));
    }

    /// Like `cancel`, by an owner that gives the flag up. Does nothing if nobody else could notice.
    pub(crate) fn cancel_if_observed(self, reason: &str) {
        if Rc::strong_count(&self.0) > 1 || !self.0.observers.borrow().listeners.is_empty() {
            self.cancel(reason);
        }
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.reason.get().is_some()
    }

    /// Returns why the flag was set.
    pub fn reason(&self) -> Option<Rc<str>> {
        self.0.reason.get().cloned()
    }

    /// Calls `listener` once when the flag is set, or immediately if it is already set.
    pub fn on_cancel(&self, listener: impl FnOnce() + 'static) {
        if self.is_cancelled() {
            listener();
        } else {
            self.0.observers.borrow_mut().listeners.push(Box::new(listener));
        }
    }

    /// Completes when the flag is set.
    pub fn cancelled(&self) -> impl Future<Output = ()> + use<> {
        let token = self.clone();
        poll_fn(move |cx| token.poll_cancelled(cx))
    }

    /// Returns `Ready` if the flag is set; otherwise wakes the task when it is.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        let wakers = &mut self.0.observers.borrow_mut().wakers;
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn who_lets_go_of_a_flag_tells_whoever_could_notice() {
        let (token, is_notified) = (CancelToken::new(), Rc::new(Cell::new(false)));
        let other = token.clone();
        token.cancel_if_observed("gone");
        assert_eq!(other.reason().as_deref(), Some("gone"));
        let (token, notified) = (CancelToken::new(), is_notified.clone());
        token.on_cancel(move || notified.set(true));
        token.cancel_if_observed("gone");
        assert!(is_notified.get());
    }

    #[test]
    fn a_flag_forgets_watchers_that_are_gone() {
        let (flag, calls) = (CancelToken::new(), Rc::new(Cell::new(0)));
        let watcher = || -> Rc<dyn Fn()> {
            let calls = calls.clone();
            Rc::new(move || calls.set(calls.get() + 1))
        };
        (0..100).for_each(|_| flag.watch(&watcher()));
        let last = watcher();
        flag.watch(&last);
        assert_eq!(flag.0.observers.borrow().watchers.len(), 1);
        flag.cancel("now");
        assert_eq!(calls.get(), 1);
    }
}
