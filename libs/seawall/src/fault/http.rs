//! HTTP statuses as faults, and sets of statuses.

use std::fmt;
use std::str::FromStr;

use super::{Class, Code, Fault, Ran, Verdict};

impl Fault {
    /// What an HTTP status means, or `None` for a success (1xx to 3xx).
    ///
    /// For 429 and 503 add [`after`](Fault::after) with what [`parse_retry_after`](super::parse_retry_after)
    /// reads from the header.
    #[must_use]
    pub const fn of_http(status: u16) -> Option<Self> {
        let fault = match status {
            0..=399 => return None,
            // The server gave up waiting, or does not want to risk an early request: it did not process it.
            408 | 425 => Fault::protocol().ran(Ran::No),
            429 => Fault::throttled(),
            503 => Fault::new(Class::Protocol, Verdict::Throttled, Ran::Yes),
            // Not implemented, version not supported: the next attempt will read the same.
            501 | 505 => Fault::protocol().permanent(),
            // The gateway does not know what became of the request behind it.
            502 | 504 => Fault::protocol().ran(Ran::Unknown),
            400..=499 => Fault::business(),
            _ => Fault::protocol(),
        };
        Some(fault.code(Code::Http(status)))
    }
}

/// A set of HTTP statuses, written like `429,500-599`, or `none`.
///
/// ```
/// # use seawall::fault::StatusSet;
/// let set: StatusSet = "429,500-599".parse()?;
/// assert!(set.contains(429) && set.contains(503) && !set.contains(404));
/// assert!(!StatusSet::none().contains(503));
/// # Ok::<(), seawall::fault::BadStatusSet>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatusSet(Vec<(u16, u16)>);

impl StatusSet {
    /// The empty set: no status is retried.
    #[must_use]
    pub const fn none() -> Self {
        StatusSet(Vec::new())
    }

    /// Whether `status` is in it.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|(low, high)| (*low..=*high).contains(&status))
    }
}

impl FromStr for StatusSet {
    type Err = BadStatusSet;

    fn from_str(text: &str) -> Result<Self, BadStatusSet> {
        if text.trim() == "none" {
            return Ok(StatusSet::none());
        }
        let status = |part: &str| {
            part.trim()
                .parse::<u16>()
                .ok()
                .filter(|status| (100..=599).contains(status))
                .ok_or_else(|| BadStatusSet { text: text.into(), part: part.trim().into() })
        };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let range = (status(low)?, status(high)?);
            if range.0 > range.1 {
                return Err(BadStatusSet { text: text.into(), part: part.trim().into() });
            }
            ranges.push(range);
        }
        Ok(StatusSet(ranges))
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, (low, high)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if low == high { write!(f, "{comma}{low}")? } else { write!(f, "{comma}{low}-{high}")? }
        }
        Ok(())
    }
}

/// A set of statuses that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadStatusSet {
    text: String,
    part: String,
}

impl fmt::Display for BadStatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` in `{}` is no status between 100 and 599 and no rising range of them; write `429,500-599` or `none`",
            self.part, self.text
        )
    }
}

impl std::error::Error for BadStatusSet {}
