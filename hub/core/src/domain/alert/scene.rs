//! What there is now, and what a rule finds in it.

use std::collections::VecDeque;
use std::time::Duration;

use super::rule::Condition;
use crate::domain::circuit::CircuitState;
use crate::domain::slug::Slug;

/// Dead letters of each service, by the window that they were counted in.
pub type Counted = Vec<(Duration, Vec<(Slug, u32)>)>;

/// What there is now.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scene {
    /// Every service.
    pub services: Vec<ServiceSeen>,
    /// Dead letters; nothing, if the store does not answer.
    pub dead_letters: Option<Counted>,
    /// Lines of the log that are warnings or errors, by the window that they were counted in.
    pub warnings: Vec<(Duration, u64)>,
    /// Lines of the log that are errors, by the window that they were counted in.
    pub errors: Vec<(Duration, u64)>,
    /// What the last of them says.
    pub last_error: Option<String>,
    /// The store.
    pub store: StoreSeen,
}

/// What the log of the process has had so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogSeen {
    /// Warnings and errors.
    pub warnings: u64,
    /// Errors.
    pub errors: u64,
    /// What the last error says, without its fields.
    pub last_error: Option<String>,
}

/// A service, now.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceSeen {
    /// Its name.
    pub name: Slug,
    /// Whether its deliveries are held: then nobody expects them to go out.
    pub paused: bool,
    /// Its circuit, and why a person has moved it; nothing, if it has none.
    pub circuit: Option<(CircuitState, Option<String>)>,
    /// For how long its oldest delivery has been due; nothing, if the store does not answer.
    pub oldest_due: Option<Duration>,
}

/// The store, now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoreSeen {
    /// Units found no room on the disk.
    pub full: bool,
    /// So many units were refused since the last look, because too much was waiting.
    pub refused: u64,
    /// So many failed since the last look, for another reason than room.
    pub failed: u64,
    /// So much room is left, if anybody knows.
    pub free_bytes: Option<u64>,
}

/// What a rule finds of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Of this service; of the hub, if it is none.
    pub service: Option<Slug>,
    /// Whether it is bad.
    pub bad: bool,
    /// The number that was looked at.
    pub value: f64,
    /// In words, for people.
    pub summary: String,
}

impl Condition {
    pub(super) fn look(&self, scene: &Scene) -> Option<Vec<Reading>> {
        match self {
            Condition::CircuitOpen => Some(scene.services.iter().map(circuit).collect()),
            Condition::DeadLetters { more_than, window } => {
                let counted = scene.dead_letters.as_ref()?.iter().find(|(counted, _)| counted == window)?;
                let of = |name: &Slug| {
                    counted.1.iter().find(|(found, _)| found == name).map_or(0, |(_, count)| *count)
                };
                let reading = |seen: &ServiceSeen| {
                    let count = of(&seen.name);
                    Reading {
                        service: Some(seen.name.clone()),
                        bad: count > *more_than,
                        value: f64::from(count),
                        summary: format!(
                            "{count} deliveries to `{}` were given up within {}",
                            seen.name,
                            time(*window)
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
                    summary: format!("{count} warnings and errors in the log within {}", time(*window)),
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

/// One that probes is not well yet: else every probe of an outage would look like its end.
fn circuit(seen: &ServiceSeen) -> Reading {
    let name = &seen.name;
    let (bad, summary) = match &seen.circuit {
        None => (false, format!("`{name}` has no circuit")),
        Some((CircuitState::Closed | CircuitState::ForcedClosed, _)) => {
            (false, format!("the circuit of `{name}` is closed"))
        }
        Some((CircuitState::Open | CircuitState::HalfOpen, _)) => {
            (true, format!("the circuit of `{name}` is open: calls to it fail, and its deliveries wait"))
        }
        Some((CircuitState::ForcedOpen, reason)) => {
            let reason = reason.as_deref().unwrap_or("no reason was given");
            (
                true,
                format!(
                    "the circuit of `{name}` was forced open by somebody ({reason}): its deliveries wait"
                ),
            )
        }
    };
    Reading { service: Some(name.clone()), bad, value: if bad { 1.0 } else { 0.0 }, summary }
}

fn errors(count: u64, more_than: u32, window: Duration, last: Option<&str>) -> Reading {
    let (plural, within) = (if count == 1 { "" } else { "s" }, time(window));
    let last = last.filter(|_| count > 0).map(|last| format!(", the last one: {last}")).unwrap_or_default();
    Reading {
        service: None,
        bad: count > u64::from(more_than),
        value: count as f64,
        summary: format!("{count} error{plural} in the log within {within}{last}"),
    }
}

fn oldest_due(seen: &ServiceSeen, older_than: Duration) -> Option<Reading> {
    let age = if seen.paused { Duration::ZERO } else { seen.oldest_due? };
    Some(Reading {
        service: Some(seen.name.clone()),
        bad: age > older_than,
        value: age.as_secs() as f64,
        summary: format!("the oldest delivery to `{}` has been due for {}", seen.name, time(age)),
    })
}

fn risk(store: &StoreSeen, free_below: u64) -> Reading {
    let mega = |bytes: u64| bytes / (1024 * 1024);
    let little = store.free_bytes.filter(|free| *free < free_below);
    let summary = if store.full {
        "there is no room on the disk: nothing is accepted, and outcomes can't be written down".to_owned()
    } else if store.failed > 0 {
        format!("the store failed {} times: what it refused was not accepted", store.failed)
    } else if store.refused > 0 {
        format!("the store refused {} units of work, because too much waits to be written", store.refused)
    } else if let Some(free) = little {
        format!("{} MiB are left on the disk", mega(free))
    } else {
        "the store takes what comes".to_owned()
    };
    Reading {
        service: None,
        bad: store.full || store.failed > 0 || store.refused > 0 || little.is_some(),
        value: store.free_bytes.map_or(0.0, |free| free as f64),
        summary,
    }
}

/// A time as people say it, to the second.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) if seconds == 0 => format!("{} ms", duration.as_millis()),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// How much something that only grows has grown within a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// What it was, and when; the oldest first.
    was: VecDeque<(Duration, u64)>,
}

impl Tally {
    /// A look is remembered so often,
    const EVERY: Duration = Duration::from_secs(10);
    /// and for so long: no window is longer.
    pub const LONGEST: Duration = Duration::from_secs(86_400);

    /// It is so much now.
    pub fn note(&mut self, now: Duration, total: u64) {
        if self.was.back().is_none_or(|(at, _)| now.saturating_sub(*at) >= Self::EVERY) {
            self.was.push_back((now, total));
        }
        while self.was.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) > Self::LONGEST) {
            self.was.pop_front();
        }
    }

    /// By how much it has grown within the window. What was before the first look does not count.
    #[must_use]
    pub fn within(&self, now: Duration, window: Duration, total: u64) -> u64 {
        let before = self.was.iter().rev().find(|(at, _)| now.saturating_sub(*at) >= window);
        let before = before.or_else(|| self.was.front());
        before.map_or(0, |(_, was)| total.saturating_sub(*was))
    }
}
