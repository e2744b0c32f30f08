//! Chance that repeats: numbers and ids that follow from a text.

use crate::data::text;
use crate::machine::hash_of;

/// Numbers and ids that are the same for the same seed, in the order in which they are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: &str) -> Self {
        Chance(hash_of(seed.as_bytes()))
    }

    /// 64 bits (splitmix).
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn number(&mut self) -> u32 {
        u32::try_from(self.bits() >> 32).unwrap_or_default()
    }

    pub(crate) fn id(&mut self) -> String {
        [&text::number(self.bits()), "-", &text::number(self.bits())].concat()
    }
}
