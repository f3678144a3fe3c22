//! What the errors of the crate `async-nats` mean.

use std::error::Error;
use std::io;

use async_nats::client::{
    PublishErrorKind as CorePublish, RequestErrorKind as CoreRequest, SubscribeErrorKind as Subscribe,
};
use async_nats::error::Error as ClientError;
use async_nats::jetstream::consumer::pull::MessagesErrorKind as Messages;
use async_nats::jetstream::context::{
    AccountErrorKind as Account, ConsumerInfoErrorKind as ConsumerInfo,
    CreateStreamErrorKind as CreateStream, GetStreamByNameErrorKind as FindStream,
    GetStreamErrorKind as GetStream, PublishErrorKind as Publish, RequestErrorKind as Request,
};
use async_nats::jetstream::stream::{
    ConsumerCreateStrictErrorKind as CreateStrict, ConsumerErrorKind as Consumer,
    ConsumerUpdateErrorKind as UpdateConsumer, DeleteMessageErrorKind as DeleteMessage,
    DirectGetErrorKind as DirectGet, LastRawMessageErrorKind as RawMessage, PurgeErrorKind as Purge,
};
use async_nats::jetstream::{Error as ServerRefusal, ErrorCode};
use async_nats::{ConnectErrorKind as Connect, StatusCode};
use seawall::fault::Ran;
use seawall::{Classify, Fault};

/// Judges results with an error of the crate `async-nats`, for a guard around code that uses that crate directly.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::Guard;
/// use seawall_nats::NatsErrors;
/// let guard = Guard::builder("orders").build()?;
/// let result = guard.classify(NatsErrors).call(|_| async_nats::connect("nats://127.0.0.1:1")).await;
/// assert!(result.unwrap_err().last_fault().is_transient());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NatsErrors;

impl<T, E: Error + 'static> Classify<T, E> for NatsErrors {
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        result.as_ref().err().map(|error| fault_of(error))
    }

    fn source(error: &E) -> Option<&(dyn Error + 'static)> {
        Some(error)
    }
}

/// What an error of the crate `async-nats` means. That crate has an error type per operation, so the error is looked at with
/// its causes, and the first that says something decides.
///
/// An error that is not of that crate is judged as [`Fault::of_error`] does.
#[must_use]
pub fn fault_of(error: &(dyn Error + 'static)) -> Fault {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(fault) = of_one(current) {
            return fault;
        }
        cause = current.source();
    }
    Fault::of_error(error)
}

/// The request was refused before it did anything, and will be refused again.
fn refused() -> Fault {
    Fault::business().ran(Ran::No)
}

/// The server or JetStream is not there now.
fn away() -> Fault {
    Fault::unreachable()
}

/// The connection was lost, or the client ended, while an answer was due.
fn lost() -> Fault {
    Fault::io()
}

/// Judges one error of a chain; `None` if its cause knows more.
fn of_one(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(refusal) = error.downcast_ref::<ServerRefusal>() {
        return Some(of_refusal(refusal));
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // The client wraps text in `io::Error::other`, and then the text has no kind.
        return (error.kind() != io::ErrorKind::Other).then(|| Fault::of_io(error.kind()));
    }
    of_core(error).or_else(|| of_publish(error)).or_else(|| of_management(error))
}

/// The kind of an error of the client, if the error is of this kind.
fn kind<K: Clone + std::fmt::Debug + std::fmt::Display + PartialEq + 'static>(
    error: &(dyn Error + 'static),
) -> Option<K> {
    error.downcast_ref::<ClientError<K>>().map(ClientError::kind)
}

/// Judges errors of connections, and of NATS without JetStream.
fn of_core(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(kind) = kind::<Connect>(error) {
        return match kind {
            Connect::AuthorizationViolation | Connect::Authentication | Connect::ServerParse => {
                Some(refused())
            }
            Connect::Dns | Connect::MaxReconnects => Some(away()),
            Connect::TimedOut => Some(Fault::timeout().ran(Ran::No)),
            // A certificate that is not accepted does not become so by another attempt.
            Connect::Tls => Some(Fault::protocol().permanent().ran(Ran::No)),
            Connect::Io => cause_or(error, away()),
        };
    }
    if let Some(kind) = kind::<CorePublish>(error) {
        return Some(match kind {
            CorePublish::MaxPayloadExceeded | CorePublish::InvalidSubject => refused(),
            CorePublish::Send => lost(),
        });
    }
    if let Some(kind) = kind::<CoreRequest>(error) {
        return match kind {
            CoreRequest::TimedOut => Some(Fault::timeout()),
            CoreRequest::NoResponders => Some(away()),
            CoreRequest::InvalidSubject | CoreRequest::MaxPayloadExceeded => Some(refused()),
            CoreRequest::Other => cause_or(error, lost()),
        };
    }
    match kind::<Subscribe>(error)? {
        Subscribe::InvalidSubject | Subscribe::InvalidQueueName => Some(refused()),
        Subscribe::Other => cause_or(error, lost()),
    }
}

/// Judges errors of publishing to a stream and of reading a consumer.
fn of_publish(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(kind) = kind::<Publish>(error) {
        return match kind {
            // No stream has the subject, or JetStream is off, or its leader is not elected yet.
            Publish::StreamNotFound | Publish::WrongLastMessageId | Publish::WrongLastSequence => {
                Some(refused())
            }
            Publish::TimedOut => Some(Fault::timeout()),
            Publish::BrokenPipe => Some(lost()),
            Publish::MaxAckPending => Some(Fault::throttled().ran(Ran::No)),
            Publish::MaxPayloadExceeded => Some(refused()),
            Publish::Other => cause_or(error, lost()),
        };
    }
    match kind::<Messages>(error)? {
        Messages::ConsumerDeleted | Messages::PushBasedConsumer | Messages::RequestLimitExceeded => {
            Some(refused())
        }
        Messages::MissingHeartbeat => Some(Fault::timeout()),
        Messages::NoResponders => Some(away()),
        Messages::Pull | Messages::Other => cause_or(error, lost()),
    }
}

/// Judges errors of what manages streams and consumers.
fn of_management(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(kind) = kind::<Request>(error) {
        return match kind {
            Request::TimedOut => Some(Fault::timeout()),
            Request::NoResponders => Some(away()),
            Request::InvalidSubject => Some(refused()),
            Request::Other => cause_or(error, lost()),
        };
    }
    of_streams(error).or_else(|| of_consumers(error)).or_else(|| of_stored_messages(error))
}

fn of_streams(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(kind) = kind::<CreateStream>(error) {
        return match kind {
            CreateStream::JetStream(refusal) => Some(of_refusal(&refusal)),
            CreateStream::TimedOut => Some(Fault::timeout()),
            CreateStream::JetStreamUnavailable => Some(away()),
            CreateStream::Response => cause_or(error, lost()),
            CreateStream::ResponseParse => Some(Fault::protocol().permanent()),
            _ => Some(refused()),
        };
    }
    if let Some(kind) = kind::<GetStream>(error) {
        return match kind {
            GetStream::JetStream(refusal) => Some(of_refusal(&refusal)),
            GetStream::Request => cause_or(error, lost()),
            GetStream::EmptyName | GetStream::InvalidStreamName => Some(refused()),
        };
    }
    if let Some(kind) = kind::<FindStream>(error) {
        return match kind {
            FindStream::JetStream(refusal) => Some(of_refusal(&refusal)),
            FindStream::Request => cause_or(error, lost()),
            FindStream::NotFound | FindStream::InvalidSubject => Some(refused()),
        };
    }
    match kind::<Account>(error)? {
        Account::TimedOut => Some(Fault::timeout()),
        Account::JetStream(refusal) => Some(of_refusal(&refusal)),
        Account::JetStreamUnavailable => Some(away()),
        Account::Other => cause_or(error, lost()),
    }
}

fn of_consumers(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(kind) = kind::<Consumer>(error) {
        return match kind {
            Consumer::TimedOut => Some(Fault::timeout()),
            Consumer::JetStream(refusal) => Some(of_refusal(&refusal)),
            Consumer::Request | Consumer::Other => cause_or(error, lost()),
            Consumer::InvalidConsumerType | Consumer::InvalidName => Some(refused()),
        };
    }
    if let Some(kind) = kind::<UpdateConsumer>(error) {
        return match kind {
            UpdateConsumer::TimedOut => Some(Fault::timeout()),
            UpdateConsumer::JetStream(refusal) => Some(of_refusal(&refusal)),
            UpdateConsumer::Request | UpdateConsumer::Other => cause_or(error, lost()),
            _ => Some(refused()),
        };
    }
    if let Some(kind) = kind::<CreateStrict>(error) {
        return match kind {
            CreateStrict::TimedOut => Some(Fault::timeout()),
            CreateStrict::JetStream(refusal) => Some(of_refusal(&refusal)),
            CreateStrict::Request | CreateStrict::Other => cause_or(error, lost()),
            _ => Some(refused()),
        };
    }
    match kind::<ConsumerInfo>(error)? {
        ConsumerInfo::TimedOut => Some(Fault::timeout()),
        ConsumerInfo::JetStream(refusal) => Some(of_refusal(&refusal)),
        ConsumerInfo::Request => cause_or(error, lost()),
        ConsumerInfo::Offline | ConsumerInfo::NoResponders => Some(away()),
        ConsumerInfo::InvalidName | ConsumerInfo::NotFound | ConsumerInfo::StreamNotFound => Some(refused()),
    }
}

fn of_stored_messages(error: &(dyn Error + 'static)) -> Option<Fault> {
    if let Some(kind) = kind::<RawMessage>(error) {
        return match kind {
            RawMessage::JetStream(refusal) => Some(of_refusal(&refusal)),
            RawMessage::Other => cause_or(error, lost()),
            RawMessage::NoMessageFound | RawMessage::InvalidSubject => Some(refused()),
        };
    }
    if let Some(kind) = kind::<DirectGet>(error) {
        return match kind {
            DirectGet::TimedOut => Some(Fault::timeout()),
            DirectGet::NotFound | DirectGet::InvalidSubject => Some(refused()),
            DirectGet::ErrorResponse(status, _) if status == StatusCode::TIMEOUT => Some(Fault::timeout()),
            DirectGet::ErrorResponse(..) => Some(refused()),
            DirectGet::Request | DirectGet::Other => cause_or(error, lost()),
        };
    }
    if let Some(kind) = kind::<DeleteMessage>(error) {
        return match kind {
            DeleteMessage::TimedOut => Some(Fault::timeout()),
            DeleteMessage::JetStream(refusal) => Some(of_refusal(&refusal)),
            DeleteMessage::Request => cause_or(error, lost()),
        };
    }
    match kind::<Purge>(error)? {
        Purge::TimedOut => Some(Fault::timeout()),
        Purge::JetStream(refusal) => Some(of_refusal(&refusal)),
        Purge::Request => cause_or(error, lost()),
    }
}

/// Leaves the judgement to the cause, if there is one that can be judged.
fn cause_or(error: &(dyn Error + 'static), fault: Fault) -> Option<Fault> {
    let mut cause = error.source();
    while let Some(current) = cause {
        if let Some(fault) = of_one(current) {
            return Some(fault);
        }
        cause = current.source();
    }
    Some(fault)
}

/// Judges an answer of JetStream. It refused the request, so nothing ran.
fn of_refusal(refusal: &ServerRefusal) -> Fault {
    let fault = match refusal.error_code() {
        // The limits of a stream or of the account are reached, and space is made by consumers or by an operator.
        ErrorCode::STREAM_STORE_FAILED
        | ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED => Fault::protocol(),
        ErrorCode::STREAM_TOO_MANY_REQUESTS => Fault::throttled(),
        ErrorCode::STREAM_OFFLINE | ErrorCode::CONSUMER_OFFLINE => Fault::unreachable(),
        _ if refusal.code() >= 500 => Fault::protocol(),
        _ => Fault::business(),
    };
    fault.ran(Ran::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: usize, error: u64) -> ServerRefusal {
        let text = format!(r#"{{"code":{code},"err_code":{error},"description":"no"}}"#);
        serde_json::from_str(&text).unwrap()
    }

    /// ENG-1, ADP-6: each kind of failure is judged by whether the request ran and whether another attempt may help.
    #[test]
    fn adp_6_errors_of_nats_are_judged() {
        let io = |kind| io::Error::from(kind);
        let refused_connection = ClientError::with_source(Connect::Io, io(io::ErrorKind::ConnectionRefused));
        let full = ClientError::with_source(Publish::Other, refusal(503, 10077));
        let too_large = ClientError::with_source(Publish::Other, refusal(400, 10054));
        let no_stream = ClientError::new(GetStream::JetStream(refusal(404, 10059)));
        let nested = ClientError::with_source(GetStream::Request, ClientError::new(Request::TimedOut));
        let cases: [(Box<dyn Error>, bool, Ran); 12] = [
            (Box::new(refused_connection), true, Ran::No),
            (Box::new(ClientError::new(Connect::AuthorizationViolation)), false, Ran::No),
            (Box::new(ClientError::new(Connect::TimedOut)), true, Ran::No),
            (Box::new(ClientError::new(Publish::StreamNotFound)), false, Ran::No),
            (Box::new(ClientError::new(Publish::TimedOut)), true, Ran::Unknown),
            (Box::new(ClientError::new(Publish::BrokenPipe)), true, Ran::Unknown),
            (Box::new(ClientError::new(Publish::MaxPayloadExceeded)), false, Ran::No),
            (Box::new(full), true, Ran::No),
            (Box::new(too_large), false, Ran::No),
            (Box::new(no_stream), false, Ran::No),
            (Box::new(nested), true, Ran::Unknown),
            (Box::new(ClientError::new(Messages::MissingHeartbeat)), true, Ran::Unknown),
        ];
        for (error, transient, ran) in cases {
            let fault = fault_of(error.as_ref());
            assert_eq!((fault.is_transient(), fault.did_run()), (transient, ran), "{error:?}: {fault:?}");
        }
    }
}
