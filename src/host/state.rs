//! Session state: JSON values by key that the tools of a run share, and the changes not reported yet.

use std::cell::RefCell;
use std::rc::Rc;

use crate::data::json::{Map, Value};

/// Values by key. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SessionState(Rc<RefCell<SharedValues>>);

#[derive(Debug, Default)]
struct SharedValues {
    values: Map,
    changes: Map,
}

impl SessionState {
    /// Creates a state with these values.
    pub fn new(values: Map) -> Self {
        SessionState(Rc::new(RefCell::new(SharedValues { values, changes: Map::new() })))
    }

    /// Creates a state with these values, some of which have not been reported yet.
    pub(crate) fn restored(values: Map, changes: Map) -> Self {
        SessionState(Rc::new(RefCell::new(SharedValues { values, changes })))
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
        self.0.borrow().values.get(key).cloned()
    }

    /// Sets a key.
    pub fn set(&self, key: &str, value: Value) {
        let mut inner = self.0.borrow_mut();
        inner.values.insert(key, value.clone());
        inner.changes.insert(key, value);
    }

    /// Deletes a key. The change is reported as null.
    pub fn delete(&self, key: &str) {
        let mut inner = self.0.borrow_mut();
        if inner.values.remove(key).is_some() {
            inner.changes.insert(key, Value::Null);
        }
    }

    /// Returns all current values.
    pub fn snapshot(&self) -> Map {
        self.0.borrow().values.clone()
    }

    /// Returns the latest value of every key that changed since the last call; null if the key was deleted.
    pub fn take_changes(&self) -> Map {
        std::mem::take(&mut self.0.borrow_mut().changes)
    }
}
