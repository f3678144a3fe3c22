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

use crate::error::{Kind, Policy};
use crate::fault::Fault;

/// Something that happened in a guard.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The guard's name.
    pub guard: Arc<str>,
    /// The operation, if the call [named](crate::Request::operation) it.
    pub operation: Option<Box<str>>,
    /// What the call was [about](crate::Request::about), if it said so.
    pub about: Option<Box<str>>,
    /// When, by the guard's wall clock.
    pub at: SystemTime,
    /// What.
    pub what: What,
}

/// What happened. Each has a [name](What::name) that is public and does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum What {
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

impl What {
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
            What::Started => 0,
            What::Attempt { .. } => 1,
            What::Failed { .. } => 2,
            What::Retry { .. } => 3,
            What::Rejected { .. } => 4,
            What::BudgetDenied { .. } => 5,
            What::TimedOut { .. } => 6,
            What::Succeeded { .. } => 7,
            What::GivenUp { .. } => 8,
            What::Abandoned { .. } => 9,
            What::Panicked => 10,
            What::Fallback { .. } => 11,
            What::Hedged => 12,
            What::HedgeWon => 13,
            What::Opened { .. } => 14,
            What::HalfOpened => 15,
            What::Closed => 16,
            What::Bypassed => 17,
            What::Slow { .. } => 18,
            What::Late => 19,
            What::Reconfigured => 20,
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

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            What::Attempt { number } => write!(f, "attempt {number}"),
            What::Failed { number, fault, took } => {
                write!(f, "attempt {number} failed after {took:?}: {fault}")
            }
            What::Retry { number, after, fault } => {
                write!(f, "attempt {number} follows in {after:?}: {fault}")
            }
            What::Rejected { by, retry_after: Some(wait) } => {
                write!(f, "rejected by the {by}, come back in {wait:?}")
            }
            What::Rejected { by, retry_after: None } => write!(f, "rejected by the {by}"),
            What::BudgetDenied { fault } => write!(f, "not retried, the budget is spent: {fault}"),
            What::TimedOut { by } => write!(f, "out of time by the {by}"),
            What::Succeeded { attempts, took } => {
                write!(f, "succeeded after {took:?} and {attempts} attempts")
            }
            What::GivenUp { by, attempts, fault, took, .. } => {
                write!(f, "given up by the {by} after {took:?} and {attempts} attempts: {fault}")
            }
            What::Abandoned { took, panicked: false } => write!(f, "abandoned by its caller after {took:?}"),
            What::Abandoned { took, panicked: true } => write!(f, "ended by a panic after {took:?}"),
            What::Fallback { fault, kind, .. } => write!(f, "a fallback answered ({kind}): {fault}"),
            What::Opened { cooldown: Some(cooldown) } => write!(f, "circuit opened for {cooldown:?}"),
            What::Opened { cooldown: None } => f.write_str("circuit forced open"),
            What::HalfOpened => f.write_str("circuit half-open"),
            What::Closed => f.write_str("circuit closed"),
            What::Bypassed => f.write_str("circuit bypassed"),
            What::Slow { took } => write!(f, "slow: {took:?}"),
            What::Started
            | What::Panicked
            | What::Hedged
            | What::HedgeWon
            | What::Late
            | What::Reconfigured => f.write_str(self.name()),
        }
    }
}
