//! What a client of librdkafka says beside its results: errors of connections, and its own log.

use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;

use crate::fault::is_refused_credential;
use crate::telemetry::ClientLog;

/// Hears what a client says.
///
/// librdkafka reports that a broker refuses the credentials beside the results: a record that can't be sent for that reason
/// times out. So the last refusal is kept, and explains timeouts.
#[derive(Debug)]
pub(crate) struct ClientEvents {
    refusal: Mutex<Option<KafkaError>>,
    log: ClientLog,
}

impl ClientEvents {
    pub(crate) fn new(component: &'static str) -> Self {
        ClientEvents { refusal: Mutex::new(None), log: ClientLog::new(component) }
    }

    /// The refusal of credentials that explains why nothing works; `None` if there is none.
    pub(crate) fn refusal(&self) -> Option<KafkaError> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets refusals, because a broker has answered.
    pub(crate) fn connected(&self) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The log of the client.
    pub(crate) fn log(&self) -> &ClientLog {
        &self.log
    }

    /// Hears an error of a connection.
    pub(crate) fn failed(&self, error: KafkaError, reason: &str) {
        self.log.failed(&error, reason);
        if is_refused_credential(&error) {
            *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

/// The [`ClientEvents`] of a producer, which its owner can ask too.
#[derive(Clone, Debug)]
pub(crate) struct SharedEvents(pub(crate) Arc<ClientEvents>);

impl ClientContext for SharedEvents {
    fn log(&self, level: RDKafkaLogLevel, _facility: &str, text: &str) {
        self.0.log.library(level, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.failed(error, reason);
    }
}
