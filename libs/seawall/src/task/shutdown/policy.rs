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
use super::part::{Held, Kind, Outcome, Part, Readiness, Token, Tracker};
use super::phase::{DELAY, Phase, Stage};
use super::report::{Ending, PartReport, Report};
use crate::clock::{Clock, Tick};
use crate::guard::Timer;

/// Stops the parts of a process in order, each phase with its own time limit, and reports what did not finish.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use seawall::secs;
/// use seawall::task::shutdown::{Phase, Shutdown};
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
/// assert_eq!(report.unfinished().next().unwrap().ending.to_string(), "failed (connection lost)");
/// # }
/// # async fn close_pool() -> Result<(), &'static str> { Err("connection lost") }
/// ```
#[must_use = "nothing stops until it is run"]
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
            limits: Phase::ALL.map(Phase::limit),
            clock: Clock::default(),
            parts: Vec::new(),
            stage: watch::Sender::new(Stage::Running),
        }
    }
}

impl Shutdown {
    /// One with the default limits and without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long to go on as before after readiness is gone, for load balancers; [`DELAY`] by default. Zero where there are
    /// none.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How long a phase may take; [`Phase::limit`] by default. What has not finished by then is given up.
    pub fn limit(mut self, phase: Phase, limit: Duration) -> Self {
        self.limits[phase as usize] = limit;
        self
    }

    /// The clock that limits are measured by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How long a shutdown takes at most: the delay and all limits. Give the orchestrator a second more.
    #[must_use]
    pub fn at_most(&self) -> Duration {
        self.limits.iter().fold(self.delay, |sum, limit| sum.saturating_add(*limit))
    }

    /// What a readiness probe asks.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        Readiness(self.stage.subscribe())
    }

    /// Adds a part that is closed in this phase. All parts of a phase are closed at the same time, each in a task of its
    /// own; one that has not finished in time is dropped.
    pub fn on<C, F>(&mut self, phase: Phase, name: impl Into<Cow<'static, str>>, close: C)
    where
        C: FnOnce() -> F + Send + 'static,
        F: Future<Output: Outcome> + Send + 'static,
    {
        let close = move || -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
            let closing = close();
            Box::pin(async move { closing.await.failure() })
        };
        self.parts.push(Part { phase, name: name.into(), kind: Kind::Close(Box::new(close)) });
    }

    /// Adds a part that runs by itself, such as a poller: it is told to stop in this phase through the token, and has
    /// stopped when the token is dropped.
    pub fn token(&mut self, phase: Phase, name: impl Into<Cow<'static, str>>) -> Token {
        let held = Held::by(1);
        self.parts.push(Part { phase, name: name.into(), kind: Kind::Token(held.clone()) });
        Token { held, phase, stage: self.stage.subscribe() }
    }

    /// Adds a count of what is under way, such as requests; this phase, mostly [`Phase::InFlight`], waits until it is zero.
    pub fn tracker(&mut self, phase: Phase, name: impl Into<Cow<'static, str>>) -> Tracker {
        let held = Held::by(0);
        self.parts.push(Part { phase, name: name.into(), kind: Kind::Tracker(held.clone()) });
        Tracker { held, phase, stage: self.stage.subscribe() }
    }

    /// Waits for SIGTERM or SIGINT (Ctrl-C), and then stops everything. A second signal ends it at once.
    ///
    /// It listens from its first poll on. A signal that comes earlier ends the process, as it would without this.
    ///
    /// Afterwards the process still takes no notice of these signals, so end it:
    /// `std::process::exit(report.exit_code().into())`. That waits for nobody, while returning from `main` waits for
    /// blocking code that still runs.
    ///
    /// # Errors
    /// If the operating system does not let us listen for signals; nothing was stopped then.
    #[cfg(feature = "signal")]
    pub async fn until_signal(self) -> std::io::Result<Report> {
        let mut signals = super::Signals::listen()?;
        signals.next().await;
        Ok(self.run_until(async { _ = signals.next().await }).await)
    }

    /// Stops everything, now.
    pub async fn run(self) -> Report {
        self.run_until(pending()).await
    }

    /// Stops everything, now, and ends at once when `force` completes: what is under way is dropped, what has not begun
    /// never does, and the report says so.
    ///
    /// Dropped halfway, it drops what is being closed, and the phases to come never begin.
    ///
    /// # Panics
    /// If there is no tokio runtime around.
    pub async fn run_until(self, force: impl Future<Output = ()>) -> Report {
        let Shutdown { delay, limits, clock, mut parts, stage } = self;
        let mut force = pin!(force);
        let began = clock.precise();
        stage.send_replace(Stage::NotReady);
        log::not_ready();
        let mut forced = wait(&clock, began + delay, force.as_mut(), |_| Poll::Pending).await == Wait::Forced;

        let mut reports = Vec::with_capacity(parts.len());
        for (phase, limit) in Phase::ALL.into_iter().zip(limits) {
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
        Report { parts: reports, took: clock.precise().since(began), forced }
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
        reports.push(PartReport { phase, name, ending: Ending::CutShort, took: Duration::ZERO });
        tasks.spawn(async move { (index, kind.stop().await) });
    }
    let mut open = vec![true; counts.len()];
    let ended = wait(clock, began + limit, force, |cx| {
        while let Poll::Ready(joined) = tasks.poll_join_next(cx) {
            let Some(joined) = joined else { return Poll::Ready(()) };
            // A task that was cancelled, because the runtime ends, leaves its part cut short.
            if let Ok((index, ending)) = joined {
                open[index] = false;
                let report = &mut reports[from + index];
                (report.ending, report.took) = (ending, clock.precise().since(began));
            }
        }
        Poll::Pending
    })
    .await;
    if ended != Wait::Done {
        for (index, report) in reports[from..].iter_mut().enumerate().filter(|(index, _)| open[*index]) {
            report.took = clock.precise().since(began);
            if ended == Wait::OutOfTime {
                report.ending = Ending::OutOfTime { left: counts[index].as_ref().map(|held| held.count()) };
            }
        }
    }
    ended == Wait::Forced
}

fn not_started(phase: Phase, part: Part) -> PartReport {
    PartReport { phase, name: part.name, ending: Ending::NotStarted, took: Duration::ZERO }
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
