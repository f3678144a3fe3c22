//! What the store keeps for the start after a crash. The rules are in [`poison`](crate::domain::poison).

use std::fmt;

use crate::domain::delivery::DeliveryId;
use crate::domain::poison::Step;

/// Marks of what the process is doing with suspects. They outlive the process, but not a power cut, and cost no wait for the disk.
/// The rules are in [`poison`](crate::domain::poison).
pub trait StepMarks: Send + Sync + fmt::Debug {
    /// The process begins a step of this delivery.
    fn began(&self, delivery: DeliveryId, step: Step);
    /// The step has ended.
    fn ended(&self, delivery: DeliveryId);
    /// The process has it in hand no longer.
    fn forget(&self, delivery: DeliveryId);
}

/// What is known against a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// The number of crashes in a row that speak against it.
    pub crashes: u32,
    /// The starts that ended so, counted as the store counts them, with commas in between.
    pub starts: String,
    /// The step in which they happened.
    pub step: Step,
}
