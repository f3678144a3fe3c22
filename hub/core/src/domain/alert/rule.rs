//! What is bad.

use std::time::Duration;

use super::incident::Mute;
use super::scene::{Reading, Scene};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// The channel that is always there.
pub const LOG: &str = "log";

/// What is bad, for how long, and who is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertRule {
    /// Its name.
    pub name: Slug,
    /// From 1, one more with each change; 0 if it is as it came with the hub.
    pub version: u64,
    /// What is bad.
    pub condition: Condition,
    /// Whether it is at work.
    pub enabled: bool,
    /// How bad it is.
    pub severity: Severity,
    /// The services that it is about; all, if it is none.
    pub services: Option<Vec<Slug>>,
    /// The channels that are told beside the log; all that there are, if it is none.
    pub channels: Option<Vec<Slug>>,
    /// It has to be bad for so long before anybody is told,
    pub holds: Duration,
    /// and fine for so long before anybody is told that it is over.
    pub clears: Duration,
    /// Nobody is told for a while.
    pub muted: Option<Mute>,
    /// When it was last changed.
    pub changed: Millis,
}

/// What is bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// A circuit lets nothing through, or only probes.
    CircuitOpen,
    /// More deliveries of a service than this were given up lately.
    DeadLetters {
        /// More than so many,
        more_than: u32,
        /// within so long.
        window: Duration,
    },
    /// The oldest delivery of a service has been due for longer than this.
    OldestDue {
        /// Longer than this.
        older_than: Duration,
    },
    /// The log had more warnings and errors than this.
    Warnings {
        /// More than so many lines,
        more_than: u32,
        /// within so long.
        window: Duration,
    },
    /// The log had more errors than this: lines that need a person.
    Errors {
        /// More than so many lines,
        more_than: u32,
        /// within so long.
        window: Duration,
    },
    /// The store refuses what comes in, or soon will.
    DataLossRisk {
        /// Less room on the disk than so many bytes.
        free_below: u64,
    },
}

/// What a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// [`Condition::CircuitOpen`].
    CircuitOpen,
    /// [`Condition::DeadLetters`].
    DeadLetters,
    /// [`Condition::OldestDue`].
    OldestDue,
    /// [`Condition::Warnings`].
    Warnings,
    /// [`Condition::Errors`].
    Errors,
    /// [`Condition::DataLossRisk`].
    DataLossRisk,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Somebody should look today.
    Warning,
    /// Somebody should look now.
    Critical,
}

impl Severity {
    /// Both.
    pub const ALL: [Severity; 2] = [Severity::Warning, Severity::Critical];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }

    /// The other way round.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.word() == word)
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::CircuitOpen,
        Kind::DeadLetters,
        Kind::OldestDue,
        Kind::Warnings,
        Kind::Errors,
        Kind::DataLossRisk,
    ];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::CircuitOpen => "circuitOpen",
            Kind::DeadLetters => "deadLetters",
            Kind::OldestDue => "oldestDue",
            Kind::Warnings => "warnings",
            Kind::Errors => "errors",
            Kind::DataLossRisk => "dataLossRisk",
        }
    }

    /// The other way round.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether it is about services, one by one, and not about the hub.
    #[must_use]
    pub const fn is_of_services(self) -> bool {
        matches!(self, Kind::CircuitOpen | Kind::DeadLetters | Kind::OldestDue)
    }

    /// The name of the rule of this kind that comes with the hub.
    #[must_use]
    pub const fn built_in(self) -> &'static str {
        match self {
            Kind::CircuitOpen => "circuit-open",
            Kind::DeadLetters => "dead-letters",
            Kind::OldestDue => "oldest-due",
            Kind::Warnings => "warnings",
            Kind::Errors => "errors",
            Kind::DataLossRisk => "data-loss-risk",
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
    /// A rule of this kind as it comes with the hub.
    #[must_use]
    pub fn usual(name: Slug, kind: Kind) -> Self {
        let (condition, severity, holds, clears) = match kind {
            Kind::CircuitOpen => (Condition::CircuitOpen, Severity::Critical, MINUTE, MINUTE),
            Kind::DeadLetters => {
                let (more_than, window) = DEAD_LETTERS;
                // What is in the window goes out of it by itself, so it has cleared when it has.
                let zero = Duration::ZERO;
                (Condition::DeadLetters { more_than, window }, Severity::Warning, zero, MINUTE)
            }
            Kind::OldestDue => {
                (Condition::OldestDue { older_than: OLDER_THAN }, Severity::Critical, Duration::ZERO, MINUTE)
            }
            Kind::Warnings => {
                let (more_than, window) = WARNINGS;
                let condition = Condition::Warnings { more_than, window };
                (condition, Severity::Warning, Duration::ZERO, MINUTE * 10)
            }
            Kind::Errors => {
                let (more_than, window) = ERRORS;
                (Condition::Errors { more_than, window }, Severity::Critical, Duration::ZERO, MINUTE)
            }
            Kind::DataLossRisk => {
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

    /// The rules that come with the hub.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        let named = |kind: Kind| Slug::new(kind.built_in()).ok().map(|name| AlertRule::usual(name, kind));
        Kind::ALL.into_iter().filter_map(named).collect()
    }

    /// The kind that this name stands for, if the rule comes with the hub.
    #[must_use]
    pub fn kind_named(name: &Slug) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.built_in() == name.as_str())
    }

    /// What it is about.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.condition.kind()
    }

    /// Whether it is about this service, or about the hub if it is none.
    #[must_use]
    pub fn covers(&self, service: Option<&Slug>) -> bool {
        match (service, &self.services) {
            (Some(service), Some(services)) => services.contains(service),
            _ => true,
        }
    }

    /// Whether nobody is told now.
    #[must_use]
    pub fn is_muted(&self, now: Millis) -> bool {
        self.muted.as_ref().is_some_and(|mute| now < mute.until)
    }

    /// What it finds in a scene, bad or fine; nothing, if that can't be known now.
    #[must_use]
    pub fn look(&self, scene: &Scene) -> Option<Vec<Reading>> {
        let mut found = self.condition.look(scene)?;
        found.retain(|reading| self.covers(reading.service.as_ref()));
        Some(found)
    }
}

impl Condition {
    /// What it is about.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Condition::CircuitOpen => Kind::CircuitOpen,
            Condition::DeadLetters { .. } => Kind::DeadLetters,
            Condition::OldestDue { .. } => Kind::OldestDue,
            Condition::Warnings { .. } => Kind::Warnings,
            Condition::Errors { .. } => Kind::Errors,
            Condition::DataLossRisk { .. } => Kind::DataLossRisk,
        }
    }
}
