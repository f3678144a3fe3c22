//! One delivery in hand.

use std::sync::Arc;

use super::suspect::Watched;
use crate::domain::delivery::{DeliveryId, Progress};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;
use crate::render::Request;

/// A delivery in hand.
#[derive(Clone, Debug)]
pub struct InHand {
    /// Its name.
    pub id: DeliveryId,
    /// The rule that asks for it.
    pub rule: Slug,
    /// And its version.
    pub rule_version: u64,
    /// What is sent.
    pub request: Request,
    /// The event that it is about.
    pub event: String,
    /// When that was accepted.
    pub event_accepted: Millis,
    /// The trace that it belongs to, if it said so.
    pub trace: Option<TraceId>,
    /// What it has cost so far.
    pub progress: Progress,
    /// How often the clock had jumped when that was kept.
    pub(super) clock_jumps: usize,
    /// Whether others wait behind it.
    pub ordered: bool,
    /// The dead letter that it replays, if it does.
    pub replay_of: Option<DeliveryId>,
    /// If it was in hand at a crash.
    pub(super) watched: Option<Arc<Watched>>,
}

impl InHand {
    /// Whether it comes behind fresh ones: it was tried before, or somebody replays it.
    pub(super) fn is_again(&self) -> bool {
        self.progress.failures > 0 || self.replay_of.is_some()
    }
}
