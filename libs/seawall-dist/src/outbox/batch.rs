//! The life of one batch: published under its lease, then recorded.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use seawall::{Fault, Tick};
use tokio::time::{sleep, timeout};

use super::relay::{Shared, random};
use super::retry_rules::{HeldUp, RowResult, outcomes, waves};
use super::store::{Batch, BatchLease, OutboxRow, OutcomeKind, RowOutcome};
use crate::{Message, PublishError};

/// A batch is given up this share of its lease before the lease ends: the publisher is stopped in time.
const SAFETY_SHARE: u32 = 10;
/// The wait before outcomes that could not be recorded are recorded again.
const RECORD_BACKOFF: Duration = Duration::from_millis(50);

/// Until when a lease is valid: counted from the start of the last successful renewal.
struct Validity(Mutex<Tick>);

impl Validity {
    fn get(&self) -> Tick {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn set(&self, until: Tick) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = until;
    }
}

impl Shared {
    pub(super) async fn work(self: Arc<Self>, batch: Batch, claimed_at: Tick) {
        let validity = Validity(Mutex::new(self.valid_until(claimed_at)));
        let results = tokio::select! {
            biased;
            // First, so that a process that was stopped for a while publishes nothing more under a lease that has ended.
            () = self.keep(&batch.lease, &validity) => None,
            results = self.publish(&batch.rows) => Some(results),
        };
        let Some(results) = results else {
            return self.telemetry.lease_lost(batch.rows.len());
        };
        let outcomes = outcomes(&batch.rows, &results, &self.rules, random);
        if self.record(&batch.lease, &outcomes, &validity).await {
            self.report(&batch.rows, &outcomes);
        } else {
            self.telemetry.lease_lost(batch.rows.len());
        }
    }

    fn valid_until(&self, from: Tick) -> Tick {
        from + (self.settings.lease - self.settings.lease / SAFETY_SHARE)
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

    /// Renews the lease at every third of it. Completes when the lease is lost, or about to end.
    async fn keep(&self, lease: &BatchLease, validity: &Validity) {
        let third = self.settings.lease / 3;
        loop {
            let left = validity.get().since(self.clock.precise());
            if left.is_zero() {
                return;
            }
            sleep(third.min(left)).await;
            let began = self.clock.precise();
            let left = validity.get().since(began);
            // A store that does not answer must not keep the work alive beyond the lease.
            match timeout(left, self.store.renew(lease, self.settings.lease)).await {
                Ok(Ok(true)) => validity.set(self.valid_until(began)),
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => {
                    self.telemetry.store_failed("Renew", &error);
                    sleep(RECORD_BACKOFF.min(left)).await;
                }
            }
        }
    }

    /// Records the outcomes, again and again while the lease may be valid: otherwise all rows would be published twice.
    async fn record(&self, lease: &BatchLease, outcomes: &[RowOutcome], validity: &Validity) -> bool {
        loop {
            match self.store.record(lease, outcomes, self.settings.retention).await {
                Ok(count) => return count == outcomes.len() as u64,
                Err(error) => {
                    self.telemetry.store_failed("Record", &error);
                    let left = validity.get().since(self.clock.precise());
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
                OutcomeKind::Failed { delay, error } => self.telemetry.failed(row, *delay, error),
                OutcomeKind::Dead { error } => self.telemetry.set_aside(row, error),
                OutcomeKind::Returned { .. } => {}
            }
        }
        self.telemetry.published(published);
    }
}
