//! What changes on the dead letter desk.

use super::unit::NewDelivery;
use crate::domain::delivery::DeliveryId;
use crate::domain::letter::{Fingerprint, GroupState};
use crate::domain::operation::{OperationId, Run};
use crate::domain::time::Millis;

/// A dead letter is sent again.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Which. It stays, and is marked.
    pub dead: DeliveryId,
    /// What is sent.
    pub new: NewDelivery,
    /// When.
    pub at: Millis,
    /// Also if it has been replayed before.
    pub again: bool,
    /// Whether somebody has changed what is sent.
    pub edited: bool,
}

/// A dead letter is put somewhere else on the desk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Which.
    pub dead: DeliveryId,
    /// Where to.
    pub to: Tray,
    /// When.
    pub at: Millis,
}

/// Where a dead letter can be put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tray {
    /// Aside; only what is open can be.
    Aside,
    /// Back from there.
    Back,
    /// Out of sight, until it is restored or its time is over.
    Bin,
    /// Back from there, to where it was.
    OutOfBin,
    /// Away for good, with its evidence. Its delivery and its event stay for as long as such are kept.
    Nowhere,
}

/// What is said of dead letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// Of one.
    Letter {
        /// Which.
        dead: DeliveryId,
        /// What; nothing takes it away.
        note: Option<String>,
    },
    /// Of a group.
    Group {
        /// Which.
        fingerprint: Fingerprint,
        /// What; nothing takes it away.
        note: Option<String>,
    },
    /// Where a group stands.
    Stands {
        /// Which.
        fingerprint: Fingerprint,
        /// Where.
        state: GroupState,
    },
}

/// Where work on many dead letters goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steer {
    /// Which.
    pub operation: OperationId,
    /// Only if it stands there.
    pub from: &'static [Run],
    /// From now on.
    pub to: Run,
    /// Why.
    pub why: Option<String>,
    /// The delivery whose failure is the reason.
    pub failed_delivery: Option<DeliveryId>,
    /// When.
    pub at: Millis,
}

/// A step of work on many dead letters. Only if the work goes on; what somebody else has dealt with is skipped.
#[derive(Clone, Debug)]
pub struct WorkStep {
    /// Which work.
    pub operation: OperationId,
    /// What is done.
    pub doings: Vec<Doing>,
    /// How many were left as they were,
    pub skipped: u64,
    /// and why, of one of them,
    pub why: Option<String>,
    /// which is this one.
    pub failed_delivery: Option<DeliveryId>,
    /// The last dead letter that was looked at.
    pub cursor: u64,
    /// Whether there are no more.
    pub looked: bool,
    /// When.
    pub at: Millis,
}

/// What is done to one of many.
#[derive(Clone, Debug)]
pub enum Doing {
    /// It is sent again, if it still stands where it was chosen.
    Replay(DeliveryId, NewDelivery),
    /// It is put somewhere else.
    Move(DeliveryId, Tray),
}
