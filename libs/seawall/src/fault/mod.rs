//! What went wrong, judged once.
#![doc = ""]
#![doc = include_str!("../../docs/faults.md")]

mod classify;
mod grpc;
mod http;
mod judge;
#[cfg_attr(seawall_loom, expect(dead_code, reason = "only a guard goes by names"))]
mod names;
mod retry_after;

pub(crate) use classify::inner_verdict;
pub use classify::{Causes, Chained, Classify, Dynamic, Nested};
pub use grpc::Grpc;
pub use http::{BadStatusSet, StatusSet};
pub use judge::{Classifier, Judge, OperationError, kind};
#[cfg(not(seawall_loom))]
pub(crate) use names::Listed;
pub(crate) use names::Names;
#[cfg(feature = "config")]
pub(crate) use names::{announce, is_known_name, simple_name};
pub use retry_after::{parse_pushback, parse_retry_after};

use std::fmt;
use std::io;
use std::time::Duration;

use names::NameId;

/// The kind of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Class {
    /// The peer understood and said no.
    Business,
    /// The connection, the name or the disk failed.
    Io,
    /// Time ran out.
    Timeout,
    /// The peer answered that it could not.
    Protocol,
    /// Nobody expected this.
    System,
}

/// Whether the operation took place.
///
/// Ordered by how careful one must be: of two attempts the more doubtful one decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Ran {
    /// It certainly did not: refused, name not found, rejected by a policy.
    No,
    /// It did, and failed.
    Yes,
    /// It may have: a timeout, a reset, a lost answer.
    Unknown,
}

/// Whether trying again can help.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Trying again may help.
    Transient,
    /// The peer asks for fewer calls; trying again may help, later.
    Throttled,
    /// Trying again changes nothing.
    Permanent,
    /// A policy refused and nothing was sent. Not retried unless asked for, and says nothing about the peer.
    Rejected,
}

/// The protocol's own word for the failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// No code.
    None,
    /// An HTTP status.
    Http(u16),
    /// A gRPC status.
    Grpc(Grpc),
    /// An I/O error of the operating system.
    Io(io::ErrorKind),
}

/// A failure, classified. Small and `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub(crate) class: Class,
    pub(crate) verdict: Verdict,
    pub(crate) ran: Ran,
    pub(crate) code: Code,
    retry_after: Wait,
    name: NameId,
}

/// The wait that was asked for, in microseconds, or the largest number for none. A fault travels with every error, and so
/// it is 16 bytes, where an `Option<Duration>` alone would be 16. Six bytes last for eight years.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wait([u16; 3]);

impl Wait {
    const NONE: Wait = Wait([u16::MAX; 3]);
    const MAX: u128 = (1 << 48) - 2;

    /// Rounded up: nobody comes back too early.
    const fn new(wait: Duration) -> Self {
        let micros = wait.as_nanos().div_ceil(1_000);
        let micros = if micros < Wait::MAX { micros } else { Wait::MAX };
        Wait([micros as u16, (micros >> 16) as u16, (micros >> 32) as u16])
    }

    const fn get(self) -> Option<Duration> {
        match self.0 {
            [u16::MAX, u16::MAX, u16::MAX] => None,
            [low, middle, high] => {
                let micros = low as u64 | (middle as u64) << 16 | (high as u64) << 32;
                Some(Duration::from_micros(micros))
            }
        }
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            None => f.write_str("None"),
            Some(wait) => wait.fmt(f),
        }
    }
}

impl Fault {
    const fn new(class: Class, verdict: Verdict, ran: Ran) -> Self {
        Fault { class, verdict, ran, code: Code::None, retry_after: Wait::NONE, name: NameId::NONE }
    }

    /// The peer understood and said no. Never retried, and no mark against the peer.
    #[must_use]
    pub const fn business() -> Self {
        Fault::new(Class::Business, Verdict::Permanent, Ran::Yes)
    }

    /// Another caller was in the way, such as in a deadlock of a database: nothing was done, and trying again may help. No mark
    /// against the peer, and no reason to ask another one.
    #[must_use]
    pub const fn conflict() -> Self {
        Fault::new(Class::Business, Verdict::Transient, Ran::No)
    }

    /// A transport failure after which nobody knows whether the operation ran.
    #[must_use]
    pub const fn io() -> Self {
        Fault::new(Class::Io, Verdict::Transient, Ran::Unknown)
    }

    /// No connection, no name: the operation certainly did not run, so even a non-idempotent one may be retried.
    #[must_use]
    pub const fn unreachable() -> Self {
        Fault::new(Class::Io, Verdict::Transient, Ran::No)
    }

    /// Time ran out; nobody knows whether the operation ran.
    #[must_use]
    pub const fn timeout() -> Self {
        Fault::new(Class::Timeout, Verdict::Transient, Ran::Unknown)
    }

    /// The peer answered that it could not do it now.
    #[must_use]
    pub const fn protocol() -> Self {
        Fault::new(Class::Protocol, Verdict::Transient, Ran::Yes)
    }

    /// The peer asks for fewer calls. Add [`retry_after`](Fault::retry_after) if it said when.
    #[must_use]
    pub const fn throttled() -> Self {
        Fault::new(Class::Protocol, Verdict::Throttled, Ran::No)
    }

    /// Something nobody expected. Counts against the peer, is never retried.
    #[must_use]
    pub const fn system() -> Self {
        Fault::new(Class::System, Verdict::Permanent, Ran::Unknown)
    }

    /// A policy refused; nothing was sent.
    #[must_use]
    pub const fn rejected() -> Self {
        Fault::new(Class::System, Verdict::Rejected, Ran::No)
    }

    /// The same fault, but trying again changes nothing.
    #[must_use]
    pub const fn permanent(mut self) -> Self {
        self.verdict = Verdict::Permanent;
        self
    }

    pub(crate) const fn verdict_of(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }

    /// The same fault with another answer to "did it run?".
    #[must_use]
    pub const fn ran(mut self, ran: Ran) -> Self {
        self.ran = ran;
        self
    }

    /// The same fault with the wait that the peer asked for.
    #[must_use]
    pub const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Wait::new(wait);
        self
    }

    /// The same fault with a name, like `CacheConnectionException`: retries and breakers may go by it, in code
    /// ([`Retry::on_names`](crate::Retry::on_names)) and in a file. Names are compared without packages.
    ///
    /// ```
    /// use seawall::Fault;
    /// let fault = Fault::io().named("CacheConnectionException");
    /// assert_eq!(fault.name(), Some("CacheConnectionException"));
    /// ```
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = NameId::of(name);
        self
    }

    /// The same fault with a code.
    #[must_use]
    pub const fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// What an I/O error means.
    ///
    /// A refused or unreachable peer did not run anything; a connection that broke may have.
    #[must_use]
    pub fn of_io(kind: io::ErrorKind) -> Self {
        use io::ErrorKind as K;
        let fault = match kind {
            K::ConnectionRefused
            | K::HostUnreachable
            | K::NetworkUnreachable
            | K::NetworkDown
            | K::AddrNotAvailable
            | K::NotConnected => Fault::unreachable(),
            K::TimedOut => Fault::timeout(),
            // We could not encode or were not allowed to: the same bytes will fail the same way.
            K::InvalidInput | K::PermissionDenied | K::Unsupported => Fault::business().ran(Ran::No),
            K::NotFound | K::AlreadyExists => Fault::business(),
            _ => Fault::io(),
        };
        fault.code(Code::Io(kind))
    }

    /// The class.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Whether trying again can help.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether the operation took place.
    #[must_use]
    pub const fn did_run(&self) -> Ran {
        self.ran
    }

    /// The protocol's own word.
    #[must_use]
    pub const fn protocol_code(&self) -> Code {
        self.code
    }

    /// The wait that the peer asked for.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after.get()
    }

    /// The name that it was given.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        self.name.name()
    }

    /// Whether trying again may help: transient or throttled.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self.verdict, Verdict::Transient | Verdict::Throttled)
    }

    /// Whether it counts against the peer's circuit: not what the peer meant (business), and not what never
    /// reached it (rejected).
    #[must_use]
    pub const fn counts(&self) -> bool {
        !matches!(self.class, Class::Business) && !matches!(self.verdict, Verdict::Rejected)
    }

    /// Whether the credentials were refused, so that the caller should refresh them instead of retrying.
    #[must_use]
    pub const fn is_unauthorised(&self) -> bool {
        matches!(
            self.code,
            Code::Http(401 | 403) | Code::Grpc(Grpc::Unauthenticated | Grpc::PermissionDenied)
        )
    }
}

impl Fault {
    /// The same fault for a text that says itself when to come back.
    pub(crate) const fn without_wait(mut self) -> Self {
        self.retry_after = Wait::NONE;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match (self.class, self.verdict) {
            (_, Verdict::Rejected) => "rejected, nothing was sent",
            (_, Verdict::Throttled) => "throttled",
            (Class::Business, Verdict::Transient) => "conflict with another caller",
            (Class::Business, _) => "business fault",
            (Class::Io, _) => "i/o fault",
            (Class::Timeout, _) => "timeout",
            (Class::Protocol, _) => "protocol fault",
            (Class::System, _) if self.code == Code::None => {
                "unexpected fault (no `Fault` and no `io::Error` among its causes; say what it is with `classify`)"
            }
            (Class::System, _) => "unexpected fault",
        };
        f.write_str(class)?;
        if let Some(name) = self.name() {
            write!(f, " {name}")?;
        }
        match self.code {
            Code::None => {}
            Code::Http(status) => write!(f, " (http {status})")?,
            Code::Grpc(code) => write!(f, " (grpc {code})")?,
            Code::Io(kind) => write!(f, " ({kind})")?,
        }
        if self.is_unauthorised() {
            f.write_str(", refresh the credentials instead of retrying")?;
        }
        if let Some(wait) = self.retry_after() {
            let who =
                if self.verdict == Verdict::Rejected { "come back in" } else { "the peer asks to wait" };
            write!(f, ", {who} {}", crate::clock::Rounded(wait))?;
        }
        Ok(())
    }
}

/// A fault may stand in the `source` chain of an error of yours; [`Causes`] finds it there.
impl std::error::Error for Fault {}

#[cfg(all(test, not(seawall_loom)))]
mod tests;
