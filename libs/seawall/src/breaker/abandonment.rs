//! Callers who leave early: whether the peer is to blame for it, as pure functions of one word.
//!
//! # Why not count each of them?
//! A caller who leaves early says little about the peer: users close pages, races are decided elsewhere. Yet callers who
//! *all* leave early would hide a peer that hangs. So they are weighed against answers: where they outnumber the answers of
//! late, those who come and leave from then on count as failures.

use std::fmt;

/// Calls that were abandoned early, and answers, of late.
///
/// | bits | what |
/// |---|---|
/// | 8 | abandoned calls |
/// | 8 | answers |
/// | 48 | since when the peer is suspected, in units; 0 if it is not |
///
/// All zero while nobody leaves, so that a healthy circuit only reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Abandonment(u64);

/// While closed, at least this many calls must have been seen: where 10 % leave by chance, most of 16 never do.
pub(super) const ENOUGH_CLOSED: u64 = 16;
/// While half-open the peer is in doubt already, and there are few calls: two abandoned probes, and the third one counts.
pub(super) const ENOUGH_PROBES: u64 = 2;
/// When there are this many, each one weighs half, so that what counts is recent.
const HALVED_AT: u64 = 32;

const COUNT_BITS: u32 = 8;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

impl Abandonment {
    pub(super) const NONE: Self = Abandonment(0);

    pub(super) const fn from_bits(bits: u64) -> Self {
        Abandonment(bits)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    const fn abandoned(self) -> u64 {
        self.0 & COUNT_MASK
    }

    const fn answers(self) -> u64 {
        self.0 >> COUNT_BITS & COUNT_MASK
    }

    const fn suspected_since(self) -> u64 {
        self.0 >> (2 * COUNT_BITS)
    }

    const fn new(abandoned: u64, answers: u64, suspected_since: u64) -> Self {
        let halves = if abandoned + answers >= HALVED_AT { 1 } else { 0 };
        let (abandoned, answers) = (abandoned >> halves, answers >> halves);
        if abandoned == 0 {
            return Abandonment::NONE;
        }
        let since = if abandoned > answers { suspected_since } else { 0 };
        Abandonment(since << (2 * COUNT_BITS) | answers << COUNT_BITS | abandoned)
    }

    /// The peer has answered. Changes nothing while nobody leaves.
    pub(super) const fn on_answer(self) -> Self {
        if self.0 == 0 {
            return self;
        }
        Abandonment::new(self.abandoned(), self.answers() + 1, self.suspected_since())
    }

    /// A caller has left early. If `enough` calls were seen and most of them were abandoned, the peer is suspected from
    /// now on.
    pub(super) const fn on_abandoned(self, now: u64, enough: u64) -> Self {
        let (abandoned, answers, since) = (self.abandoned() + 1, self.answers(), self.suspected_since());
        let suspect = since == 0 && abandoned + answers >= enough;
        Abandonment::new(abandoned, answers, if suspect { now } else { since })
    }

    /// Whether the peer is suspected.
    pub(super) const fn is_suspected(self) -> bool {
        self.suspected_since() > 0
    }

    /// Whether a call that started then and was abandoned early is a failure. Calls that were under way when the suspicion
    /// arose are not: many who leave in one moment, as when a connection with all of them is closed, are no proof.
    pub(super) const fn blames(self, started: u64) -> bool {
        self.is_suspected() && started >= self.suspected_since()
    }
}

impl fmt::Debug for Abandonment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} abandoned, {} answers", self.abandoned(), self.answers())?;
        if self.is_suspected() {
            write!(f, ", suspected since {}", self.suspected_since())?;
        }
        Ok(())
    }
}
