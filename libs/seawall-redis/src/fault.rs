//! What the errors of the crate `redis` mean.

use std::error::Error;
use std::io;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use seawall::fault::Ran;
use seawall::{Classify, Fault};

/// Judges results with a [`RedisError`], for a guard around code that uses the crate `redis` directly.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::Guard;
/// use seawall_redis::RedisErrors;
/// let guard = Guard::builder("sessions").build()?;
/// # let client = redis::Client::open("redis://127.0.0.1:1/")?;
/// let result = guard.classify(RedisErrors).call(|_| client.get_multiplexed_async_connection()).await;
/// assert!(result.unwrap_err().last_fault().is_transient());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RedisErrors;

impl<T> Classify<T, RedisError> for RedisErrors {
    fn classify(&self, result: &Result<T, RedisError>) -> Option<Fault> {
        result.as_ref().err().map(fault_of)
    }

    fn source(error: &RedisError) -> Option<&(dyn Error + 'static)> {
        Some(error)
    }
}

/// What an error of the crate `redis` means.
#[must_use]
pub fn fault_of(error: &RedisError) -> Fault {
    match error.kind() {
        ErrorKind::Io => of_connection(error),
        ErrorKind::Server(kind) => of_server(kind, error),
        // An extension is an error of the server whose code the client does not know.
        ErrorKind::Extension => of_code(code_of(error)),
        ErrorKind::AuthenticationFailed => Fault::business().ran(Ran::No),
        ErrorKind::InvalidClientConfig | ErrorKind::Client | ErrorKind::EmptySentinelList => {
            Fault::business().ran(Ran::No)
        }
        // The answer came, and it is not what the caller expects.
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Fault::protocol().permanent().ran(Ran::Yes),
        ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::NoValidReplicasFoundBySentinel
        | ErrorKind::ClusterConnectionNotFound => Fault::unreachable(),
        _ => Fault::system(),
    }
}

fn of_connection(error: &RedisError) -> Fault {
    if error.is_connection_refusal() {
        return Fault::unreachable();
    }
    if error.is_timeout() {
        return Fault::timeout();
    }
    match error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
        Some(cause) => Fault::of_io(cause.kind()),
        None => Fault::io(),
    }
}

fn of_server(kind: ServerErrorKind, error: &RedisError) -> Fault {
    match kind {
        // The server refused the command before it ran it.
        ServerErrorKind::BusyLoading
        | ServerErrorKind::TryAgain
        | ServerErrorKind::ClusterDown
        | ServerErrorKind::MasterDown
        | ServerErrorKind::ReadOnly => Fault::protocol().ran(Ran::No),
        ServerErrorKind::NoPerm => Fault::business().ran(Ran::No),
        _ => of_code(code_of(error)),
    }
}

/// Whether the server is a replica, or has become one.
pub(crate) fn is_read_only(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) || code_of(error) == "READONLY"
}

/// The code of the error. Servers before Redis 7 put that of a command in a script into the text of another:
/// `ERR Error running script (call to f_…): @user_script:1: -READONLY You can't write against a read only replica.`
fn code_of(error: &RedisError) -> &str {
    let inner = error.detail().and_then(|detail| {
        let (_, inner) = detail.split_once(": -")?;
        inner.split_ascii_whitespace().next()
    });
    inner.or_else(|| error.code()).unwrap_or_default()
}

/// The code that begins the message of a server: `-OOM command not allowed`.
fn of_code(code: &str) -> Fault {
    match code {
        // Full memory, a failed write to disk, too few replicas, a script that runs too long: all pass.
        "OOM" | "MISCONF" | "NOREPLICAS" | "BUSY" | "LOADING" | "MASTERDOWN" | "READONLY" => {
            Fault::protocol().ran(Ran::No)
        }
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Fault::business().ran(Ran::No),
        _ => Fault::business(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-1, ADP-7: each kind of failure is judged by whether the command ran and whether another attempt may help.
    #[test]
    fn eng_1_errors_of_redis_are_judged() {
        let io = |kind| RedisError::from(io::Error::from(kind));
        let of_script = |text: &str| {
            let detail = format!("Error running script (call to f_6b1): @user_script:1: {text}");
            RedisError::from((ErrorKind::Server(ServerErrorKind::ResponseError), "An error", detail))
        };
        for (error, transient, ran) in [
            (io(io::ErrorKind::ConnectionRefused), true, Ran::No),
            (io(io::ErrorKind::ConnectionReset), true, Ran::Unknown),
            (io(io::ErrorKind::TimedOut), true, Ran::Unknown),
            (RedisError::from((ErrorKind::AuthenticationFailed, "no")), false, Ran::No),
            (RedisError::from((ErrorKind::UnexpectedReturnType, "no")), false, Ran::Yes),
            (RedisError::from((ErrorKind::Server(ServerErrorKind::BusyLoading), "no")), true, Ran::No),
            (RedisError::from((ErrorKind::Server(ServerErrorKind::ReadOnly), "no")), true, Ran::No),
            (of_script("-READONLY You can't write against a read only replica."), true, Ran::No),
            (of_script("-OOM command not allowed when used memory > 'maxmemory'."), true, Ran::No),
            (of_script("Wrong number of args calling Redis command From Lua script"), false, Ran::Yes),
        ] {
            let fault = fault_of(&error);
            assert_eq!((fault.is_transient(), fault.did_run()), (transient, ran), "{error:?}");
        }
    }
}
