//! Virtual time, and an executor for it: nothing here ever sleeps.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::LocalBoxFuture;
use turnwheel::ports::Timer;

/// The time that the engine sees when the virtual clock shows 0.
pub const BEGINNING: u64 = 1_700_000_000_000;

/// A clock that stands still until nothing is left to do. Clones share one clock.
#[derive(Clone, Default)]
pub struct Clock(Rc<ClockState>);

#[derive(Default)]
struct ClockState {
    now: Cell<u64>,
    next: Cell<u64>,
    /// Ordered by time, then by the order in which they were set.
    alarms: RefCell<BTreeMap<(u64, u64), Alarm>>,
}

enum Alarm {
    Wake(Waker),
    Call(Box<dyn FnOnce()>),
}

/// Nothing is left to do and no alarm is set: waiting would hang for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hang;

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Clock {
    /// Returns the milliseconds since the beginning.
    pub fn elapsed(&self) -> u64 {
        self.0.now.get()
    }

    /// Calls `act` when the clock shows `ms`.
    pub fn at(&self, ms: u64, act: impl FnOnce() + 'static) {
        let key = self.key(ms);
        self.0.alarms.borrow_mut().insert(key, Alarm::Call(Box::new(act)));
    }

    /// Returns a future that is ready after `ms`.
    pub fn pause(&self, ms: u64) -> Pause {
        Pause { clock: self.clone(), until: self.elapsed() + ms, key: None }
    }

    /// Advances to the next alarm and fires it. Returns whether there was one.
    pub fn advance(&self) -> bool {
        let first = self.0.alarms.borrow_mut().pop_first();
        let Some(((when, _), alarm)) = first else { return false };
        self.0.now.set(self.elapsed().max(when));
        match alarm {
            Alarm::Wake(waker) => waker.wake(),
            Alarm::Call(act) => act(),
        }
        true
    }

    /// Removes all alarms.
    pub fn clear(&self) {
        self.0.alarms.take();
    }

    /// Returns how many alarms are set.
    pub fn alarms(&self) -> usize {
        self.0.alarms.borrow().len()
    }

    /// Polls a future to its end. Whenever it waits, time advances.
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, Hang> {
        let mut future = pin!(future);
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut cx = Context::from_waker(&waker);
        loop {
            while flag.0.swap(false, Ordering::Relaxed) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return Ok(output);
                }
            }
            if !self.advance() {
                return Err(Hang);
            }
        }
    }

    fn key(&self, ms: u64) -> (u64, u64) {
        self.0.next.set(self.0.next.get() + 1);
        (ms, self.0.next.get())
    }
}

impl Timer for Clock {
    fn now(&self) -> u64 {
        BEGINNING + self.elapsed()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        Box::pin(self.pause(ms))
    }
}

/// A wait on the clock. Dropping it removes its alarm.
pub struct Pause {
    clock: Clock,
    until: u64,
    key: Option<(u64, u64)>,
}

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.elapsed() >= self.until {
            return Poll::Ready(());
        }
        let key = self.key.unwrap_or_else(|| self.clock.key(self.until));
        self.key = Some(key);
        self.clock.0.alarms.borrow_mut().insert(key, Alarm::Wake(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.0.alarms.borrow_mut().remove(&key);
        }
    }
}
