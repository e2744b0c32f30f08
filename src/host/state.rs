//! Session state: JSON values by key that the tools of a run share, and the changes not reported yet.

use std::cell::RefCell;
use std::rc::Rc;

use crate::data::json::{Map, Value};

/// Values by key. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SessionState(Rc<RefCell<SharedValues>>, Held);

/// Changes that are held back until the call that made them has its result, where results are stored first.
#[cfg(feature = "durable")]
type Held = Option<HeldChanges>;
#[cfg(not(feature = "durable"))]
#[derive(Clone, Debug, Default)]
struct Held {}

/// Changes by key, in order; `None` deletes.
#[cfg(feature = "durable")]
pub(crate) type HeldChanges = Rc<RefCell<Vec<(String, Option<Value>)>>>;

#[derive(Debug, Default)]
struct SharedValues {
    values: Map,
    changes: Map,
}

impl SessionState {
    /// Creates a state with these values.
    pub fn new(values: Map) -> Self {
        SessionState(Rc::new(RefCell::new(SharedValues { values, changes: Map::new() })), Held::default())
    }

    /// Creates a state with these values, some of which have not been reported yet.
    pub(crate) fn restored(values: Map, changes: Map) -> Self {
        SessionState(Rc::new(RefCell::new(SharedValues { values, changes })), Held::default())
    }

    /// Returns the changes that have not been reported yet.
    pub(crate) fn changes(&self) -> Map {
        self.0.borrow().changes.clone()
    }

    /// Whether there are changes that have not been reported yet.
    pub(crate) fn has_changes(&self) -> bool {
        !self.0.borrow().changes.is_empty()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        #[cfg(feature = "durable")]
        if let Some(change) = self.held(key) {
            return change;
        }
        self.0.borrow().values.get(key).cloned()
    }

    /// Sets a key.
    pub fn set(&self, key: &str, value: Value) {
        #[cfg(feature = "durable")]
        if let Some(held) = &self.1 {
            return held.borrow_mut().push((key.to_owned(), Some(value)));
        }
        let mut inner = self.0.borrow_mut();
        inner.values.insert(key, value.clone());
        inner.changes.insert(key, value);
    }

    /// Deletes a key. The change is reported as null.
    pub fn delete(&self, key: &str) {
        #[cfg(feature = "durable")]
        if let Some(held) = &self.1 {
            return held.borrow_mut().push((key.to_owned(), None));
        }
        let mut inner = self.0.borrow_mut();
        if inner.values.remove(key).is_some() {
            inner.changes.insert(key, Value::Null);
        }
    }

    /// Returns all current values.
    pub fn snapshot(&self) -> Map {
        #[cfg(feature = "durable")]
        if self.1.is_some() {
            return self.with_held();
        }
        self.0.borrow().values.clone()
    }

    /// Returns the latest value of every key that changed since the last call; null if the key was deleted.
    pub fn take_changes(&self) -> Map {
        std::mem::take(&mut self.0.borrow_mut().changes)
    }
}

#[cfg(feature = "durable")]
impl SessionState {
    /// The same values, for one call: what it changes is seen by it, and by the others once it is applied.
    pub(crate) fn holding(&self) -> (Self, HeldChanges) {
        let held = HeldChanges::default();
        (SessionState(self.0.clone(), Some(held.clone())), held)
    }

    /// The last change of a key that is held back.
    fn held(&self, key: &str) -> Option<Option<Value>> {
        let held = self.1.as_ref()?.borrow();
        held.iter().rev().find(|(changed, _)| changed == key).map(|(_, value)| value.clone())
    }

    fn with_held(&self) -> Map {
        let mut values = self.0.borrow().values.clone();
        for (key, value) in self.1.iter().flat_map(|held| held.borrow().clone()) {
            match value {
                Some(value) => values.insert(key.as_str(), value),
                None => drop(values.remove(&key)),
            }
        }
        values
    }
}
