//! What happens in guards, for whoever wants to know.
#![doc = ""]
#![doc = include_str!("../../docs/events.md")]

#[cfg(feature = "tokio")]
mod channel;
mod hooks;
#[cfg(not(feature = "tokio"))]
mod nobody;
mod rejections;
mod watch;

#[cfg(feature = "tokio")]
pub use channel::Events;
#[cfg(feature = "tokio")]
pub(crate) use channel::Subscribers;
pub(crate) use hooks::Hooks;
pub use hooks::{RejectionEvent, RetryEvent, TransitionEvent};
#[cfg(not(feature = "tokio"))]
pub(crate) use nobody::Subscribers;
pub use rejections::Rejection;
pub(crate) use rejections::Rejections;
pub(crate) use watch::{Labels, Listener, Watch};

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::clock::Rounded;
use crate::error::{Attempts, Kind, Policy};
use crate::fault::Fault;

/// Something that happened in a guard.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The guard's name.
    pub guard: Arc<str>,
    /// The operation, if the call [named](crate::CallBuilder::operation) it.
    pub operation: Option<Box<str>>,
    /// What the call was [about](crate::CallBuilder::about), if it said so.
    pub about: Option<Box<str>>,
    /// When, by the guard's wall clock.
    pub at: SystemTime,
    /// What.
    pub what: EventKind,
}

/// What happened. Each has a [name](EventKind::name) that is public and does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// A call began.
    Started,
    /// An attempt starts.
    #[non_exhaustive]
    Attempt {
        /// Counted from 1.
        number: u32,
    },
    /// An attempt failed, or ran out of time.
    #[non_exhaustive]
    Failed {
        /// Which attempt.
        number: u32,
        /// How it was judged.
        fault: Fault,
        /// How long it took.
        took: Duration,
    },
    /// The attempt will be made again.
    #[non_exhaustive]
    Retry {
        /// Of the attempt to come.
        number: u32,
        /// The wait before it.
        after: Duration,
        /// Why.
        fault: Fault,
    },
    /// A policy refused the attempt, and nothing was sent.
    #[non_exhaustive]
    Rejected {
        /// Who refused.
        by: Policy,
        /// When to come back, if that is known.
        retry_after: Option<Duration>,
    },
    /// The attempt would have been made again, but the budget is spent.
    #[non_exhaustive]
    BudgetDenied {
        /// Why it would have been.
        fault: Fault,
    },
    /// The attempt or the call ran out of time.
    #[non_exhaustive]
    TimedOut {
        /// Whose time it was.
        by: Policy,
    },
    /// The call has its answer.
    #[non_exhaustive]
    Succeeded {
        /// How many attempts it took.
        attempts: u32,
        /// How long it took with all of them.
        took: Duration,
    },
    /// The call ended without an answer, or with one that was judged a fault.
    #[non_exhaustive]
    GivenUp {
        /// How.
        kind: Kind,
        /// Who decided.
        by: Policy,
        /// How many attempts were made.
        attempts: u32,
        /// The last fault.
        fault: Fault,
        /// How long it took.
        took: Duration,
    },
    /// The caller dropped the call before its end.
    #[non_exhaustive]
    Abandoned {
        /// How long it had been under way.
        took: Duration,
        /// Whether it was a panic that dropped it.
        panicked: bool,
    },
    /// The operation panicked.
    Panicked,
    /// A fallback answered in place of the call.
    #[non_exhaustive]
    Fallback {
        /// What it stands in for.
        fault: Fault,
        /// Where the answer came from.
        kind: FallbackKind,
        /// True when a dead-letter sink took what was given up before the fallback answered.
        dead_lettered: bool,
    },
    /// A second attempt started beside the first.
    Hedged,
    /// The second attempt answered first.
    HedgeWon,
    /// The circuit opened.
    #[non_exhaustive]
    Opened {
        /// Until it probes; never, if somebody forced it open.
        cooldown: Option<Duration>,
    },
    /// The circuit lets probes through.
    HalfOpened,
    /// The circuit closed.
    Closed,
    /// Somebody forced the circuit closed or disabled it: everything passes.
    Bypassed,
    /// A call took longer than the circuit's threshold.
    #[non_exhaustive]
    Slow {
        /// How long.
        took: Duration,
    },
    /// An outcome came after the circuit had moved on, and changed nothing.
    Late,
    /// The guard's settings changed while it runs.
    Reconfigured,
}

/// Where the answer of a fallback came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FallbackKind {
    /// A value that was given beforehand.
    Value,
    /// A function of the error.
    Function,
    /// The last good answer.
    LastGood,
    /// Another operation, as a rule through another guard.
    Other,
}

impl FallbackKind {
    /// The kind as it stands in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FallbackKind::Value => "value",
            FallbackKind::Function => "function",
            FallbackKind::LastGood => "last_good",
            FallbackKind::Other => "other",
        }
    }
}

impl fmt::Display for FallbackKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl EventKind {
    /// Every name that there is.
    pub const NAMES: &'static [&'static str] = &[
        "started",
        "attempt",
        "failed",
        "retry",
        "rejected",
        "budget_denied",
        "timed_out",
        "succeeded",
        "given_up",
        "abandoned",
        "panicked",
        "fallback",
        "hedged",
        "hedge_won",
        "opened",
        "half_opened",
        "closed",
        "bypassed",
        "slow",
        "late",
        "reconfigured",
    ];

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            EventKind::Started => 0,
            EventKind::Attempt { .. } => 1,
            EventKind::Failed { .. } => 2,
            EventKind::Retry { .. } => 3,
            EventKind::Rejected { .. } => 4,
            EventKind::BudgetDenied { .. } => 5,
            EventKind::TimedOut { .. } => 6,
            EventKind::Succeeded { .. } => 7,
            EventKind::GivenUp { .. } => 8,
            EventKind::Abandoned { .. } => 9,
            EventKind::Panicked => 10,
            EventKind::Fallback { .. } => 11,
            EventKind::Hedged => 12,
            EventKind::HedgeWon => 13,
            EventKind::Opened { .. } => 14,
            EventKind::HalfOpened => 15,
            EventKind::Closed => 16,
            EventKind::Bypassed => 17,
            EventKind::Slow { .. } => 18,
            EventKind::Late => 19,
            EventKind::Reconfigured => 20,
        }]
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.guard)?;
        for label in [&self.operation, &self.about].into_iter().flatten() {
            write!(f, " {label}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EventKind::Attempt { number } => write!(f, "attempt {number}"),
            EventKind::Failed { number, fault, took } => {
                write!(f, "attempt {number} failed after {}: {fault}", Rounded(took))
            }
            EventKind::Retry { number, after, fault } => {
                write!(f, "attempt {number} follows in {}: {fault}", Rounded(after))
            }
            EventKind::Rejected { by, retry_after: Some(wait) } => {
                write!(f, "rejected by the {by}, come back in {}", Rounded(wait))
            }
            EventKind::Rejected { by, retry_after: None } => write!(f, "rejected by the {by}"),
            EventKind::BudgetDenied { fault } => write!(f, "not retried, the budget is spent: {fault}"),
            EventKind::TimedOut { by } => write!(f, "out of time by the {by}"),
            EventKind::Succeeded { attempts, took } => {
                write!(f, "succeeded after {} and {}", Rounded(took), Attempts(attempts))
            }
            EventKind::GivenUp { by, attempts, fault, took, .. } => {
                write!(f, "given up by the {by} after {} and {}: {fault}", Rounded(took), Attempts(attempts))
            }
            EventKind::Abandoned { took, panicked: false } => {
                write!(f, "abandoned by its caller after {}", Rounded(took))
            }
            EventKind::Abandoned { took, panicked: true } => {
                write!(f, "ended by a panic after {}", Rounded(took))
            }
            EventKind::Fallback { fault, kind, .. } => write!(f, "a fallback answered ({kind}): {fault}"),
            EventKind::Opened { cooldown: Some(cooldown) } => {
                write!(f, "circuit opened for {}", Rounded(cooldown))
            }
            EventKind::Opened { cooldown: None } => f.write_str("circuit forced open"),
            EventKind::HalfOpened => f.write_str("circuit half-open"),
            EventKind::Closed => f.write_str("circuit closed"),
            EventKind::Bypassed => f.write_str("circuit bypassed"),
            EventKind::Slow { took } => write!(f, "slow: {}", Rounded(took)),
            EventKind::Started
            | EventKind::Panicked
            | EventKind::Hedged
            | EventKind::HedgeWon
            | EventKind::Late
            | EventKind::Reconfigured => f.write_str(self.name()),
        }
    }
}
