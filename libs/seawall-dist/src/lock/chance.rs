//! Numbers that nobody can foresee: for the ids of owners, and for jitter.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A random word, from the keys that the operating system gave to the standard library's hasher.
pub(super) fn word() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one((COUNT.fetch_add(1, Ordering::Relaxed), std::process::id()))
}

/// A fraction in `[0, 1)`.
pub(super) fn fraction() -> f64 {
    // The upper 53 bits are what an f64 holds exactly.
    (word() >> 11) as f64 / (1_u64 << 53) as f64
}
