//! Leases that are kept while work runs: when they are renewed, until when they are valid, and how they are lost.

mod machine;

pub(crate) use machine::Timetable;

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use seawall::{Clock, Tick};
use tokio::time::{sleep, timeout};

use crate::StoreFuture;

/// How a lease was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeaseLoss {
    /// The store says that another holder has it.
    TakenOver,
    /// No renewal succeeded in time.
    NotRenewed,
}

impl LeaseLoss {
    pub(crate) fn text(self) -> &'static str {
        match self {
            LeaseLoss::TakenOver => "the store gave the lease away",
            LeaseLoss::NotRenewed => "the lease could not be renewed in time",
        }
    }
}

/// Keeps one lease. Several may look at it while one renews it.
pub(crate) struct LeaseKeeper<'a> {
    clock: &'a Clock,
    table: Timetable,
    /// When the last successful claim or renewal was *sent*, in nanoseconds of the clock.
    started: AtomicU64,
}

impl<'a> LeaseKeeper<'a> {
    /// Keeps a lease that was asked for at `claimed`.
    pub(crate) fn new(clock: &'a Clock, lease: Duration, claimed: Tick) -> Self {
        let table = Timetable::new(lease, Duration::ZERO);
        LeaseKeeper { clock, table, started: AtomicU64::new(claimed.as_nanos()) }
    }

    /// The time until the work has to be cancelled, by the clock and not by a timer.
    pub(crate) fn left(&self) -> Duration {
        let started = Duration::from_nanos(self.started.load(Ordering::Relaxed));
        self.table.cancel_at(started).saturating_sub(self.now())
    }

    /// Renews the lease for ever. Completes when the lease is lost.
    ///
    /// Poll it before the work: each poll looks at the clock first, so that work whose lease has ended does not take another
    /// step, even if the whole process was stopped in between.
    pub(crate) async fn keep<'s>(
        &self,
        renew: impl Fn() -> StoreFuture<'s, bool>,
        failed: impl Fn(&dyn Display),
    ) -> LeaseLoss {
        let mut renewals = pin!(self.renewals(renew, failed));
        let look_and_renew = poll_fn(|cx| {
            if self.left().is_zero() {
                return Poll::Ready(LeaseLoss::NotRenewed);
            }
            renewals.as_mut().poll(cx)
        });
        look_and_renew.await
    }

    async fn renewals<'s>(
        &self,
        renew: impl Fn() -> StoreFuture<'s, bool>,
        failed: impl Fn(&dyn Display),
    ) -> LeaseLoss {
        let mut next = self.table.renew_at(Duration::from_nanos(self.started.load(Ordering::Relaxed)));
        loop {
            sleep(next.saturating_sub(self.now()).min(self.left())).await;
            let left = self.left();
            if left.is_zero() {
                return LeaseLoss::NotRenewed;
            }
            let asked = self.clock.precise();
            // A renewal that hangs is given up early enough for another one.
            next = match timeout(self.table.renewal_limit().min(left), renew()).await {
                Ok(Ok(true)) => {
                    self.started.store(asked.as_nanos(), Ordering::Relaxed);
                    self.table.renew_at(asked.since(Tick::ZERO))
                }
                Ok(Ok(false)) => return LeaseLoss::TakenOver,
                Ok(Err(error)) => {
                    failed(&error);
                    self.table.repeat_at(self.now())
                }
                Err(_) => {
                    failed(&"the store did not answer in time");
                    self.table.repeat_at(self.now())
                }
            };
        }
    }

    fn now(&self) -> Duration {
        self.clock.precise().since(Tick::ZERO)
    }
}

/// Keeps a lease that was asked for at `claimed`, and returns when it is lost.
pub(crate) async fn keep_lease<'a>(
    clock: &Clock,
    lease: Duration,
    claimed: Tick,
    renew: impl Fn() -> StoreFuture<'a, bool>,
) {
    LeaseKeeper::new(clock, lease, claimed).keep(renew, |_| {}).await;
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use seawall::{Fault, secs};

    use super::*;
    use crate::StoreError;

    /// What the store does with the next renewals: `.` renews, `x` fails, `?` never answers, `-` says no. Returns how the lease
    /// of 30 s was lost, and after how many seconds; `None` if it was still kept after ten leases.
    async fn play(script: &str) -> Option<(LeaseLoss, u64)> {
        let clock = Clock::tokio();
        let began = clock.precise();
        let script = RefCell::new(script.chars().collect::<Vec<_>>().into_iter());
        let renew = || -> StoreFuture<'static, bool> {
            match script.borrow_mut().next().unwrap_or('.') {
                'x' => Box::pin(async { Err(StoreError::without_cause("renewing", Fault::unreachable())) }),
                '?' => Box::pin(std::future::pending()),
                '-' => Box::pin(async { Ok(false) }),
                _ => Box::pin(async { Ok(true) }),
            }
        };
        let keeper = LeaseKeeper::new(&clock, secs(30), began);
        let loss = timeout(secs(300), keeper.keep(renew, |_| {})).await.ok()?;
        Some((loss, clock.precise().since(began).as_secs()))
    }

    /// CRD-2, CRD-3, CRD-5: one renewal that hangs does not cost a lease, and several that fail do not either.
    #[tokio::test(start_paused = true)]
    async fn a_lease_survives_renewals_that_hang_or_fail() {
        assert_eq!(play("").await, None);
        assert_eq!(play("?").await, None);
        assert_eq!(play("..?.?.").await, None);
        assert_eq!(play("xxxxxx.x").await, None);
        assert_eq!(play(".-").await, Some((LeaseLoss::TakenOver, 20)));
        assert_eq!(play("????").await, Some((LeaseLoss::NotRenewed, 27)));
        assert_eq!(play(&"x".repeat(50)).await, Some((LeaseLoss::NotRenewed, 27)));
    }

    /// CRD-2: a process that was stopped for longer than its lease learns of it at the first look, not from a timer.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_has_ended_is_lost_at_the_first_poll() {
        let clock = Clock::tokio();
        let keeper = LeaseKeeper::new(&clock, secs(30), clock.precise());
        let mut kept = pin!(keeper.keep(|| Box::pin(std::future::pending()), |_| {}));
        tokio::time::advance(secs(28)).await;
        let polled = poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx))).await;
        assert_eq!(polled, Poll::Ready(LeaseLoss::NotRenewed));
        assert!(keeper.left().is_zero());
    }
}
