//! Cancellation: one flag that many can wait for, with the reason somebody gave.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A flag that is set once. Cloning it shares the flag.
#[derive(Clone, Default)]
pub struct CancelToken(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    reason: Option<Rc<str>>,
    wakers: Vec<Waker>,
    listeners: Vec<Box<dyn FnOnce()>>,
}

impl CancelToken {
    /// A flag that is not set.
    pub fn new() -> Self {
        CancelToken::default()
    }

    /// Sets the flag. The first reason stays.
    pub fn cancel(&self, reason: &str) {
        let (wakers, listeners) = {
            let mut state = self.0.borrow_mut();
            if state.reason.is_some() {
                return;
            }
            state.reason = Some(reason.into());
            (std::mem::take(&mut state.wakers), std::mem::take(&mut state.listeners))
        };
        wakers.into_iter().for_each(Waker::wake);
        listeners.into_iter().for_each(|listener| listener());
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.borrow().reason.is_some()
    }

    /// Why it was set.
    pub fn reason(&self) -> Option<Rc<str>> {
        self.0.borrow().reason.clone()
    }

    /// Calls `listener` once when the flag is set; at once where it is.
    pub fn on_cancel(&self, listener: impl FnOnce() + 'static) {
        if self.is_cancelled() {
            listener();
        } else {
            self.0.borrow_mut().listeners.push(Box::new(listener));
        }
    }

    /// Ready when the flag is set.
    pub fn cancelled(&self) -> impl Future<Output = ()> + use<> {
        let token = self.clone();
        poll_fn(move |cx| token.poll_cancelled(cx))
    }

    /// Ready when the flag is set; else the task is woken then.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.borrow_mut();
        if state.reason.is_some() {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
