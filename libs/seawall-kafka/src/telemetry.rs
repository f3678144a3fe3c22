//! The log lines of the adapter beside those of messages: connections, rebalances, commits, forwards.

use std::fmt::Display;

use rdkafka::config::RDKafkaLogLevel;
#[cfg(not(feature = "tracing"))]
use seawall::GuardBuilder;
#[cfg(feature = "tracing")]
use seawall::{
    Clock, GuardBuilder,
    breaker::State,
    telemetry::{LINES_PER_SECOND, Millis, Sampler},
};

/// The log of one client, with a limit per second: a broker that is down is reported at every attempt to connect.
#[derive(Debug)]
pub(crate) struct ClientLog {
    #[cfg(feature = "tracing")]
    component: &'static str,
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    sampler: Sampler,
}

impl ClientLog {
    pub(crate) fn new(component: &'static str) -> Self {
        let _ = component;
        ClientLog {
            #[cfg(feature = "tracing")]
            component,
            #[cfg(feature = "tracing")]
            clock: Clock::system(),
            #[cfg(feature = "tracing")]
            sampler: Sampler::new(LINES_PER_SECOND),
        }
    }

    /// Reports a connection that failed. The client tries again by itself.
    pub(crate) fn failed(&self, error: &dyn Display, reason: &str) {
        self.warn("Connect", "Connection failed, will retry.", &format_args!("{error}: {reason}"));
    }

    /// Passes on a line of librdkafka, as one for people who debug the library.
    pub(crate) fn library(&self, level: RDKafkaLogLevel, text: &str) {
        let _ = (level, text);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "seawall", level = ?level, "[{}][librdkafka] {text}", self.component);
    }

    /// Writes that something failed and is tried again or done without.
    pub(crate) fn warn(&self, operation: &str, text: &str, cause: &dyn Display) {
        let _ = (operation, text, cause);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.sampler.pass(self.clock.now()) {
            let cause = cause.to_string();
            tracing::warn!(target: "seawall", cause, suppressed, "[{}][{operation}] {text}", self.component);
        }
    }

    /// Writes that somebody has to look.
    pub(crate) fn error(&self, operation: &str, text: &str, cause: &dyn Display) {
        let _ = (operation, text, cause);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.sampler.pass(self.clock.now()) {
            let cause = cause.to_string();
            tracing::error!(target: "seawall", cause, suppressed, action = "ManualReview",
                "[{}][{operation}] {text}", self.component);
        }
    }

    /// Writes a step of the critical path.
    pub(crate) fn info(&self, operation: &str, text: &str, subject: &dyn Display) {
        let _ = (operation, text, subject);
        #[cfg(feature = "tracing")]
        tracing::info!(target: "seawall", subject = %subject, "[{}][{operation}] {text}", self.component);
    }
}

/// Writes a line when the circuit of a guard moves. The guard's own log would write a line for every message.
pub(crate) fn log_transitions(guard: GuardBuilder) -> GuardBuilder {
    #[cfg(feature = "tracing")]
    return guard.on_transition(|event| match event.to {
        State::Open | State::ForcedOpen => {
            let cooldown = event.cooldown.map(|cooldown| tracing::field::display(Millis(cooldown)));
            tracing::error!(target: "seawall", cooldown, action = "QueueForRetry", "[{}][circuit] Open!", event.guard);
        }
        State::HalfOpen => tracing::warn!(target: "seawall", "[{}][circuit] Half-open.", event.guard),
        State::Closed => tracing::info!(target: "seawall", "[{}][circuit] Closed.", event.guard),
        _ => {}
    });
    #[cfg(not(feature = "tracing"))]
    guard
}
