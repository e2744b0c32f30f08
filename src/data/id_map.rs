//! A map from ids that is never iterated, so it need not be ordered: lookups take constant time even with a
//! hundred thousand ids.

/// The map of this module. The entries are in the order in which they were inserted.
#[derive(Clone, Debug)]
pub struct IdMap<K, V> {
    index: Index,
    entries: Vec<(K, V)>,
}

impl<K, V> Default for IdMap<K, V> {
    fn default() -> Self {
        IdMap { index: Index::default(), entries: Vec::new() }
    }
}

impl<K: AsRef<str>, V> IdMap<K, V> {
    /// Inserts a value, and returns the one that the id had before.
    pub fn insert(&mut self, id: K, value: V) -> Option<V> {
        match self.place(id.as_ref()).and_then(|place| self.entries.get_mut(place)) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.index.add(id.as_ref(), self.entries.len());
                self.entries.push((id, value));
                None
            }
        }
    }

    pub fn get(&self, id: &str) -> Option<&V> {
        let place = self.place(id)?;
        self.entries.get(place).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        let place = self.place(id)?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
    }

    pub fn contains(&self, id: &str) -> bool {
        self.place(id).is_some()
    }

    /// Returns the index of the entry of an id.
    fn place(&self, id: &str) -> Option<usize> {
        self.index.find(id, |place| self.entries.get(place).is_some_and(|(found, _)| found.as_ref() == id))
    }
}

/// The indexes of entries by the hash of their ids, with the same code for maps of any type. A slot holds
/// the index plus one, or 0 if it is free. At least half of the slots are free.
#[derive(Clone, Debug, Default, Eq)]
pub(crate) struct Index(Vec<(usize, usize)>);

impl PartialEq for Index {
    /// Always equal: equal entries have equal indexes, regardless of how they are found.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Index {
    /// Returns the index of an id; `is_match` says whether the entry at an index has this id.
    pub(crate) fn find(&self, id: &str, is_match: impl Fn(usize) -> bool) -> Option<usize> {
        let hash = hash(id);
        let mut from = hash;
        loop {
            let place = self.next(hash, &mut from)?;
            if is_match(place) {
                return Some(place);
            }
        }
    }

    /// Returns the index of the next entry with this hash, starting at a slot.
    fn next(&self, hash: usize, from: &mut usize) -> Option<usize> {
        loop {
            let slot = *from & self.0.len().wrapping_sub(1);
            *from = slot.wrapping_add(1);
            let (found, place) = *self.0.get(slot)?;
            if found == hash || place == 0 {
                return place.checked_sub(1);
            }
        }
    }

    /// Records that the last entry has this id.
    pub(crate) fn add(&mut self, id: &str, last: usize) {
        if (last + 1) * 2 > self.0.len() {
            let size = (self.0.len() * 2).max(4);
            let smaller = std::mem::replace(&mut self.0, vec![(0, 0); size]);
            smaller.into_iter().filter(|(_, place)| *place != 0).for_each(|entry| self.put(entry));
        }
        self.put((hash(id), last + 1));
    }

    fn put(&mut self, entry: (usize, usize)) {
        let mask = self.0.len().wrapping_sub(1);
        let mut slot = entry.0 & mask;
        while self.0.get(slot).is_some_and(|(_, place)| *place != 0) {
            slot = (slot + 1) & mask;
        }
        if let Some(free) = self.0.get_mut(slot) {
            *free = entry;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.truncate(64);
        self.0.fill((0, 0));
    }
}

pub(crate) fn hash(id: &str) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in id.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    usize::try_from(hash ^ (hash >> 15)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_map_finds_what_was_put_in_however_many() {
        let ids: Vec<String> = (0..1_000).map(|n| format!("call_{n}")).collect();
        let mut map = IdMap::default();
        assert!(map.get("call_0").is_none());
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(map.insert(id, at), None);
        }
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(map.insert(id, 0), Some(at));
        }
        assert!(map.get("call_1000").is_none());
        for size in [1_000, 1] {
            map.clear();
            assert!(ids.iter().all(|id| !map.contains(id)));
            assert!(ids.iter().take(size).all(|id| map.insert(id, 1).is_none()));
            assert_eq!(map.get_mut("call_0"), Some(&mut 1));
        }
    }
}
