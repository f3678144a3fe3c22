//! The failed attempts of messages that will be delivered again.
//!
//! JetStream delivers a message as it was stored, so that evidence can't travel in its headers. What this process saw is kept
//! here until the message is done or given up. A letter has the attempts of the process that gave it up, and their number.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use seawall_dist::messaging::{AttemptFailure, FailureEvidence};

/// How many messages are remembered; those with the lowest sequences are forgotten first.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct FailedMessages(Mutex<BTreeMap<u64, FailureEvidence>>);

impl FailedMessages {
    pub(super) fn remember(&self, sequence: u64, failure: AttemptFailure) {
        let mut known = self.lock();
        known.entry(sequence).or_default().add(failure);
        if known.len() > REMEMBERED_MAX {
            known.pop_first();
        }
    }

    /// What is known of a message, which is forgotten with that.
    pub(super) fn take(&self, sequence: u64) -> Option<FailureEvidence> {
        self.lock().remove(&sequence)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, FailureEvidence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
