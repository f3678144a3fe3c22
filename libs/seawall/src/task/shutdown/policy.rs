//! The shutdown itself: phase after phase.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::log;
use super::part::{CloseResult, Held, Kind, Part, Readiness, ShutdownToken, WorkTracker};
use super::phase::{DELAY, Phase, Stage};
use super::report::{PartOutcome, PartReport, ShutdownReport};
use crate::clock::{Clock, Tick};
use crate::guard::Timer;

/// Stops the parts of a process in order, each phase with its own time limit, and reports what did not finish.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use seawall::secs;
/// use seawall::task::{Phase, Shutdown};
///
/// let mut shutdown = Shutdown::new().delay(secs(0)).limit(Phase::InFlight, secs(20));
/// let requests = shutdown.tracker(Phase::InFlight, "requests");
/// shutdown.on(Phase::Databases, "orders", || close_pool());
///
/// let request = requests.enter(); // Held while a request is answered.
/// drop(request);
///
/// let report = shutdown.run().await;
/// assert_eq!(report.exit_code(), 1);
/// assert_eq!(report.unfinished().next().unwrap().outcome.to_string(), "failed (connection lost)");
/// # }
/// # async fn close_pool() -> Result<(), &'static str> { Err("connection lost") }
/// ```
#[must_use = "nothing stops until the shutdown runs"]
pub struct Shutdown {
    delay: Duration,
    limits: [Duration; Phase::ALL.len()],
    clock: Clock,
    parts: Vec<Part>,
    stage: watch::Sender<Stage>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Shutdown {
            delay: DELAY,
            limits: std::array::from_fn(|index| Phase::ALL[index].limit()),
            clock: Clock::default(),
            parts: Vec::new(),
            stage: watch::Sender::new(Stage::Running),
        }
    }
}

impl Shutdown {
    /// Creates a shutdown with the default limits and without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time between "not ready" and the first phase; [`DELAY`] by default. Use zero where there is no load balancer.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the time limit of a phase; [`Phase::limit`] by default. The shutdown gives up parts that have not finished by then.
    pub fn limit(mut self, phase: Phase, limit: Duration) -> Self {
        self.limits[phase as usize] = limit;
        self
    }

    /// Sets the clock that measures the limits.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the maximum duration of the shutdown: the delay and all limits. Configure the orchestrator to wait one second
    /// longer.
    #[must_use]
    pub fn max_duration(&self) -> Duration {
        self.limits.iter().fold(self.delay, |sum, limit| sum.saturating_add(*limit))
    }

    /// Returns the state for a readiness probe.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        Readiness(self.stage.subscribe())
    }

    /// Adds a closure that closes a part in this phase. The parts of a phase close at the same time, each in a task of its own.
    /// The shutdown drops a closure that does not finish in time.
    pub fn on<C, F>(&mut self, phase: Phase, name: impl Into<Cow<'static, str>>, close: C)
    where
        C: FnOnce() -> F + Send + 'static,
        F: Future<Output: CloseResult> + Send + 'static,
    {
        let close = move || -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
            let closing = close();
            Box::pin(async move { closing.await.failure() })
        };
        self.parts.push(Part { phase, name: name.into(), kind: Kind::Close(Box::new(close)) });
    }

    /// Adds a part that runs by itself, such as a poller. The token tells it to stop in this phase. The part has stopped when
    /// it drops the token.
    pub fn token(&mut self, phase: Phase, name: impl Into<Cow<'static, str>>) -> ShutdownToken {
        let held = Held::by(1);
        self.parts.push(Part { phase, name: name.into(), kind: Kind::Token(held.clone()) });
        ShutdownToken { held, phase, stage: self.stage.subscribe() }
    }

    /// Adds a counter of work in progress, such as requests. This phase, usually [`Phase::InFlight`], waits until the count is
    /// zero.
    pub fn tracker(&mut self, phase: Phase, name: impl Into<Cow<'static, str>>) -> WorkTracker {
        let held = Held::by(0);
        self.parts.push(Part { phase, name: name.into(), kind: Kind::Tracker(held.clone()) });
        WorkTracker { held, phase, stage: self.stage.subscribe() }
    }

    /// Waits for SIGTERM or SIGINT (Ctrl-C) and then stops all parts. A second signal ends the shutdown at once.
    ///
    /// It listens from its first poll on. A signal before that kills the process, as it would without this call.
    ///
    /// Afterwards the process still ignores these signals, so end it with
    /// `std::process::exit(report.exit_code().into())`. That call does not wait for blocking code, while returning from `main`
    /// does.
    ///
    /// # Errors
    /// Fails if the operating system refuses to listen for signals. No part was stopped then.
    #[cfg(feature = "signal")]
    pub async fn until_signal(self) -> std::io::Result<ShutdownReport> {
        let mut signals = super::Signals::listen()?;
        signals.next().await;
        Ok(self.run_until(async { _ = signals.next().await }).await)
    }

    /// Stops all parts, starting now.
    pub async fn run(self) -> ShutdownReport {
        self.run_until(pending()).await
    }

    /// Stops all parts, starting now, and ends at once when `force` completes. It then drops the parts in progress, never starts
    /// the others, and the report names both.
    ///
    /// Dropping the future drops the parts that are closing, and the phases after the current one never begin.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub async fn run_until(self, force: impl Future<Output = ()>) -> ShutdownReport {
        let Shutdown { delay, limits, clock, mut parts, stage } = self;
        let mut force = pin!(force);
        let began = clock.precise();
        stage.send_replace(Stage::NotReady);
        log::not_ready();
        let mut forced = wait(&clock, began + delay, force.as_mut(), |_| Poll::Pending).await == Wait::Forced;

        let mut reports = Vec::with_capacity(parts.len());
        for (&phase, limit) in Phase::ALL.iter().zip(limits) {
            let here: Vec<_> = parts.extract_if(.., |part| part.phase == phase).collect();
            let from = reports.len();
            if forced {
                reports.extend(here.into_iter().map(|part| not_started(phase, part)));
            } else {
                stage.send_replace(Stage::Stopping(phase));
                log::phase(phase);
                forced = stop(phase, here, limit, &clock, force.as_mut(), &mut reports).await;
            }
            reports[from..].iter().for_each(log::part);
        }
        stage.send_replace(Stage::Over);
        ShutdownReport { parts: reports, took: clock.precise().since(began), forced }
    }
}

/// Stops the parts of one phase together, and says whether it was forced to end.
async fn stop(
    phase: Phase,
    parts: Vec<Part>,
    limit: Duration,
    clock: &Clock,
    force: Pin<&mut impl Future<Output = ()>>,
    reports: &mut Vec<PartReport>,
) -> bool {
    let began = clock.precise();
    let from = reports.len();
    let mut counts = Vec::with_capacity(parts.len());
    // Tasks, so that a part which blocks its thread does not keep the clock from being looked at, if there are threads.
    let mut tasks = JoinSet::new();
    for (index, Part { name, kind, .. }) in parts.into_iter().enumerate() {
        counts.push(kind.counted());
        reports.push(PartReport { phase, name, outcome: PartOutcome::CutShort, took: Duration::ZERO });
        tasks.spawn(async move { (index, kind.stop().await) });
    }
    let mut open = vec![true; counts.len()];
    let ended = wait(clock, began + limit, force, |cx| {
        while let Poll::Ready(joined) = tasks.poll_join_next(cx) {
            let Some(joined) = joined else { return Poll::Ready(()) };
            // A task that was cancelled, because the runtime ends, leaves its part cut short.
            if let Ok((index, outcome)) = joined {
                open[index] = false;
                let report = &mut reports[from + index];
                (report.outcome, report.took) = (outcome, clock.precise().since(began));
            }
        }
        Poll::Pending
    })
    .await;
    if ended != Wait::Done {
        for (index, report) in reports[from..].iter_mut().enumerate().filter(|(index, _)| open[*index]) {
            report.took = clock.precise().since(began);
            if ended == Wait::OutOfTime {
                report.outcome =
                    PartOutcome::OutOfTime { left: counts[index].as_ref().map(|held| held.count()) };
            }
        }
    }
    ended == Wait::Forced
}

fn not_started(phase: Phase, part: Part) -> PartReport {
    PartReport { phase, name: part.name, outcome: PartOutcome::NotStarted, took: Duration::ZERO }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Done,
    OutOfTime,
    Forced,
}

/// Waits until it is done, or forced to end, or out of time, in this order where two are true at once.
async fn wait(
    clock: &Clock,
    until: Tick,
    mut force: Pin<&mut impl Future<Output = ()>>,
    mut done: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Wait {
    let mut timer = pin!(Timer::new());
    poll_fn(|cx| {
        if done(cx).is_ready() {
            return Poll::Ready(Wait::Done);
        }
        if force.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Wait::Forced);
        }
        if clock.precise() >= until {
            return Poll::Ready(Wait::OutOfTime);
        }
        timer.as_mut().poll_until(until, clock, cx).map(|()| Wait::OutOfTime)
    })
    .await
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.parts.iter().map(|part| (part.phase, part.name.as_ref())).collect();
        f.debug_struct("Shutdown").field("delay", &self.delay).field("parts", &parts).finish_non_exhaustive()
    }
}
