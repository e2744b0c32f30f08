//! Products of 64-bit numbers. The standard library's `checked_mul` multiplies in 128 bits, by a function that the wasm
//! file does not have: what it returns does not fit how functions return there (DESIGN.md). The linker refuses it.

/// The product, where 64 bits hold it.
#[inline(never)]
pub(crate) fn checked(a: u64, b: u64) -> Option<u64> {
    let (high_a, low_a) = halves(a);
    let (high_b, low_b) = halves(b);
    if high_a != 0 && high_b != 0 {
        return None;
    }
    // One of the two is 0, and neither is more than 64 bits.
    let (carried, middle) = halves(high_a * low_b + low_a * high_b);
    if carried == 0 { (middle << 32).checked_add(low_a * low_b) } else { None }
}

/// The product, or the most that 64 bits hold.
pub(crate) fn saturating(a: u64, b: u64) -> u64 {
    checked(a, b).unwrap_or(u64::MAX)
}

/// A number times a share of 2^32, rounded down.
pub(crate) fn share(whole: u64, of_all: u32) -> u64 {
    let (high, low) = halves(whole);
    let of_all = u64::from(of_all);
    high * of_all + ((low * of_all) >> 32)
}

fn halves(number: u64) -> (u64, u64) {
    (number >> 32, number & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_standard_library() {
        let edges = [0, 1, 2, 3, 10, 21, 1_000, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 32];
        let large =
            [(1 << 32) + 1, 6_148_914_691_236_517_205, u64::MAX / 10, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let numbers: Vec<u64> = edges.into_iter().chain(large).collect();
        for &a in &numbers {
            for &b in &numbers {
                assert_eq!(checked(a, b), a.checked_mul(b), "{a} * {b}");
                assert_eq!(saturating(a, b), a.saturating_mul(b), "{a} * {b}");
                let random = u32::try_from(b & u64::from(u32::MAX)).unwrap();
                let exact = (u128::from(a) * u128::from(random)) >> 32;
                assert_eq!(u128::from(share(a, random)), exact, "{a} * {random} / 2^32");
            }
        }
    }
}
