//! Chance as an input: one seed, and the same story is told again.

use std::hash::{BuildHasher, RandomState};

#[cfg(not(seawall_loom))]
use crate::sync::{AtomicU64, Ordering};

/// The step of Weyl's sequence in SplitMix64: odd, and far from any simple fraction of 2⁶⁴.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads the bits of `x` over the whole word (the finaliser of SplitMix64); a bijection.
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A number nobody can foresee, from the operating system by way of the standard library's hasher keys.
pub(crate) fn entropy() -> u64 {
    RandomState::new().hash_one(GOLDEN)
}

/// A fraction in `[0, 1)` out of a random word.
pub(crate) fn fraction(word: u64) -> f64 {
    // The upper 53 bits are what an f64 can hold exactly.
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

/// A generator that many threads may draw from: SplitMix64, whose state is one number that only grows.
#[cfg(not(seawall_loom))]
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

#[cfg(not(seawall_loom))]
impl Chance {
    pub(crate) fn seeded(seed: u64) -> Self {
        Chance(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        mix(self.0.fetch_add(GOLDEN, Ordering::Relaxed).wrapping_add(GOLDEN))
    }
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_tells_the_same_story() {
        let (a, b) = (Chance::seeded(7), Chance::seeded(7));
        assert!((0..100).all(|_| a.next() == b.next()));
        assert_ne!(Chance::seeded(8).next(), Chance::seeded(7).next());
    }

    #[test]
    fn fractions_fill_the_unit_interval() {
        let chance = Chance::seeded(1);
        let mut tenths = [0; 10];
        for _ in 0..100_000 {
            tenths[(fraction(chance.next()) * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|n| (9_500..10_500).contains(n)), "{tenths:?}");
        assert!(fraction(u64::MAX) < 1.0);
    }
}
