//! What the errors of the crate `rdkafka` mean.

use std::error::Error;

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use seawall::fault::Ran;
use seawall::{Classify, Fault};

/// Judges results with an error of the crate `rdkafka`, for a guard around code that uses it directly.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rdkafka::error::{KafkaError, RDKafkaErrorCode};
/// use seawall::Guard;
/// use seawall_kafka::KafkaErrors;
/// let guard = Guard::builder("orders").no_retry().build()?;
/// let full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
/// let result = guard.classify(KafkaErrors).call(|_| async { Err::<(), _>(full.clone()) }).await;
/// assert!(result.unwrap_err().last_fault().is_transient());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct KafkaErrors;

impl<T> Classify<T, KafkaError> for KafkaErrors {
    fn classify(&self, result: &Result<T, KafkaError>) -> Option<Fault> {
        result.as_ref().err().map(fault_of)
    }

    fn source(error: &KafkaError) -> Option<&(dyn Error + 'static)> {
        Some(error)
    }
}

/// What an error of the crate `rdkafka` means.
#[must_use]
pub fn fault_of(error: &KafkaError) -> Fault {
    match error {
        // The settings or the arguments are wrong: nothing was sent, and nothing else would be.
        KafkaError::ClientConfig(..)
        | KafkaError::ClientCreation(_)
        | KafkaError::AdminOpCreation(_)
        | KafkaError::Nul(_)
        | KafkaError::Subscription(_)
        | KafkaError::PauseResume(_)
        | KafkaError::Seek(_) => Fault::business().ran(Ran::No),
        // The client was dropped while the operation was under way.
        KafkaError::Canceled => Fault::io(),
        KafkaError::NoMessageReceived | KafkaError::PartitionEOF(_) => Fault::protocol(),
        other => other.rdkafka_error_code().map_or(Fault::system(), of_code),
    }
}

/// What a code of librdkafka (negative numbers) or of a broker means.
fn of_code(code: Code) -> Fault {
    match code {
        Code::AllBrokersDown | Code::Resolve | Code::NodeUpdate | Code::WaitingForCoordinator => {
            Fault::unreachable()
        }
        Code::BrokerTransportFailure | Code::BrokerDestroy | Code::PurgeInflight | Code::NetworkException => {
            Fault::io()
        }
        Code::PurgeQueue => Fault::io().ran(Ran::No),
        // The time may have ended before or after the broker wrote the record.
        Code::MessageTimedOut | Code::OperationTimedOut | Code::RequestTimedOut => Fault::timeout(),
        Code::TimedOutQueue => Fault::timeout().ran(Ran::No),
        // The queue of this process, or a quota of the broker.
        Code::QueueFull | Code::ThrottlingQuotaExceeded => Fault::throttled(),
        // The broker wrote the record, and fewer replicas than asked for have it.
        Code::NotEnoughReplicasAfterAppend => Fault::protocol().ran(Ran::Yes),
        code if is_passing(code) => Fault::protocol().ran(Ran::No),
        code if is_refusal(code) => Fault::business().ran(Ran::No),
        _ => Fault::system(),
    }
}

/// A state of the cluster that passes: an election, a restart, a group that assigns its partitions anew.
fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::BrokerNotAvailable
            | Code::ReplicaNotAvailable
            | Code::PreferredLeaderNotAvailable
            | Code::EligibleLeadersNotAvailable
            | Code::NotEnoughReplicas
            | Code::ISRInsufficient
            | Code::CoordinatorLoadInProgress
            | Code::CoordinatorNotAvailable
            | Code::NotCoordinator
            | Code::NotController
            | Code::StaleControllerEpoch
            | Code::StaleBrokerEpoch
            | Code::FencedLeaderEpoch
            | Code::UnknownLeaderEpoch
            | Code::OffsetNotAvailable
            | Code::ListenerNotFound
            | Code::KafkaStorageError
            | Code::RebalanceInProgress
            | Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::AssignmentLost
            | Code::UnstableOffsetCommit
            | Code::ConcurrentTransactions
            | Code::ReassignmentInProgress
            | Code::InProgress
            | Code::PreviousInProgress
            | Code::Retry
            | Code::WaitCache
            | Code::Outdated
    )
}

/// A refusal that the same request gets again.
fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::MessageSizeTooLarge
            | Code::InvalidMessageSize
            | Code::MessageBatchTooLarge
            | Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::UnknownPartition
            | Code::UnknownGroup
            | Code::InvalidTopic
            | Code::InvalidArgument
            | Code::InvalidMessage
            | Code::InvalidRecord
            | Code::InvalidTimestamp
            | Code::InvalidConfig
            | Code::InvalidRequest
            | Code::InvalidPartitions
            | Code::InvalidReplicationFactor
            | Code::InvalidReplicaAssignment
            | Code::InvalidRequiredAcks
            | Code::InvalidGroupId
            | Code::InvalidSessionTimeout
            | Code::InconsistentGroupProtocol
            | Code::TopicAlreadyExists
            | Code::PolicyViolation
            | Code::UnsupportedVersion
            | Code::UnsupportedFeature
            | Code::UnsupportedForMessageFormat
            | Code::UnsupportedCompressionType
            | Code::NotImplemented
            | Code::OffsetMetadataTooLarge
            | Code::GroupMaxSizeReached
    ) || is_denial(code)
}

/// A refusal of who the client is, or of what it may do.
fn is_denial(code: Code) -> bool {
    matches!(
        code,
        Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::UnsupportedSASLMechanism
            | Code::IllegalSASLState
            | Code::SSL
            | Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::SecurityDisabled
            | Code::UnacceptableCredential
    )
}

/// True if the cluster refused who the client is, or what it may do.
pub(crate) fn is_refused_credential(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(is_denial)
}

/// True if the client can't go on and has to be made anew.
pub(crate) fn is_fatal(error: &KafkaError) -> bool {
    matches!(error, KafkaError::MessageConsumptionFatal(_))
        || matches!(
            error.rdkafka_error_code(),
            Some(Code::Fatal | Code::Fenced | Code::FencedInstanceId | Code::ProducerFenced)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-1, ADP-5: each kind of failure is judged by whether the record was written and whether another attempt may help.
    #[test]
    fn eng_1_errors_of_kafka_are_judged() {
        for (code, transient, ran) in [
            (Code::AllBrokersDown, true, Ran::No),
            (Code::BrokerTransportFailure, true, Ran::Unknown),
            (Code::MessageTimedOut, true, Ran::Unknown),
            (Code::QueueFull, true, Ran::No),
            (Code::NotEnoughReplicas, true, Ran::No),
            (Code::NotEnoughReplicasAfterAppend, true, Ran::Yes),
            (Code::LeaderNotAvailable, true, Ran::No),
            (Code::RebalanceInProgress, true, Ran::No),
            (Code::MessageSizeTooLarge, false, Ran::No),
            (Code::UnknownTopic, false, Ran::No),
            (Code::UnknownTopicOrPartition, false, Ran::No),
            (Code::SaslAuthenticationFailed, false, Ran::No),
            (Code::TopicAuthorizationFailed, false, Ran::No),
            (Code::OutOfOrderSequenceNumber, false, Ran::Unknown),
        ] {
            let fault = fault_of(&KafkaError::MessageProduction(code));
            assert_eq!((fault.is_transient(), fault.did_run()), (transient, ran), "{code:?}");
        }
        assert!(!fault_of(&KafkaError::ClientCreation("no".to_owned())).is_transient());
        assert!(fault_of(&KafkaError::Canceled).is_transient());
    }
}
