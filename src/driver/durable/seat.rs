//! What one run shares with the journal: its open steps, and what enters it next.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use crate::data::table::Table;
use crate::driver::Inbox;
use crate::host::state::HeldChanges;
use crate::machine::{AgentCommand, Effect, EffectId, EffectNames, Reply};

use super::chance::Chance;
use super::journal::Journal;
use super::open::{Open, What};
use super::record::Outcome;

/// The seat of a run, if it is durable.
pub(crate) type Seating = Option<Rc<Seat>>;

/// Where an agent inside a call takes its steps.
pub(super) struct Inside {
    pub(super) journal: Rc<Journal>,
    /// The name of the call.
    pub(super) call: String,
}

/// What enters a run next.
pub(super) enum Entry {
    /// What had arrived of an answer.
    Pieces(Rc<Open>),
    /// What reached the run from outside.
    Mail(Vec<AgentCommand>),
    /// The time of the run is over.
    Limit,
    /// What a step has answered.
    Record(Rc<Open>),
    /// What the engine itself has waited for, and what time it is then, at least.
    Outside { id: EffectId, reply: Reply, at: u64 },
}

pub(crate) struct Seat {
    pub(super) journal: Rc<Journal>,
    /// What comes before the names of its steps.
    pub(super) prefix: String,
    pub(super) is_root: bool,
    pub(super) names: RefCell<EffectNames>,
    pub(super) chance: Rc<RefCell<Chance>>,
    pub(super) inbox: Inbox,
    /// Effects that the engine wants to be begun.
    pub(super) to_begin: RefCell<VecDeque<(EffectId, Effect)>>,
    /// The steps of effects, until what they answered has entered.
    pub(super) open: RefCell<Table<EffectId, Rc<Open>>>,
    /// Effects that are no steps and end by themselves; for a call of a sub-agent, the name of the call.
    pub(super) loose: RefCell<Table<EffectId, String>>,
    /// The effects for which the engine waits or sleeps.
    pub(super) waiting: RefCell<Vec<EffectId>>,
    /// The time limits of steps, by the effect that they are for: the timer, its milliseconds, and whether it runs.
    pub(super) timers: RefCell<Table<EffectId, (EffectId, u64, bool)>>,
    /// The time limit of the run, and when it is over.
    pub(super) total: Cell<Option<(EffectId, u64)>>,
    /// Changes of the session state by calls that run.
    pub(super) held: RefCell<Table<EffectId, HeldChanges>>,
    /// The effect of the tool that begins now.
    pub(super) executing: Cell<EffectId>,
    pub(super) entry: RefCell<Option<Entry>>,
    /// Whether the run can do nothing until something enters.
    pub(super) quiet: Cell<bool>,
    /// While an answer streams in: the time of the journal at its beginning, and that of the clock.
    pub(super) streaming: Cell<Option<(u64, u64)>>,
    pub(super) waker: RefCell<Option<Waker>>,
    /// How many questions tools have asked in this process.
    pub(super) asks: Cell<u64>,
}

impl Seat {
    /// A seat, which the journal knows from now on.
    pub(super) fn new(
        journal: &Rc<Journal>,
        call: &str,
        is_root: bool,
        inbox: Inbox,
        run_id: &str,
    ) -> Rc<Self> {
        let prefix = if call.is_empty() { String::new() } else { [call, "/"].concat() };
        let seat = Rc::new(Seat {
            journal: journal.clone(),
            chance: Rc::new(RefCell::new(Chance::new(&[&prefix, run_id].concat()))),
            prefix,
            is_root,
            names: RefCell::new(EffectNames::inside(call)),
            inbox,
            to_begin: RefCell::default(),
            open: RefCell::default(),
            loose: RefCell::default(),
            waiting: RefCell::default(),
            timers: RefCell::default(),
            total: Cell::default(),
            held: RefCell::default(),
            executing: Cell::default(),
            entry: RefCell::default(),
            quiet: Cell::default(),
            streaming: Cell::default(),
            waker: RefCell::default(),
            asks: Cell::default(),
        });
        journal.seats.borrow_mut().push(Rc::downgrade(&seat));
        seat
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Whether the run has something to do before anything enters.
    pub(super) fn has_to_act(&self) -> bool {
        !self.to_begin.borrow().is_empty() || self.entry.borrow().is_some()
    }

    /// Whether the run is still working on what has entered.
    pub(super) fn is_busy(&self) -> bool {
        let is_waiting_for_child =
            |(_, call): &(EffectId, String)| call.is_empty() || !self.journal.has_seat(&[call, "/"].concat());
        !self.quiet.get() || !self.inbox.is_empty() || self.loose.borrow().iter().any(is_waiting_for_child)
    }

    /// Gives the run what enters next.
    pub(super) fn give(&self, entry: Entry) {
        *self.entry.borrow_mut() = Some(entry);
        self.quiet.set(false);
        self.wake();
    }

    /// The steps end now: what will enter ends the run.
    pub(super) fn end_steps(&self) {
        self.open.borrow().iter().for_each(|(_, open)| open.end(Outcome::Cancelled));
    }

    /// The run is over, or gone: nobody wants what is open.
    pub(super) fn leave(&self) {
        self.to_begin.borrow_mut().clear();
        for (_, open) in std::mem::take(&mut *self.open.borrow_mut()) {
            open.drop_work();
        }
        if self.is_root {
            let open = self.journal.open.borrow();
            open.iter().filter(|open| matches!(open.what, What::Mail)).for_each(|open| open.drop_work());
        }
        self.waiting.borrow_mut().clear();
        self.loose.borrow_mut().clear();
        self.journal.forget(self);
    }
}
