//! What to do with a key, as a function of what is known of it.

/// Of what was sent: method, route and body, each with its length before it, so that no two of them run together.
pub type Fingerprint = [u8; 32];

/// What is known of a key. Times are wall milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Nothing, or what was known has been forgotten.
    Absent,
    /// Somebody works under it.
    InFlight {
        /// Of what was sent.
        fingerprint: Fingerprint,
        /// Who.
        token: u64,
        /// The lease ends then, unless it is renewed.
        until: i64,
    },
    /// It is done, and the result is kept until then.
    Done {
        /// Of what was sent.
        fingerprint: Fingerprint,
        /// The result is kept until then.
        until: i64,
    },
}

/// Somebody wants to work under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Of what was sent.
    pub fingerprint: Fingerprint,
    /// A number that nobody else has: who it is.
    pub token: u64,
    /// For how long the key is its own, in milliseconds.
    pub lease: i64,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Do the work, and keep this entry before it begins.
    Run(Entry),
    /// Somebody is at it; come back then.
    InFlight {
        /// When its lease ends.
        until: i64,
    },
    /// It was done: give the stored result.
    Replay,
    /// The key was used for something else.
    Mismatch,
}

/// What to do when somebody wants to work under a key.
#[must_use]
pub fn claim(entry: Entry, claim: &Claim, now: i64) -> Verdict {
    let mine = Entry::InFlight {
        fingerprint: claim.fingerprint,
        token: claim.token,
        until: now.saturating_add(claim.lease),
    };
    match entry {
        Entry::Absent => Verdict::Run(mine),
        Entry::Done { until, .. } if until <= now => Verdict::Run(mine),
        Entry::InFlight { fingerprint, .. } | Entry::Done { fingerprint, .. }
            if fingerprint != claim.fingerprint =>
        {
            Verdict::Mismatch
        }
        // Whoever had it is gone, or so late that what it does no longer counts.
        Entry::InFlight { until, .. } if until <= now => Verdict::Run(mine),
        Entry::InFlight { until, .. } => Verdict::InFlight { until },
        Entry::Done { .. } => Verdict::Replay,
    }
}

/// Whether this token may write its result, or give the key back. One that was taken over may not.
#[must_use]
pub fn may_write(entry: Entry, token: u64) -> bool {
    matches!(entry, Entry::InFlight { token: holder, .. } if holder == token)
}

/// The entry with a lease from now on, if this token still has it. A lease that has run out is not renewed: another may be
/// about to take it.
#[must_use]
pub fn renew(entry: Entry, token: u64, lease: i64, now: i64) -> Option<Entry> {
    match entry {
        Entry::InFlight { fingerprint, token: holder, until } if holder == token && now < until => {
            Some(Entry::InFlight { fingerprint, token, until: now.saturating_add(lease) })
        }
        _ => None,
    }
}
