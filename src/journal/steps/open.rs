//! A step that is open: what the engine was asked for, and what has become of it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use futures::future::LocalBoxFuture;

use crate::data::json::RawJson;
use crate::machine::{Effect, EffectId};

use super::journal::Journal;
use super::record::{Outcome, Record};
use super::slot::RunSlot;

/// What a step is about.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// What a run begins with.
    Begin(RawJson),
    /// A wait for mail.
    Mail,
    /// That a tool is about to begin.
    Start(EffectId),
    /// An effect that is carried out, and the reply if it was ended though the run waits for it.
    Effect(EffectId, &'static str),
    /// The same, of a call of a model.
    Model(EffectId),
    /// The same, of a tool, with its name.
    Tool(EffectId, Rc<str>),
}

impl What {
    pub(crate) fn effect(&self) -> Option<EffectId> {
        match self {
            What::Start(id) | What::Effect(id, _) | What::Model(id) | What::Tool(id, _) => Some(*id),
            What::Begin(_) | What::Mail => None,
        }
    }
}

pub(crate) struct Open {
    pub(crate) name: String,
    pub(crate) slot: Weak<RunSlot>,
    pub(crate) what: What,
    /// What is to be carried out when the engine asks for it.
    pub(crate) effect: RefCell<Option<Effect>>,
    /// The life that the marker of a call of a tool has.
    pub(crate) marker: RefCell<Option<String>>,
    /// Whether the engine has asked for the work, in this process.
    pub(crate) begun: Cell<bool>,
    pub(crate) attempt: Cell<Option<u32>>,
    pub(crate) outcome: RefCell<Option<Outcome>>,
    waker: RefCell<Option<Waker>>,
    /// What the work has ended with, in this process.
    pub(crate) ended: RefCell<Option<(RawJson, Rc<Record>)>>,
    /// Whether that is all that it has ended with: it may be too large to be stored, or nobody wanted it any more.
    pub(crate) is_whole: Cell<bool>,
    /// What is stored.
    pub(crate) record: RefCell<Option<Rc<Record>>>,
    /// Whether its record is what enters now.
    pub(crate) is_entering: Cell<bool>,
    /// How many records had come from the engine before this one.
    pub(crate) arrival: Cell<u64>,
    /// Whether nobody wants what it answers any more.
    pub(crate) dropped: Cell<bool>,
}

impl Open {
    pub(crate) fn new(name: String, slot: &Rc<RunSlot>, what: What, effect: Option<Effect>) -> Rc<Self> {
        Rc::new(Open {
            name,
            slot: Rc::downgrade(slot),
            what,
            effect: RefCell::new(effect),
            marker: RefCell::default(),
            begun: Cell::default(),
            attempt: Cell::default(),
            outcome: RefCell::default(),
            waker: RefCell::default(),
            ended: RefCell::default(),
            is_whole: Cell::default(),
            record: RefCell::default(),
            is_entering: Cell::default(),
            arrival: Cell::default(),
            dropped: Cell::default(),
        })
    }

    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.what, What::Model(_))
    }

    /// Whether its work is being done in this process.
    pub(crate) fn is_working(&self) -> bool {
        self.begun.get() && self.ended.borrow().is_none() && self.record.borrow().is_none()
    }

    /// Whether nothing has become of it yet.
    pub(crate) fn is_undecided(&self) -> bool {
        self.outcome.borrow().is_none() && self.ended.borrow().is_none() && self.record.borrow().is_none()
    }

    /// The work ends. Only its first end counts.
    pub(crate) fn end(&self, outcome: Outcome) {
        if !self.is_undecided() {
            return;
        }
        *self.outcome.borrow_mut() = Some(outcome);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Nobody wants it any more.
    pub(crate) fn drop_work(&self) {
        self.dropped.set(true);
        self.end(Outcome::Cancelled);
    }

    /// When it ended, as far as that is known.
    pub(crate) fn key(&self) -> Option<(u64, u64)> {
        if let Some((_, record)) = &*self.ended.borrow() {
            return Some((record.at, record.n));
        }
        self.record.borrow().as_ref().map(|record| (record.at, record.n))
    }

    /// Does the work, when the engine asks for it.
    pub(crate) fn work(
        self: Rc<Self>,
        journal: &Weak<Journal>,
        attempt: Option<u32>,
    ) -> LocalBoxFuture<'static, RawJson> {
        if !self.begun.replace(true) {
            self.attempt.set(attempt);
            self.begin(journal);
        }
        let (open, journal) = (self, journal.clone());
        Box::pin(poll_fn(move |cx| {
            if let Some((json, _)) = &*open.ended.borrow() {
                return Poll::Ready(json.clone());
            }
            let outcome = open.outcome.take();
            match (outcome, journal.upgrade()) {
                (Some(outcome), Some(journal)) => Poll::Ready(journal.write(&open, outcome)),
                _ => {
                    *open.waker.borrow_mut() = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }

    /// Whether a call that is about to begin may have begun before, in a process that has ended.
    fn may_have_run(&self, journal: &Journal) -> bool {
        let marker = self.marker.borrow();
        let Some(life) = marker.as_ref() else { return false };
        match self.attempt.get() {
            // Where each step has a process of its own, the marker is always of another one.
            Some(attempt) if journal.engine.is_ordered() => attempt > 1,
            attempt => *life != journal.life || attempt.is_some_and(|attempt| attempt > 1),
        }
    }

    fn begin(&self, journal: &Weak<Journal>) {
        let Some(journal) = journal.upgrade() else { return };
        match &self.what {
            What::Begin(seen) => {
                journal.note_first_begin();
                self.end(Outcome::Value(seen.clone()));
            }
            What::Start(_) => self.end(Outcome::Value(RawJson::string(&journal.life))),
            What::Mail => {
                if journal.has_mail() {
                    self.end(Outcome::Value(RawJson::null()));
                }
            }
            What::Effect(id, _) | What::Model(id) | What::Tool(id, _) => {
                let Some(slot) = self.slot.upgrade().filter(|_| self.is_undecided()) else { return };
                if self.may_have_run(&journal) {
                    return self.end(Outcome::Value(interrupted()));
                }
                if let Some(effect) = self.effect.take() {
                    slot.to_begin.borrow_mut().push_back((*id, effect));
                    slot.wake();
                    journal.wake();
                }
            }
        }
    }
}

/// The value of a call that is not begun again.
fn interrupted() -> RawJson {
    RawJson::parse(r#"{"reply":{"kind":"executed","interrupted":true}}"#).unwrap_or_else(|_| RawJson::null())
}
