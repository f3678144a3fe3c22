//! The gate itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::config::Bulkhead;
use super::limit::Limit;
use super::line::{Line, Waiter};
use super::machine::{Effect, Event, Word, step};
use super::parked::Parked;
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A gate that lets so many calls through at once. Made by [`Bulkhead::build`].
#[derive(Debug)]
pub struct Gate {
    /// Parked places are taken, as far as the word goes.
    word: AtomicU64,
    parked: Parked,
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
            parked: Parked::new(),
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
        self.try_enter_many(1)
    }

    /// Enters with a weight: takes so many places, if they are free now and nobody waits for them. A weight of 0, or above the
    /// limit, is refused.
    #[inline]
    pub fn try_enter_many(&self, weight: u32) -> Result<Permit<'_>, Full> {
        match self.take_places(weight) {
            Effect::Entered if weight > 0 => Ok(Permit::new(self, weight)),
            _ => Err(self.refuse(weight)),
        }
    }

    /// As [`try_enter`](Gate::try_enter), with a permit that keeps the gate alive and can go into a task.
    pub fn try_enter_owned(self: &Arc<Self>) -> Result<OwnedPermit, Full> {
        self.try_enter().map(|permit| OwnedPermit::new(self, permit))
    }

    /// Takes a place, also if none is free: for what outlives the call that holds one, such as an answer that is still to be
    /// read. Taken while the call still has its own, it is that place which stays taken: nobody enters in between, and those
    /// inside are never more than the limit for longer than that moment.
    pub fn keep_place(self: &Arc<Self>) -> OwnedPermit {
        self.word.fetch_add(Word::taken(1), Ordering::SeqCst);
        OwnedPermit { gate: self.clone(), weight: 1 }
    }

    /// Enters, or stands in the line if there is one and it has room.
    #[inline]
    pub fn enter(&self) -> Result<Entry<'_>, Full> {
        self.enter_many(1)
    }

    /// As [`enter`](Gate::enter), with a weight. Nobody overtakes a heavy one that waits: those behind it wait with it.
    #[inline]
    pub fn enter_many(&self, weight: u32) -> Result<Entry<'_>, Full> {
        match self.take_places(weight) {
            Effect::Entered if weight > 0 => Ok(Entry::Inside(Permit::new(self, weight))),
            _ => self.stand_in_line(weight),
        }
    }

    #[cold]
    fn stand_in_line(&self, weight: u32) -> Result<Entry<'_>, Full> {
        let version = self.versions.newest();
        if version.waiting == 0 || weight == 0 || weight > self.limit() {
            return Err(self.refuse(weight));
        }
        let mut line = self.line.lock();
        if line.len() >= version.waiting as usize {
            return Err(self.refuse(weight));
        }
        if self.apply(Event::Queue { weight }) == Effect::Entered {
            return Ok(Entry::Inside(Permit::new(self, weight)));
        }
        let until = self.clock.precise() + version.max_wait;
        let waiter = Waiter::new(self, line.join(weight), until);
        drop(line);
        // Whoever parks a place from now on sees the line; what was parked before is found here.
        full_fence();
        self.give_back_parked();
        Ok(Entry::Waiting(waiter))
    }

    #[inline]
    fn take_places(&self, weight: u32) -> Effect {
        let word = Word::from_bits(self.word.load(Ordering::Acquire));
        // Above a limit that was lowered a parked place is none any more.
        if weight == 1 && !word.line && word.inside <= self.limit.now() && self.parked.take() {
            return Effect::Entered;
        }
        match self.apply(Event::Enter { weight }) {
            Effect::Full if self.give_back_parked() => self.apply(Event::Enter { weight }),
            effect => effect,
        }
    }

    /// Takes all places out of the slots and gives them back; false if there were none.
    #[cold]
    fn give_back_parked(&self) -> bool {
        let places = self.parked.take_all();
        if places > 0 {
            self.give_back(places);
        }
        places > 0
    }

    #[cold]
    pub(super) fn refuse(&self, weight: u32) -> Full {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Full { inside: self.word().inside, weight, limit: self.limit() }
    }

    /// How many places are taken.
    #[must_use]
    pub fn inside(&self) -> u32 {
        self.word().inside.saturating_sub(self.parked.count())
    }

    fn word(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::SeqCst))
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

    /// Lets in those who wait, in their order, as far as there are places: after somebody has left, the first one has given
    /// up, or the limit was raised.
    #[cold]
    pub(super) fn admit_more(&self) {
        loop {
            let mut line = self.line.lock();
            let Some(weight) = line.first_weight() else { return };
            if self.apply(Event::Admit { weight, line_ends: line.len() == 1 }) != Effect::Entered {
                return;
            }
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
            match self.word.compare_exchange_weak(bits, next.bits(), Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => return effect,
                Err(other) => bits = other,
            }
        }
    }

    #[inline]
    fn leave(&self, weight: u32) {
        if weight == 1 && self.parked.park() {
            // Both sides are sequentially consistent, here and where somebody stands in line: they have found the parked
            // place, or we see that there is a line.
            full_fence();
            if self.word().line {
                self.give_back_parked();
            }
            return;
        }
        self.give_back(weight);
    }

    fn give_back(&self, places: u32) {
        // Whoever comes to stand in line does so by a step on the same word: it has seen that these places are free, or we see
        // that there is a line.
        let before = self.word.fetch_sub(Word::taken(places), Ordering::SeqCst);
        if Word::from_bits(before).line {
            self.admit_more();
        }
    }

    /// The line is empty, and whoever holds its lock says so.
    pub(super) fn line_ended(&self) {
        self.word.fetch_and(!1, Ordering::AcqRel);
    }

    /// Tells a limit that finds itself what an answer took, and whether the peer had too much to do (a timeout, a
    /// throttled answer). A guard does so by itself. Without [`adaptive`](Bulkhead::adaptive) it does nothing.
    pub fn answered(&self, took: Duration, overloaded: bool) {
        if self.limit.learn(took, overloaded, self.inside()) {
            self.admit_more();
        }
    }

    /// Whether [`answered`](Gate::answered) is of use.
    #[cfg(not(seawall_loom))]
    #[inline]
    pub(crate) fn learns(&self) -> bool {
        self.limit.adapts()
    }
}

/// Loom takes sequentially consistent accesses for less than they are, and only believes a fence.
#[inline(always)]
fn full_fence() {
    #[cfg(seawall_loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// Inside, or in the line.
#[derive(Debug)]
pub enum Entry<'a> {
    /// There was a place.
    Inside(Permit<'a>),
    /// There was none; wait for it.
    Waiting(Waiter<'a>),
}

/// A place inside, or several. Dropping it is leaving.
#[must_use = "dropping a permit is leaving"]
pub struct Permit<'a> {
    gate: &'a Gate,
    weight: u32,
}

impl<'a> Permit<'a> {
    #[inline]
    pub(super) fn new(gate: &'a Gate, weight: u32) -> Self {
        Permit { gate, weight }
    }

    /// How many places it takes.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave(self.weight);
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("weight", &self.weight).finish_non_exhaustive()
    }
}

/// A [`Permit`] that keeps its gate alive, so that it can go into a task. Dropping it is leaving.
#[must_use = "dropping a permit is leaving"]
pub struct OwnedPermit {
    gate: Arc<Gate>,
    weight: u32,
}

impl OwnedPermit {
    pub(super) fn new(gate: &Arc<Gate>, permit: Permit<'_>) -> Self {
        let owned = OwnedPermit { gate: gate.clone(), weight: permit.weight };
        // The places are the owned one's now.
        std::mem::forget(permit);
        owned
    }

    /// How many places it takes.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        self.gate.leave(self.weight);
    }
}

impl fmt::Debug for OwnedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("weight", &self.weight).finish_non_exhaustive()
    }
}

/// A call that found no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    inside: u32,
    weight: u32,
    limit: u32,
}

impl Full {
    /// How many places were taken.
    #[must_use]
    pub fn inside(&self) -> u32 {
        self.inside
    }

    /// Whether asking again is of no use, because the weight is 0 or above the limit.
    #[must_use]
    pub fn never_fits(&self) -> bool {
        self.weight == 0 || self.weight > self.limit
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Full { weight, limit, .. } = self;
        if *weight == 0 {
            return f.write_str("a weight of 0 takes no place in the bulkhead; ask for at least 1");
        }
        if weight > limit {
            return write!(f, "a weight of {weight} is above the bulkhead's limit of {limit}; ask for less");
        }
        write!(f, "the bulkhead is full with {} calls", self.inside)
    }
}

impl std::error::Error for Full {}
