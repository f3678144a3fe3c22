//! What a retry is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::budget::Budget;
use crate::config::Problems;
use crate::fault::{Class, Fault, Names, StatusSet};

/// Attempts in all, the first one included.
pub const ATTEMPTS: u32 = 3;
/// The longest wait that a peer may ask for.
pub const RETRY_AFTER_CAP: Duration = Duration::from_secs(60);
/// More attempts than this are a polling loop, not a retry.
const ATTEMPTS_MAX: u32 = 1_000;

/// The configuration of retries.
///
/// ```
/// use seawall::{Backoff, Budget, Retry, millis};
/// Retry::max_attempts(4)
///     .backoff(Backoff::exponential(millis(100)))
///     .budget(Budget::share_of_calls(20));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Retry {
    pub(crate) budget: Option<Budget>,
    pub(crate) settings: Settings,
}

/// What is known when a function decides how long to wait.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The retry that comes, counted from 1.
    pub retry: u32,
    /// What failed.
    pub fault: Fault,
    /// The wait before the attempt that failed; zero for the first.
    pub previous: Duration,
}

impl FailedAttempt {
    pub(crate) fn new(retry: u32, fault: Fault, previous: Duration) -> Self {
        FailedAttempt { retry, fault, previous }
    }
}

/// A function that says how long to wait. Two are equal if they are the same.
#[derive(Clone)]
pub(crate) struct DelayFunction(pub(crate) Arc<dyn Fn(&FailedAttempt) -> Duration + Send + Sync>);

impl PartialEq for DelayFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for DelayFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}

/// What the decision about a retry needs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    pub(crate) attempts: u32,
    pub(crate) backoff: Backoff,
    pub(crate) retry_after_cap: Duration,
    /// Which classes are retried, if they are transient at all.
    pub(crate) classes: Option<Vec<Class>>,
    pub(crate) on_status: Option<StatusSet>,
    pub(crate) on_names: Option<Names>,
    pub(crate) ignore_names: Option<Names>,
    pub(crate) on_rejection: bool,
    pub(crate) leave_to_outer: bool,
    /// Instead of the back-off.
    pub(crate) delay: Option<DelayFunction>,
}

impl Default for Retry {
    fn default() -> Self {
        Retry::max_attempts(ATTEMPTS)
    }
}

impl Retry {
    /// At most this many attempts, the first one included. One means no retry.
    #[must_use]
    pub fn max_attempts(attempts: u32) -> Self {
        Retry {
            budget: Some(Budget::default()),
            settings: Settings {
                attempts,
                backoff: Backoff::default(),
                retry_after_cap: RETRY_AFTER_CAP,
                classes: None,
                on_status: None,
                on_names: None,
                ignore_names: None,
                on_rejection: false,
                leave_to_outer: false,
                delay: None,
            },
        }
    }

    /// How long to wait between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// Waits as long as a function says, instead of by a back-off: it is told which retry comes, what failed and how long the
    /// wait before was. What the peer asked for is in the fault, and honouring it is up to the function. A wait that does not
    /// fit into the call's time ends the call, as always; give the guard a call timeout that has room for the waits.
    ///
    /// ```
    /// use seawall::{Retry, millis, secs};
    /// Retry::max_attempts(5).delay(|failed| match failed.fault.retry_after() {
    ///     Some(asked) => asked.min(secs(5)),
    ///     None => millis(50) * failed.retry,
    /// });
    /// ```
    #[must_use]
    pub fn delay(mut self, delay: impl Fn(&FailedAttempt) -> Duration + Send + Sync + 'static) -> Self {
        self.settings.delay = Some(DelayFunction(Arc::new(delay)));
        self
    }

    /// How many retries all callers of the guard may make together.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// No budget: an outage then gets as many times the load as there are attempts. For tests, and for a caller
    /// that is bounded in another way.
    #[must_use]
    pub fn no_budget(mut self) -> Self {
        self.budget = None;
        self
    }

    /// The longest wait that a peer may ask for by `Retry-After`; it is given this long, not longer.
    #[must_use]
    pub fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.settings.retry_after_cap = cap;
        self
    }

    /// Only transient faults of these classes are retried.
    #[must_use]
    pub fn on_classes(mut self, classes: impl IntoIterator<Item = Class>) -> Self {
        self.settings.classes = Some(classes.into_iter().collect());
        self
    }

    /// Of faults with an HTTP status exactly these are retried: more than the usual ones, fewer, or
    /// [`none`](StatusSet::none). It changes retry only; what counts against the breaker stays as it was.
    #[must_use]
    pub fn on_status(mut self, statuses: StatusSet) -> Self {
        self.settings.on_status = Some(statuses);
        self
    }

    /// Faults with these [names](crate::Fault::named) are retried, whatever their class, and others only as far as
    /// [`on_classes`](Retry::on_classes) or [`on_status`](Retry::on_status) ask for them. Well-known exceptions of Java stand for
    /// the transient faults of their kind: `IOException`, `SocketTimeoutException`.
    #[must_use]
    pub fn on_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.on_names = Some(Names::new(names));
        self
    }

    /// Faults with these [names](crate::Fault::named) are never retried.
    #[must_use]
    pub fn ignore_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.ignore_names = Some(Names::new(names));
        self
    }

    /// Also tries again after a policy of this guard or of one further in refused. Off by default: what refuses
    /// now refuses for a while.
    #[must_use]
    pub fn on_rejection(mut self) -> Self {
        self.settings.on_rejection = true;
        self
    }

    /// Does not retry where a guard further out already does, so that a chain of three layers with three
    /// attempts each makes three attempts and not twenty-seven.
    #[must_use]
    pub fn leave_to_outer(mut self) -> Self {
        self.settings.leave_to_outer = true;
        self
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let Settings { attempts, backoff, .. } = &self.settings;
        problems.refuse_if(!(1..=ATTEMPTS_MAX).contains(attempts), "retry.max_attempts", || {
            format!("{attempts} is not between 1 (no retry) and {ATTEMPTS_MAX}; 3 is usual")
        });
        backoff.check(problems);
        if let Some(budget) = &self.budget {
            budget.check(problems);
        }
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.settings.delay {
            Some(_) => write!(f, "{} attempts, waits by a function", self.settings.attempts)?,
            None => write!(f, "{} attempts, {}", self.settings.attempts, self.settings.backoff)?,
        }
        if let Some(statuses) = &self.settings.on_status {
            write!(f, ", on status {statuses}")?;
        }
        if let Some(classes) = &self.settings.classes {
            write!(f, ", on {classes:?}")?;
        }
        if let Some(names) = &self.settings.on_names {
            write!(f, ", on {names}")?;
        }
        if let Some(names) = &self.settings.ignore_names {
            write!(f, ", not on {names}")?;
        }
        if self.settings.on_rejection {
            f.write_str(", after rejections too")?;
        }
        if self.settings.leave_to_outer {
            f.write_str(", unless a guard further out retries")?;
        }
        Ok(())
    }
}

/// Whether it is safe to run the operation again after it may have run already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Safety {
    /// Running it twice is not the same as running it once. Retried only when it certainly did not run.
    #[default]
    Once,
    /// Running it twice is the same as running it once.
    Idempotent,
    /// The peer remembers the key of the call and does not run it twice.
    Keyed,
}

impl Safety {
    /// What HTTP itself says of a method: all but `POST`, `PATCH`, `CONNECT` and unknown ones may be sent twice.
    ///
    /// The method is a text, or the `Method` of the crate `http`.
    #[must_use]
    pub fn of_http_method(method: impl AsRef<str>) -> Self {
        match method.as_ref() {
            "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE" => Safety::Idempotent,
            _ => Safety::Once,
        }
    }
}
