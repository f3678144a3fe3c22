//! How many may be inside: a number, or one that finds itself.
//!
//! A limit that finds itself looks at rounds of as many answers as it lets through at once. Both forms grow only while
//! the limit is in use (else a quiet night would raise it for ever), and shrink at most once a round (else one hiccup of
//! the peer, seen by all calls under way, would shrink it to nothing).

use std::sync::Mutex;
use std::time::Duration;

use super::config::Adapt;
use crate::sync::{AtomicU32, Ordering};

/// What a round with timeouts or throttled answers leaves of a limit.
const SHRINK: f64 = 0.9;
/// Answers may take this many times as long as without load before the limit shrinks.
const TOLERANCE: f64 = 1.5;
/// How much of a newly found limit is taken over after a round.
const SMOOTH: f64 = 0.2;
/// Each so many rounds the gradient lets through half for one round, to see how fast answers are without load. Without it
/// a peer that has become slower for good would be taken for one that is overloaded, for ever.
const PROBE_EVERY: u32 = 50;

#[derive(Debug)]
pub(super) struct Limit {
    now: AtomicU32,
    learning: Mutex<Option<Learning>>,
    adapts: AtomicU32,
}

#[derive(Debug)]
struct Learning {
    adapt: Adapt,
    exact: f64,
    answers: u32,
    overloaded: bool,
    most_inside: u32,
    total: Duration,
    /// How long an answer takes without load, in seconds; zero until it is known.
    unloaded: f64,
    rounds: u32,
    probing: bool,
}

impl Limit {
    pub(super) fn new(calls: u32, adapt: Option<Adapt>) -> Self {
        let limit =
            Limit { now: AtomicU32::new(calls), learning: Mutex::new(None), adapts: AtomicU32::new(0) };
        limit.set(calls, adapt);
        limit
    }

    pub(super) fn set(&self, calls: u32, adapt: Option<Adapt>) {
        let mut learning = self.learning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *learning = adapt.map(|adapt| Learning::new(calls, adapt));
        self.adapts.store(u32::from(adapt.is_some()), Ordering::Release);
        self.now.store(calls, Ordering::Release);
    }

    #[inline]
    pub(super) fn now(&self) -> u32 {
        self.now.load(Ordering::Acquire)
    }

    #[cfg(not(seawall_loom))]
    #[inline]
    pub(super) fn adapts(&self) -> bool {
        self.adapts.load(Ordering::Acquire) == 1
    }

    /// Takes an answer into account; true if the limit rose. Who finds somebody else learning goes on: a limit is found
    /// from many answers, and none of them is worth waiting for.
    pub(super) fn learn(&self, took: Duration, overloaded: bool, inside: u32) -> bool {
        let Ok(mut learning) = self.learning.try_lock() else { return false };
        let Some(learning) = learning.as_mut() else { return false };
        let before = self.now();
        let after = learning.answer(took, overloaded, inside, before);
        self.now.store(after, Ordering::Release);
        after > before
    }
}

impl Learning {
    fn new(calls: u32, adapt: Adapt) -> Self {
        Learning {
            adapt,
            exact: f64::from(calls),
            answers: 0,
            overloaded: false,
            most_inside: 0,
            total: Duration::ZERO,
            unloaded: 0.0,
            rounds: 0,
            probing: false,
        }
    }

    /// One more answer, and the limit after it.
    fn answer(&mut self, took: Duration, overloaded: bool, inside: u32, limit: u32) -> u32 {
        self.answers += 1;
        self.overloaded |= overloaded;
        self.most_inside = self.most_inside.max(inside);
        self.total += took;
        if self.answers < limit.max(2) {
            return limit;
        }
        let mean = self.total.as_secs_f64() / f64::from(self.answers);
        let in_use = f64::from(self.most_inside) >= f64::from(limit) * 0.8;
        let limit = match self.adapt {
            Adapt::Timeouts { min, max } => self.by_timeouts(in_use).clamp(f64::from(min), f64::from(max)),
            Adapt::Latency { min, max } => self.by_latency(mean, in_use, f64::from(min), f64::from(max)),
        };
        (self.answers, self.overloaded, self.most_inside, self.total) = (0, false, 0, Duration::ZERO);
        limit as u32
    }

    fn by_timeouts(&mut self, in_use: bool) -> f64 {
        let Adapt::Timeouts { min, max } = self.adapt else { return self.exact };
        if self.overloaded {
            self.exact = (self.exact * SHRINK).floor();
        } else if in_use {
            self.exact += 1.0;
        }
        self.exact = self.exact.clamp(f64::from(min), f64::from(max));
        self.exact
    }

    fn by_latency(&mut self, mean: f64, in_use: bool, min: f64, max: f64) -> f64 {
        self.rounds += 1;
        // With few calls inside there is no load, and what an answer takes then is what it takes.
        let quiet = self.probing || !in_use || self.exact <= min;
        if self.unloaded == 0.0 || mean < self.unloaded || (quiet && !self.overloaded) {
            self.unloaded = mean;
        }
        if self.overloaded {
            self.exact *= SHRINK;
        } else if in_use && !self.probing && mean > 0.0 {
            let gradient = (TOLERANCE * self.unloaded / mean).clamp(0.5, 1.0);
            let found = self.exact * gradient + self.exact.sqrt();
            self.exact += (found - self.exact) * SMOOTH;
        }
        self.exact = self.exact.clamp(min, max);
        self.probing = self.rounds.is_multiple_of(PROBE_EVERY);
        if self.probing { (self.exact / 2.0).max(min) } else { self.exact }
    }
}
