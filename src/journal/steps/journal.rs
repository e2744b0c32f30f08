//! The journal of an agent: the steps of its runs and of those inside their calls, and the clock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::data::json::{ObjectWriter, RawJson};
use crate::data::table::Table;
use crate::host::isolate::guard;
use crate::host::ports::{Step, StepEffect, Steps, Timer};
use crate::machine::{AgentCommand, Reply};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::{ErrorInfo, ErrorKind};

use super::open::{Open, What};
use super::outside::Waiting;
use super::record::{Mail, Outcome, Record, too_large};
use super::slot::{Entry, RunSlot};

/// What the engine has come back with.
pub(crate) enum Came {
    Record(Rc<Open>, Result<RawJson, String>),
    /// What it did by itself.
    Outside(Rc<Waiting>, Reply),
}

pub(crate) struct Journal {
    pub(crate) engine: Rc<dyn Steps>,
    pub(crate) timer: Rc<dyn Timer>,
    /// Identifies this process among those that live the run.
    pub(crate) life: String,
    /// The time of the last record that has entered: what the machine sees.
    pub(crate) clock: Cell<u64>,
    /// The highest time and the highest number of a record.
    seen: Cell<u64>,
    n: Cell<u64>,
    /// How many runs have begun.
    pub(crate) runs: Cell<u64>,
    pub(crate) mails: Cell<u64>,
    arrivals: Cell<u64>,
    pub(crate) replaying: Cell<bool>,
    /// The runs in progress.
    pub(crate) slots: RefCell<Vec<Weak<RunSlot>>>,
    /// The steps whose answer has not entered.
    pub(crate) open: RefCell<Vec<Rc<Open>>>,
    running: RefCell<FuturesUnordered<LocalBoxFuture<'static, Came>>>,
    fresh: RefCell<Vec<LocalBoxFuture<'static, Came>>>,
    /// Mail that is in no record yet.
    pub(crate) mail: RefCell<Vec<Mail>>,
    /// Mail of this process, by its id: with the receipts of its senders.
    pub(crate) posted: RefCell<Table<String, AgentCommand>>,
    /// What the engine itself waits for.
    pub(crate) outside: RefCell<Vec<Rc<Waiting>>>,
    /// What enters next, in order.
    pub(crate) queue: RefCell<VecDeque<(Weak<RunSlot>, Entry)>>,
    /// Whether nobody will replay the run.
    pub(crate) is_given_up: Cell<bool>,
    /// Why the run cannot go on in this process.
    pub(crate) failure: RefCell<Option<String>>,
    waker: RefCell<Option<Waker>>,
}

impl Journal {
    pub(crate) fn new(engine: Rc<dyn Steps>, timer: Rc<dyn Timer>, life: String) -> Rc<Self> {
        Rc::new(Journal {
            engine,
            timer,
            life,
            clock: Cell::default(),
            seen: Cell::default(),
            n: Cell::default(),
            runs: Cell::default(),
            mails: Cell::default(),
            arrivals: Cell::default(),
            replaying: Cell::new(true),
            slots: RefCell::default(),
            open: RefCell::default(),
            running: RefCell::default(),
            fresh: RefCell::default(),
            mail: RefCell::default(),
            posted: RefCell::default(),
            outside: RefCell::default(),
            queue: RefCell::default(),
            is_given_up: Cell::default(),
            failure: RefCell::default(),
            waker: RefCell::default(),
        })
    }

    /// Whether stored answers may be left to enter.
    pub(crate) fn is_replaying(&self) -> bool {
        self.replaying.get()
    }

    /// The clock of this process.
    pub(crate) fn real_time(&self) -> u64 {
        guard(|| Ok(self.timer.now())).unwrap_or(self.clock.get())
    }

    /// The first record of the first run is made in this process: nothing is replayed.
    pub(crate) fn note_first_begin(&self) {
        if self.runs.get() == 1 {
            self.replaying.set(false);
        }
    }

    /// The runs in progress.
    pub(crate) fn slots(&self) -> Vec<Rc<RunSlot>> {
        self.slots.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn has_slot(&self, prefix: &str) -> bool {
        self.slots.borrow().iter().filter_map(Weak::upgrade).any(|slot| slot.prefix == prefix)
    }

    pub(crate) fn forget(&self, slot: &RunSlot) {
        self.slots
            .borrow_mut()
            .retain(|known| known.as_ptr() != std::ptr::from_ref(slot) && known.strong_count() > 0);
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    // ---- steps

    /// Asks the engine for a step.
    pub(crate) fn open(self: &Rc<Self>, open: Rc<Open>, effect: StepEffect) {
        let (own, journal) = (open.clone(), Rc::downgrade(self));
        let work = move |attempt| own.clone().work(&journal, attempt);
        let step = Step::new(open.name.clone(), effect, Rc::new(work));
        self.open.borrow_mut().push(open.clone());
        if self.is_ending(&open.name) {
            open.end(Outcome::Cancelled);
        }
        let record = guard(|| Ok(self.engine.step(step)));
        self.ask_engine(match record {
            Ok(mut record) => Box::pin(async move {
                let record = std::future::poll_fn(|cx| match guard(|| Ok(record.poll_unpin(cx))) {
                    Ok(poll) => poll,
                    Err(text) => Poll::Ready(Err(text)),
                });
                Came::Record(open, record.await)
            }),
            Err(text) => Box::pin(async { Came::Record(open, Err(text)) }),
        });
        // What can be begun is begun right here, as it is without an engine.
        self.poll_now();
    }

    /// The engine has been asked for something.
    pub(crate) fn ask_engine(&self, future: LocalBoxFuture<'static, Came>) {
        self.fresh.borrow_mut().push(future);
    }

    pub(crate) fn next_arrival(&self) -> u64 {
        self.arrivals.set(self.arrivals.get() + 1);
        self.arrivals.get()
    }

    /// Lets the engine go on, between two polls of the run.
    pub(crate) fn poll_now(&self) {
        let waker = self.waker.borrow().clone();
        self.poll(&mut Context::from_waker(waker.as_ref().unwrap_or(Waker::noop())));
    }

    /// Lets the engine go on.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) {
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        loop {
            let Ok(mut running) = self.running.try_borrow_mut() else { return };
            running.extend(self.fresh.take());
            let Poll::Ready(Some(came)) = running.poll_next_unpin(cx) else { return };
            drop(running);
            match came {
                Came::Record(open, record) => self.resolved(&open, record),
                Came::Outside(waiting, reply) => self.came_outside(&waiting, &reply),
            }
        }
    }

    fn resolved(&self, open: &Rc<Open>, record: Result<RawJson, String>) {
        let read = record.and_then(|json| match &*open.ended.borrow() {
            // Most engines give back just what this process has written.
            Some((written, record)) if *written.as_str() == *json.as_str() => Ok(record.clone()),
            _ => Record::read(&json, &open.name).map(Rc::new),
        });
        match read {
            Ok(record) => {
                self.seen.set(self.seen.get().max(record.at));
                self.n.set(self.n.get().max(record.n));
                open.arrival.set(self.next_arrival());
                *open.record.borrow_mut() = Some(record);
            }
            Err(why) => {
                self.open.borrow_mut().retain(|known| !Rc::ptr_eq(known, open));
                let text = ["the step `", &open.name, "` could not be stored: ", &why].concat();
                self.failure.borrow_mut().get_or_insert(text);
            }
        }
        self.wake();
    }

    /// A record has nothing that the run could go on with: the run cannot go on in this process.
    pub(crate) fn cannot_read(&self, name: &str, why: &str) {
        let text = [
            "what is stored of the step `",
            name,
            "` cannot be read (",
            why,
            "): it was damaged, or is of another run",
        ];
        self.failure.borrow_mut().get_or_insert(text.concat());
        self.wake();
    }

    /// The run is gone, and with it everything that the engine was asked for.
    pub(crate) fn abandon(&self) {
        self.open.borrow_mut().clear();
        self.fresh.borrow_mut().clear();
        self.outside.borrow_mut().clear();
        self.queue.borrow_mut().clear();
        if let Ok(mut running) = self.running.try_borrow_mut() {
            *running = FuturesUnordered::new();
        }
    }

    /// Writes the record of what the work has ended with, as long as may be stored.
    pub(crate) fn write(&self, open: &Open, outcome: Outcome) -> RawJson {
        let (at, n) = (self.real_time().max(self.seen.get()), self.n.get() + 1);
        self.seen.set(at);
        self.n.set(n);
        let mut record = Record { at, n, outcome, mail: self.mail.take() };
        let mut json = record.write(&open.name);
        let (bytes, limit) = (json.as_str().len(), self.engine.max_bytes().unwrap_or(usize::MAX));
        open.is_whole.set(bytes <= limit && matches!(record.outcome, Outcome::Value(_)));
        if bytes > limit {
            record.outcome = shortened(&open.what, &open.name, bytes, limit);
            json = record.write(&open.name);
        }
        *open.ended.borrow_mut() = Some((json.clone(), Rc::new(record)));
        json
    }
}

/// What is stored in place of a value that is too large.
fn shortened(what: &What, name: &str, bytes: usize, limit: usize) -> Outcome {
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    match what {
        What::Tool(_, tool) => {
            let mut reply = ObjectWriter::new(object.key("reply"));
            reply.field("kind", "executed");
            let result = crate::host::tool::AgentToolResult::error(too_large(tool, bytes, limit));
            reply.field("result", &result);
            reply.end();
        }
        What::Model(_) => {
            let error = ErrorInfo::new(ErrorKind::Internal, too_large(name, bytes, limit));
            object.field("events", &vec![AssistantMessageEvent::Start, AssistantMessageEvent::Error(error)]);
        }
        _ => return Outcome::Error(too_large(name, bytes, limit)),
    }
    object.end();
    RawJson::parse(&json).map_or_else(|_| Outcome::Cancelled, Outcome::Value)
}

/// A value of a member, as JSON.
pub(crate) fn object_of(write: impl FnOnce(&mut ObjectWriter<'_>)) -> RawJson {
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    write(&mut object);
    object.end();
    RawJson::parse(&json).unwrap_or_else(|_| RawJson::null())
}
