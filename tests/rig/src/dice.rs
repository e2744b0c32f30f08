//! Random choices that a seed reproduces.

use std::cell::Cell;
use std::rc::Rc;

/// A small generator (xorshift). Clones share one generator.
#[derive(Clone)]
pub struct Dice(Rc<Cell<u64>>);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not begin alike.
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Dice(Rc::new(Cell::new(mixed | 1)))
    }

    /// Returns other dice, seeded from the current state without changing it: whatever is added to a
    /// world with them leaves the rest as it was.
    pub fn aside(&self) -> Self {
        Dice::new(self.0.get())
    }

    pub fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// Returns a number from 0, below `n`.
    pub fn below(&self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    /// Returns true in `percent` of a hundred cases.
    pub fn chance(&self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
