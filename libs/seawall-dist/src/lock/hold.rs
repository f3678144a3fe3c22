//! Runs work under a lock and renews the lock, in one future.
//!
//! # Why not a task that renews in the background?
//! A task that renews goes on when the work hangs, when its caller is gone, and when the runtime has no time for the work.
//! Here who polls the work polls the renewal too: no work, no renewal. And because the lease is looked at before each poll,
//! work whose lease has ended does not take another step, even if the whole process was stopped in between.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use seawall::Tick;

use super::acquire::Grant;
use super::locks::Inner;
use super::{BootClock, Lease, LockError, LockKey, LockOptions, LossReason, OwnerId, scope};
use crate::lease::Timetable;
use crate::{StoreError, StoreFuture};

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why the work was cancelled.
#[derive(Clone, Copy)]
enum Cancelled {
    Lost(LossReason),
    TooLong,
}

/// Runs work until it ends, the lock is lost, or the longest hold is over; then gives the lock back.
pub(super) async fn run<F, Fut>(
    inner: &Inner,
    grant: Grant,
    options: &LockOptions,
    work: F,
) -> Result<Fut::Output, LockError>
where
    F: FnOnce(Lease) -> Fut,
    Fut: Future,
{
    let Grant { lease, table, started, guard } = grant;
    let held = scope::held().with(lease.clone());
    let mut work = pin!(Some(scope::enter(held, work(lease.clone()))));
    let result = {
        let (key, owner) = (&guard.key, guard.owner());
        let mut renewal = Renewal::new(inner, &lease, key, owner, table, started);
        let hold_until = options.max_hold.map_or(Tick::NEVER, |hold| started + hold);
        let mut limit = Limit::new(&inner.clock, hold_until);
        let mut is_first = true;
        poll_fn(|cx| {
            let mut poll_work = |cx: &mut Context<'_>| match work.as_mut().as_pin_mut() {
                Some(work) => work.poll(cx).map(Ok),
                None => Poll::Pending,
            };
            // Work that ends with its first poll needs no timers. Its lease was looked at when it was granted.
            if std::mem::take(&mut is_first) {
                let output = poll_work(cx);
                if output.is_ready() {
                    return output;
                }
                return poll_end(&mut renewal, &mut limit, &lease, cx).map(Err);
            }
            match poll_end(&mut renewal, &mut limit, &lease, cx) {
                Poll::Ready(cancelled) => Poll::Ready(Err(cancelled)),
                Poll::Pending => poll_work(cx),
            }
        })
        .await
    };
    inner.telemetry.held(inner.clock.now().since(started));
    let cancelled = match result {
        Ok(output) => {
            // Whatever the work still owns is gone before somebody else may begin.
            work.set(None);
            guard.release().await;
            return Ok(output);
        }
        Err(cancelled) => cancelled,
    };
    // Those that wait for the loss learn of it first, then the work is dropped, then the lock is given back, by a task: the
    // store may be away, and the caller has to know now.
    let key = guard.key.clone();
    let error = match cancelled {
        Cancelled::Lost(reason) => {
            lease.end(reason);
            LockError::Lost { key, reason }
        }
        Cancelled::TooLong => {
            lease.end(LossReason::Released);
            LockError::HeldTooLong { key, max_hold: options.max_hold.unwrap_or_default() }
        }
    };
    work.set(None);
    drop(guard);
    inner.telemetry.lost(&error, lease.fence());
    Err(error)
}

/// Completes when the work must not take another step.
fn poll_end(
    renewal: &mut Renewal<'_>,
    limit: &mut Limit<'_>,
    lease: &Lease,
    cx: &mut Context<'_>,
) -> Poll<Cancelled> {
    if let Poll::Ready(reason) = renewal.poll(cx) {
        return Poll::Ready(Cancelled::Lost(reason));
    }
    limit.poll(cx, lease)
}

/// Ends the work in time: shortly before the lease ends, and when the longest hold is over.
struct Limit<'a> {
    clock: &'a BootClock,
    hold_until: Tick,
    timer: Option<(Tick, Sleep)>,
}

impl<'a> Limit<'a> {
    fn new(clock: &'a BootClock, hold_until: Tick) -> Self {
        Limit { clock, hold_until, timer: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>, lease: &Lease) -> Poll<Cancelled> {
        loop {
            if self.clock.now() >= self.hold_until {
                return Poll::Ready(Cancelled::TooLong);
            }
            if let Some(reason) = lease.ended() {
                return Poll::Ready(Cancelled::Lost(reason));
            }
            // A renewal has moved the end on since the timer was set.
            let at = lease.cancel_at().min(self.hold_until);
            let clock = self.clock;
            let timer = match &mut self.timer {
                Some((set, timer)) if *set == at => timer,
                timer => &mut timer.insert((at, clock.sleep_until(at))).1,
            };
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
    }
}

/// Renews the lease every third of it. Completes only when the store says that the lock is somebody else's.
struct Renewal<'a> {
    inner: &'a Inner,
    lease: &'a Lease,
    key: &'a LockKey,
    owner: &'a OwnerId,
    table: Timetable,
    step: Step<'a>,
}

enum Step<'a> {
    Waiting(Sleep),
    Asking { started: Tick, answer: StoreFuture<'a, bool>, limit: Sleep },
}

impl<'a> Renewal<'a> {
    fn new(
        inner: &'a Inner,
        lease: &'a Lease,
        key: &'a LockKey,
        owner: &'a OwnerId,
        table: Timetable,
        started: Tick,
    ) -> Self {
        let first = Tick::ZERO + table.renew_at(started.since(Tick::ZERO));
        let step = Step::Waiting(inner.clock.sleep_until(first));
        Renewal { inner, lease, key, owner, table, step }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LossReason> {
        loop {
            self.step = match &mut self.step {
                Step::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    self.ask()
                }
                Step::Asking { started, answer, limit } => {
                    let started = *started;
                    let answer = match answer.as_mut().poll(cx) {
                        Poll::Ready(answer) => Some(answer),
                        Poll::Pending => {
                            ready!(limit.as_mut().poll(cx));
                            None
                        }
                    };
                    match self.judge(started, answer) {
                        Some(next) => next,
                        None => return Poll::Ready(LossReason::TakenOver),
                    }
                }
            };
        }
    }

    fn ask(&self) -> Step<'a> {
        let started = self.inner.clock.now();
        let limit = self.inner.clock.sleep_until(started + self.table.renewal_limit());
        Step::Asking {
            started,
            answer: self.inner.store.renew(self.key, self.owner, self.table.lease),
            limit,
        }
    }

    /// What follows an answer, or its absence; `None` if the lock is somebody else's.
    fn judge(&self, started: Tick, answer: Option<Result<bool, StoreError>>) -> Option<Step<'a>> {
        let from_origin = |tick: Tick| tick.since(Tick::ZERO);
        let next = match answer {
            Some(Ok(false)) => return None,
            Some(Ok(true)) => {
                self.lease.extend(&self.table, started);
                self.table.renew_at(from_origin(started))
            }
            Some(Err(error)) => {
                self.inner.telemetry.renewal_failed(self.key, &error);
                self.table.repeat_at(from_origin(self.inner.clock.now()))
            }
            None => {
                self.inner.telemetry.renewal_failed(self.key, &"the store did not answer in time");
                self.table.repeat_at(from_origin(self.inner.clock.now()))
            }
        };
        Some(Step::Waiting(self.inner.clock.sleep_until(Tick::ZERO + next)))
    }
}
