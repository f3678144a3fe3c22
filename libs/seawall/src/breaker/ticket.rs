//! The right to make one call.

use std::fmt;
use std::mem::ManuallyDrop;

use super::machine::{Effect, Event, Settled};
use super::policy::{CircuitBreaker, Version};
use super::window::{Window, is_enough};
use super::word::{Place, Word};
use crate::clock::Tick;
use crate::stats::Mark;

/// What became of a call, as far as its circuit is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It worked. Slow calls are found by the ticket's own time.
    Success,
    /// It failed in a way that counts.
    Failure,
    /// It neither heals nor harms: a business fault, a rejection further in. Frees the probe.
    Ignored,
}

/// The right to make one call through a [`CircuitBreaker`], and the duty to say what became of it.
///
/// Dropping it is an answer too, because futures are dropped: a call that was abandoned after it had run for
/// longer than the circuit's threshold counts as a failure, a shorter one as nothing unless most calls end that way, a panic
/// as a failure. Either way a probe's place is free again.
#[must_use = "a ticket that is dropped is an abandoned call; finish it with its outcome"]
pub struct Ticket<'a> {
    breaker: &'a CircuitBreaker,
    /// The circuit when it was handed out. Its stamp says which phase the ticket belongs to.
    word: Word,
    /// When the operation started; never, if it has not.
    started: Tick,
}

impl<'a> Ticket<'a> {
    #[inline(always)]
    pub(super) fn new(breaker: &'a CircuitBreaker, word: Word, started: Tick) -> Self {
        Ticket { breaker, word, started }
    }

    /// What it is made of; whoever takes them has the duty to say what became of the call.
    pub(super) fn into_parts(self) -> (Word, Tick) {
        let parts = (self.word, self.started);
        std::mem::forget(self);
        parts
    }

    /// The operation starts now, not when the ticket was handed out.
    #[inline]
    pub fn start(&mut self) {
        self.started = self.breaker.tick(&self.version().settings);
    }

    /// Whether the circuit judges how long calls take, so that [`start`](Ticket::start) matters to a success.
    #[cfg(not(seawall_loom))]
    #[inline]
    fn is_timed(&self) -> bool {
        self.version().settings.slow_after.is_some()
    }

    #[inline]
    fn start_if_not(&mut self) {
        if self.started == Tick::NEVER {
            self.start();
        }
    }

    #[inline]
    fn version(&self) -> &'a Version {
        self.breaker.version()
    }

    /// Whether this is a probe of a half-open circuit.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.word.place() == Place::HalfOpen
    }

    /// Says what became of the call.
    #[inline(always)]
    pub fn finish(self, outcome: Outcome) {
        // Word by word: as a whole it would be moved, and a ticket moved right after it was written stalls.
        let Ticket { breaker, word, started } = self;
        std::mem::forget(self);
        ManuallyDrop::new(Ticket { breaker, word, started }).settle(outcome, None);
    }

    /// As [`finish`](Ticket::finish), with a time that the caller has read already.
    #[cfg(not(seawall_loom))]
    #[inline(always)]
    pub(crate) fn finish_at(self, outcome: Outcome, now: Tick) {
        self.settle(outcome, Some(now));
        std::mem::forget(self);
    }

    /// The call was given up by somebody further out: as if the ticket was dropped, without a panic.
    pub(crate) fn cut_short(self) {
        self.abandon(false);
        std::mem::forget(self);
    }

    /// Another attempt has answered in its place: this one says nothing about the peer, neither that it answers nor that it
    /// does not.
    #[cfg(all(feature = "tokio", not(seawall_loom)))]
    pub(crate) fn supersede(self) {
        self.record(Outcome::Ignored, None);
        std::mem::forget(self);
    }

    /// The operation panicked.
    pub(crate) fn panicked(self) {
        self.abandon(true);
        std::mem::forget(self);
    }

    /// What most calls do: a success while nothing has failed lately. It reads two or three words and writes none.
    ///
    /// Whoever calls it must then forget the ticket.
    #[inline(always)]
    fn settle(&self, outcome: Outcome, now: Option<Tick>) {
        let word = self.breaker.word();
        let changes_nothing = outcome == Outcome::Success
            && word.place() == Place::Closed
            && word.stamp() == self.word.stamp()
            && self.breaker.abandonment.is_none()
            && self.version().settings.slow_after.is_none()
            && match &*self.version().window {
                Window::None => word.streak() == 0,
                Window::Calls(ring) => ring.is_clean(word.stamp()),
                Window::Time(_) => false,
            };
        if !changes_nothing {
            // In words that fit into registers: a ticket whose address is taken would have to live in memory.
            settle(self.breaker, self.word, self.started, outcome, now.unwrap_or(Tick::NEVER));
        }
    }

    fn settle_closed(&self, word: Word, outcome: Outcome, now: Option<Tick>) {
        if outcome == Outcome::Ignored {
            return;
        }
        let failed = outcome == Outcome::Failure;
        let Version { settings, window, .. } = self.version();
        let enough = match &**window {
            Window::None => {
                let outcome = if failed { Settled::Bad } else { Settled::Good };
                if failed || word.streak() > 0 {
                    self.report(Event::Settle { stamp: self.word.stamp(), outcome }, now);
                }
                return;
            }
            Window::Calls(ring) => {
                let mark = Mark { failed, slow: self.is_slow(now) };
                if mark.is_good() && ring.is_clean(self.word.stamp()) {
                    return;
                }
                ring.record(self.word.stamp(), mark).is_some_and(|tally| is_enough(tally, settings))
            }
            Window::Time(window) => {
                let now = now.unwrap_or_else(|| self.breaker.tick(settings));
                let mark = Mark { failed, slow: self.is_slow(Some(now)) };
                window.record(mark, self.word.stamp(), self.breaker.unit(now), settings)
            }
        };
        if enough {
            self.report(Event::Tripped { stamp: self.word.stamp() }, now);
        }
    }

    #[inline(never)]
    fn settle_probe(&self, outcome: Outcome, now: Option<Tick>) {
        let outcome = match outcome {
            // A probe that answers too late to be of use is no sign of health.
            Outcome::Success if self.is_slow(now) => Settled::Bad,
            Outcome::Success => Settled::Good,
            Outcome::Failure => Settled::Bad,
            Outcome::Ignored => Settled::Nothing,
        };
        self.report(Event::Settle { stamp: self.word.stamp(), outcome }, now);
    }

    #[inline(never)]
    fn report(&self, event: Event, now: Option<Tick>) {
        let now = now.unwrap_or_else(|| self.breaker.tick(&self.version().settings));
        if let (_, Effect::Late) = self.breaker.apply(event, self.breaker.unit(now), self.version()) {
            self.breaker.count_late();
        }
    }

    /// Asked once for each ticket, because what is slow is counted here.
    #[inline]
    fn is_slow(&self, now: Option<Tick>) -> bool {
        let Some(slow_after) = self.version().settings.slow_after else { return false };
        let now = now.unwrap_or_else(|| self.breaker.tick(&self.version().settings));
        let took = now.since(self.started);
        let slow = took >= slow_after;
        if slow {
            self.breaker.count_slow(took);
        }
        slow
    }

    #[cold]
    fn abandon(&self, panicked: bool) {
        let now = self.breaker.tick(&self.version().settings);
        let long = now.since(self.started) > self.version().settings.abandoned_after;
        self.breaker.count_abandoned(panicked);
        let failed = panicked || long || self.is_blamed_on_the_peer(now);
        self.record(if failed { Outcome::Failure } else { Outcome::Ignored }, Some(now));
    }

    /// Whether a call that was abandoned early counts nevertheless. One that never started can't.
    fn is_blamed_on_the_peer(&self, now: Tick) -> bool {
        let word = self.breaker.word();
        let current = word.stamp() == self.word.stamp() && looks(word.place());
        current && self.started != Tick::NEVER && {
            let started = self.breaker.unit(self.started);
            self.breaker.abandonment.on_abandoned(word.place(), started, self.breaker.unit(now))
        }
    }

    /// What an outcome does to the circuit, wherever it stands.
    fn record(&self, outcome: Outcome, now: Option<Tick>) {
        let word = self.breaker.word();
        if word.stamp() != self.word.stamp() {
            return self.breaker.count_late();
        }
        match word.place() {
            Place::HalfOpen => self.settle_probe(outcome, now),
            place if looks(place) => self.settle_closed(word, outcome, now),
            _ => {}
        }
    }
}

/// Whether outcomes are looked at there. Forced closed they are counted, so that a person sees what comes back, but nothing
/// opens the circuit.
fn looks(place: Place) -> bool {
    matches!(place, Place::Closed | Place::Ramping | Place::ForcedClosed | Place::HalfOpen)
}

/// The whole of it.
#[inline(never)]
fn settle(breaker: &CircuitBreaker, word: Word, started: Tick, outcome: Outcome, now: Tick) {
    let ticket = ManuallyDrop::new(Ticket::new(breaker, word, started));
    let now = (now != Tick::NEVER).then_some(now);
    // What is ignored is an answer too, a business fault, unless the operation has never started.
    if breaker.word().stamp() == word.stamp() && (outcome != Outcome::Ignored || started != Tick::NEVER) {
        breaker.abandonment.on_answer();
    }
    ticket.record(outcome, now);
}

/// A place for a ticket, in a future that is under way.
///
/// # Why not an `Option`?
/// What is not written in a `None` is copied along with it all the same, in other pieces than it was once written in, and
/// waiting for those costs the processor more than a whole breaker. Here every word is written, ticket or none.
///
/// Whoever drops the future has given the call up, and a panic elsewhere in the task that drops it on its way is not the
/// peer's; a ticket's own drop would ask whether the thread panics.
pub(crate) struct Slot<'a> {
    breaker: Option<&'a CircuitBreaker>,
    word: Word,
    started: Tick,
    /// Whether the operation panicked, ticket or none.
    panicked: bool,
}

impl<'a> Slot<'a> {
    #[cfg(not(seawall_loom))]
    pub(crate) const EMPTY: Self =
        Slot { breaker: None, word: Word::from_bits(0), started: Tick::NEVER, panicked: false };

    #[inline(always)]
    pub(super) fn of(ticket: Ticket<'a>) -> Self {
        let Ticket { breaker, word, started } = ticket;
        std::mem::forget(ticket);
        Slot { breaker: Some(breaker), word, started, panicked: false }
    }

    #[cfg(not(seawall_loom))]
    #[inline(always)]
    pub(crate) fn put(&mut self, ticket: Ticket<'a>) {
        let Ticket { breaker, word, started } = ticket;
        std::mem::forget(ticket);
        (self.breaker, self.word, self.started) = (Some(breaker), word, started);
    }

    #[cfg(not(seawall_loom))]
    pub(crate) fn has_panicked(&self) -> bool {
        self.panicked
    }

    #[cfg(not(seawall_loom))]
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.breaker.is_none()
    }

    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<Ticket<'a>> {
        self.breaker.take().map(|breaker| Ticket::new(breaker, self.word, self.started))
    }

    /// The ticket, to be looked at.
    #[inline(always)]
    fn peek(&self) -> Option<ManuallyDrop<Ticket<'a>>> {
        self.breaker.map(|breaker| ManuallyDrop::new(Ticket::new(breaker, self.word, self.started)))
    }

    /// Whether there is a ticket of a circuit that judges how long calls take.
    #[cfg(not(seawall_loom))]
    #[inline(always)]
    pub(crate) fn is_timed(&self) -> bool {
        self.peek().is_some_and(|ticket| ticket.is_timed())
    }

    /// The ticket's time starts now, if it has not started yet.
    #[inline]
    pub(crate) fn start_if_not(&mut self) {
        if let Some(mut ticket) = self.peek() {
            ticket.start_if_not();
            self.started = ticket.started;
        }
    }

    /// The operation started then, if nobody has said otherwise yet.
    #[cfg(not(seawall_loom))]
    pub(crate) fn started_by(&mut self, tick: Tick) {
        self.started = self.started.min(tick);
    }

    /// The ticket's time starts anew then: nobody saw what happened before.
    #[cfg(not(seawall_loom))]
    pub(crate) fn restart(&mut self, tick: Tick) {
        self.started = tick;
    }

    /// Settles the ticket, if there is one.
    #[cfg(not(seawall_loom))]
    #[inline(always)]
    pub(crate) fn settle(&mut self, outcome: Outcome, now: Option<Tick>) {
        if let Some(ticket) = self.peek() {
            ticket.settle(outcome, now);
            self.breaker = None;
        }
    }
}

impl Drop for Slot<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.take() {
            ticket.cut_short();
        }
    }
}

/// Remembers and tells the breaker of a panic that unwinds through here. Looking at `thread::panicking` in the ticket's drop would also
/// blame the operation for a panic elsewhere in its task.
pub(crate) struct OnPanic<'a, 'b>(pub(crate) &'a mut Slot<'b>);

impl OnPanic<'_, '_> {
    #[inline]
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for OnPanic<'_, '_> {
    fn drop(&mut self) {
        self.0.panicked = true;
        if let Some(ticket) = self.0.take() {
            ticket.panicked();
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.abandon(std::thread::panicking());
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("admitted", &self.word).field("started", &self.started).finish()
    }
}
