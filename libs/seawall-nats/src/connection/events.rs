//! What happens to a connection in the background, and what the server says beside its answers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Event, ServerError};
use seawall::{Clock, Tick};

use super::log::ConnectionLog;
use crate::NatsError;

/// The number of violations of permissions that are remembered. They matter for as long as their requests wait.
const VIOLATIONS_MAX: usize = 64;

/// The last problem of the connection, and the last violations of permissions.
pub(super) struct Problems {
    clock: Clock,
    log: ConnectionLog,
    reports: Mutex<ServerReports>,
}

#[derive(Default)]
struct ServerReports {
    last: Option<String>,
    /// True if the server refuses our credentials.
    refused: bool,
    violations: VecDeque<(Tick, String)>,
}

impl Problems {
    pub(super) fn new(clock: Clock) -> Self {
        Problems { log: ConnectionLog::new(clock.clone()), clock, reports: Mutex::default() }
    }

    pub(super) fn last(&self) -> Option<String> {
        self.lock().last.clone()
    }

    /// Whether the server refused our credentials when we last tried to connect.
    pub(super) fn is_refused(&self) -> bool {
        self.lock().refused
    }

    pub(super) fn violation_since(&self, begin: Tick, subject: &str) -> Option<String> {
        let quoted = format!("\"{subject}\"");
        let reports = self.lock();
        let found = reports.violations.iter().rev().find(|(at, text)| *at >= begin && text.contains(&quoted));
        found.map(|(_, text)| text.clone())
    }

    pub(super) fn connected(&self) {
        let mut reports = self.lock();
        (reports.last, reports.refused) = (None, false);
    }

    pub(super) fn failed_to_connect(&self, error: &NatsError, pause: Duration) {
        let refused = error.fault().verdict() == seawall::Fault::business().verdict();
        let cause = error.cause().to_string();
        self.log.failed(&cause, refused, Some(pause));
        let mut reports = self.lock();
        (reports.last, reports.refused) = (Some(cause), refused);
    }

    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.log.connected();
                self.connected();
            }
            Event::Disconnected => {
                self.log.disconnected();
                self.lock().last.get_or_insert_with(|| "the connection broke".to_owned());
            }
            Event::SlowConsumer(subscription) => self.log.slow_consumer(*subscription),
            Event::ServerError(ServerError::Other(text)) if is_violation(text) => {
                self.log.refused(text);
                let mut reports = self.lock();
                if reports.violations.len() == VIOLATIONS_MAX {
                    reports.violations.pop_front();
                }
                reports.violations.push_back((self.clock.now(), text.clone()));
            }
            Event::ServerError(error) => self.problem(&error.to_string()),
            Event::ClientError(error) => self.problem(&error.to_string()),
            Event::LameDuckMode | Event::Draining | Event::Closed => {}
        }
    }

    /// Remembers why the connection is away. The client says so for each attempt to reconnect.
    fn problem(&self, text: &str) {
        let refused = text.to_ascii_lowercase().contains("authorization violation");
        self.log.failed(text, refused, None);
        let mut reports = self.lock();
        (reports.last, reports.refused) = (Some(text.to_owned()), refused);
    }

    fn lock(&self) -> MutexGuard<'_, ServerReports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_violation(text: &str) -> bool {
    text.to_ascii_lowercase().contains("permissions violation")
}
