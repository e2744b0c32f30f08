//! A map from ids that is never walked, so it need not be ordered: constant time for the hundred thousandth id too.

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct IdMap<K, V> {
    slots: Vec<Option<(K, V)>>,
    used: usize,
}

impl<K, V> Default for IdMap<K, V> {
    fn default() -> Self {
        IdMap { slots: Vec::new(), used: 0 }
    }
}

impl<K: AsRef<str>, V> IdMap<K, V> {
    /// Gives the value that the id had before.
    pub(crate) fn insert(&mut self, id: K, value: V) -> Option<V> {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let slot = self.slot(id.as_ref());
        match self.slots.get_mut(slot) {
            Some(Some((_, known))) => Some(std::mem::replace(known, value)),
            Some(empty) => {
                *empty = Some((id, value));
                self.used += 1;
                None
            }
            None => None,
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&V> {
        match self.slots.get(self.slot(id)) {
            Some(Some((_, value))) => Some(value),
            _ => None,
        }
    }

    #[cfg(any(target_arch = "wasm32", test))]
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        let slot = self.slot(id);
        self.slots.get_mut(slot)?.as_mut().map(|(_, value)| value)
    }

    /// Takes everything out.
    #[cfg(any(target_arch = "wasm32", test))]
    pub(crate) fn clear(&mut self) {
        let size = self.slots.len().min(64);
        self.slots.clear();
        self.resize(size);
        self.used = 0;
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.get(id).is_some()
    }

    #[inline(never)]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(4);
        let smaller = std::mem::take(&mut self.slots);
        self.resize(size);
        for entry in smaller {
            if let Some((id, _)) = &entry {
                let slot = self.slot(id.as_ref());
                if let Some(empty) = self.slots.get_mut(slot) {
                    *empty = entry;
                }
            }
        }
    }

    fn resize(&mut self, size: usize) {
        self.slots.resize_with(size, || None);
    }

    /// Where an id is, or would be.
    #[inline(never)]
    fn slot(&self, id: &str) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash(id) & mask;
        while let Some(Some((found, _))) = self.slots.get(slot) {
            if found.as_ref() == id {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[inline(never)]
fn hash(id: &str) -> usize {
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
