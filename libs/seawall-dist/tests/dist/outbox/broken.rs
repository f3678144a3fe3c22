//! Stores that are broken on purpose: the suite has to find each mistake.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, MemoryOutbox, OutboxRow, OutboxStore, OutcomeKind, Retention,
    RowOutcome, Stats,
};
use seawall_dist::{Message, StoreFuture};
use seawall_testkit::conformance::{OutboxUnderTest, TestFuture, TestTransaction, outbox};

use super::InMemory;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mistake {
    /// Reads `id > last`.
    HighWaterMark,
    /// Records outcomes whoever has the lease.
    NoLease,
    /// Counts an attempt when its outcome is recorded.
    LateAttempt,
    /// Takes the lease of another relay for its own.
    RenewsAll,
    /// Makes rows that wait for a failed one of their aggregate due at once.
    NoOrder,
    /// Counts the failures of an outage as those of the row.
    OneCount,
    /// Deletes a row that is set aside.
    DropsDead,
}

struct Broken {
    inner: MemoryOutbox,
    mistake: Mistake,
    last_id: Mutex<i64>,
    last_lease: Mutex<Option<BatchLease>>,
    recorded: Mutex<HashMap<i64, u32>>,
}

impl Broken {
    fn spoil(&self, batch: Batch) -> Option<Batch> {
        *self.last_lease.lock().unwrap() = Some(batch.lease.clone());
        let mut rows = batch.rows;
        match self.mistake {
            Mistake::HighWaterMark => {
                let mut last = self.last_id.lock().unwrap();
                rows.retain(|row| row.id > *last);
                *last = rows.last().map_or(*last, |row| row.id);
                if rows.is_empty() {
                    return None;
                }
            }
            Mistake::LateAttempt => {
                let recorded = self.recorded.lock().unwrap();
                for row in &mut rows {
                    row.attempts = recorded.get(&row.id).copied().unwrap_or(0) + 1;
                }
            }
            _ => {}
        }
        Some(Batch::new(batch.lease, rows))
    }
}

impl OutboxStore for Broken {
    fn store<'a>(&'a self, messages: &'a [Message]) -> StoreFuture<'a, ()> {
        self.inner.store(messages)
    }

    fn claim<'a>(&'a self, request: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>> {
        Box::pin(async move { Ok(self.inner.claim(request).await?.and_then(|batch| self.spoil(batch))) })
    }

    fn renew<'a>(&'a self, lease: &'a BatchLease, duration: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let renewed = self.inner.renew(lease, duration).await?;
            Ok(renewed || self.mistake == Mistake::RenewsAll)
        })
    }

    fn record<'a>(
        &'a self,
        lease: &'a BatchLease,
        outcomes: &'a [RowOutcome],
        retention: Retention,
    ) -> StoreFuture<'a, Vec<i64>> {
        Box::pin(async move {
            let (mut lease, mut outcomes) = (lease.clone(), outcomes.to_vec());
            match self.mistake {
                Mistake::NoLease => lease = self.last_lease.lock().unwrap().clone().unwrap_or(lease),
                Mistake::LateAttempt => {
                    let mut recorded = self.recorded.lock().unwrap();
                    outcomes.iter().for_each(|outcome| *recorded.entry(outcome.id).or_default() += 1);
                }
                Mistake::NoOrder => {
                    for outcome in &mut outcomes {
                        if let OutcomeKind::Failed { delay, .. } | OutcomeKind::Returned { delay } =
                            &mut outcome.kind
                        {
                            *delay = Duration::ZERO;
                        }
                    }
                }
                Mistake::OneCount => {
                    for outcome in &mut outcomes {
                        if let OutcomeKind::Failed { outage, .. } = &mut outcome.kind {
                            *outage = false;
                        }
                    }
                }
                Mistake::DropsDead => {
                    for outcome in &mut outcomes {
                        if matches!(outcome.kind, OutcomeKind::Dead { .. }) {
                            outcome.kind = OutcomeKind::Published;
                        }
                    }
                }
                _ => {}
            }
            self.inner.record(&lease, &outcomes, retention).await
        })
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        self.inner.stats()
    }

    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        self.inner.list_dead(after, limit)
    }

    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        self.inner.release(ids)
    }

    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        self.inner.discard(ids)
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.inner.clean_up(age, limit)
    }
}

struct BrokenUnderTest(Arc<Broken>);

impl OutboxUnderTest for BrokenUnderTest {
    fn store(&self) -> Arc<dyn OutboxStore> {
        self.0.clone()
    }

    fn begin(&self) -> TestFuture<'_, Box<dyn TestTransaction>> {
        InMemory::open(&self.0.inner)
    }
}

async fn run(mistake: Mistake) {
    let broken = Broken {
        inner: MemoryOutbox::new(),
        mistake,
        last_id: Mutex::default(),
        last_lease: Mutex::default(),
        recorded: Mutex::default(),
    };
    outbox(&BrokenUnderTest(Arc::new(broken))).await;
}

/// CRD-3. Trap "sequence order is not commit order": an outbox that reads `id > last` is found out.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "a row that committed late was skipped")]
async fn crd_3_the_suite_is_red_with_a_high_water_mark() {
    run(Mistake::HighWaterMark).await;
}

/// CRD-3. Trap "both finish, the late one overwrites": outcomes recorded without the lease are found out.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "an outcome was recorded without the lease")]
async fn crd_3_the_suite_is_red_without_the_lease() {
    run(Mistake::NoLease).await;
}

/// CRD-3. Trap "attempt counted after execution": a crash-looping row is found out.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "an attempt is not counted in the claim")]
async fn crd_3_the_suite_is_red_when_attempts_are_counted_late() {
    run(Mistake::LateAttempt).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a lease was renewed that another relay has")]
async fn crd_3_the_suite_is_red_when_a_lost_lease_is_renewed() {
    run(Mistake::RenewsAll).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a row was claimed before an earlier one of its aggregate")]
async fn crd_3_the_suite_is_red_when_an_aggregate_loses_its_order() {
    run(Mistake::NoOrder).await;
}

/// CRD-3: an outbox in which an outage makes poison of its rows is found out.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "a failure of an outage is not counted apart")]
async fn crd_3_the_suite_is_red_when_outages_are_not_counted_apart() {
    run(Mistake::OneCount).await;
}

/// Trap "broker limits drop silently": a row that is given up must stay.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "a dead row is not listed")]
async fn crd_3_the_suite_is_red_when_dead_rows_are_dropped() {
    run(Mistake::DropsDead).await;
}
