//! What the errors of the crate `lapin` mean.

use std::error::Error;
use std::io;

use lapin::protocol::AMQPError;
use lapin::{Error as ClientError, ErrorKind};
use seawall::fault::Ran;
use seawall::{Classify, Fault};

/// Judges results with a [`lapin::Error`], for a guard around code that uses the crate `lapin` directly.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lapin::{Connection, ConnectionProperties};
/// use seawall::Guard;
/// use seawall_amqp::AmqpErrors;
/// let guard = Guard::builder("orders").no_retry().build()?;
/// let connect = || Connection::connect("amqp://127.0.0.1:1", ConnectionProperties::default());
/// let result = guard.classify(AmqpErrors).call(|_| connect()).await;
/// assert!(result.unwrap_err().last_fault().is_transient());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AmqpErrors;

impl<T> Classify<T, ClientError> for AmqpErrors {
    fn classify(&self, result: &Result<T, ClientError>) -> Option<Fault> {
        result.as_ref().err().map(fault_of)
    }

    fn source(error: &ClientError) -> Option<&(dyn Error + 'static)> {
        Some(error)
    }
}

/// What an error of the crate `lapin` means.
#[must_use]
pub fn fault_of(error: &ClientError) -> Fault {
    match error.kind() {
        // The program was built without TLS.
        ErrorKind::IOError(cause) if cause.kind() == io::ErrorKind::Unsupported => {
            Fault::business().ran(Ran::No)
        }
        ErrorKind::IOError(cause) => Fault::of_io(cause.kind()),
        ErrorKind::MissingHeartbeatError => Fault::timeout(),
        ErrorKind::ProtocolError(cause) => of_reply(cause),
        // The connection or the channel ended meanwhile. Something that was sent before may have arrived.
        ErrorKind::InvalidChannel(_)
        | ErrorKind::InvalidChannelState(..)
        | ErrorKind::InvalidConnectionState(_)
        | ErrorKind::RuntimeShutdownError(_) => Fault::io(),
        ErrorKind::ChannelsLimitReached => Fault::throttled(),
        ErrorKind::AuthProviderError(_) => Fault::business().ran(Ran::No),
        ErrorKind::InvalidProtocolVersion(_) | ErrorKind::SerialisationError(_) => {
            Fault::protocol().permanent().ran(Ran::No)
        }
        ErrorKind::ParsingError(_) => Fault::protocol().permanent().ran(Ran::Unknown),
        _ => Fault::system(),
    }
}

/// What a reply code of AMQP 0-9-1 means, by which the server closes a channel or a connection.
fn of_reply(error: &AMQPError) -> Fault {
    match error.get_id() {
        // The server is being shut down, or an operator closed the connection.
        320 => Fault::io(),
        // Another connection has an exclusive queue.
        405 => Fault::conflict(),
        // The consumer kept a message for longer than the server allows. The server takes its messages back.
        406 if error.get_message().as_str().contains("timed out") => Fault::timeout(),
        // The server is out of something: connections, channels, memory.
        506 => Fault::throttled(),
        // An error inside the server, or a frame that it did not expect. The connection is gone, and so is all that was in flight
        // on it, whoever was the cause.
        501 | 503..=505 | 541 => Fault::protocol().ran(Ran::Unknown),
        // Too large (311), no permission (403), absent (404), other arguments than those of the existing queue or too large (406),
        // no such virtual host (530), and all else that is as wrong next time.
        _ => Fault::business().ran(Ran::No),
    }
}

/// Whether the server closed the channel because of what one message or one declaration asked for.
pub(crate) fn is_refusal(error: &ClientError) -> bool {
    error.is_amqp_soft_error() && !fault_of(error).is_transient()
}

#[cfg(test)]
mod tests {
    use seawall::Class;

    use super::*;

    /// ENG-1, ADP-4: each kind of failure is judged by whether the message may have arrived and whether another attempt may help.
    #[test]
    fn eng_1_errors_of_rabbitmq_are_judged() {
        let io = |kind| ClientError::from(io::Error::from(kind));
        let reply = |code, text: &str| {
            let error = AMQPError::from_id(code, text.into()).expect("a known code");
            ClientError::from(ErrorKind::ProtocolError(error))
        };
        let of = ClientError::from;
        for (error, class, transient, ran) in [
            (io(io::ErrorKind::ConnectionRefused), Class::Io, true, Ran::No),
            (io(io::ErrorKind::ConnectionReset), Class::Io, true, Ran::Unknown),
            (io(io::ErrorKind::ConnectionAborted), Class::Io, true, Ran::Unknown),
            (io(io::ErrorKind::Unsupported), Class::Business, false, Ran::No),
            (io(io::ErrorKind::TimedOut), Class::Timeout, true, Ran::Unknown),
            (of(ErrorKind::MissingHeartbeatError), Class::Timeout, true, Ran::Unknown),
            (of(ErrorKind::ChannelsLimitReached), Class::Protocol, true, Ran::No),
            (of(ErrorKind::InvalidChannel(7)), Class::Io, true, Ran::Unknown),
            (of(ErrorKind::AuthProviderError("no".into())), Class::Business, false, Ran::No),
            (of(ErrorKind::FutureCompleted), Class::System, false, Ran::Unknown),
            (
                reply(320, "CONNECTION_FORCED - broker forced connection closure"),
                Class::Io,
                true,
                Ran::Unknown,
            ),
            (reply(403, "ACCESS_REFUSED - Login was refused"), Class::Business, false, Ran::No),
            (reply(404, "NOT_FOUND - no queue 'q' in vhost '/'"), Class::Business, false, Ran::No),
            (reply(405, "RESOURCE_LOCKED - cannot obtain exclusive access"), Class::Business, true, Ran::No),
            (reply(406, "PRECONDITION_FAILED - inequivalent arg"), Class::Business, false, Ran::No),
            (
                reply(406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out"),
                Class::Timeout,
                true,
                Ran::Unknown,
            ),
            (reply(504, "CHANNEL_ERROR"), Class::Protocol, true, Ran::Unknown),
            (reply(506, "RESOURCE_ERROR"), Class::Protocol, true, Ran::No),
            (reply(530, "NOT_ALLOWED - vhost x not found"), Class::Business, false, Ran::No),
            (reply(541, "INTERNAL_ERROR"), Class::Protocol, true, Ran::Unknown),
        ] {
            let fault = fault_of(&error);
            assert_eq!(
                (fault.class(), fault.is_transient(), fault.did_run()),
                (class, transient, ran),
                "{error:?}"
            );
        }
    }
}
