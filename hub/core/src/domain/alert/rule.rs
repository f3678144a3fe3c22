//! What is bad.

use std::time::Duration;

use super::incident::Mute;
use super::snapshot::{Reading, SystemSnapshot};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// The name of the channel that always exists.
pub const LOG: &str = "log";

/// A condition, the times after which it opens and resolves an incident, and the channels to notify.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertRule {
    pub name: Slug,
    /// The version, counted from 1; 0 for a built-in rule that was never changed.
    pub version: u64,
    pub condition: Condition,
    pub enabled: bool,
    pub severity: Severity,
    /// The services that it applies to; `None` means all.
    pub services: Option<Vec<Slug>>,
    /// The channels that are notified beside the log; `None` means all.
    pub channels: Option<Vec<Slug>>,
    /// How long the condition must be bad before an incident opens.
    pub holds: Duration,
    /// How long the condition must be good before the incident is resolved.
    pub clears: Duration,
    /// The mute that applies to the rule.
    pub muted: Option<Mute>,
    /// When the rule was last changed.
    pub changed: Millis,
}

/// What an alert rule watches, with its thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// A circuit is open or half-open.
    CircuitOpen,
    /// A service has got more dead letters than allowed within a window.
    DeadLetters {
        /// The number of dead letters that is still allowed.
        more_than: u32,
        /// The length of the window.
        window: Duration,
    },
    /// The oldest delivery of a service has been due for too long.
    OldestDue {
        /// The delay that is still allowed.
        older_than: Duration,
    },
    /// The log has got more warnings and errors than allowed within a window.
    Warnings {
        /// The number of lines that is still allowed.
        more_than: u32,
        /// The length of the window.
        window: Duration,
    },
    /// The log has got more errors than allowed within a window: lines that need attention.
    Errors {
        /// The number of lines that is still allowed.
        more_than: u32,
        /// The length of the window.
        window: Duration,
    },
    /// The store refuses events, or soon will.
    DataLossRisk {
        /// The minimum of free disk space in bytes.
        free_below: u64,
    },
}

crate::words! {
    /// The kind of a [`Condition`], without its thresholds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum ConditionKind {
        CircuitOpen = "circuitOpen",
        DeadLetters = "deadLetters",
        OldestDue = "oldestDue",
        Warnings = "warnings",
        Errors = "errors",
        DataLossRisk = "dataLossRisk",
    }
}

crate::words! {
    /// The severity of an alert.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Severity {
        /// Somebody should look at it today.
        Warning = "warning",
        /// Somebody should look at it now.
        Critical = "critical",
    }
}

impl ConditionKind {
    /// Whether it applies to each service, and not to the hub as a whole.
    #[must_use]
    pub const fn is_of_services(self) -> bool {
        matches!(self, ConditionKind::CircuitOpen | ConditionKind::DeadLetters | ConditionKind::OldestDue)
    }

    /// Returns the name of the built-in rule of this kind.
    #[must_use]
    pub const fn built_in(self) -> &'static str {
        match self {
            ConditionKind::CircuitOpen => "circuit-open",
            ConditionKind::DeadLetters => "dead-letters",
            ConditionKind::OldestDue => "oldest-due",
            ConditionKind::Warnings => "warnings",
            ConditionKind::Errors => "errors",
            ConditionKind::DataLossRisk => "data-loss-risk",
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
/// Ten dead letters in five minutes are no typo in one event any more.
const DEAD_LETTERS: (u32, Duration) = (10, Duration::from_secs(300));
/// Longer than a restart of a peer, and than most deployments.
const OLDER_THAN: Duration = Duration::from_secs(600);
/// A hub that works writes hardly any.
const WARNINGS: (u32, Duration) = (100, Duration::from_secs(3_600));
/// An error is a line that needs a person, so the first one counts.
const ERRORS: (u32, Duration) = (0, Duration::from_secs(300));
/// Some minutes of a busy hub, and room for the log of the store beside it.
const FREE_BELOW: u64 = 256 * 1024 * 1024;

impl AlertRule {
    /// Returns the built-in rule of this kind.
    #[must_use]
    pub fn usual(name: Slug, kind: ConditionKind) -> Self {
        let (condition, severity, holds, clears) = match kind {
            ConditionKind::CircuitOpen => (Condition::CircuitOpen, Severity::Critical, MINUTE, MINUTE),
            ConditionKind::DeadLetters => {
                let (more_than, window) = DEAD_LETTERS;
                // What is in the window goes out of it by itself, so it has cleared when it has.
                let zero = Duration::ZERO;
                (Condition::DeadLetters { more_than, window }, Severity::Warning, zero, MINUTE)
            }
            ConditionKind::OldestDue => {
                (Condition::OldestDue { older_than: OLDER_THAN }, Severity::Critical, Duration::ZERO, MINUTE)
            }
            ConditionKind::Warnings => {
                let (more_than, window) = WARNINGS;
                let condition = Condition::Warnings { more_than, window };
                (condition, Severity::Warning, Duration::ZERO, MINUTE * 10)
            }
            ConditionKind::Errors => {
                let (more_than, window) = ERRORS;
                (Condition::Errors { more_than, window }, Severity::Critical, Duration::ZERO, MINUTE)
            }
            ConditionKind::DataLossRisk => {
                let condition = Condition::DataLossRisk { free_below: FREE_BELOW };
                (condition, Severity::Critical, Duration::ZERO, MINUTE * 5)
            }
        };
        AlertRule {
            name,
            version: 0,
            condition,
            enabled: true,
            severity,
            services: None,
            channels: None,
            holds,
            clears,
            muted: None,
            changed: Millis(0),
        }
    }

    /// Returns all built-in rules.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        let named =
            |kind: ConditionKind| Slug::new(kind.built_in()).ok().map(|name| AlertRule::usual(name, kind));
        ConditionKind::ALL.into_iter().filter_map(named).collect()
    }

    /// Returns the kind of the built-in rule with this name.
    #[must_use]
    pub fn kind_named(name: &Slug) -> Option<ConditionKind> {
        ConditionKind::ALL.into_iter().find(|kind| kind.built_in() == name.as_str())
    }

    /// Returns the kind of its condition.
    #[must_use]
    pub fn kind(&self) -> ConditionKind {
        self.condition.kind()
    }

    /// Whether it applies to this service; `None` means the hub.
    #[must_use]
    pub fn covers(&self, service: Option<&Slug>) -> bool {
        match (service, &self.services) {
            (Some(service), Some(services)) => services.contains(service),
            _ => true,
        }
    }

    /// Whether the rule is muted now.
    #[must_use]
    pub fn is_muted(&self, now: Millis) -> bool {
        self.muted.as_ref().is_some_and(|mute| now < mute.until)
    }

    /// Evaluates the condition; `None` if the snapshot has no answer now.
    #[must_use]
    pub fn look(&self, scene: &SystemSnapshot) -> Option<Vec<Reading>> {
        let mut found = self.condition.look(scene)?;
        found.retain(|reading| self.covers(reading.service.as_ref()));
        Some(found)
    }
}

impl Condition {
    /// Returns the kind of the condition.
    #[must_use]
    pub fn kind(&self) -> ConditionKind {
        match self {
            Condition::CircuitOpen => ConditionKind::CircuitOpen,
            Condition::DeadLetters { .. } => ConditionKind::DeadLetters,
            Condition::OldestDue { .. } => ConditionKind::OldestDue,
            Condition::Warnings { .. } => ConditionKind::Warnings,
            Condition::Errors { .. } => ConditionKind::Errors,
            Condition::DataLossRisk { .. } => ConditionKind::DataLossRisk,
        }
    }
}
