//! Names of faults.
//!
//! Why a name at all: the class of a fault decides what guards do with it, and that is enough for code that was written with
//! them in mind. Rules that were written elsewhere go by the names of exceptions. A name lets them keep their meaning.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use super::{Class, Code, Fault, Ran, Verdict};

/// Every name that a fault was given in this process. They are words in a program, so there are few, and none is ever
/// forgotten.
static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

#[derive(Default)]
struct Known {
    names: Vec<&'static str>,
    ids: HashMap<&'static str, NameId>,
    /// Without the packages.
    simple: HashMap<&'static str, ()>,
}

/// The number of a name; zero is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct NameId(u16);

impl NameId {
    pub(super) const NONE: NameId = NameId(0);

    /// The number of this name, which gets one if it is new. Beyond 65 535 names a fault has none.
    pub(super) fn of(name: &'static str) -> Self {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.ids.get(name) {
            return *id;
        }
        drop(known);
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.ids.get(name) {
            return *id;
        }
        let Ok(number) = u16::try_from(known.names.len() + 1) else { return NameId::NONE };
        known.names.push(name);
        known.simple.insert(simple(name), ());
        known.ids.insert(name, NameId(number));
        NameId(number)
    }

    pub(super) fn name(self) -> Option<&'static str> {
        let index = usize::from(self.0).checked_sub(1)?;
        KNOWN.read().unwrap_or_else(PoisonError::into_inner).names.get(index).copied()
    }
}

/// Shows the name and not its number.
impl fmt::Debug for NameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// A name without packages and outer classes: `com.x.Outer$CacheException` is `CacheException`.
fn simple(name: &str) -> &str {
    name.rsplit(['.', '$', ':']).next().unwrap_or(name)
}

/// Names that a rule lists, as they were written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Names(Arc<[Box<str>]>);

/// How a fault is in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listed {
    No,
    /// A well-known exception of Java stands for faults of its kind.
    ByKind,
    /// The fault carries the name.
    ByName,
}

impl Names {
    pub(crate) fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Names(names.into_iter().map(|name| name.into().into_boxed_str()).collect())
    }

    pub(crate) fn lists(&self, fault: Fault) -> Listed {
        let own = fault.name().map(simple);
        let mut listed = Listed::No;
        for name in self.0.iter().map(|name| simple(name)) {
            if own == Some(name) {
                return Listed::ByName;
            }
            if kind_of(name).is_some_and(|is_of_kind| is_of_kind(fault)) {
                listed = Listed::ByKind;
            }
        }
        listed
    }
}

/// Without packages, as they are compared.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|name| simple(name)).collect();
        f.write_str(&names.join(", "))
    }
}

/// Whether a fault can be called so: one was, or it is a well-known exception of Java.
#[cfg(feature = "config")]
pub(crate) fn is_known_name(name: &str) -> bool {
    let name = simple(name);
    kind_of(name).is_some() || KNOWN.read().unwrap_or_else(PoisonError::into_inner).simple.contains_key(name)
}

/// The simple name, for messages.
#[cfg(feature = "config")]
pub(crate) fn simple_name(name: &str) -> &str {
    simple(name)
}

/// Announces names, so that nobody is warned about them before a fault carries one.
#[cfg(feature = "config")]
pub(crate) fn announce(name: &'static str) {
    NameId::of(name);
}

/// The faults that a well-known exception of Java stands for. Rejections by a policy are listed by their own names only: what
/// refuses now refuses for a while, and `Exception` in a list was not meant for it.
fn kind_of(name: &str) -> Option<fn(Fault) -> bool> {
    fn sent(fault: Fault) -> bool {
        fault.verdict() != Verdict::Rejected
    }
    fn status(fault: Fault) -> u16 {
        if let Code::Http(status) = fault.protocol_code() { status } else { 0 }
    }
    Some(match name {
        "Throwable" | "Exception" => sent,
        // Of the kinds below, i/o faults and timeouts are checked exceptions in Java.
        "RuntimeException" => |fault| sent(fault) && !matches!(fault.class(), Class::Io | Class::Timeout),
        "IOException" | "SocketException" | "EOFException" | "SSLException" | "ClosedChannelException" => {
            |fault| fault.class() == Class::Io
        }
        "ConnectException"
        | "UnknownHostException"
        | "NoRouteToHostException"
        | "HttpHostConnectException" => |fault| fault.class() == Class::Io && fault.did_run() == Ran::No,
        "TimeoutException"
        | "SocketTimeoutException"
        | "HttpTimeoutException"
        | "ConnectTimeoutException"
        | "HttpConnectTimeoutException"
        | "ReadTimeoutException"
        | "QueryTimeoutException"
        | "InterruptedIOException" => |fault| fault.class() == Class::Timeout,
        "ResourceAccessException" | "WebClientRequestException" => {
            |fault| matches!(fault.class(), Class::Io | Class::Timeout)
        }
        "HttpServerErrorException" => |fault| (500..600).contains(&status(fault)),
        "InternalServerError" => |fault| status(fault) == 500,
        "BadGateway" => |fault| status(fault) == 502,
        "ServiceUnavailable" => |fault| status(fault) == 503,
        "GatewayTimeout" => |fault| status(fault) == 504,
        "HttpClientErrorException" => |fault| (400..500).contains(&status(fault)),
        "TooManyRequests" => |fault| fault.verdict() == Verdict::Throttled,
        "BusinessException" => |fault| fault.class() == Class::Business,
        "ProtocolException" => |fault| fault.class() == Class::Protocol,
        "SystemException" => |fault| fault.class() == Class::System && sent(fault),
        "CallNotPermittedException" | "RequestNotPermitted" | "BulkheadFullException" => {
            |fault| fault.verdict() == Verdict::Rejected
        }
        _ => return None,
    })
}
