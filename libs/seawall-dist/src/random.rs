//! Numbers that nobody can foresee: for ids, and for jitter.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A random word, from the keys that the operating system gave to the standard library's hasher.
pub(crate) fn word() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one((COUNT.fetch_add(1, Ordering::Relaxed), std::process::id()))
}

/// A random fraction in `[0, 1)`.
pub(crate) fn fraction() -> f64 {
    // The upper 53 bits are what an f64 holds exactly.
    (word() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_differ_and_fractions_are_below_one() {
        let words: std::collections::HashSet<u64> = (0..10_000).map(|_| super::word()).collect();
        assert_eq!(words.len(), 10_000);
        assert!((0..10_000).map(|_| super::fraction()).all(|fraction| (0.0..1.0).contains(&fraction)));
    }
}
