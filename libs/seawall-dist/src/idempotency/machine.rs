//! Decides about a key, as a function of its stored entry.

/// The SHA-256 of a request: method, route and body, each with its length before it, so that no two of them run together.
pub type Fingerprint = [u8; 32];

/// The stored entry of a key. Times are milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The key was never used, or its entry has been forgotten.
    Absent,
    /// An executor works under the key.
    InFlight {
        /// The fingerprint of the request.
        fingerprint: Fingerprint,
        /// The number that identifies the executor.
        token: u64,
        /// The end of the lease, unless it is renewed.
        until: i64,
    },
    /// The work is done, and its result is stored.
    Done {
        /// The fingerprint of the request.
        fingerprint: Fingerprint,
        /// The time until which the result is kept.
        until: i64,
    },
}

/// A request to work under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// A number that nobody else has. It identifies the executor.
    pub token: u64,
    /// The length of the lease in milliseconds.
    pub lease: i64,
}

/// The answer to a [`Claim`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimDecision {
    /// The caller does the work, after this entry is stored.
    Run(Entry),
    /// Another executor has the key.
    InFlight {
        /// The end of its lease.
        until: i64,
    },
    /// The work was done: the caller gets the stored result.
    Replay,
    /// The key was used for another request.
    Mismatch,
}

/// Decides about a request to work under a key.
#[must_use]
pub fn claim(entry: Entry, claim: &Claim, now: i64) -> ClaimDecision {
    let mine = Entry::InFlight {
        fingerprint: claim.fingerprint,
        token: claim.token,
        until: now.saturating_add(claim.lease),
    };
    match entry {
        Entry::Absent => ClaimDecision::Run(mine),
        Entry::Done { until, .. } if until <= now => ClaimDecision::Run(mine),
        Entry::InFlight { fingerprint, .. } | Entry::Done { fingerprint, .. }
            if fingerprint != claim.fingerprint =>
        {
            ClaimDecision::Mismatch
        }
        // The executor is gone, or so late that its result no longer counts.
        Entry::InFlight { until, .. } if until <= now => ClaimDecision::Run(mine),
        Entry::InFlight { until, .. } => ClaimDecision::InFlight { until },
        Entry::Done { .. } => ClaimDecision::Replay,
    }
}

/// Whether this executor may store its result or free the key. After a takeover it may not.
#[must_use]
pub fn may_write(entry: Entry, token: u64) -> bool {
    matches!(entry, Entry::InFlight { token: holder, .. } if holder == token)
}

/// The entry with a lease that starts now, if this executor still has the key. A lease that has run out is not renewed: another
/// executor may be about to take the key.
#[must_use]
pub fn renew(entry: Entry, token: u64, lease: i64, now: i64) -> Option<Entry> {
    match entry {
        Entry::InFlight { fingerprint, token: holder, until } if holder == token && now < until => {
            Some(Entry::InFlight { fingerprint, token, until: now.saturating_add(lease) })
        }
        _ => None,
    }
}
