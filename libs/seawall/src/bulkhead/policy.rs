//! The gate itself.

use std::fmt;
use std::time::Duration;

use super::config::Bulkhead;
use super::limit::Limit;
use super::line::{Line, Waiter};
use super::machine::{Effect, Event, Word, step};
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A gate that lets so many calls through at once. Made by [`Bulkhead::build`].
#[derive(Debug)]
pub struct Gate {
    word: AtomicU64,
    limit: Limit,
    versions: Versions<Version>,
    pub(super) line: Line,
    pub(super) clock: Clock,
    refused: AtomicU64,
}

#[derive(Debug)]
struct Version {
    waiting: u32,
    max_wait: Duration,
    text: String,
}

impl Version {
    fn new(bulkhead: &Bulkhead) -> Self {
        Version { waiting: bulkhead.waiting, max_wait: bulkhead.max_wait, text: bulkhead.to_string() }
    }
}

impl Gate {
    pub(crate) fn new(bulkhead: &Bulkhead, clock: Clock) -> Self {
        Gate {
            word: AtomicU64::new(0),
            limit: Limit::new(bulkhead.calls, bulkhead.adapt),
            versions: Versions::new(Version::new(bulkhead)),
            line: Line::new(),
            clock,
            refused: AtomicU64::new(0),
        }
    }

    /// Enters if there is a place now, and nobody waits for it.
    #[inline]
    pub fn try_enter(&self) -> Result<Permit<'_>, Full> {
        match self.apply(Event::Enter) {
            Effect::Entered => Ok(Permit::new(self)),
            _ => Err(self.refuse()),
        }
    }

    /// Enters, or stands in the line if there is one and it has room.
    #[inline]
    pub fn enter(&self) -> Result<Entry<'_>, Full> {
        match self.apply(Event::Enter) {
            Effect::Entered => Ok(Entry::Inside(Permit::new(self))),
            _ => self.stand_in_line(),
        }
    }

    #[cold]
    fn stand_in_line(&self) -> Result<Entry<'_>, Full> {
        let version = self.versions.newest();
        if version.waiting == 0 {
            return Err(self.refuse());
        }
        let mut line = self.line.lock();
        if line.len() >= version.waiting as usize {
            return Err(self.refuse());
        }
        match self.apply(Event::Queue) {
            Effect::Entered => Ok(Entry::Inside(Permit::new(self))),
            _ => Ok(Entry::Waiting(Waiter::new(self, line.join(), self.clock.precise() + version.max_wait))),
        }
    }

    fn refuse(&self) -> Full {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Full { inside: self.inside() }
    }

    /// How many are inside.
    #[must_use]
    pub fn inside(&self) -> u32 {
        Word::from_bits(self.word.load(Ordering::Acquire)).inside
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.line.lock().len()
    }

    /// How many may be inside now.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.now()
    }

    /// How many were refused, at once or after waiting in vain.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// What it allows, in words.
    #[must_use]
    pub fn explain(&self) -> &str {
        &self.versions.newest().text
    }

    /// Changes a running gate. Those inside stay inside; if they are more than the new limit, nobody enters until enough
    /// have left. Those who wait keep their place in the line.
    pub fn reconfigure(&self, bulkhead: &Bulkhead) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        bulkhead.check(&mut problems);
        problems.into_result("the bulkhead", ())?;
        let published = self.versions.publish(|_| Version::new(bulkhead));
        published.map_err(|too_many| too_many.refusal("the bulkhead", "bulkhead"))?;
        self.limit.set(bulkhead.calls, bulkhead.adapt);
        self.admit_more();
        Ok(())
    }

    /// Lets in those who wait, as far as there are places: after the limit was raised.
    pub(super) fn admit_more(&self) {
        loop {
            let mut line = self.line.lock();
            let limit = self.limit.now();
            let word = Word::from_bits(self.word.load(Ordering::Acquire));
            if line.len() == 0 || word.inside >= limit {
                return;
            }
            // While there is a line nobody else changes the word without its lock.
            let ends = line.len() == 1;
            self.word.store(Word { inside: word.inside + 1, line: !ends }.bits(), Ordering::Release);
            let next = line.pass_on();
            drop(line);
            next.wake();
        }
    }

    #[inline]
    fn apply(&self, event: Event) -> Effect {
        let limit = self.limit.now();
        let mut bits = self.word.load(Ordering::Acquire);
        loop {
            let word = Word::from_bits(bits);
            let (next, effect) = step(word, event, limit);
            if next == word {
                return effect;
            }
            match self.word.compare_exchange_weak(bits, next.bits(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return effect,
                Err(other) => bits = other,
            }
        }
    }

    #[inline]
    fn leave(&self) {
        if self.apply(Event::Leave) == Effect::AskTheLine {
            self.leave_to_the_line();
        }
    }

    #[cold]
    pub(super) fn leave_to_the_line(&self) {
        let mut line = self.line.lock();
        let event = Event::PassOn { line_is_empty: line.len() == 0, line_ends: line.len() == 1 };
        if self.apply(event) == Effect::Passed {
            let next = line.pass_on();
            drop(line);
            next.wake();
        }
    }

    /// The line is empty, and whoever holds its lock says so.
    pub(super) fn line_ended(&self) {
        self.word.fetch_and(!1, Ordering::AcqRel);
    }

    pub(super) fn gave_up_waiting(&self) -> Full {
        self.refuse()
    }

    /// Tells a limit that finds itself what an answer took, and whether the peer had too much to do (a timeout, a
    /// throttled answer). A guard does so by itself. Without [`adaptive`](Bulkhead::adaptive) it does nothing.
    pub fn answered(&self, took: Duration, overloaded: bool) {
        if self.limit.learn(took, overloaded, self.inside()) {
            self.admit_more();
        }
    }

    /// Whether [`answered`](Gate::answered) is of use.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn learns(&self) -> bool {
        self.limit.adapts()
    }
}

/// Inside, or in the line.
#[derive(Debug)]
pub enum Entry<'a> {
    /// There was a place.
    Inside(Permit<'a>),
    /// There was none; wait for it.
    Waiting(Waiter<'a>),
}

/// A place inside. Dropping it is leaving.
#[must_use = "dropping a permit is leaving"]
pub struct Permit<'a> {
    gate: &'a Gate,
}

impl<'a> Permit<'a> {
    #[inline]
    pub(super) fn new(gate: &'a Gate) -> Self {
        Permit { gate }
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave();
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

/// A call that found no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    inside: u32,
}

impl Full {
    /// How many were inside.
    #[must_use]
    pub fn inside(&self) -> u32 {
        self.inside
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bulkhead is full with {} calls", self.inside)
    }
}

impl std::error::Error for Full {}
