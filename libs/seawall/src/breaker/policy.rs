//! The circuit itself: the shell that applies the machine by compare-and-swap.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::config::{Breaker, Settings};
use super::machine::{Effect, Event, step};
use super::snapshot::{Snapshot, State};
use super::ticket::Ticket;
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
            word: AtomicU64::new(Word::new(Place::Closed, ORIGIN).bits()),
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
    #[inline]
    pub fn admit(&self) -> Result<Ticket<'_>, Refused> {
        let mut ticket = self.admit_untimed()?;
        ticket.start();
        Ok(ticket)
    }

    /// A ticket whose time has not started: reads no clock while the circuit is closed.
    #[inline]
    pub(crate) fn admit_untimed(&self) -> Result<Ticket<'_>, Refused> {
        let version = self.versions.newest();
        let word = self.word();
        if matches!(word.place(), Place::Closed | Place::ForcedClosed | Place::Disabled) {
            return Ok(Ticket::new(self, version, word));
        }
        self.admit_otherwise(version)
    }

    #[inline(never)]
    fn admit_otherwise<'a>(&'a self, version: &'a Version) -> Result<Ticket<'a>, Refused> {
        let rules = &version.settings.rules;
        let now = self.now();
        // Only a ramp leaves anything to chance; the count of refusals makes each draw another one.
        let chance = if rules.ramp == 0 {
            0
        } else {
            let drawn = self.counters.refused.load(Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            spread(rules.seed ^ now.rotate_left(32) ^ drawn)
        };
        match self.apply(Event::Admit { chance }, now, version) {
            (word, Effect::Refused { until }) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                let retry_after = until.map(|until| from_units(until.saturating_sub(now)));
                Err(Refused { state: word.place().into(), retry_after })
            }
            (word, _) => Ok(Ticket::new(self, version, word)),
        }
    }

    /// Applies an event until no other thread comes in between, and says what the word is then.
    pub(super) fn apply(&self, event: Event, now: Unit, version: &Version) -> (Word, Effect) {
        let mut word = self.word();
        loop {
            let (next, effect) = step(word, event, now, &version.settings.rules);
            if next == word {
                return (word, effect);
            }
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Ordering::AcqRel, Ordering::Acquire) {
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
        problems.refuse_if(published.is_err(), "breaker", || "it was changed a million times; build a new one".into());
        problems.into_result("the breaker", ())
    }

    /// What a restart should not forget.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (word, now) = (self.observe(), self.now());
        let until = super::machine::opens_until(word, &self.versions.newest().settings.rules);
        Snapshot {
            state: word.place().into(),
            until: (word.place() == Place::Open).then(|| self.clock.wall() + from_units(until.saturating_sub(now))),
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

    pub(super) fn word(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    state: State,
    retry_after: Option<Duration>,
}

impl Refused {
    /// Where the circuit stood.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// When to come back; `None` while a person holds it open.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the circuit is {}", self.state)?;
        match self.retry_after {
            Some(wait) => write!(f, ", try again in {wait:?}"),
            None => f.write_str(", until it is reset"),
        }
    }
}

impl std::error::Error for Refused {}
