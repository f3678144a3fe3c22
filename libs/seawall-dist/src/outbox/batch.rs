//! The life of one batch: published under its lease, then recorded.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Fault, Tick};
use tokio::time::{sleep, timeout};

use super::relay::Shared;
use super::retry_rules::{HeldUp, RowResult, outcomes, waves};
use super::store::{Batch, BatchLease, OutboxRow, OutcomeKind, RowOutcome};
use crate::lease::LeaseKeeper;
use crate::{Message, PublishError, random};

/// The wait before outcomes that could not be recorded are recorded again.
const RECORD_BACKOFF: Duration = Duration::from_millis(50);

impl Shared {
    pub(super) async fn work(self: Arc<Self>, batch: Batch, claimed_at: Tick) {
        let keeper = LeaseKeeper::new(&self.clock, self.settings.lease, claimed_at);
        let renew = || self.store.renew(&batch.lease, self.settings.lease);
        let failed = |cause: &dyn Display| self.telemetry.store_failed("Renew", cause);
        let results = tokio::select! {
            biased;
            // First, so that a process that was stopped for a while publishes nothing more under a lease that has ended.
            _ = keeper.keep(renew, failed) => None,
            results = self.publish(&batch.rows) => Some(results),
        };
        let Some(results) = results else {
            return self.telemetry.lease_lost(batch.rows.len());
        };
        let outcomes = outcomes(&batch.rows, &results, &self.rules, random::word);
        if self.record(&batch.lease, &outcomes, &keeper).await {
            self.report(&batch.rows, &outcomes);
        } else {
            self.telemetry.lease_lost(batch.rows.len());
        }
    }

    /// Publishes all rows that may be published; those after a failed row of their aggregate have no result.
    async fn publish(&self, rows: &[OutboxRow]) -> Vec<RowResult> {
        let mut results: Vec<RowResult> = vec![None; rows.len()];
        let mut held_up = HeldUp::default();
        for wave in waves(rows, self.publisher.keeps_order()) {
            let places = held_up.publishable(&wave, rows, &self.rules);
            if places.is_empty() {
                continue;
            }
            let messages: Vec<Message> = places.iter().map(|&place| rows[place].message.clone()).collect();
            let mut answers =
                match timeout(self.settings.publish_timeout, self.publisher.publish(&messages)).await {
                    Ok(answers) => answers,
                    Err(_) => vec![
                        Err(PublishError::new(Fault::timeout(), "the publisher ran out of time"));
                        places.len()
                    ],
                };
            let missing =
                || Err(PublishError::new(Fault::system(), "the publisher returned no result for it"));
            answers.resize_with(places.len(), missing);
            for (place, answer) in places.into_iter().zip(answers) {
                if answer.is_err() {
                    held_up.add(&rows[place].message);
                }
                results[place] = Some(answer);
            }
        }
        results
    }

    /// Records the outcomes, again and again while the lease may be valid: otherwise all rows would be published twice.
    async fn record(&self, lease: &BatchLease, outcomes: &[RowOutcome], keeper: &LeaseKeeper<'_>) -> bool {
        loop {
            match self.store.record(lease, outcomes, self.settings.retention).await {
                Ok(recorded) => return recorded.len() == outcomes.len(),
                Err(error) => {
                    self.telemetry.store_failed("Record", &error);
                    let left = keeper.left();
                    if left.is_zero() {
                        return false;
                    }
                    sleep(RECORD_BACKOFF.min(left)).await;
                }
            }
        }
    }

    fn report(&self, rows: &[OutboxRow], outcomes: &[RowOutcome]) {
        let mut published = 0;
        for (row, outcome) in rows.iter().zip(outcomes) {
            match &outcome.kind {
                OutcomeKind::Published => published += 1,
                OutcomeKind::Failed { delay, error, .. } => self.telemetry.failed(row, *delay, error),
                OutcomeKind::Dead { error } => self.telemetry.set_aside(row, error),
                OutcomeKind::Returned { .. } => {}
            }
        }
        self.telemetry.published(published);
    }
}
