//! The limit itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use seawall::Clock;
use seawall::rate::{Limited, RateLimiter};

use super::error::{Admission, DecidedBy, LimitError};
use super::machine::BucketRules;
use super::options::{SharedLimitBuilder, WhenAway};
use super::store::{LimitAnswer, LimitStore};
use super::telemetry::Telemetry;

/// How long the task may take that gives a turn back.
const GIVE_BACK_TIME: Duration = Duration::from_secs(1);

/// A rate limit that several processes share, found by its name in a store. A handle: clones share everything.
#[derive(Clone)]
pub struct SharedLimit {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn LimitStore>,
    pub(super) name: Arc<str>,
    pub(super) rules: BucketRules,
    pub(super) burst: u32,
    pub(super) max_wait: Duration,
    pub(super) when_away: WhenAway,
    pub(super) store_timeout: Duration,
    pub(super) store_pause: Duration,
    pub(super) clock: Clock,
    pub(super) local: RateLimiter,
    /// Zero while the store answers. Otherwise the time, in nanoseconds of the clock, at which a call asks it again.
    pub(super) ask_again_at: AtomicU64,
    pub(super) telemetry: Telemetry,
}

impl SharedLimit {
    /// Chooses the settings of the limit of this name: `calls` per second, unless [`per`](SharedLimitBuilder::per) says otherwise.
    pub fn builder(store: Arc<dyn LimitStore>, name: &str, calls: u32) -> SharedLimitBuilder {
        SharedLimitBuilder::new(store, name, calls)
    }

    pub(super) fn of(shared: Shared) -> Self {
        SharedLimit { shared: Arc::new(shared) }
    }

    /// Takes one call if it may pass now. Waits for the store's answer and not for a turn.
    pub async fn try_acquire(&self) -> Result<Admission, LimitError> {
        self.try_acquire_many(1).await
    }

    /// As [`try_acquire`](SharedLimit::try_acquire), for several calls at once.
    pub async fn try_acquire_many(&self, calls: u32) -> Result<Admission, LimitError> {
        match self.decide(calls, Duration::ZERO).await? {
            Some((_, at)) => Ok(Admission { decided_by: DecidedBy::Shared, at: Some(at) }),
            None => self.locally(self.shared.local.try_acquire_many(calls)),
        }
    }

    /// Waits for the turn of one call, if it comes within the configured wait; else it is refused at once. A future that is
    /// dropped before its turn gives the turn back.
    pub async fn acquire(&self) -> Result<Admission, LimitError> {
        self.acquire_many(1).await
    }

    /// As [`acquire`](SharedLimit::acquire), for several calls at once.
    pub async fn acquire_many(&self, calls: u32) -> Result<Admission, LimitError> {
        match self.decide(calls, self.shared.max_wait).await? {
            Some((wait, at)) => {
                if !wait.is_zero() {
                    let mut turn = Turn { shared: &self.shared, calls: Some(calls) };
                    tokio::time::sleep(wait).await;
                    turn.calls = None;
                }
                Ok(Admission { decided_by: DecidedBy::Shared, at: Some(at) })
            }
            None => {
                let admitted = self.shared.local.acquire_many(calls).await;
                self.locally(admitted)
            }
        }
    }

    /// True while the store is away and this process limits its calls alone.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.shared.ask_again_at.load(Ordering::Relaxed) != 0
    }

    /// Asks the store: a wait and the time of the turn, or `None` if this process has to decide.
    async fn decide(
        &self,
        calls: u32,
        max_wait: Duration,
    ) -> Result<Option<(Duration, SystemTime)>, LimitError> {
        let shared = &*self.shared;
        if calls == 0 || calls > shared.burst {
            return Err(LimitError::NeverFits { calls, burst: shared.burst });
        }
        if shared.may_ask() {
            let question = shared.store.take(&shared.name, shared.rules, calls, max_wait);
            match tokio::time::timeout(shared.store_timeout, question).await {
                Ok(Ok(answer)) => return shared.answered(answer, calls).map(Some),
                Ok(Err(error)) => shared.fall_back(&error.to_string()),
                Err(_) => shared.fall_back("the store did not answer in time"),
            }
        }
        match shared.when_away {
            WhenAway::LimitLocally => Ok(None),
            WhenAway::Refuse => {
                shared.telemetry.decided(false, DecidedBy::Local);
                Err(LimitError::store_away(shared.until_asked()))
            }
        }
    }

    fn locally(&self, admitted: Result<(), Limited>) -> Result<Admission, LimitError> {
        let shared = &*self.shared;
        shared.telemetry.decided(admitted.is_ok(), DecidedBy::Local);
        match admitted {
            Ok(()) => Ok(Admission { decided_by: DecidedBy::Local, at: None }),
            // The calls fit into the shared limit, and can pass when the store is back.
            Err(limited) if limited.never_fits() => Err(LimitError::store_away(shared.until_asked())),
            Err(limited) => Err(LimitError::exceeded(limited.retry_after(), DecidedBy::Local)),
        }
    }
}

impl Shared {
    /// Whether this call asks the store: always while it answers, and one call after each pause while it is away.
    fn may_ask(&self) -> bool {
        let due = self.ask_again_at.load(Ordering::Relaxed);
        let now = self.clock.precise();
        if due == 0 {
            return true;
        }
        let next = (now + self.store_pause).as_nanos();
        now.as_nanos() >= due
            && self.ask_again_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The time until a call asks the store again.
    fn until_asked(&self) -> Duration {
        let due = self.ask_again_at.load(Ordering::Relaxed);
        let left = Duration::from_nanos(due.saturating_sub(self.clock.precise().as_nanos()));
        // Another call asks at this moment; its answer is known a moment later.
        if left.is_zero() { self.store_timeout } else { left }
    }

    fn fall_back(&self, cause: &str) {
        let next = (self.clock.precise() + self.store_pause).as_nanos().max(1);
        if self.ask_again_at.swap(next, Ordering::Relaxed) == 0 {
            let action = match self.when_away {
                WhenAway::LimitLocally => "LimitLocally",
                WhenAway::Refuse => "Refuse",
            };
            self.telemetry.fell_back(cause, action);
        }
    }

    fn answered(&self, answer: LimitAnswer, calls: u32) -> Result<(Duration, SystemTime), LimitError> {
        if self.ask_again_at.swap(0, Ordering::Relaxed) != 0 {
            self.telemetry.came_back();
        }
        match answer {
            LimitAnswer::Admitted { wait, at } => {
                self.telemetry.decided(true, DecidedBy::Shared);
                // What this process took counts against its local limit too: going over to it is no new burst.
                let _ = self.local.try_acquire_many(calls);
                Ok((wait, at))
            }
            LimitAnswer::Refused { retry_after } => {
                self.telemetry.decided(false, DecidedBy::Shared);
                Err(LimitError::exceeded(retry_after, DecidedBy::Shared))
            }
        }
    }
}

/// A turn in the future. Dropped before it came, it is given back.
struct Turn<'a> {
    shared: &'a Arc<Shared>,
    calls: Option<u32>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(calls) = self.calls else { return };
        // Without a runtime the turn passes unused.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared = self.shared.clone();
        let give_back = async move {
            let _ = shared.store.give_back(&shared.name, shared.rules, calls).await;
        };
        drop(runtime.spawn(tokio::time::timeout(GIVE_BACK_TIME, give_back)));
    }
}

impl fmt::Debug for SharedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimit")
            .field("name", &self.shared.name)
            .field("rules", &self.shared.rules)
            .field("local", &self.is_local())
            .finish_non_exhaustive()
    }
}
