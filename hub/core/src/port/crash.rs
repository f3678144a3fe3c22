//! What the store keeps for the start after a crash. The rules are in [`poison`](crate::domain::delivery::suspects).

use std::fmt;

use crate::domain::delivery::DeliveryId;
use crate::domain::delivery::suspects::HandlingStep;

/// Marks on disk of the steps that the process takes with crash suspects. They outlive the process, but not a power cut, and cost
/// no wait for the disk. The rules are in [`poison`](crate::domain::delivery::suspects).
pub trait StepMarks: Send + Sync + fmt::Debug {
    /// Records that the process begins a step of this delivery.
    fn began(&self, delivery: DeliveryId, step: HandlingStep);
    /// Records that the step has ended.
    fn ended(&self, delivery: DeliveryId);
    /// Removes the mark, because the process no longer has the delivery.
    fn forget(&self, delivery: DeliveryId);
}

/// The crashes that a delivery is suspected of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrashHistory {
    /// The number of crashes in a row.
    pub crashes: u32,
    /// The process epochs that ended in these crashes, separated by commas.
    pub starts: String,
    /// The step in which the crashes happened.
    pub step: HandlingStep,
}
