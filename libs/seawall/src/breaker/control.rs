//! What a person does to a circuit, and what a restart must not undo.

use std::mem::discriminant;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::config::Breaker;
use super::machine::{Event, opens_until};
use super::policy::{CircuitBreaker, Version};
use super::settings::Defaults;
use super::snapshot::{Snapshot, State};
use super::window::Window;
use super::word::Place;
use crate::clock::{from_units, units};
use crate::config::{ConfigError, Problems};

impl CircuitBreaker {
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
        let (now, version) = (self.now(), self.version());
        let (from, word, _) = {
            let mut held = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
            *held = Some(reason.into());
            self.apply_untold(event, now, version)
        };
        self.tell_move(from, word, now, version, Some(reason));
    }

    /// The reason that was given when a person last moved the circuit.
    #[must_use]
    pub fn reason(&self) -> Option<Arc<str>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the settings of a running circuit. State, streak and probes stay, unless probes are now judged together
    /// instead of each alone, or the other way round: then they begin anew. The window stays if its shape does, else it
    /// starts empty, and failures in a row are forgotten where a rate counts instead. A cooldown that is running is measured by the new settings from now on.
    pub fn reconfigure(&self, breaker: &Breaker) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        breaker.check(&mut problems);
        problems.into_result("the breaker", ())?;
        self.publish(breaker, |old| old)
    }

    /// As [`reconfigure`](CircuitBreaker::reconfigure), in a guard whose timeouts now imply this threshold for abandoned
    /// calls.
    #[cfg(not(seawall_loom))]
    pub(crate) fn reconfigure_under(
        &self,
        breaker: &Breaker,
        abandoned_after: Option<Duration>,
    ) -> Result<(), ConfigError> {
        self.publish(breaker, |old| Defaults { abandoned_after, ..old })
    }

    fn publish(
        &self,
        breaker: &Breaker,
        defaults: impl FnOnce(Defaults) -> Defaults,
    ) -> Result<(), ConfigError> {
        let published = self.versions.publish(|old| {
            let defaults = defaults(old.defaults);
            let settings = breaker.settings(&defaults);
            // What is counted of probes means something else to another judge. Said before that one comes to it.
            if discriminant(&old.settings.rules.judge) != discriminant(&settings.rules.judge) {
                self.apply_untold(Event::Rejudge, self.now(), old);
            }
            // Else those of long ago would count when they do again.
            if settings.rules.streak == 0 && old.settings.rules.streak > 0 {
                self.apply_untold(Event::ForgetStreak, self.now(), old);
            }
            let window = if old.window.fits(settings.window) {
                old.window.clone()
            } else {
                Arc::new(Window::new(settings.window))
            };
            Version { defaults, settings, window }
        });
        published.map_err(|too_many| too_many.refusal("the breaker", "breaker"))
    }

    /// What a restart should not forget.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (word, now) = (self.observe(), self.now());
        let until = opens_until(word, &self.version().settings.rules);
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
            State::HalfOpen => Event::Probe { trips: snapshot.trips },
            State::ForcedOpen => Event::ForceOpen,
            State::ForcedClosed => Event::ForceClosed,
            State::Disabled => Event::Disable,
        };
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = snapshot.reason.clone();
        self.apply(event, self.now(), self.version());
    }
}
