//! Durable engines in memory. A life ends where a plan says: what it was doing never comes back, and the next life has the
//! records alone.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::future::{LocalBoxFuture, pending};
use rig::clock::Clock;
use rig::dice::Dice;
use turnwheel::approval::ToolDecision;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::message::ContentBlock;
use turnwheel::ports::{ApprovalRequest, Step, Steps};
use turnwheel::question::QuestionKind;

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
    /// The same, with decisions and delays between them.
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
    /// Whether nobody writes, decides or aborts: all of that is in the records.
    pub(crate) is_left_alone: bool,
    called: Cell<usize>,
    given: Cell<usize>,
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
            is_left_alone: false,
            called: Cell::default(),
            given: Cell::default(),
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

    /// An engine that counts finds what is called by its place.
    fn calls(&self, name: &str) -> Result<(), String> {
        let at = self.called.replace(self.called.get() + 1);
        if self.mode == Mode::Name {
            return Ok(());
        }
        let mut calls = self.records.calls.borrow_mut();
        match calls.get(at) {
            Some(expected) if expected != name => {
                Err(format!("{expected} was recorded when {name} was called"))
            }
            Some(_) => Ok(()),
            None => {
                calls.push(name.to_owned());
                Ok(())
            }
        }
    }

    /// What the engine itself waits for, and keeps. It comes in another life whenever it likes.
    async fn outside(&self, name: &str, ms: usize, value: &str) -> Result<String, String> {
        self.calls(name)?;
        let stored = self.records.by_name.borrow().get(name).cloned();
        if let Some(stored) = stored {
            return self.again(name, stored).await.map(|json| json.as_str().to_owned());
        }
        self.clock.pause(u64::try_from(ms).unwrap()).await;
        if self.dies() {
            return pending().await;
        }
        self.records.by_name.borrow_mut().insert(name.to_owned(), value.to_owned());
        self.records.came.borrow_mut().push(name.to_owned());
        if self.mode == Mode::Single {
            return self.again(name, value.to_owned()).await.map(|json| json.as_str().to_owned());
        }
        Ok(value.to_owned())
    }

    async fn again(&self, name: &str, stored: String) -> Result<RawJson, String> {
        if self.mode == Mode::Single {
            loop {
                let next = self.records.came.borrow().get(self.given.get()).cloned();
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
        self.calls(&name)?;
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
        self.records.came.borrow_mut().push(name.clone());
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
        kind: QuestionKind,
        request: &ApprovalRequest,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let (life, name, accepts) = (self.0.clone(), name.to_owned(), !request.call_id.ends_with('1'));
        let content = vec![ContentBlock::text(format!("{name} {}", request.arguments.as_str()))];
        Box::pin(async move {
            let answer = life.outside(&name, life.dice.below(200), &accepts.to_string()).await?;
            Ok(match (answer.as_str(), kind) {
                ("true", QuestionKind::ToolCall) => {
                    ToolDecision::Result { content, details: None, is_error: false }
                }
                ("true", _) => ToolDecision::Accept,
                _ => ToolDecision::Reject { reason: None },
            })
        })
    }

    fn sleep(&self, name: &str, ms: u64) -> Option<LocalBoxFuture<'static, ()>> {
        if !self.0.sleeps {
            return None;
        }
        let (life, name) = (self.0.clone(), name.to_owned());
        Some(Box::pin(async move {
            let slept = life.outside(&name, usize::try_from(ms).unwrap(), "null").await;
            slept.err().into_iter().for_each(|fault| life.records.fault(fault));
        }))
    }

    fn max_bytes(&self) -> Option<usize> {
        self.0.max_bytes
    }

    fn is_ordered(&self) -> bool {
        self.0.mode == Mode::Single
    }
}
