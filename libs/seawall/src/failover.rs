//! Several of a kind: one first, the next when it fails.
#![doc = ""]
#![doc = include_str!("../docs/failover.md")]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tokio")]
use crate::breaker::State;
use crate::config::{ConfigError, Problems};
use crate::fallback::Tracked;
use crate::fault::{Causes, Classifier};
use crate::guard::{CallBuilder, Deadline, Extras, Guard, Inner, Key, NoDeadLetter, Unhedged};
use crate::retry::Safety;

/// Guards of the same kind, asked in order: two databases, three regions. Made by [`Failover::new`] or [`Failover::of`].
///
/// A handle: clones share everything.
#[derive(Clone)]
pub struct Failover {
    sides: Arc<[Guard]>,
    call_timeout: Option<Duration>,
    retry_each_side: bool,
    #[cfg(feature = "tracing")]
    log: Option<crate::telemetry::FailoverLog>,
}

/// Which of the sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Side(u32);

impl Side {
    /// The one that is asked first.
    pub const PRIMARY: Side = Side(0);
    /// The one that is asked when the first fails.
    pub const SECONDARY: Side = Side(1);

    /// Its place in the order, counted from 0: an index for pools, addresses and the like.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn next(self) -> Self {
        Side(self.0 + 1)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Side::PRIMARY => f.write_str("primary"),
            Side::SECONDARY => f.write_str("secondary"),
            Side(index) => write!(f, "side {}", index + 1),
        }
    }
}

/// A call of a failover in the making, without anything else.
type FailoverCall<'f, J = Causes> = CallBuilder<'f, J, Extras<'f, Unhedged, Tracked, NoDeadLetter>>;

impl Failover {
    /// A primary and a secondary. Each side has a guard of its own; the primary's needs a breaker, or a dead primary would be
    /// tried every time.
    pub fn new(primary: Guard, secondary: Guard) -> Result<Self, ConfigError> {
        Failover::of([primary, secondary])
    }

    /// Two sides or more, in the order in which they are asked. Every side but the last needs a breaker.
    pub fn of(sides: impl IntoIterator<Item = Guard>) -> Result<Self, ConfigError> {
        let sides: Arc<[Guard]> = sides.into_iter().collect();
        let mut problems = Problems::default();
        problems.refuse_if(sides.len() < 2, "failover", || {
            format!("{} sides leave nobody to fail over to; give it two or more", sides.len())
        });
        for (index, guard) in sides.iter().enumerate().take(sides.len().saturating_sub(1)) {
            let side = Side(u32::try_from(index).unwrap_or(u32::MAX));
            problems.refuse_if(guard.breaker().is_none(), "failover", || {
                format!(
                    "the guard `{}` has no breaker, so a dead {side} would be waited for every time; add `.breaker(..)`",
                    guard.name()
                )
            });
        }
        let names: Vec<String> = sides.iter().map(|guard| format!("`{}`", guard.name())).collect();
        problems.into_result(format!("failover over {}", names.join(", ")), ())?;
        Ok(Failover {
            sides,
            call_timeout: None,
            retry_each_side: false,
            #[cfg(feature = "tracing")]
            log: None,
        })
    }

    /// How long a call may take over all its sides. Without it each side takes as long as its own guard allows, and only a
    /// deadline of the caller bounds all of them.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// Every side retries as its guard says, before the next one is asked. By default only the last one does: whoever has
    /// somebody else to ask does not wait and ask again.
    #[must_use]
    pub fn retry_each_side(mut self) -> Self {
        self.retry_each_side = true;
        self
    }

    /// Writes a log under this name: who answered, each switch to the next side (a warning), and that all failed (an
    /// error). Beside it each guard can write its own.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn log(mut self, name: &str, log: &crate::telemetry::Log) -> Self {
        let clock = self.sides[0].clock().clone();
        self.log = Some(crate::telemetry::FailoverLog::new(name, clock, log));
        self
    }

    /// The guards of its sides, in the order in which they are asked.
    #[must_use]
    pub fn sides(&self) -> &[Guard] {
        &self.sides
    }

    /// For reads, and for what is the same if it runs twice.
    pub fn idempotent(&self) -> FailoverCall<'_> {
        self.request().safety(Safety::Idempotent)
    }

    /// The peers honour [`Attempt::key`](crate::Attempt::key), which is the same for all attempts on all sides.
    pub fn keyed(&self) -> FailoverCall<'_> {
        self.request().keyed()
    }

    /// As [`keyed`](Failover::keyed), with a key of your own.
    pub fn key(&self, key: Key) -> FailoverCall<'_> {
        self.request().key(key)
    }

    /// For what must not run twice: the next side is asked only if the one before certainly did nothing.
    pub fn once(&self) -> FailoverCall<'_> {
        self.request()
    }

    /// Judges results by `classify` instead of by their causes.
    pub fn classify<C>(&self, classify: C) -> FailoverCall<'_, Classifier<C>> {
        self.request().classify(classify)
    }

    /// Bounds the call, over all its sides, by a deadline that came from elsewhere.
    pub fn deadline(&self, deadline: Deadline) -> FailoverCall<'_> {
        self.request().deadline(deadline)
    }

    fn request(&self) -> FailoverCall<'_> {
        CallBuilder::over(self.sides[0].inner(), Extras::new(Tracked, Some(self)))
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.call_timeout
    }

    pub(crate) fn retries_each_side(&self) -> bool {
        self.retry_each_side
    }

    pub(crate) fn inner(&self, side: Side) -> &Inner {
        self.sides[side.index()].inner()
    }

    /// The side that a hedge of this number asks, while `asked` is slow to answer: the sides behind it in turn, except those
    /// whose circuit is open. If there is none, the hedge asks the same side.
    #[cfg(feature = "tokio")]
    pub(crate) fn side_of_hedge(&self, asked: Side, hedge: u32) -> Side {
        let sides = self.sides.len() - asked.index();
        let in_turn = (0..sides).map(|step| asked.index() + (hedge as usize + step) % sides);
        let is_open = |guard: &Guard| {
            guard.breaker().is_some_and(|breaker| matches!(breaker.state(), State::Open | State::ForcedOpen))
        };
        let found = in_turn.into_iter().find(|&index| !is_open(&self.sides[index]));
        found.and_then(|index| u32::try_from(index).ok()).map_or(asked, Side)
    }

    pub(crate) fn is_last(&self, side: Side) -> bool {
        side.index() + 1 >= self.sides.len()
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn diary(&self) -> Diary<'_> {
        Diary(self.log.as_ref().map(|log| (log, log.now())))
    }

    #[cfg(not(feature = "tracing"))]
    #[expect(clippy::unused_self, reason = "it is the same as with a log")]
    pub(crate) fn diary(&self) -> Diary<'_> {
        Diary::none()
    }
}

/// What is written down about one call: nothing, unless somebody asked for a log.
#[cfg(feature = "tracing")]
pub(crate) struct Diary<'a>(Option<(&'a crate::telemetry::FailoverLog, crate::clock::Tick)>);

#[cfg(feature = "tracing")]
impl Diary<'_> {
    pub(crate) fn none() -> Self {
        Diary(None)
    }

    pub(crate) fn answered(&self, by: Side) {
        if let Some((log, began)) = self.0 {
            log.answered(by, began);
        }
    }

    pub(crate) fn switches(&self, from: Side, cause: &dyn fmt::Display) {
        if let Some((log, began)) = self.0 {
            log.switches(from, began, cause);
        }
    }

    pub(crate) fn failed(&self, last: Side, cause: &dyn fmt::Display) {
        if let Some((log, began)) = self.0 {
            log.failed(last, began, cause);
        }
    }
}

/// Without `tracing` there is no log.
#[cfg(not(feature = "tracing"))]
pub(crate) struct Diary<'a>(std::marker::PhantomData<&'a ()>);

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "it is the same as with a log")]
impl Diary<'_> {
    pub(crate) fn none() -> Self {
        Diary(std::marker::PhantomData)
    }

    pub(crate) fn answered(&self, _: Side) {}

    pub(crate) fn switches(&self, _: Side, _: &dyn fmt::Display) {}

    pub(crate) fn failed(&self, _: Side, _: &dyn fmt::Display) {}
}

impl fmt::Debug for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failover").field("sides", &self.sides).finish_non_exhaustive()
    }
}
