//! Which dead letters an operation takes next, while some services are away.
//!
//! # Why not simply go on?
//! What is begun for a service that is away waits in its line, and goes out when the service is back: not at the operation's
//! rate, and an operator who pauses the operation does not pause it. So dead letters of a service that is away are passed over, and taken
//! when it is back: the operation goes through the rest first, and then once more from the first that was passed over. What it
//! has dealt with by then is not open any more.

use std::collections::HashSet;

use crate::domain::delivery::DeliveryId;
use crate::domain::slug::Slug;

/// The position of an operation in its dead letters.
#[derive(Debug)]
pub(super) struct ScanPosition {
    /// The last dead letter that this pass has read.
    position: u64,
    /// Where the next pass starts when a service has recovered, if some dead letters were left out.
    passed_over: Option<u64>,
    /// The services that this pass leaves out.
    away: Vec<Slug>,
    /// Whether this pass reached the end.
    at_end: bool,
    /// The dead letters for which no request could be rendered: they are still open, and counted once.
    left: HashSet<DeliveryId>,
}

impl ScanPosition {
    pub(super) fn new(cursor: u64) -> Self {
        ScanPosition {
            position: cursor,
            passed_over: None,
            away: Vec::new(),
            at_end: false,
            left: HashSet::new(),
        }
    }

    /// Sets the services that are down now, and returns where to continue, if there is anything left.
    pub(super) fn look(&mut self, away: &[Slug]) -> Option<u64> {
        let is_back = self.away.iter().any(|service| !away.contains(service));
        if is_back && let Some(first) = self.passed_over {
            (self.position, self.at_end) = (first, false);
        }
        if away.is_empty() {
            self.passed_over = None;
        } else if self.passed_over.is_none() {
            self.passed_over = Some(self.position);
        }
        self.away = away.to_vec();
        (!self.at_end).then_some(self.position)
    }

    /// Records how far this pass came, and whether there may be more. Returns what is stored: the position up to which everything
    /// is handled, and whether that is the end.
    pub(super) fn came(&mut self, position: u64, more: bool) -> (u64, bool) {
        (self.position, self.at_end) = (position, !more);
        (self.passed_over.unwrap_or(position), !more && self.passed_over.is_none())
    }

    /// Records that no request could be rendered. Returns whether that is new.
    pub(super) fn leave(&mut self, letter: DeliveryId) -> bool {
        self.passed_over.is_none() || self.left.insert(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(name: &str) -> Slug {
        Slug::new(name).unwrap()
    }

    /// HUB-6: what was passed over is looked at again when a service is back, from the first on; the end is the end only when
    /// nobody was passed over.
    #[test]
    fn hub_6_what_was_passed_over_is_looked_at_again() {
        let (mail, billing) = (slug("mail"), slug("billing"));
        let mut passes = ScanPosition::new(0);
        assert_eq!(passes.look(&[]), Some(0));
        assert_eq!(passes.came(10, true), (10, false));
        let both = [mail.clone(), billing.clone()];
        assert_eq!(passes.look(&both), Some(10));
        assert_eq!(passes.came(20, true), (10, false), "a restart begins where the first was passed over");
        assert_eq!(passes.look(&both), Some(20));
        assert_eq!(passes.came(30, false), (10, false), "and there is more");
        let bad = DeliveryId::new(1, 7);
        assert!(passes.leave(bad) && !passes.leave(bad), "counted once");
        assert_eq!(passes.look(&both), None, "nothing until somebody is back");
        assert_eq!(passes.look(std::slice::from_ref(&mail)), Some(10), "billing is back");
        assert_eq!(passes.came(30, false), (10, false));
        assert_eq!(passes.look(&[]), Some(10));
        assert_eq!(passes.came(30, false), (30, true));
    }
}
