//! The name of what failures have in common.

use std::fmt;

use sha2::{Digest, Sha256};

use super::super::delivery::Reason;
use super::super::slug::Slug;

/// What failures have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// To whom.
    pub service: Slug,
    /// By which rule.
    pub rule: Slug,
    /// Why it was given up.
    pub reason: Reason,
    /// What the peer answered last, if it did.
    pub status: Option<u16>,
    /// What was said, without what is different each time; nothing, if nothing was, or too many different things are.
    pub message: String,
}

/// The name of what failures have in common. Stable: it is in links and in notes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Of this failure.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        let Failure { service, rule, reason, status, message } = failure;
        let mut hash = Sha256::new();
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        for part in [service.as_str(), rule.as_str(), reason.word(), &status, message] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let bytes: [u8; 32] = hash.finalize().into();
        Fingerprint(bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads what [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text
            .strip_prefix("grp_")
            .filter(|hex| hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u64::from_str_radix(hex, 16).ok().map(Fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grp_{:016x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(service: &str, rule: &str, status: Option<u16>, message: &str) -> Failure {
        Failure {
            service: Slug::new(service).unwrap(),
            rule: Slug::new(rule).unwrap(),
            reason: Reason::Refused,
            status,
            message: message.into(),
        }
    }

    /// HUB-6: the fingerprint changes with every part of a failure, is read back, and is the same tomorrow.
    #[test]
    fn hub_6_a_fingerprint_is_stable_and_tells_every_part() {
        let usual = failure("billing", "invoices", Some(422), "no customer #");
        let known = Fingerprint::of(&usual);
        assert_eq!(known.to_string(), "grp_0d4d16df37c8e19d");
        assert_eq!(Fingerprint::parse(&known.to_string()), Some(known));
        assert_eq!(Fingerprint::parse("grp_12"), None);
        let others = [
            failure("billin", "ginvoices", Some(422), "no customer #"),
            failure("billing", "invoices", Some(42), "2no customer #"),
            failure("billing", "invoices", None, "no customer #"),
            failure("billing", "invoices", Some(422), "no order #"),
            Failure { reason: Reason::Attempts, ..usual.clone() },
        ];
        for other in others {
            assert_ne!(Fingerprint::of(&other), known, "{other:?}");
        }
    }
}
