//! The members of an object.

use crate::data::id_map::Index;

use super::value::Value;

/// The members of an object, in order.
#[derive(Clone, Debug, Default)]
pub struct Map(pub(super) Vec<(String, Value)>);

impl PartialEq for Map {
    /// Order does not matter, as in JSON.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(k, v)| other.get(k) == Some(v))
    }
}

impl Map {
    /// Creates an object without members.
    pub fn new() -> Self {
        Map(Vec::new())
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Returns the value of a key, mutably.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.iter_mut().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Sets a key. An existing key keeps its place.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().rposition(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Removes all but the last of equal keys, in less than quadratic time.
    pub(super) fn deduplicate(&mut self) {
        if self.0.len() < 2 {
            return;
        }
        let mut seen = Index::default();
        let mut kept = Vec::with_capacity(self.0.len());
        while let Some((key, value)) = self.0.pop() {
            if seen.find(&key, |at| kept.get(at).is_some_and(|(other, _)| *other == key)).is_none() {
                seen.add(&key, kept.len());
                kept.push((key, value));
            }
        }
        kept.reverse();
        self.0 = kept;
    }
}

impl FromIterator<(String, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        let mut map = Map(members.into_iter().collect());
        map.deduplicate();
        map
    }
}

impl IntoIterator for Map {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
