//! Chance from one number, so that a run can be tried again. What the machine does in between still differs.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::time::Duration;

/// The variable that sets the seed of all judges.
pub(crate) const SEED: &str = "SEAWALL_JUDGE_SEED";

pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Draws a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        low + Duration::from_micros(self.below((high - low).as_micros().max(1) as u64))
    }
}

/// The seed of this run: what the variable says, or a fresh one.
pub(crate) fn seed() -> u64 {
    let asked = std::env::var(SEED).ok().map(|text| text.parse().expect("the seed is a number"));
    asked.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000)
}

/// Always the same number for the same seed and words.
pub(crate) fn number_of(seed: u64, words: &[&str]) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            mix(self.0)
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
            }
        }
    }
    let mut hash = Fnv(0xCBF2_9CE4_8422_2325 ^ seed);
    words.hash(&mut hash);
    hash.finish()
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
