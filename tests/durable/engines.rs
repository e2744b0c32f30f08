//! Durable engines in memory. A life ends where a plan says: what it was doing never comes back, and the next life has the
//! records alone.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures::future::{LocalBoxFuture, pending};
use rig::clock::Clock;
use rig::dice::Dice;
use turnwheel::approval::ToolDecision;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::ports::{ApprovalRequest, Step, Steps};

/// How an engine finds a step again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By its name.
    Name,
    /// By its name, and steps must be called in the same order.
    Order,
    /// By its name, and results are given back one at a time, in the order in which they were stored.
    Single,
}

/// What outlives a life.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) by_name: RefCell<BTreeMap<String, String>>,
    /// The names in the order in which they were stored.
    pub(crate) stored: RefCell<Vec<String>>,
    /// The names in the order in which steps were called.
    pub(crate) calls: RefCell<Vec<String>>,
    /// Decisions, by the name of the wait.
    pub(crate) decisions: RefCell<BTreeMap<String, bool>>,
    /// Delays that are over.
    pub(crate) slept: RefCell<BTreeSet<String>>,
    /// The order in which they came.
    pub(crate) came: RefCell<Vec<String>>,
    pub(crate) faults: RefCell<Vec<String>>,
}

impl Records {
    pub(crate) fn fault(&self, text: String) {
        self.faults.borrow_mut().push(text);
    }
}

/// One life of an engine.
pub(crate) struct Life {
    pub(crate) records: Rc<Records>,
    pub(crate) clock: Clock,
    pub(crate) dice: Dice,
    pub(crate) mode: Mode,
    /// How often it may still end.
    pub(crate) kills: Cell<u32>,
    pub(crate) is_over: Cell<bool>,
    /// The works that began in this life.
    pub(crate) began: RefCell<Vec<String>>,
    pub(crate) waits: bool,
    pub(crate) sleeps: bool,
    pub(crate) max_bytes: Option<usize>,
    called: Cell<usize>,
    given: Cell<usize>,
    comes: Cell<usize>,
}

impl Life {
    pub(crate) fn new(records: &Rc<Records>, clock: &Clock, dice: Dice, mode: Mode, kills: u32) -> Rc<Self> {
        Rc::new(Life {
            records: records.clone(),
            clock: clock.clone(),
            dice,
            mode,
            kills: Cell::new(kills),
            is_over: Cell::default(),
            began: RefCell::default(),
            waits: false,
            sleeps: false,
            max_bytes: None,
            called: Cell::default(),
            given: Cell::default(),
            comes: Cell::default(),
        })
    }

    async fn pause(&self, most: usize) {
        let ms = self.dice.below(most);
        if ms > 0 {
            self.clock.pause(u64::try_from(ms).unwrap()).await;
        }
    }

    /// Whether the life ends here.
    fn dies(&self) -> bool {
        if self.is_over.get() || (self.kills.get() > 0 && self.dice.below(14) == 0) {
            self.kills.set(self.kills.get().saturating_sub(1));
            self.is_over.set(true);
        }
        self.is_over.get()
    }

    /// Whether this had come in an earlier life. It comes again after what came before it.
    async fn comes_again(&self, name: &str) -> bool {
        let place = self.records.came.borrow().iter().position(|came| came == name);
        let Some(place) = place else { return false };
        while self.comes.get() < place {
            self.clock.pause(1).await;
        }
        self.pause(30).await;
        true
    }

    /// What comes for the first time does not overtake what had come before.
    async fn comes(&self, name: &str) {
        while !self.records.came.borrow().iter().any(|known| known == name)
            && self.comes.get() < self.records.came.borrow().len()
        {
            self.clock.pause(1).await;
        }
        let mut came = self.records.came.borrow_mut();
        if !came.iter().any(|known| known == name) {
            came.push(name.to_owned());
        }
        self.comes.set(self.comes.get() + 1);
    }

    async fn again(&self, name: &str, stored: String) -> Result<RawJson, String> {
        if self.mode == Mode::Single {
            loop {
                let next = self.records.stored.borrow().get(self.given.get()).cloned();
                if next.as_deref() == Some(name) {
                    break;
                }
                self.clock.pause(1).await;
            }
            self.pause(3).await;
            self.given.set(self.given.get() + 1);
        } else {
            self.pause(30).await;
        }
        Ok(RawJson::parse(&stored).unwrap())
    }

    async fn run(self: Rc<Self>, step: Step) -> Result<RawJson, String> {
        let name = step.name().to_owned();
        if name.len() > 200 || step.effect().to_json().is_empty() {
            self.records.fault(format!("{name} is too long"));
        }
        let at = self.called.replace(self.called.get() + 1);
        if self.mode != Mode::Name {
            let mut calls = self.records.calls.borrow_mut();
            match calls.get(at) {
                Some(expected) if *expected != name => {
                    return Err(format!("{expected} was recorded when {name} was called"));
                }
                Some(_) => {}
                None => calls.push(name.clone()),
            }
        }
        let stored = self.records.by_name.borrow().get(&name).cloned();
        if let Some(stored) = stored {
            return self.again(&name, stored).await;
        }
        // Not every engine begins at once.
        if self.dice.chance(30) {
            self.pause(12).await;
        }
        if self.dies() {
            return pending().await;
        }
        self.began.borrow_mut().push(name.clone());
        let record = step.work().await;
        if self.dies() {
            return pending().await;
        }
        self.pause(12).await;
        if self.is_over.get() {
            return pending().await;
        }
        if self.records.by_name.borrow_mut().insert(name.clone(), record.as_str().to_owned()).is_some() {
            self.records.fault(format!("{name} was stored twice"));
        }
        self.records.stored.borrow_mut().push(name.clone());
        if self.mode == Mode::Single {
            return self.again(&name, record.as_str().to_owned()).await;
        }
        // An engine that retries asks for the work once more, and gets the same.
        assert_eq!(step.work().await, record);
        Ok(record)
    }
}

/// The engine of a life.
pub(crate) struct Engine(pub(crate) Rc<Life>);

impl Steps for Engine {
    fn step(&self, step: Step) -> LocalBoxFuture<'static, Result<RawJson, String>> {
        Box::pin(self.0.clone().run(step))
    }

    fn waits(&self) -> bool {
        self.0.waits
    }

    fn wait(
        &self,
        name: &str,
        request: &ApprovalRequest,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let (life, name, accepts) = (self.0.clone(), name.to_owned(), !request.call_id.ends_with('1'));
        Box::pin(async move {
            let is_known = life.comes_again(&name).await;
            if !is_known {
                life.pause(200).await;
            }
            if life.is_over.get() || (!is_known && life.dies()) {
                return pending().await;
            }
            life.comes(&name).await;
            let accepts = *life.records.decisions.borrow_mut().entry(name).or_insert(accepts);
            Ok(if accepts { ToolDecision::Accept } else { ToolDecision::Reject { reason: None } })
        })
    }

    fn sleep(&self, name: &str, ms: u64) -> Option<LocalBoxFuture<'static, ()>> {
        if !self.0.sleeps {
            return None;
        }
        let (life, name) = (self.0.clone(), name.to_owned());
        Some(Box::pin(async move {
            if !life.comes_again(&name).await {
                life.clock.pause(ms).await;
            }
            life.comes(&name).await;
            life.records.slept.borrow_mut().insert(name);
        }))
    }

    fn max_bytes(&self) -> Option<usize> {
        self.0.max_bytes
    }

    fn is_ordered(&self) -> bool {
        self.0.mode == Mode::Single
    }
}
