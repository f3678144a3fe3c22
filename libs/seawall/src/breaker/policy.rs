//! The circuit itself: the shell that applies the machine by compare-and-swap.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::abandonment::SharedAbandonment;
use super::config::Breaker;
use super::counts::{Counters, Counts};
use super::machine::{Effect, Event, opens_until, step};
use super::refused::{Failure, Refused};
use super::settings::{Defaults, Settings};
use super::sign::{Move, Sign, Witness};
use super::snapshot::State;
use super::ticket::{OnPanic, Outcome, Slot, Ticket};
use super::window::Window;
use super::word::{Place, Word};
use crate::chance::entropy;
#[cfg(not(seawall_loom))]
use crate::clock::ClockId;
use crate::clock::{Clock, Tick, Unit, millis_of_units};
use crate::stats::{Tally, spread};
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A circuit that many threads share. Made by [`Breaker::build`].
#[derive(Debug)]
pub struct CircuitBreaker {
    word: AtomicU64,
    /// Who left early, as far as that matters. Beside the word, because both are read for every answer.
    pub(super) abandonment: SharedAbandonment,
    pub(super) versions: Versions<Version>,
    pub(super) clock: Clock,
    /// When it was made. Stamps count from here, so that 40 bits last for decades.
    made: Tick,
    counters: Counters,
    /// Moves on with each draw of a ramp.
    draws: AtomicU64,
    /// Why a person last moved it.
    pub(super) reason: Mutex<Option<Arc<str>>>,
    witness: Option<Witness>,
}

/// Settings and the window that fits them; a change of settings that leaves the window's shape shares it.
#[derive(Debug)]
pub(super) struct Version {
    /// What holds where the configuration says nothing.
    pub(super) defaults: Defaults,
    pub(super) settings: Settings,
    pub(super) window: Arc<Window>,
}

/// The time of a new circuit on its own scale: high enough that a restored circuit's opening lies above zero.
const ORIGIN: Unit = 1 << 38;

impl CircuitBreaker {
    /// `abandoned_after`: the threshold for abandoned calls that a guard's timeouts imply.
    pub(crate) fn new(breaker: &Breaker, clock: Clock, abandoned_after: Option<Duration>) -> Self {
        let defaults = Defaults { abandoned_after, seed: entropy() };
        let settings = breaker.settings(&defaults);
        let window = Arc::new(Window::new(settings.window));
        CircuitBreaker {
            // Closed since long ago: a circuit that is restored right away may have opened before it was made.
            word: AtomicU64::new(Word::new(Place::Closed, 1).bits()),
            abandonment: SharedAbandonment::new(),
            versions: Versions::new(Version { defaults, settings, window }),
            made: clock.now(),
            clock,
            counters: Counters::new(),
            draws: AtomicU64::new(0),
            reason: Mutex::new(None),
            witness: None,
        }
    }

    /// Which clock it goes by.
    #[cfg(not(seawall_loom))]
    pub(crate) fn clock_id(&self) -> ClockId {
        self.clock.id()
    }

    /// The same circuit with somebody who is told what happens to it.
    #[cfg(not(seawall_loom))]
    pub(crate) fn told_to(mut self, witness: &Witness) -> Self {
        self.witness = Some(witness.clone());
        self
    }

    /// Asks for the right to make one call.
    ///
    /// The call's time starts now; if it starts later, say so with [`Ticket::start`].
    #[inline(always)] // A ticket that is moved right after it was written stalls the processor; inlined it is not moved.
    pub fn admit(&self) -> Result<Ticket<'_>, Refused> {
        let word = self.admission()?;
        Ok(Ticket::new(self, word, self.tick(&self.version().settings)))
    }

    /// A ticket whose time has not started: reads no clock while the circuit is closed.
    #[cfg(not(seawall_loom))]
    #[inline(always)]
    pub(crate) fn admit_untimed(&self) -> Result<Ticket<'_>, Refused> {
        Ok(Ticket::new(self, self.admission()?, Tick::NEVER))
    }

    /// A ticket whose time has started only if the circuit judges how long calls take.
    #[inline(always)]
    pub(super) fn admit_if_timed(&self) -> Result<Ticket<'_>, Refused> {
        let word = self.admission()?;
        let settings = &self.version().settings;
        // Known before the ticket is made: one that is changed afterwards has to live in memory.
        let started = if settings.slow_after.is_some() { self.tick_apart(settings) } else { Tick::NEVER };
        Ok(Ticket::new(self, word, started))
    }

    /// Out of line, where it is seldom needed in what should be inlined as a whole.
    #[cold]
    #[inline(never)]
    fn tick_apart(&self, settings: &Settings) -> Tick {
        self.tick(settings)
    }

    #[inline(always)]
    fn admission(&self) -> Result<Word, Refused> {
        let word = self.word();
        if word.place() == Place::Closed {
            return Ok(word);
        }
        self.admission_otherwise()
    }

    #[inline(never)]
    fn admission_otherwise(&self) -> Result<Word, Refused> {
        let word = self.word();
        if matches!(word.place(), Place::ForcedClosed | Place::Disabled) {
            return Ok(word);
        }
        let version = self.version();
        let rules = &version.settings.rules;
        let now = self.now();
        if word.place() == Place::Open && now < opens_until(word, rules) {
            return Err(self.refuse(Place::Open, Some(opens_until(word, rules) - now)));
        }
        // Only a ramp leaves anything to chance.
        let chance = if word.place() == Place::Ramping {
            spread(rules.seed ^ self.draws.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed))
        } else {
            0
        };
        match self.apply(Event::Admit { chance }, now, version) {
            (word, Effect::Refused { until }) => {
                Err(self.refuse(word.place(), until.map(|until| until.saturating_sub(now))))
            }
            (word, _) => Ok(word),
        }
    }

    #[inline]
    fn refuse(&self, place: Place, wait: Option<Unit>) -> Refused {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        Refused::new(place, wait)
    }

    /// Runs a blocking operation through the circuit, and judges its result by `outcome`.
    ///
    /// What blocks can't be dropped halfway, only panic, which is a failure. So no clock is read, unless the circuit
    /// judges slow calls.
    ///
    /// ```
    /// # use seawall::{Breaker, breaker::{Failure, Outcome}};
    /// let breaker = Breaker::consecutive_failures(3).build()?;
    /// let outcome = |result: &std::io::Result<String>| match result {
    ///     Ok(_) => Outcome::Success,
    ///     Err(error) if error.kind() == std::io::ErrorKind::NotFound => Outcome::Ignored,
    ///     Err(_) => Outcome::Failure,
    /// };
    /// match breaker.run(outcome, || std::fs::read_to_string("/no/such/file")) {
    ///     Ok(text) => println!("{text}"),
    ///     Err(Failure::Refused(refused)) => println!("{refused}"),
    ///     Err(Failure::Failed(error)) => println!("{error}"),
    /// }
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    #[inline(always)] // What is not inlined returns its result through memory, in pieces.
    pub fn run<T, E>(
        &self,
        outcome: impl FnOnce(&Result<T, E>) -> Outcome,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Failure<E>> {
        let ticket = self.admit_if_timed()?;
        let result = operation();
        ticket.finish(outcome(&result));
        result.map_err(Failure::Failed)
    }

    /// Runs a future through the circuit, and judges its result by `outcome`. Needs no runtime, and does nothing until
    /// it is polled.
    ///
    /// What is dropped halfway is judged by how long it had been waiting, so the clock is read when the future first has
    /// to wait; one that is ready at once costs no clock.
    ///
    /// ```
    /// # async fn fetch() -> std::io::Result<u32> { Ok(7) }
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use seawall::{Breaker, breaker::Outcome};
    /// let breaker = Breaker::consecutive_failures(3).build()?;
    /// let outcome = |result: &std::io::Result<u32>| if result.is_ok() { Outcome::Success } else { Outcome::Failure };
    /// let answer = breaker.call(outcome, fetch()).await?;
    /// # assert_eq!(answer, 7);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub async fn call<F, T, E>(
        &self,
        outcome: impl FnOnce(&Result<T, E>) -> Outcome,
        future: F,
    ) -> Result<T, Failure<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut slot = Slot::of(self.admit_if_timed()?);
        let mut future = pin!(future);
        let result = poll_fn(|cx| {
            let armed = OnPanic(&mut slot);
            let polled = future.as_mut().poll(cx);
            armed.disarm();
            if polled.is_pending() {
                slot.start_if_not();
            }
            polled
        })
        .await;
        if let Some(ticket) = slot.take() {
            ticket.finish(outcome(&result));
        }
        result.map_err(Failure::Failed)
    }

    /// Applies an event, tells of it, and says what the word is then.
    pub(super) fn apply(&self, event: Event, now: Unit, version: &Version) -> (Word, Effect) {
        let (from, word, effect) = self.apply_untold(event, now, version);
        if from.place() != word.place() {
            self.tell_move(from, word, now, version, None);
        }
        (word, effect)
    }

    /// Applies an event until no other thread comes in between, and says what the word was and is. For whoever holds a
    /// lock: those who are told may want it.
    pub(super) fn apply_untold(&self, event: Event, now: Unit, version: &Version) -> (Word, Word, Effect) {
        let mut word = self.word();
        loop {
            let (next, effect) = step(word, event, now, &version.settings.rules);
            if next == word {
                return (word, word, effect);
            }
            match self.word.compare_exchange_weak(
                word.bits(),
                next.bits(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    self.counters.moved(word.place(), next.place());
                    self.abandonment.moved(word.place(), next.place());
                    return (word, next, effect);
                }
                Err(other) => word = Word::from_bits(other),
            }
        }
    }

    #[inline(never)]
    pub(super) fn tell_move(
        &self,
        from: Word,
        word: Word,
        now: Unit,
        version: &Version,
        reason: Option<&str>,
    ) {
        if let Some(witness) = &self.witness {
            // What is left of it, where a circuit is restored.
            let cooldown = || {
                let units = opens_until(word, &version.settings.rules).saturating_sub(now);
                millis_of_units(units)
            };
            let moved = Move { from: from.place().into(), to: word.place().into(), reason };
            Sign::of_move(from.place(), word.place(), cooldown)
                .into_iter()
                .for_each(|sign| witness.tell_move(sign, moved));
        }
    }

    /// The guard has no breaker any more, but calls under way may still hold tickets: whatever they come to, nobody has
    /// this circuit, and nobody is told that it opens.
    #[cfg(not(seawall_loom))]
    pub(crate) fn retire(&self) {
        let (from, ..) = self.apply_untold(Event::Disable, self.now(), self.version());
        if !matches!(from.place(), Place::Closed | Place::Ramping) {
            let moved = Move { from: from.place().into(), to: State::Closed, reason: None };
            self.witness.iter().for_each(|witness| witness.tell_move(Sign::Closed, moved));
        }
    }

    /// Where the circuit stands now. What time alone decides (a probe whose lease ran out, a ramp that is over)
    /// is decided by looking.
    #[must_use]
    pub fn state(&self) -> State {
        self.observe().place().into()
    }

    /// Whether it is closed, without moving it if it should move, so that nobody is told: for whoever holds a lock.
    #[cfg(not(seawall_loom))]
    pub(crate) fn is_closed(&self) -> bool {
        let (word, _) = step(self.word(), Event::Observe, self.now(), &self.version().settings.rules);
        word.place() == Place::Closed
    }

    pub(super) fn observe(&self) -> Word {
        self.apply(Event::Observe, self.now(), self.versions.newest()).0
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Probes that are under way.
    #[must_use]
    pub fn probes_under_way(&self) -> u32 {
        let word = self.observe();
        if word.place() == Place::HalfOpen { word.probes() } else { 0 }
    }

    /// What the window holds. Empty where failures in a row are counted, and while the circuit is not closed.
    #[must_use]
    pub fn window(&self) -> Tally {
        self.version().window.tally(self.word().stamp(), self.now())
    }

    /// When it opens and how it closes again, in words.
    #[must_use]
    pub fn explain(&self) -> &str {
        &self.versions.newest().settings.text
    }

    #[inline]
    pub(super) fn version(&self) -> &Version {
        self.versions.newest()
    }

    #[inline]
    pub(super) fn word(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn tick(&self, settings: &Settings) -> Tick {
        if settings.precise { self.clock.precise() } else { self.clock.now() }
    }

    pub(super) fn now(&self) -> Unit {
        self.unit(self.clock.now())
    }

    #[inline]
    pub(super) fn unit(&self, tick: Tick) -> Unit {
        ORIGIN + tick.as_units().saturating_sub(self.made.as_units())
    }

    pub(super) fn count_late(&self) {
        self.counters.late.fetch_add(1, Ordering::Relaxed);
        self.witness.iter().for_each(|witness| witness.tell(Sign::Late));
    }

    #[cold]
    pub(super) fn count_slow(&self, took: Duration) {
        self.counters.slow.fetch_add(1, Ordering::Relaxed);
        self.witness.iter().for_each(|witness| witness.tell(Sign::Slow { took }));
    }

    pub(super) fn count_abandoned(&self, panicked: bool) {
        let counter = if panicked { &self.counters.panicked } else { &self.counters.abandoned };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
