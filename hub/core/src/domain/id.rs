//! Ids that are never used twice.

use std::fmt;
use std::marker::PhantomData;

/// The id of a delivery or of an operation: the same for all its attempts, also after a restart, and never used twice.
///
/// The first half was drawn at random when the database was created, so that a database that is restored from a backup and
/// renewed uses ids that nobody has seen; the second half counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<Kind> {
    /// The id of the database.
    pub database: u64,
    /// The number within the database.
    pub number: u64,
    kind: PhantomData<Kind>,
}

/// What an [`Id`] is the id of.
pub trait IdKind {
    /// The text before the digits.
    const PREFIX: &'static str;
}

impl<Kind: IdKind> Id<Kind> {
    #[must_use]
    pub const fn new(database: u64, number: u64) -> Self {
        Id { database, number, kind: PhantomData }
    }

    /// Parses the output of [`Display`](fmt::Display).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |hex: &&str| hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hex = text.strip_prefix(Kind::PREFIX).filter(is_hex)?;
        let half = |text| u64::from_str_radix(text, 16).ok();
        Some(Id::new(half(&hex[..16])?, half(&hex[16..])?))
    }
}

impl<Kind: IdKind> fmt::Display for Id<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:016x}{:016x}", Kind::PREFIX, self.database, self.number)
    }
}

impl<Kind: IdKind> fmt::Debug for Id<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::delivery::DeliveryId;
    use crate::domain::operation::OperationId;

    /// HUB-14: ids are written and read as in version 1.
    #[test]
    fn hub_14_an_id_is_written_and_read_as_before() {
        let delivery = DeliveryId::new(0xfeed, 7);
        assert_eq!(delivery.to_string(), "dlv_000000000000feed0000000000000007");
        assert_eq!(DeliveryId::parse("dlv_000000000000FEED0000000000000007"), Some(delivery));
        assert_eq!(OperationId::new(1, 2).to_string(), "op_00000000000000010000000000000002");
        for wrong in
            ["", "op_000000000000feed0000000000000007", "dlv_7", "dlv_+00000000000feed0000000000000007"]
        {
            assert_eq!(DeliveryId::parse(wrong), None, "{wrong}");
        }
    }
}
