//! Deliveries: their identity, their state, their schedule, the [decision](decide) after each attempt, and what each
//! [transition](DeliveryFacts) makes of a row.

mod decision;
mod initial;
mod order;
pub mod suspects;
mod transition;
pub mod waiting;

pub use self::decision::{
    Decision, Disposition, ErrorType, FaultMeaning, Moment, Outcome, decide, is_stale_token,
};
pub use self::initial::{InitialState, RuleStatus, StoredState, initial_state};
pub use self::order::OrderFacts;
pub use self::transition::DeliveryFacts;

use std::time::Duration;

use super::id::{Id, IdKind};
use super::rule::Rule;
use super::time::Millis;

/// The kind of a [`DeliveryId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryKind {}

impl IdKind for DeliveryKind {
    const PREFIX: &'static str = "dlv_";
}

/// The id of a delivery.
pub type DeliveryId = Id<DeliveryKind>;

/// The state of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryState {
    /// This process has claimed it, or will after a restart.
    Leased,
    /// It was never attempted, and there is no room in memory yet.
    Queued,
    /// It waits for its next attempt.
    Waiting,
    /// It waits for its service to recover: it resumes when the circuit closes, and is attempted at its time anyway.
    Stalled,
    /// It waits for earlier deliveries with the same ordering key.
    Blocked,
    /// Its rule is disabled and holds it.
    Held,
    /// The service accepted it.
    Delivered,
    /// The hub has given it up.
    DeadLettered,
}

/// The kinds of failures that count towards the maximum number of attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FailureCounting {
    /// Failures that the service answered, apart from 429 and 502 to 504.
    #[default]
    Answered,
    /// All failures count.
    All,
}

/// The number of attempts, the maximum age and the waits of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The maximum number of failures that count; `None` means the default of the service.
    pub attempts: Option<u32>,
    /// The maximum age, counted from the acceptance of the event.
    pub age_max: Duration,
    /// The wait after the first failure. It doubles after each further one.
    pub base: Duration,
    /// The longest wait between two attempts.
    pub cap: Duration,
    /// The failures that count.
    pub count: FailureCounting,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            attempts: None,
            age_max: Duration::from_secs(3 * 86_400),
            base: Duration::from_secs(1),
            cap: Duration::from_secs(3_600),
            count: FailureCounting::Answered,
        }
    }
}

/// The default number of attempts.
pub const ATTEMPTS: u32 = 5;
/// The default number of attempts for a service whose preset is `critical`.
pub const ATTEMPTS_CRITICAL: u32 = 6;

/// The failures of a delivery before an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// When the delivery was accepted.
    pub accepted: Millis,
    /// The number of failures that counted.
    pub counted: u32,
    /// The number of all failures, without deferrals.
    pub failures: u32,
    /// The number of failures that were panics.
    pub panics: u32,
}

/// What a rule says about its deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryPolicy {
    pub schedule: Schedule,
    /// Whether the rule is enabled; if not, it holds its deliveries.
    pub enabled: bool,
    /// Whether a dead letter holds up later deliveries with the same ordering key.
    pub holds_order: bool,
}

impl Default for DeliveryPolicy {
    fn default() -> Self {
        DeliveryPolicy { schedule: Schedule::default(), enabled: true, holds_order: false }
    }
}

impl From<&Rule> for DeliveryPolicy {
    fn from(rule: &Rule) -> Self {
        let holds_order = rule.ordering.as_ref().is_some_and(|ordering| ordering.hold);
        DeliveryPolicy { schedule: rule.schedule, enabled: rule.enabled, holds_order }
    }
}

crate::words! {
    /// The reason why a delivery became a dead letter.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum DeadLetterReason {
        /// The service rejected it permanently.
        Refused = "refused",
        /// The service answered 410 Gone; the rule is disabled too.
        Gone = "gone",
        /// No valid request could be sent.
        Impossible = "impossible",
        /// All attempts are used up.
        Attempts = "attempts",
        /// The maximum age is reached.
        Age = "age",
        /// Its service or its rule was deleted.
        Deleted = "deleted",
        /// Its handling panics or crashes the process.
        Poison = "poison",
    }
}
