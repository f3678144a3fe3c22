//! How a relay is built.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Clock, ConfigError};
use tokio::sync::Notify;

use super::relay::{Relay, Shared};
use super::retry_rules::RetryRules;
use super::store::{OutboxStore, Retention};
use super::telemetry::Telemetry;
use crate::{Publisher, random};

/// The number of rows per batch: large enough that statements cost little per row, small enough to be published in one go.
pub const BATCH_ROWS: u32 = 500;
/// The number of lanes per batch: a quarter of a topic's lanes, so that four batches of one topic can be under way.
pub const BATCH_LANES: u32 = 4;
/// The number of batches under way in one relay: a topic that hangs takes four of them and leaves the rest to the others.
pub const BATCHES_MAX: usize = 8;
/// The lease of a batch. What a dead relay worked on is taken over after this time.
pub const LEASE: Duration = Duration::from_millis(4_500);
/// The longest wait between two polls: with the claim itself a row waits for less than a quarter of a second.
pub const POLL_MAX: Duration = Duration::from_millis(150);
/// The wait before the first poll after some work; each idle poll doubles it.
pub const POLL_MIN: Duration = Duration::from_millis(10);
/// The time limit of one call of the publisher.
pub const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// A row that fails with a fault that another attempt does not help, or kills its relay, is set aside after this many.
pub const ATTEMPTS_MAX: u32 = 10;
/// A row that fails because the broker is away is set aside after this many attempts: about 8 hours with the usual back-off,
/// whose waits are half a minute on average.
pub const OUTAGE_ATTEMPTS_MAX: u32 = 1_000;
/// How often depth and lag are measured and published rows are cleaned up.
pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(15);
/// The shortest lease: below it, a pause of the machine costs the lease more often than a relay dies.
const LEASE_MIN: Duration = Duration::from_millis(100);

/// Chooses how a [`Relay`] works.
#[derive(Clone)]
#[must_use]
pub struct RelayBuilder {
    name: Arc<str>,
    store: Arc<dyn OutboxStore>,
    publisher: Arc<dyn Publisher>,
    pub(super) settings: Settings,
    rules: RetryRules,
    clock: Clock,
}

/// The numbers of a relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) batch_rows: u32,
    pub(super) batch_lanes: u32,
    pub(super) batches_max: usize,
    pub(super) lease: Duration,
    pub(super) poll_min: Duration,
    pub(super) poll_max: Duration,
    pub(super) publish_timeout: Duration,
    pub(super) retention: Retention,
    pub(super) upkeep_interval: Duration,
}

impl RelayBuilder {
    pub(super) fn new(name: &str, store: Arc<dyn OutboxStore>, publisher: Arc<dyn Publisher>) -> Self {
        let settings = Settings {
            batch_rows: BATCH_ROWS,
            batch_lanes: BATCH_LANES,
            batches_max: BATCHES_MAX,
            lease: LEASE,
            poll_min: POLL_MIN,
            poll_max: POLL_MAX,
            publish_timeout: PUBLISH_TIMEOUT,
            retention: Retention::Delete,
            upkeep_interval: UPKEEP_INTERVAL,
        };
        let rules = RetryRules {
            attempts_max: ATTEMPTS_MAX,
            outage_attempts_max: OUTAGE_ATTEMPTS_MAX,
            backoff: Backoff::default(),
        };
        RelayBuilder { name: name.into(), store, publisher, settings, rules, clock: Clock::default() }
    }

    /// The maximum number of rows per batch ([`BATCH_ROWS`]).
    pub fn batch_rows(mut self, rows: u32) -> Self {
        self.settings.batch_rows = rows;
        self
    }

    /// The maximum number of lanes per batch ([`BATCH_LANES`]), of the 16 of a topic.
    pub fn batch_lanes(mut self, lanes: u32) -> Self {
        self.settings.batch_lanes = lanes;
        self
    }

    /// The maximum number of batches under way at once ([`BATCHES_MAX`]).
    pub fn batches_max(mut self, batches: usize) -> Self {
        self.settings.batches_max = batches;
        self
    }

    /// How long rows are leased ([`LEASE`]). The lease is renewed at every third of it while the publisher works.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// The shortest and the longest wait between two polls ([`POLL_MIN`], [`POLL_MAX`]).
    pub fn poll(mut self, min: Duration, max: Duration) -> Self {
        (self.settings.poll_min, self.settings.poll_max) = (min, max);
        self
    }

    /// The time limit of one call of the publisher ([`PUBLISH_TIMEOUT`]).
    pub fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.settings.publish_timeout = timeout;
        self
    }

    /// After how many attempts a row is set aside that fails for a reason of its own, or kills its relay ([`ATTEMPTS_MAX`]).
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.rules.attempts_max = attempts;
        self
    }

    /// After how many attempts a row is set aside that fails because the broker is away ([`OUTAGE_ATTEMPTS_MAX`]).
    pub fn outage_attempts_max(mut self, attempts: u32) -> Self {
        self.rules.outage_attempts_max = attempts;
        self
    }

    /// How long a row waits after a failure: one second at first, at most a minute.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// What happens to published rows. They are deleted at once by default: a table that stays small stays fast.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.settings.retention = retention;
        self
    }

    /// How often depth and lag are measured and published rows are cleaned up ([`UPKEEP_INTERVAL`]).
    pub fn upkeep_interval(mut self, interval: Duration) -> Self {
        self.settings.upkeep_interval = interval;
        self
    }

    /// The clock that leases are watched with. The times in the store are those of the database.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the relay. It does nothing until it [runs](Relay::run).
    pub fn build(self) -> Result<Relay, ConfigError> {
        let settings = &self.settings;
        let checks = [
            (settings.batch_rows == 0, "batch_rows", "a batch has at least one row"),
            (settings.batch_lanes == 0, "batch_lanes", "a batch has at least one lane"),
            (settings.batches_max == 0, "batches_max", "a relay works on at least one batch"),
            (settings.lease < LEASE_MIN, "lease", "a lease lasts at least 100 ms"),
            (settings.poll_min.is_zero(), "poll", "without a wait between polls the database is never idle"),
            (settings.poll_min > settings.poll_max, "poll", "the shortest wait is above the longest"),
            (settings.publish_timeout.is_zero(), "publish_timeout", "no publisher is done in no time"),
            (self.rules.attempts_max == 0, "attempts_max", "a row is attempted at least once"),
            (self.rules.outage_attempts_max == 0, "outage_attempts_max", "a row is attempted at least once"),
            (settings.upkeep_interval.is_zero(), "upkeep_interval", "upkeep without a pause never ends"),
        ];
        let wrong = checks.into_iter().filter(|(wrong, ..)| *wrong);
        let problems: Vec<_> = wrong.map(|(_, setting, reason)| (setting, reason.to_owned())).collect();
        if !problems.is_empty() {
            return Err(ConfigError::new("the outbox relay", problems));
        }
        let telemetry = Telemetry::new(&self.name, &self.clock);
        Ok(Relay(Arc::new(Shared {
            owner: format!("{}-{}", std::process::id(), random::word() & 0xFFFF_FFFF),
            store: self.store,
            publisher: self.publisher,
            settings: self.settings,
            rules: self.rules,
            clock: self.clock,
            wake: Notify::new(),
            telemetry,
        })))
    }
}

impl fmt::Debug for RelayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayBuilder")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
