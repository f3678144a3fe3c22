//! What the errors of the crate `object_store` mean.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use object_store::Error;
use seawall::fault::Code;
use seawall::{Classify, Fault, Ran};

use crate::error::{FileError, FileErrorKind};

/// The wait after an answer that asks for fewer requests. Stores say so without a time.
const SLOW_DOWN: Duration = Duration::from_secs(1);

/// Judges results with an error of the crate `object_store`, for a guard around code that uses that crate directly.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use object_store::{ObjectStoreExt, memory::InMemory};
/// use seawall::Guard;
/// use seawall_files::ObjectStoreErrors;
/// let (guard, store) = (Guard::builder("archive").build()?, InMemory::new());
/// let path = "reports/7.pdf".into();
/// let result = guard.classify(ObjectStoreErrors).call(|_| store.head(&path)).await;
/// assert!(!result.unwrap_err().last_fault().is_transient());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectStoreErrors;

impl<T> Classify<T, Error> for ObjectStoreErrors {
    fn classify(&self, result: &Result<T, Error>) -> Option<Fault> {
        result.as_ref().err().map(fault_of)
    }

    fn source(error: &Error) -> Option<&(dyn StdError + 'static)> {
        Some(error)
    }
}

/// What an error of the crate `object_store` means.
#[must_use]
pub fn fault_of(error: &Error) -> Fault {
    match error {
        Error::PermissionDenied { .. } => Fault::business().ran(Ran::No).code(Code::Http(403)),
        Error::Unauthenticated { .. } => Fault::business().ran(Ran::No).code(Code::Http(401)),
        Error::NotFound { .. }
        | Error::AlreadyExists { .. }
        | Error::Precondition { .. }
        | Error::NotModified { .. } => Fault::business(),
        Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::UnknownConfigurationKey { .. } => Fault::business().ran(Ran::No),
        _ => of_causes(error),
    }
}

/// Judges by the first cause that says something.
fn of_causes(error: &Error) -> Fault {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(status) = status_of(&error.to_string()) {
            return of_status(status);
        }
        if let Some(fault) = of_transport(error) {
            return fault;
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return of_disk(error);
        }
        cause = error.source();
    }
    Fault::system()
}

#[cfg(feature = "cloud")]
fn of_transport(error: &(dyn StdError + 'static)) -> Option<Fault> {
    use object_store::client::{HttpError, HttpErrorKind};
    Some(match error.downcast_ref::<HttpError>()?.kind() {
        HttpErrorKind::Connect => Fault::unreachable(),
        HttpErrorKind::Timeout => Fault::timeout(),
        HttpErrorKind::Decode => Fault::protocol(),
        _ => Fault::io(),
    })
}

#[cfg(not(feature = "cloud"))]
fn of_transport(_: &(dyn StdError + 'static)) -> Option<Fault> {
    None
}

/// A full disk may have room later; a disk that refuses will refuse again.
fn of_disk(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Fault::business().ran(Ran::No).code(Code::Http(403))
        }
        kind => Fault::of_io(kind),
    }
}

/// The status of an answer. The type of the error that has it is private to the crate; its text is what can be read.
fn status_of(text: &str) -> Option<u16> {
    const BEFORE: &str = "Server returned non-2xx status code: ";
    // An outer error repeats the text of the one that has the status, and a body may hold any text: only the beginning counts.
    text.strip_prefix(BEFORE)?.get(..3)?.parse().ok()
}

fn of_status(status: u16) -> Fault {
    let fault = match status {
        401 | 403 => Fault::business().ran(Ran::No),
        // S3 answers 400 to a request whose body came too slowly, and 503 (`SlowDown`) when it has too many.
        408 => Fault::timeout(),
        429 | 503 => Fault::throttled().after(SLOW_DOWN),
        500..=599 => Fault::protocol(),
        _ => Fault::business(),
    };
    fault.code(Code::Http(status))
}

/// Makes an error of a file out of that of a guarded call.
pub(crate) fn file_error(action: &'static str, error: seawall::Error<Error>) -> FileError {
    let fault = error.fault();
    let is_store_away = error.last_fault().is_transient() || error.kind() == seawall::Kind::Rejected;
    let kind = match error.last() {
        Some(Error::NotFound { .. }) => Some(FileErrorKind::NotFound),
        Some(Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) => {
            Some(FileErrorKind::Permission)
        }
        _ => None,
    };
    match kind {
        Some(kind) => FileError::new(kind, action, fault),
        None => FileError::of_fault(action, fault),
    }
    .store_away(is_store_away)
    .with_cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-1, ADP-8: each kind of failure is judged by whether the request ran and whether another attempt may help.
    #[test]
    fn adp_8_errors_of_stores_are_judged() {
        let generic = |text: &str| Error::Generic { store: "S3", source: text.to_owned().into() };
        let io = |kind| Error::Generic { store: "disk", source: Box::new(io::Error::from(kind)) };
        let path = || "a".to_owned();
        for (error, transient, ran) in [
            (generic("Server returned non-2xx status code: 500 Internal Server Error: "), true, Ran::Yes),
            (
                generic("Server returned non-2xx status code: 503 Service Unavailable: SlowDown"),
                true,
                Ran::No,
            ),
            (generic("Server returned non-2xx status code: 400 Bad Request: "), false, Ran::Yes),
            (generic("a body with Server returned non-2xx status code: 500"), false, Ran::Unknown),
            (Error::PermissionDenied { path: path(), source: "no".into() }, false, Ran::No),
            (Error::Unauthenticated { path: path(), source: "no".into() }, false, Ran::No),
            (Error::NotFound { path: path(), source: "no".into() }, false, Ran::Yes),
            (io(io::ErrorKind::ConnectionRefused), true, Ran::No),
            (io(io::ErrorKind::StorageFull), true, Ran::Unknown),
            (io(io::ErrorKind::PermissionDenied), false, Ran::No),
        ] {
            let fault = fault_of(&error);
            assert_eq!((fault.is_transient(), fault.did_run()), (transient, ran), "{error:?}");
        }
        assert!(fault_of(&Error::PermissionDenied { path: path(), source: "no".into() }).is_unauthorised());
    }
}
