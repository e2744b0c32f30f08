//! What one run shares with the journal: its open steps, and what enters it next.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use futures::future::LocalBoxFuture;

use crate::data::table::Table;
use crate::host::config::AgentLoopConfig;
use crate::host::ports::Timer;
use crate::host::state::HeldChanges;
use crate::host::tool::ToolContext;
use crate::machine::{AgentCommand, Effect, EffectId, EffectNames, Reply};
use crate::rules::stream::AssistantMessageEvent;

use super::chance::Chance;
use super::journal::Journal;
use super::open::{Open, What};
use super::record::Outcome;

/// Where an agent inside a call takes its steps.
pub(crate) struct Inside {
    pub(crate) journal: Rc<Journal>,
    /// The name of the call.
    pub(crate) call: String,
}

/// What enters a run next.
pub(crate) enum Entry {
    /// What had arrived of an answer.
    Pieces(Rc<Open>),
    /// What reached the run from outside.
    Mail(Vec<AgentCommand>),
    /// The time of the run is over.
    Limit,
    /// The time of a call with an agent inside is over: the name of the call.
    CallLimit(String),
    /// What a step has answered.
    Record(Rc<Open>),
    /// What the engine itself has waited for, and what time it is then, at least.
    Outside { id: EffectId, reply: Reply, at: u64 },
}

/// Where a run is among those of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the outermost.
    Root,
    /// It is inside a call, and the run around it polls it and passes on what is for it.
    Inside,
    /// It is inside a call, and the host polls it and posts to it.
    Hosted,
}

pub(crate) struct RunSlot {
    pub(crate) journal: Rc<Journal>,
    /// What comes before the names of its steps.
    pub(crate) prefix: String,
    pub(crate) place: Place,
    pub(crate) names: RefCell<EffectNames>,
    pub(crate) chance: Rc<RefCell<Chance>>,
    /// Whether anything waits in its inbox.
    has_mail: Box<dyn Fn() -> bool>,
    /// Whether calls in it have reported what it has not read, where the host polls it.
    pub(crate) progress: RefCell<Option<Rc<Cell<bool>>>>,
    /// Effects that the engine wants to be begun.
    pub(crate) to_begin: RefCell<VecDeque<(EffectId, Effect)>>,
    /// The steps of effects, until what they answered has entered.
    pub(crate) open: RefCell<Table<EffectId, Rc<Open>>>,
    /// Effects that are no steps and end by themselves; for a call of a sub-agent, the name of the call.
    pub(crate) loose: RefCell<Table<EffectId, String>>,
    /// The effects for which the engine waits or sleeps.
    pub(crate) waiting: RefCell<Vec<EffectId>>,
    /// The calls for whose results the engine waits: each by the number of the wait and the id of its question.
    pub(crate) results: RefCell<Vec<(EffectId, String)>>,
    /// The time limits of steps, by the effect that they are for: the timer, its milliseconds, and whether it runs.
    pub(crate) timers: RefCell<Table<EffectId, (EffectId, u64, bool)>>,
    /// The time limit of the run, and when it is over.
    pub(crate) total: Cell<Option<(EffectId, u64)>>,
    /// Changes of the session state by calls that run.
    pub(crate) held: RefCell<Table<EffectId, HeldChanges>>,
    /// The effect of the tool that begins now.
    pub(crate) executing: Cell<EffectId>,
    pub(crate) entry: RefCell<Option<Entry>>,
    /// The pieces of a stored answer that have not entered.
    pub(crate) pieces: RefCell<VecDeque<(EffectId, AssistantMessageEvent)>>,
    /// Whether an answer in progress is to end, with what has arrived of it.
    pub(crate) cut: Cell<bool>,
    /// Whether the run can do nothing until something enters.
    pub(crate) quiet: Cell<bool>,
    pub(crate) clock: Rc<SlotClock>,
    pub(crate) waker: RefCell<Option<Waker>>,
    /// How many questions tools have asked in this process.
    pub(crate) asks: Cell<u64>,
}

impl RunSlot {
    /// A slot, which the journal knows from now on.
    pub(crate) fn new(
        journal: &Rc<Journal>,
        call: &str,
        place: Place,
        has_mail: Box<dyn Fn() -> bool>,
        run_id: &str,
    ) -> Rc<Self> {
        let prefix = if call.is_empty() { String::new() } else { [call, "/"].concat() };
        let slot = Rc::new(RunSlot {
            journal: journal.clone(),
            chance: Rc::new(RefCell::new(Chance::new(&[&prefix, run_id].concat()))),
            prefix,
            place,
            names: RefCell::new(EffectNames::inside(call)),
            has_mail,
            progress: RefCell::default(),
            to_begin: RefCell::default(),
            open: RefCell::default(),
            loose: RefCell::default(),
            waiting: RefCell::default(),
            results: RefCell::default(),
            timers: RefCell::default(),
            total: Cell::default(),
            held: RefCell::default(),
            executing: Cell::default(),
            entry: RefCell::default(),
            pieces: RefCell::default(),
            cut: Cell::default(),
            quiet: Cell::default(),
            clock: Rc::new(SlotClock { journal: journal.clone(), streaming: Cell::default() }),
            waker: RefCell::default(),
            asks: Cell::default(),
        });
        journal.slots.borrow_mut().push(Rc::downgrade(&slot));
        slot
    }

    /// A configuration whose chance and time are those of the journal.
    pub(crate) fn configure(&self, config: &AgentLoopConfig) -> AgentLoopConfig {
        let mut config = config.clone();
        let (numbers, ids) = (self.chance.clone(), self.chance.clone());
        config.rules.random = Rc::new(move || numbers.borrow_mut().number());
        config.rules.new_id = Rc::new(move || ids.borrow_mut().id());
        config.rules.has_approver |= self.journal.engine.waits();
        config.ports.timer = Rc::new(SlotTimer { clock: self.clock.clone(), own: config.ports.timer });
        config
    }

    /// A tool is about to begin: what it changes of the session state is part of its outcome. An agent inside it is part of this
    /// journal.
    pub(crate) fn place_call(&self, call: &mut ToolContext) {
        let id = self.executing.get();
        if let Some(name) = self.loose.borrow().get(&id).cloned() {
            call.durable = Some(Rc::new(Inside { journal: self.journal.clone(), call: name }));
            return;
        }
        let (state, held) = call.state.holding();
        self.held.borrow_mut().insert(id, held);
        call.state = state;
    }

    /// Whether steps are open, or the engine waits for something.
    pub(crate) fn has_steps(&self) -> bool {
        !self.open.borrow().is_empty() || !self.waiting.borrow().is_empty()
    }

    pub(crate) fn is_root(&self) -> bool {
        self.place == Place::Root
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Whether the run has something to do before anything enters.
    pub(crate) fn has_to_act(&self) -> bool {
        !self.to_begin.borrow().is_empty()
            || self.entry.borrow().is_some()
            || !self.pieces.borrow().is_empty()
            || self.cut.get()
    }

    /// Whether the run is still working on what has entered.
    pub(crate) fn is_busy(&self) -> bool {
        let is_waiting_for_child =
            |(_, call): &(EffectId, String)| call.is_empty() || !self.journal.has_slot(&[call, "/"].concat());
        !self.quiet.get()
            || self.has_news()
            || (self.has_mail)()
            || self.loose.borrow().iter().any(is_waiting_for_child)
    }

    /// Whether the agents inside the calls of a run that the host polls have reported what it has not read.
    fn has_news(&self) -> bool {
        self.place == Place::Hosted && self.progress.borrow().as_ref().is_some_and(|flag| flag.get())
    }

    /// Gives the run what enters next.
    pub(crate) fn give(&self, entry: Entry) {
        *self.entry.borrow_mut() = Some(entry);
        self.quiet.set(false);
        self.wake();
    }

    /// The steps end now: what will enter ends the run. Of an answer, what has arrived is kept.
    pub(crate) fn end_steps(&self) {
        for (_, open) in self.open.borrow().iter() {
            if !(open.is_answer() && open.begun.get()) {
                open.end(Outcome::Cancelled);
            }
        }
        self.cut_answer();
    }

    /// The answer in progress is to end, with what has arrived of it.
    pub(crate) fn cut_answer(&self) {
        if self
            .open
            .borrow()
            .iter()
            .any(|(_, open)| open.is_answer() && open.begun.get() && open.is_undecided())
        {
            self.cut.set(true);
            self.wake();
        }
    }

    /// The answer in progress, unless it is its record that enters now: nobody will know what has arrived of it when the run is
    /// replayed.
    pub(crate) fn unstored_answer(&self) -> Option<EffectId> {
        let open = self.open.borrow();
        open.iter().find(|(_, open)| open.is_answer() && !open.is_entering.get()).map(|(id, _)| *id)
    }

    /// The run is over, or gone: nobody wants what is open.
    pub(crate) fn leave(&self) {
        self.to_begin.borrow_mut().clear();
        self.pieces.borrow_mut().clear();
        self.cut.set(false);
        for (_, open) in std::mem::take(&mut *self.open.borrow_mut()) {
            open.drop_work();
        }
        if self.is_root() {
            let open = self.journal.open.borrow();
            open.iter().filter(|open| matches!(open.what, What::Mail)).for_each(|open| open.drop_work());
        }
        self.waiting.borrow_mut().clear();
        self.loose.borrow_mut().clear();
        self.journal.forget(self);
        self.wake_host();
    }

    /// The outermost run is polled again: it does not poll this one, so it has not seen the change.
    pub(crate) fn wake_host(&self) {
        if self.place == Place::Hosted {
            self.journal.wake();
        }
    }
}

/// The time that a run sees: that of the last record that has entered.
pub(crate) struct SlotClock {
    journal: Rc<Journal>,
    /// While an answer streams in: the time of the journal at its beginning, and that of the process.
    streaming: Cell<Option<(u64, u64)>>,
}

impl SlotClock {
    pub(crate) fn now(&self) -> u64 {
        match self.streaming.get() {
            // While an answer streams in, the time goes on for its limits alone.
            Some((clock, began)) => clock + self.journal.real_time().saturating_sub(began),
            None => self.journal.clock.get(),
        }
    }

    /// An answer begins to stream in.
    pub(crate) fn begin_answer(&self) {
        self.streaming.set(Some((self.journal.clock.get(), self.journal.real_time())));
    }

    /// It has ended.
    pub(crate) fn end_answer(&self) {
        self.streaming.set(None);
    }

    /// Does work at the time of the journal, also while an answer streams in.
    pub(crate) fn paused(&self, work: impl FnOnce()) {
        let streaming = self.streaming.take();
        work();
        self.streaming.set(streaming);
    }
}

/// The timer of a run: its own, with the time of the journal.
struct SlotTimer {
    clock: Rc<SlotClock>,
    own: Rc<dyn Timer>,
}

impl Timer for SlotTimer {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        self.own.sleep(ms)
    }

    fn back_off(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        self.own.back_off(ms)
    }
}
