//! Session state: JSON values by key that tools share during a run, with the changes since they were last told.

use std::cell::RefCell;
use std::rc::Rc;

use crate::json::{Map, Value};

/// Values by key. Cloning it shares them.
#[derive(Clone, Debug, Default)]
pub struct SessionState(Rc<RefCell<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    values: Map,
    changes: Map,
}

impl SessionState {
    /// A state with these values.
    pub fn new(values: Map) -> Self {
        SessionState(Rc::new(RefCell::new(Inner { values, changes: Map::new() })))
    }

    /// A state with these values, of which some were not told yet.
    pub(crate) fn restored(values: Map, changes: Map) -> Self {
        SessionState(Rc::new(RefCell::new(Inner { values, changes })))
    }

    /// What changed and was not told yet.
    pub(crate) fn changes(&self) -> Map {
        self.0.borrow().changes.clone()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.borrow().values.get(key).cloned()
    }

    /// Sets a key.
    pub fn set(&self, key: &str, value: Value) {
        let mut inner = self.0.borrow_mut();
        inner.values.insert(key, value.clone());
        inner.changes.insert(key, value);
    }

    /// Deletes a key; it is told as null.
    pub fn delete(&self, key: &str) {
        let mut inner = self.0.borrow_mut();
        if inner.values.remove(key).is_some() {
            inner.changes.insert(key, Value::Null);
        }
    }

    /// All values, as they are now.
    pub fn snapshot(&self) -> Map {
        self.0.borrow().values.clone()
    }

    /// The last value of every key that changed since this was last called; null where it was deleted.
    pub fn take_changes(&self) -> Map {
        std::mem::take(&mut self.0.borrow_mut().changes)
    }
}
