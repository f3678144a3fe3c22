//! Settings of a shared limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, ConfigError, RateLimit};

use super::machine::BucketRules;
use super::shared::{Shared, SharedLimit};
use super::store::{LimitStore, micros};
use super::telemetry::Telemetry;

/// The period of the limit, unless told: limits are usually agreed per second.
pub const PERIOD: Duration = Duration::from_secs(1);

/// How long the store may take to answer. Redis needs a millisecond; a call that waits longer is better decided locally.
pub const STORE_TIMEOUT: Duration = Duration::from_millis(250);

/// How long calls are decided locally after the store failed, before one of them asks it again.
pub const STORE_PAUSE: Duration = Duration::from_millis(500);

/// The longest wait for a turn. It bounds how long a limit stands still after the store's clock was set back.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// The longest time that the store may be given, so that a call is decided within a second whatever happens to it.
pub const STORE_TIMEOUT_MAX: Duration = Duration::from_millis(900);

/// What happens to calls while the store is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum WhenAway {
    /// Each process limits its own calls, to its [share](SharedLimitBuilder::processes) of the limit.
    #[default]
    LimitLocally,
    /// Every call is refused.
    Refuse,
}

/// Chooses the settings of a [`SharedLimit`]. Use the same settings in every process.
#[must_use]
pub struct SharedLimitBuilder {
    store: Arc<dyn LimitStore>,
    name: Arc<str>,
    calls: u32,
    period: Duration,
    burst: Option<u32>,
    max_wait: Duration,
    processes: u32,
    when_away: WhenAway,
    store_timeout: Duration,
    store_pause: Duration,
    clock: Clock,
}

impl SharedLimitBuilder {
    pub(super) fn new(store: Arc<dyn LimitStore>, name: &str, calls: u32) -> Self {
        SharedLimitBuilder {
            store,
            name: name.into(),
            calls,
            period: PERIOD,
            burst: None,
            max_wait: Duration::ZERO,
            processes: 1,
            when_away: WhenAway::default(),
            store_timeout: STORE_TIMEOUT,
            store_pause: STORE_PAUSE,
            clock: Clock::default(),
        }
    }

    /// Sets the period of the limit; [`PERIOD`] unless told.
    pub fn per(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Sets how many calls may come at once after a pause. By default as many as the period allows.
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Sets how long [`acquire`](SharedLimit::acquire) may wait for its turn, at most [`WAIT_MAX`]. By default it does not wait.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Sets the number of processes that share the limit: while the store is away, each has the limit divided by it. By default
    /// it is 1, so that every process has the whole limit.
    pub fn processes(mut self, processes: u32) -> Self {
        self.processes = processes;
        self
    }

    /// Sets what happens to calls while the store is away.
    pub fn when_away(mut self, when_away: WhenAway) -> Self {
        self.when_away = when_away;
        self
    }

    /// Sets how long the store may take to answer; [`STORE_TIMEOUT`] unless told, at most [`STORE_TIMEOUT_MAX`].
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.store_timeout = timeout;
        self
    }

    /// Sets how long calls are decided locally before the store is asked again; [`STORE_PAUSE`] unless told.
    pub fn store_pause(mut self, pause: Duration) -> Self {
        self.store_pause = pause;
        self
    }

    /// Sets the clock of the local limit and of the pauses.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the handle.
    pub fn build(self) -> Result<SharedLimit, ConfigError> {
        let burst = self.burst.unwrap_or(self.calls);
        let whole = RateLimit::calls(self.calls).per(self.period).burst(burst).max_wait(self.max_wait);
        whole.build_with(self.clock.clone())?;
        self.check()?;
        // The rate is divided by making the period longer: one call per second among three is one per three seconds.
        let local_burst = (burst / self.processes).max(1);
        let local = RateLimit::calls(self.calls)
            .per(self.period * self.processes)
            .burst(local_burst)
            .max_wait(self.max_wait)
            .build_with(self.clock.clone())?;
        // Rounded up, so that the limit is never exceeded.
        let interval = micros(self.period).div_ceil(u64::from(self.calls)).max(1);
        let rules = BucketRules {
            interval,
            burst: interval.saturating_mul(u64::from(burst)),
            wait_max: micros(WAIT_MAX),
        };
        let telemetry = Telemetry::new(&self.name);
        Ok(SharedLimit::of(Shared {
            store: self.store,
            name: self.name,
            rules,
            burst,
            max_wait: self.max_wait,
            when_away: self.when_away,
            store_timeout: self.store_timeout,
            store_pause: self.store_pause,
            clock: self.clock,
            local,
            ask_again_at: std::sync::atomic::AtomicU64::new(0),
            telemetry,
        }))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        let mut refuse_if = |wrong: bool, path: &'static str, reason: String| {
            if wrong {
                problems.push((path, reason));
            }
        };
        refuse_if(self.processes == 0, "limit.processes", "0 processes have no share; 1 is the least".into());
        refuse_if(
            self.max_wait > WAIT_MAX,
            "limit.max_wait",
            format!("a wait of {:?} is above {WAIT_MAX:?}", self.max_wait),
        );
        refuse_if(
            self.store_timeout.is_zero() || self.store_timeout > STORE_TIMEOUT_MAX,
            "limit.store_timeout",
            format!("{:?} is not between 1 ms and {STORE_TIMEOUT_MAX:?}", self.store_timeout),
        );
        let interval = self.period.as_nanos() / u128::from(self.calls.max(1));
        refuse_if(
            interval < 1_000,
            "limit.calls",
            format!("{} calls per {:?} are more than one per microsecond", self.calls, self.period),
        );
        refuse_if(self.name.is_empty(), "limit.name", "a shared limit is found by its name".into());
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::new("the shared limit", problems)) }
    }
}

impl fmt::Debug for SharedLimitBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimitBuilder")
            .field("name", &self.name)
            .field("calls", &self.calls)
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}
