//! Callers who leave early: whether the peer is to blame for it, as pure functions of one word, and the shell that applies
//! them.
//!
//! # Why not count each of them?
//! A caller who leaves early says little about the peer: users close pages, races are decided elsewhere. Yet callers who
//! *all* leave early would hide a peer that hangs. So they are weighed against answers: where they outnumber the answers of
//! late, those who come and leave from then on count as failures.

use std::fmt;

use super::word::Place;
use crate::clock::Unit;
use crate::sync::{AtomicU64, Ordering};

/// Calls that were abandoned early, and answers, of late.
///
/// | bits | what |
/// |---|---|
/// | 8 | abandoned calls |
/// | 8 | answers |
/// | 48 | since when the peer is suspected, in units; 0 if it is not |
///
/// All zero while nobody leaves, so that a healthy circuit only reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Abandonment(u64);

/// While closed, at least this many calls must have been seen: where 10 % leave by chance, most of 16 never do.
const ENOUGH_CLOSED: u64 = 16;
/// While half-open the peer is in doubt already, and there are few calls: two abandoned probes, and the third one counts.
const ENOUGH_PROBES: u64 = 2;
/// When there are this many, each one weighs half, so that what counts is recent.
const HALVED_AT: u64 = 32;

const COUNT_BITS: u32 = 8;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

impl Abandonment {
    const NONE: Self = Abandonment(0);

    const fn from_bits(bits: u64) -> Self {
        Abandonment(bits)
    }

    const fn bits(self) -> u64 {
        self.0
    }

    const fn abandoned(self) -> u64 {
        self.0 & COUNT_MASK
    }

    const fn answers(self) -> u64 {
        self.0 >> COUNT_BITS & COUNT_MASK
    }

    const fn suspected_since(self) -> u64 {
        self.0 >> (2 * COUNT_BITS)
    }

    const fn new(abandoned: u64, answers: u64, suspected_since: u64) -> Self {
        let halves = if abandoned + answers >= HALVED_AT { 1 } else { 0 };
        let (abandoned, answers) = (abandoned >> halves, answers >> halves);
        if abandoned == 0 {
            return Abandonment::NONE;
        }
        let since = if abandoned > answers { suspected_since } else { 0 };
        Abandonment(since << (2 * COUNT_BITS) | answers << COUNT_BITS | abandoned)
    }

    /// The peer has answered. Changes nothing while nobody leaves.
    const fn on_answer(self) -> Self {
        if self.0 == 0 {
            return self;
        }
        Abandonment::new(self.abandoned(), self.answers() + 1, self.suspected_since())
    }

    /// A caller has left early. If `enough` calls were seen and most of them were abandoned, the peer is suspected from
    /// now on.
    const fn on_abandoned(self, now: u64, enough: u64) -> Self {
        let (abandoned, answers, since) = (self.abandoned() + 1, self.answers(), self.suspected_since());
        let suspect = since == 0 && abandoned + answers >= enough;
        Abandonment::new(abandoned, answers, if suspect { now } else { since })
    }

    /// Whether the peer is suspected.
    const fn is_suspected(self) -> bool {
        self.suspected_since() > 0
    }

    /// Whether a call that started then and was abandoned early is a failure. Calls that were under way when the suspicion
    /// arose are not: many who leave in one moment, as when a connection with all of them is closed, are no proof.
    const fn blames(self, started: u64) -> bool {
        self.is_suspected() && started >= self.suspected_since()
    }
}

/// The word that many threads share. It stands alone: nobody reads anything else because of what is in it.
pub(super) struct SharedAbandonment(AtomicU64);

impl SharedAbandonment {
    pub(super) fn new() -> Self {
        SharedAbandonment(AtomicU64::new(Abandonment::NONE.bits()))
    }

    /// Whether nobody has left early of late.
    #[inline(always)]
    pub(super) fn is_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Abandonment::NONE.bits()
    }

    /// The peer has answered.
    pub(super) fn on_answer(&self) {
        if !self.is_none() {
            self.step(Abandonment::on_answer);
        }
    }

    /// A call that started then was abandoned early. Says whether that is a failure; whoever raises the suspicion is none yet.
    pub(super) fn on_abandoned(&self, place: Place, started: Unit, now: Unit) -> bool {
        let enough = if place == Place::HalfOpen { ENOUGH_PROBES } else { ENOUGH_CLOSED };
        self.step(|held| held.on_abandoned(now, enough)).blames(started)
    }

    /// A new phase weighs anew. Only a suspicion outlasts the cooldown: the next probe may hang as well.
    pub(super) fn moved(&self, from: Place, to: Place) {
        if from == to || to == Place::HalfOpen || self.is_none() {
            return;
        }
        self.step(|held| if to == Place::Open && held.is_suspected() { held } else { Abandonment::NONE });
    }

    /// Takes a step, and says what was held before.
    fn step(&self, step: impl Fn(Abandonment) -> Abandonment) -> Abandonment {
        let mut held = self.0.load(Ordering::Relaxed);
        loop {
            let next = step(Abandonment::from_bits(held)).bits();
            match self.0.compare_exchange_weak(held, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(before) => return Abandonment::from_bits(before),
                Err(other) => held = other,
            }
        }
    }
}

impl fmt::Debug for SharedAbandonment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Abandonment::from_bits(self.0.load(Ordering::Relaxed)).fmt(f)
    }
}

impl fmt::Debug for Abandonment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} abandoned, {} answers", self.abandoned(), self.answers())?;
        if self.is_suspected() {
            write!(f, ", suspected since {}", self.suspected_since())?;
        }
        Ok(())
    }
}
