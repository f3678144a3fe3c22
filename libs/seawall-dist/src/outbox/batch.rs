//! The life of one batch: published under its lease, then recorded.

use std::collections::HashSet;
use std::fmt::Display;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seawall::{Fault, Ran, Tick};
use tokio::time::{sleep, timeout};

use super::relay::Shared;
use super::retry_rules::{HeldUp, RowResult, outcomes, waves};
use super::store::{Batch, BatchLease, OutboxRow, OutcomeKind, RowOutcome};
use crate::lease::LeaseKeeper;
use crate::{Message, PublishError, random};

/// The wait before outcomes that could not be recorded are recorded again.
const RECORD_BACKOFF: Duration = Duration::from_millis(50);
/// How long a batch tries to record its outcomes. An orderly stop waits no longer for a store that does not answer.
const RECORD_TIME: Duration = Duration::from_secs(10);

/// True when the relay stops: batches begin no more calls of the publisher.
pub(super) type StopFlag = Arc<AtomicBool>;

/// What is known of the outcomes of a batch.
struct RecordedRows {
    /// The rows that the store says it has recorded; `None` if it never answered.
    ids: Option<Vec<i64>>,
    /// True if an answer was lost: all outcomes may have been recorded.
    answer_lost: bool,
}

impl Shared {
    pub(super) async fn work(self: Arc<Self>, batch: Batch, claimed_at: Tick, stop: StopFlag) {
        let keeper = LeaseKeeper::new(&self.clock, self.settings.lease, claimed_at);
        let renew = || self.store.renew(&batch.lease, self.settings.lease);
        let failed = |cause: &dyn Display| self.telemetry.store_failed("Renew", cause);
        let mut renewals = pin!(keeper.keep(renew, failed));
        let results = tokio::select! {
            biased;
            // First, so that a process that was stopped for a while publishes nothing more under a lease that has ended.
            _ = &mut renewals => None,
            results = self.publish(&batch.rows, &stop) => Some(results),
        };
        let Some(results) = results else {
            return self.telemetry.lease_lost(batch.rows.len());
        };
        let outcomes = outcomes(&batch.rows, &results, &self.rules, random::word);
        // The lease is renewed meanwhile. A renewal that is refused may only mean that the outcomes were recorded, and that is
        // the store's decision.
        let renewed_meanwhile = async {
            renewals.await;
            pending::<RecordedRows>().await
        };
        let recorded = tokio::select! {
            biased;
            recorded = self.record(&batch.lease, &outcomes, &keeper) => recorded,
            never = renewed_meanwhile => never,
        };
        self.report(&batch.rows, &outcomes, &recorded);
    }

    /// Publishes all rows that may be published; those after a failed row of their aggregate have no result, and neither have
    /// those that are left when the relay stops.
    async fn publish(&self, rows: &[OutboxRow], stop: &AtomicBool) -> Vec<RowResult> {
        let mut results: Vec<RowResult> = vec![None; rows.len()];
        let mut held_up = HeldUp::default();
        for wave in waves(rows, self.publisher.keeps_order()) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
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
    async fn record(
        &self,
        lease: &BatchLease,
        outcomes: &[RowOutcome],
        keeper: &LeaseKeeper<'_>,
    ) -> RecordedRows {
        let end = self.clock.precise() + RECORD_TIME;
        let mut answer_lost = false;
        loop {
            // The first attempt is made whatever the clock says: the store decides.
            let limit = self.settings.lease.min(end.since(self.clock.precise())).max(RECORD_BACKOFF);
            match timeout(limit, self.store.record(lease, outcomes, self.settings.retention)).await {
                Ok(Ok(ids)) => return RecordedRows { ids: Some(ids), answer_lost },
                Ok(Err(error)) => {
                    answer_lost |= error.fault().did_run() != Ran::No;
                    self.telemetry.store_failed("Record", &error);
                }
                Err(_) => {
                    answer_lost = true;
                    self.telemetry.store_failed("Record", &"the store did not answer in time");
                }
            }
            if keeper.left().min(end.since(self.clock.precise())) <= RECORD_BACKOFF {
                return RecordedRows { ids: None, answer_lost };
            }
            sleep(RECORD_BACKOFF).await;
        }
    }

    /// Tells of the rows that were recorded.
    fn report(&self, rows: &[OutboxRow], outcomes: &[RowOutcome], recorded: &RecordedRows) {
        let ids: HashSet<i64> = recorded.ids.iter().flatten().copied().collect();
        let mut published = 0;
        for (row, outcome) in rows.iter().zip(outcomes) {
            let is_recorded = ids.contains(&row.id);
            match &outcome.kind {
                OutcomeKind::Published if is_recorded => published += 1,
                OutcomeKind::Failed { delay, error, .. } if is_recorded => {
                    self.telemetry.failed(row, *delay, error);
                }
                // Nobody would tell of it later: a row that was set aside by a statement whose answer was lost is not claimed
                // again.
                OutcomeKind::Dead { error } if is_recorded || recorded.answer_lost => {
                    self.telemetry.set_aside(row, error);
                }
                _ => {}
            }
        }
        self.telemetry.published(published);
        // After a lost answer the rest was recorded by the attempt before.
        if recorded.ids.is_none() || ids.len() < outcomes.len() && !recorded.answer_lost {
            self.telemetry.lease_lost(outcomes.len() - ids.len());
        }
    }
}
