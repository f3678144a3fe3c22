//! The atomics that the lock-free shells stand on, and the locks where a shell has one.
//!
//! Under `cfg(seawall_loom)`, which the package in `models` sets, they are loom's, so that the model checker sees every step that two threads
//! can take; otherwise they are the standard library's. What is not part of a shell's protocol (settings, the
//! number of a thread) uses the standard library's directly.

#[cfg(seawall_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
#[cfg(not(seawall_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
