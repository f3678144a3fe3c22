//! The builder of a processor and its defaults.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Clock, ConfigError, millis, secs};

use super::disposition::Rules;
use super::telemetry::Telemetry;
use super::{MessageHandler, MessageProcessor};
use crate::idempotency::Inbox;

/// The default number of attempts: enough for a deployment or a short outage of what the handler needs.
pub const ATTEMPTS_MAX: u32 = 5;
/// The default wait after the first attempt. Each further one is twice as long.
pub const BACKOFF_BASE: Duration = secs(1);
/// The default longest wait between two attempts.
pub const BACKOFF_MAX: Duration = secs(60);
/// The default time limit of a handler: most brokers take a message away from a consumer after a minute or later.
pub const HANDLER_TIMEOUT: Duration = secs(30);

/// Configures a [`MessageProcessor`]. [`MessageProcessor::builder`] creates it.
#[must_use = "call `build` to get the processor"]
pub struct MessageProcessorBuilder {
    component: Arc<str>,
    system: &'static str,
    handler: Arc<dyn MessageHandler>,
    inbox: Option<Inbox>,
    rules: Rules,
    handler_timeout: Duration,
    clock: Clock,
}

impl MessageProcessorBuilder {
    pub(super) fn new(component: &str, system: &'static str, handler: Arc<dyn MessageHandler>) -> Self {
        let backoff = Backoff::exponential(BACKOFF_BASE).cap(BACKOFF_MAX);
        MessageProcessorBuilder {
            component: component.into(),
            system,
            handler,
            inbox: None,
            rules: Rules { attempts_max: ATTEMPTS_MAX, backoff },
            handler_timeout: HANDLER_TIMEOUT,
            clock: Clock::default(),
        }
    }

    /// Recognises messages that were processed before. Without an inbox the handler has to expect messages twice.
    pub fn inbox(mut self, inbox: Inbox) -> Self {
        self.inbox = Some(inbox);
        self
    }

    /// Sets how often a message is attempted; [`ATTEMPTS_MAX`] by default.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.rules.attempts_max = attempts;
        self
    }

    /// Sets the waits between attempts; exponential from [`BACKOFF_BASE`] to [`BACKOFF_MAX`] with full jitter by default.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// Sets the time limit of the handler; [`HANDLER_TIMEOUT`] by default.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.handler_timeout = timeout;
        self
    }

    /// Measures and stamps attempts with this clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the processor.
    ///
    /// # Errors
    /// Returns every invalid setting at once.
    pub fn build(self) -> Result<MessageProcessor, ConfigError> {
        let checks = [
            (self.component.is_empty(), "component", "log lines need the name of the consumer"),
            (self.rules.attempts_max == 0, "attempts_max", "a message is attempted at least once"),
            (self.handler_timeout < millis(1), "handler_timeout", "no handler is done in no time"),
        ];
        let wrong = checks.into_iter().filter(|(wrong, ..)| *wrong);
        let problems: Vec<_> = wrong.map(|(_, setting, reason)| (setting, reason.to_owned())).collect();
        if !problems.is_empty() {
            return Err(ConfigError::new("the message processor", problems));
        }
        let telemetry = Telemetry::new(&self.component, self.system, &self.clock);
        Ok(MessageProcessor::new(
            self.handler,
            self.inbox,
            self.rules,
            self.handler_timeout,
            self.clock,
            telemetry,
        ))
    }
}

impl fmt::Debug for MessageProcessorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageProcessorBuilder")
            .field("component", &self.component)
            .field("system", &self.system)
            .field("rules", &self.rules)
            .field("handler_timeout", &self.handler_timeout)
            .finish_non_exhaustive()
    }
}
