//! The circuit itself: the shell that applies the machine by compare-and-swap.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::config::{Breaker, Settings};
use super::machine::{Effect, Event, opens_until, step};
use super::snapshot::{Snapshot, State};
use super::ticket::{Outcome, Ticket};
use super::window::Window;
use super::word::{Place, Word};
use crate::clock::{Clock, Tick, Unit, from_units, units};
use crate::config::{ConfigError, Problems};
use crate::stats::spread;
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A circuit that many threads share. Made by [`Breaker::build`].
#[derive(Debug)]
pub struct CircuitBreaker {
    word: AtomicU64,
    versions: Versions<Version>,
    clock: Clock,
    /// When it was made. Stamps count from here, so that 40 bits last for decades.
    made: Tick,
    counters: Counters,
    /// Why a person last moved it.
    reason: Mutex<Option<Arc<str>>>,
}

/// Settings and the window that fits them; a change of settings that leaves the window's shape shares it.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) settings: Settings,
    pub(super) window: Arc<Window>,
}

/// What happened to a circuit so far, but for what passed without remark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// How often it opened.
    pub opened: u64,
    /// How often it became half-open.
    pub half_opened: u64,
    /// How often it closed.
    pub closed: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Tickets that came back after the circuit had moved on, and changed nothing.
    pub late: u64,
    /// Tickets that were dropped without an outcome.
    pub abandoned: u64,
    /// Tickets that a panic dropped; each is a failure.
    pub panicked: u64,
}

#[derive(Debug)]
struct Counters {
    opened: AtomicU64,
    half_opened: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
    abandoned: AtomicU64,
    panicked: AtomicU64,
}

/// The time of a new circuit on its own scale: high enough that a restored circuit's opening lies above zero.
const ORIGIN: Unit = 1 << 38;

impl CircuitBreaker {
    pub(crate) fn new(breaker: &Breaker, clock: Clock) -> Self {
        let settings = breaker.settings();
        let window = Arc::new(Window::new(settings.window));
        let zero = || AtomicU64::new(0);
        CircuitBreaker {
            // Closed since long ago: a circuit that is restored right away may have opened before it was made.
            word: AtomicU64::new(Word::new(Place::Closed, 1).bits()),
            versions: Versions::new(Version { settings, window }),
            made: clock.now(),
            clock,
            counters: Counters {
                opened: zero(),
                half_opened: zero(),
                closed: zero(),
                refused: zero(),
                late: zero(),
                abandoned: zero(),
                panicked: zero(),
            },
            reason: Mutex::new(None),
        }
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
    #[inline(always)]
    pub(crate) fn admit_untimed(&self) -> Result<Ticket<'_>, Refused> {
        Ok(Ticket::new(self, self.admission()?, Tick::NEVER))
    }

    #[inline(always)]
    fn admission(&self) -> Result<Word, Refused> {
        let word = self.word();
        if matches!(word.place(), Place::Closed | Place::ForcedClosed | Place::Disabled) {
            return Ok(word);
        }
        self.admission_otherwise()
    }

    #[inline(never)]
    fn admission_otherwise(&self) -> Result<Word, Refused> {
        let version = self.version();
        let rules = &version.settings.rules;
        let now = self.now();
        let word = self.word();
        if word.place() == Place::Open && now < opens_until(word, rules) {
            return Err(self.refuse(Place::Open, Some(opens_until(word, rules) - now)));
        }
        // Only a ramp leaves anything to chance; the count of refusals makes each draw another one.
        let chance = if rules.ramp == 0 {
            0
        } else {
            let drawn = self.counters.refused.load(Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            spread(rules.seed ^ now.rotate_left(32) ^ drawn)
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
    /// What blocks can't be dropped halfway, only panic, which is a failure. So no clock is read, unless the
    /// circuit judges slow calls.
    ///
    /// ```
    /// # use seawall::{Breaker, breaker::Outcome};
    /// let breaker = Breaker::consecutive_failures(3).build()?;
    /// let outcome = |result: &std::io::Result<String>| match result {
    ///     Ok(_) => Outcome::Success,
    ///     Err(error) if error.kind() == std::io::ErrorKind::NotFound => Outcome::Ignored,
    ///     Err(_) => Outcome::Failure,
    /// };
    /// match breaker.run(outcome, || std::fs::read_to_string("/no/such/file")) {
    ///     Ok(answer) => assert!(answer.is_err()),
    ///     Err(refused) => println!("{refused}"),
    /// }
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    #[inline]
    pub fn run<R>(
        &self,
        outcome: impl FnOnce(&R) -> Outcome,
        operation: impl FnOnce() -> R,
    ) -> Result<R, Refused> {
        let mut ticket = self.admit_untimed()?;
        ticket.start_if_timed();
        let result = operation();
        ticket.settle(outcome(&result), None);
        std::mem::forget(ticket);
        Ok(result)
    }

    /// Runs a future through the circuit, and judges its result by `outcome`. Needs no runtime.
    ///
    /// What is dropped halfway is judged by how long it had been waiting, so the clock is read when the future first
    /// has to wait; one that is ready at once costs no clock.
    ///
    /// ```
    /// # async fn fetch() -> std::io::Result<u32> { Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use seawall::{Breaker, breaker::Outcome};
    /// let breaker = Breaker::consecutive_failures(3).build()?;
    /// let outcome = |result: &std::io::Result<u32>| if result.is_ok() { Outcome::Success } else { Outcome::Failure };
    /// let answer = breaker.call(outcome, fetch()).await??;
    /// # assert_eq!(answer, 7);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub async fn call<F: Future>(
        &self,
        outcome: impl FnOnce(&F::Output) -> Outcome,
        future: F,
    ) -> Result<F::Output, Refused> {
        let mut ticket = self.admit_untimed()?;
        ticket.start_if_timed();
        let mut future = pin!(future);
        let result = poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() {
                ticket.start_if_not();
            }
            polled
        })
        .await;
        ticket.settle(outcome(&result), None);
        std::mem::forget(ticket);
        Ok(result)
    }

    /// Applies an event until no other thread comes in between, and says what the word is then.
    pub(super) fn apply(&self, event: Event, now: Unit, version: &Version) -> (Word, Effect) {
        let mut word = self.word();
        loop {
            let (next, effect) = step(word, event, now, &version.settings.rules);
            if next == word {
                return (word, effect);
            }
            match self.word.compare_exchange_weak(
                word.bits(),
                next.bits(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    self.moved(word.place(), next.place());
                    return (next, effect);
                }
                Err(other) => word = Word::from_bits(other),
            }
        }
    }

    fn moved(&self, from: Place, to: Place) {
        let counter = match to {
            _ if from == to => return,
            Place::Open | Place::ForcedOpen => &self.counters.opened,
            Place::HalfOpen => &self.counters.half_opened,
            // From ramping to closed nothing is decided: the circuit has been closed since the ramp began.
            Place::Closed | Place::Ramping if from != Place::Ramping => &self.counters.closed,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the circuit stands now. What time alone decides (a probe whose lease ran out, a ramp that is over)
    /// is decided by looking.
    #[must_use]
    pub fn state(&self) -> State {
        self.observe().place().into()
    }

    fn observe(&self) -> Word {
        self.apply(Event::Observe, self.now(), self.versions.newest()).0
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { opened, half_opened, closed, refused, late, abandoned, panicked } = &self.counters;
        Counts {
            opened: read(opened),
            half_opened: read(half_opened),
            closed: read(closed),
            refused: read(refused),
            late: read(late),
            abandoned: read(abandoned),
            panicked: read(panicked),
        }
    }

    /// Probes that are under way.
    #[must_use]
    pub fn probes_under_way(&self) -> u32 {
        let word = self.observe();
        if word.place() == Place::HalfOpen { word.probes() } else { 0 }
    }

    /// Closes the circuit and forgets what led to its opening; also ends forcing and disabling.
    pub fn reset(&self, reason: &str) {
        self.command(Event::Reset, reason);
    }

    /// Refuses every call until [`reset`](CircuitBreaker::reset).
    pub fn force_open(&self, reason: &str) {
        self.command(Event::ForceOpen, reason);
    }

    /// Lets every call through, whatever comes back, until [`reset`](CircuitBreaker::reset).
    pub fn force_closed(&self, reason: &str) {
        self.command(Event::ForceClosed, reason);
    }

    /// Lets every call through and looks at none, until [`reset`](CircuitBreaker::reset).
    pub fn disable(&self, reason: &str) {
        self.command(Event::Disable, reason);
    }

    fn command(&self, event: Event, reason: &str) {
        let mut held = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(reason.into());
        self.apply(event, self.now(), self.versions.newest());
    }

    /// The reason that was given when a person last moved the circuit.
    #[must_use]
    pub fn reason(&self) -> Option<Arc<str>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the settings of a running circuit. State, streak and probes stay; the window stays if its shape
    /// does, else it starts empty. A cooldown that is running is measured by the new settings from now on.
    pub fn reconfigure(&self, breaker: &Breaker) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        breaker.check(&mut problems);
        let settings = problems.into_result("the breaker", breaker)?.settings();
        let published = self.versions.publish(|old| {
            let window = if old.window.fits(settings.window) {
                old.window.clone()
            } else {
                Arc::new(Window::new(settings.window))
            };
            Version { settings, window }
        });
        let mut problems = Problems::default();
        problems.refuse_if(published.is_err(), "breaker", || {
            "it was changed a million times; build a new one".into()
        });
        problems.into_result("the breaker", ())
    }

    /// What a restart should not forget.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (word, now) = (self.observe(), self.now());
        let until = opens_until(word, &self.versions.newest().settings.rules);
        Snapshot {
            state: word.place().into(),
            until: (word.place() == Place::Open)
                .then(|| self.clock.wall() + from_units(until.saturating_sub(now))),
            trips: word.trips(),
            reason: self.reason(),
        }
    }

    /// Goes on where another process stopped.
    ///
    /// An open circuit stays open for the rest of its cooldown, and never longer than a whole one, wherever the
    /// wall clock has jumped in the meantime. A half-open one lets its next call through as a probe.
    pub fn restore(&self, snapshot: &Snapshot) {
        let left = snapshot.until.map_or(Duration::ZERO, |until| {
            until.duration_since(self.clock.wall()).unwrap_or(Duration::ZERO)
        });
        let event = match snapshot.state {
            State::Closed | State::Ramping => Event::Reset,
            State::Open => Event::Reopen { left: units(left), trips: snapshot.trips },
            State::HalfOpen => Event::Reopen { left: 0, trips: snapshot.trips },
            State::ForcedOpen => Event::ForceOpen,
            State::ForcedClosed => Event::ForceClosed,
            State::Disabled => Event::Disable,
        };
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = snapshot.reason.clone();
        self.apply(event, self.now(), self.versions.newest());
    }

    /// What the window holds: calls, failures, slow calls.
    #[must_use]
    pub fn window(&self) -> (u64, u64, u64) {
        let tally = self.versions.newest().window.tally(self.word().stamp(), self.now());
        (tally.calls, tally.failures, tally.slow)
    }

    pub(crate) fn explain(&self) -> &str {
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

    fn now(&self) -> Unit {
        self.unit(self.clock.now())
    }

    #[inline]
    pub(super) fn unit(&self, tick: Tick) -> Unit {
        ORIGIN + tick.as_units().saturating_sub(self.made.as_units())
    }

    pub(super) fn count_late(&self) {
        self.counters.late.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_abandoned(&self, panicked: bool) {
        let counter = if panicked { &self.counters.panicked } else { &self.counters.abandoned };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call that a circuit did not let through.
///
/// One word, so that a refusal comes back in a register: where the circuit stood (8 bits), units to wait (56 bits).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused(u64);

impl Refused {
    const NOBODY_KNOWS: u64 = (1 << 56) - 1;

    fn new(place: Place, wait: Option<Unit>) -> Self {
        let wait = wait.map_or(Self::NOBODY_KNOWS, |wait| wait.min(Self::NOBODY_KNOWS - 1));
        Refused((place as u64) << 56 | wait)
    }

    /// Where the circuit stood.
    #[must_use]
    pub fn state(&self) -> State {
        match self.0 >> 56 {
            place if place == Place::Open as u64 => State::Open,
            place if place == Place::HalfOpen as u64 => State::HalfOpen,
            place if place == Place::Ramping as u64 => State::Ramping,
            _ => State::ForcedOpen,
        }
    }

    /// When to come back; `None` while a person holds it open.
    #[inline]
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let wait = self.0 & Self::NOBODY_KNOWS;
        (wait != Self::NOBODY_KNOWS).then(|| from_units(wait))
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("state", &self.state())
            .field("retry_after", &self.retry_after())
            .finish()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the circuit is {}", self.state())?;
        match self.retry_after() {
            Some(wait) => write!(f, ", try again in {wait:?}"),
            None => f.write_str(", until it is reset"),
        }
    }
}

impl std::error::Error for Refused {}
