//! Why a consumer ended or could not begin.

use std::error::Error;
use std::fmt;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use seawall::Fault;

use crate::fault::fault_of;

/// A consumer ended by itself. Its [`source`](Error::source) is the [`Fault`], which says whether it may be started again.
#[derive(Clone, Debug)]
pub struct KafkaConsumerError {
    text: String,
    fault: Fault,
    error: KafkaError,
}

impl KafkaConsumerError {
    pub(crate) fn of_client(action: &str, error: KafkaError) -> Self {
        let text = match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                format!("{action}: the topic does not exist; create it, or correct its name")
            }
            _ => format!("{action}: {error}"),
        };
        KafkaConsumerError { text, fault: fault_of(&error), error }
    }

    /// What the failure means.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The error of the client.
    #[must_use]
    pub fn cause(&self) -> &KafkaError {
        &self.error
    }
}

impl fmt::Display for KafkaConsumerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for KafkaConsumerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}
