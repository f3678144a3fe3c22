//! What there is now, and what a rule finds in it.

use std::collections::VecDeque;
use std::time::Duration;

use super::rule::Condition;
use crate::domain::circuit::CircuitState;
use crate::domain::slug::Slug;
use crate::domain::time::for_people;

/// The dead letters of each service, for each window of time.
pub type WindowCounts = Vec<(Duration, Vec<(Slug, u32)>)>;

/// The data that all conditions are evaluated against.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SystemSnapshot {
    pub services: Vec<ServiceCondition>,
    /// The recent dead letters; `None` if the store does not answer.
    pub dead_letters: Option<WindowCounts>,
    /// The warnings and errors in the log, for each window.
    pub warnings: Vec<(Duration, u64)>,
    /// The errors in the log, for each window.
    pub errors: Vec<(Duration, u64)>,
    /// The message of the last error.
    pub last_error: Option<String>,
    pub store: StoreCondition,
}

/// The warnings and errors that the process has logged since its start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogCounts {
    /// The number of warnings and errors.
    pub warnings: u64,
    /// The number of errors.
    pub errors: u64,
    /// The message of the last error, without its fields.
    pub last_error: Option<String>,
}

/// A service in a snapshot.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceCondition {
    pub name: Slug,
    /// Whether the service is paused. Its deliveries are not expected to be sent then.
    pub paused: bool,
    /// The state of its circuit with the reason of a manual change; `None` if it has no circuit breaker.
    pub circuit: Option<(CircuitState, Option<String>)>,
    /// For how long its oldest delivery has been due; `None` if the store does not answer.
    pub oldest_due: Option<Duration>,
}

/// The store in a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoreCondition {
    /// Whether units find no room on the disk.
    pub full: bool,
    /// The number of units since the last snapshot that were refused because a queue was full.
    pub refused: u64,
    /// The number of units since the last snapshot that failed for another reason than room.
    pub failed: u64,
    /// The free disk space in bytes; `None` if it is unknown.
    pub free_bytes: Option<u64>,
}

/// The result of a condition for one service or the hub.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The service; `None` means the hub.
    pub service: Option<Slug>,
    /// Whether the condition is bad.
    pub bad: bool,
    /// The measured value.
    pub value: f64,
    /// The result as a sentence for people.
    pub summary: String,
}

impl Condition {
    pub(super) fn look(&self, scene: &SystemSnapshot) -> Option<Vec<Reading>> {
        match self {
            Condition::CircuitOpen => Some(scene.services.iter().map(circuit).collect()),
            Condition::DeadLetters { more_than, window } => {
                let counted = scene.dead_letters.as_ref()?.iter().find(|(counted, _)| counted == window)?;
                let of = |name: &Slug| {
                    counted.1.iter().find(|(found, _)| found == name).map_or(0, |(_, count)| *count)
                };
                let reading = |seen: &ServiceCondition| {
                    let count = of(&seen.name);
                    Reading {
                        service: Some(seen.name.clone()),
                        bad: count > *more_than,
                        value: f64::from(count),
                        summary: format!(
                            "{count} deliveries to `{}` were dead-lettered within {}",
                            seen.name,
                            for_people(*window)
                        ),
                    }
                };
                Some(scene.services.iter().map(reading).collect())
            }
            Condition::OldestDue { older_than } => {
                Some(scene.services.iter().filter_map(|seen| oldest_due(seen, *older_than)).collect())
            }
            Condition::Warnings { more_than, window } => {
                let (_, count) = scene.warnings.iter().find(|(counted, _)| counted == window)?;
                Some(vec![Reading {
                    service: None,
                    bad: *count > u64::from(*more_than),
                    value: *count as f64,
                    summary: format!("{count} warnings and errors in the log within {}", for_people(*window)),
                }])
            }
            Condition::Errors { more_than, window } => {
                let (_, count) = scene.errors.iter().find(|(counted, _)| counted == window)?;
                Some(vec![errors(*count, *more_than, *window, scene.last_error.as_deref())])
            }
            Condition::DataLossRisk { free_below } => Some(vec![risk(&scene.store, *free_below)]),
        }
    }
}

/// Evaluates a circuit. Half-open is still bad: otherwise every probe during an outage would look like its end.
fn circuit(seen: &ServiceCondition) -> Reading {
    let name = &seen.name;
    let (bad, summary) = match &seen.circuit {
        None => (false, format!("`{name}` has no circuit")),
        Some((CircuitState::Closed | CircuitState::ForcedClosed, _)) => {
            (false, format!("the circuit of `{name}` is closed"))
        }
        Some((CircuitState::Open | CircuitState::HalfOpen, _)) => (
            true,
            format!("the circuit of `{name}` is open: calls to it fail, and its deliveries are waiting"),
        ),
        Some((CircuitState::ForcedOpen, reason)) => {
            let reason = reason.as_deref().unwrap_or("no reason was given");
            (true, format!("the circuit of `{name}` was forced open ({reason}): its deliveries are waiting"))
        }
    };
    Reading { service: Some(name.clone()), bad, value: if bad { 1.0 } else { 0.0 }, summary }
}

fn errors(count: u64, more_than: u32, window: Duration, last: Option<&str>) -> Reading {
    let (plural, within) = (if count == 1 { "" } else { "s" }, for_people(window));
    let last = last.filter(|_| count > 0).map(|last| format!(", the last one: {last}")).unwrap_or_default();
    Reading {
        service: None,
        bad: count > u64::from(more_than),
        value: count as f64,
        summary: format!("{count} error{plural} in the log within {within}{last}"),
    }
}

fn oldest_due(seen: &ServiceCondition, older_than: Duration) -> Option<Reading> {
    let age = if seen.paused { Duration::ZERO } else { seen.oldest_due? };
    Some(Reading {
        service: Some(seen.name.clone()),
        bad: age > older_than,
        value: age.as_secs() as f64,
        summary: format!("the oldest delivery to `{}` has been due for {}", seen.name, for_people(age)),
    })
}

fn risk(store: &StoreCondition, free_below: u64) -> Reading {
    let mega = |bytes: u64| bytes / (1024 * 1024);
    let little = store.free_bytes.filter(|free| *free < free_below);
    let summary = if store.full {
        "the disk is full: nothing is accepted, and outcomes can't be recorded".to_owned()
    } else if store.failed > 0 {
        format!("the store failed {} times: the events of these requests were not accepted", store.failed)
    } else if store.refused > 0 {
        format!("the store refused {} units of work, because its write queue is full", store.refused)
    } else if let Some(free) = little {
        format!("{} MiB are left on the disk", mega(free))
    } else {
        "the store works".to_owned()
    };
    Reading {
        service: None,
        bad: store.full || store.failed > 0 || store.refused > 0 || little.is_some(),
        value: store.free_bytes.map_or(0.0, |free| free as f64),
        summary,
    }
}

/// The growth of a counter within a window of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GrowthWindow {
    /// Earlier values with their times, the oldest first.
    was: VecDeque<(Duration, u64)>,
}

impl GrowthWindow {
    /// The shortest time between two values that are remembered.
    const EVERY: Duration = Duration::from_secs(10);
    /// The longest window that can be asked for.
    pub const LONGEST: Duration = Duration::from_secs(86_400);

    /// Records the current value.
    pub fn note(&mut self, now: Duration, total: u64) {
        if self.was.back().is_none_or(|(at, _)| now.saturating_sub(*at) >= Self::EVERY) {
            self.was.push_back((now, total));
        }
        while self.was.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) > Self::LONGEST) {
            self.was.pop_front();
        }
    }

    /// Returns the growth within the window. What came before the first recorded value does not count.
    #[must_use]
    pub fn within(&self, now: Duration, window: Duration, total: u64) -> u64 {
        let before = self.was.iter().rev().find(|(at, _)| now.saturating_sub(*at) >= window);
        let before = before.or_else(|| self.was.front());
        before.map_or(0, |(_, was)| total.saturating_sub(*was))
    }
}
