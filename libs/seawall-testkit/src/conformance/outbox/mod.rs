//! What every store of an outbox has to hold.

mod backlog;
mod order;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall_dist::Message;
use seawall_dist::outbox::{Batch, BatchRequest, OutboxRow, OutboxStore, OutcomeKind, Retention, RowOutcome};

/// The future of a step of a test.
pub type TestFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store and the transactions that write to it.
pub trait OutboxUnderTest: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn OutboxStore>;
    /// Begins a transaction in which messages are enqueued.
    fn begin(&self) -> TestFuture<'_, Box<dyn TestTransaction>>;
    /// Whether two transactions can write at the same time; SQLite has one writer.
    fn has_concurrent_writers(&self) -> bool {
        true
    }
}

/// A transaction of a user.
pub trait TestTransaction: Send {
    /// Writes a message.
    fn enqueue<'a>(&'a mut self, message: &'a Message) -> TestFuture<'a, ()>;
    /// Commits.
    fn commit(self: Box<Self>) -> TestFuture<'static, ()>;
    /// Rolls back.
    fn rollback(self: Box<Self>) -> TestFuture<'static, ()>;
}

/// Long enough for a statement of a test on a busy machine, short enough to wait for.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// Long enough for several statements.
const HELD_UP: Duration = Duration::from_secs(3);
const LONG_LEASE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

/// Runs the suite against a store that is empty and that nobody else uses.
///
/// # Panics
/// If the store breaks its contract; the text says how.
pub async fn outbox(under_test: &dyn OutboxUnderTest) {
    let suite = Suite { under_test, store: under_test.store() };
    suite.a_committed_row_is_claimed_and_recorded_once().await;
    suite.a_late_commit_is_found().await;
    suite.an_attempt_is_counted_in_the_claim().await;
    suite.outcomes_need_the_lease().await;
    suite.a_renewed_lease_is_not_taken_over().await;
    suite.an_aggregate_keeps_its_order().await;
    suite.a_failed_row_follows_a_late_one_that_failed_too().await;
    suite.a_held_up_aggregate_holds_up_nobody_else().await;
    suite.a_deep_aggregate_that_fails_takes_few_claims().await;
    suite.dead_rows_are_listed_released_and_discarded().await;
    suite.published_rows_are_kept_and_cleaned_up().await;
    suite.lost_attempts_make_batches_small().await;
    suite.a_busy_topic_leaves_room_for_others().await;
    suite.rows_are_counted().await;
    suite.any_text_of_an_error_is_recorded().await;
}

struct Suite<'a> {
    under_test: &'a dyn OutboxUnderTest,
    store: Arc<dyn OutboxStore>,
}

fn published(batch: &Batch) -> Vec<RowOutcome> {
    batch.rows.iter().map(|row| RowOutcome { id: row.id, kind: OutcomeKind::Published }).collect()
}

fn names(batch: &Batch) -> Vec<String> {
    batch.rows.iter().map(|row| String::from_utf8_lossy(row.message.payload()).into_owned()).collect()
}

/// A message that is named by its aggregate and a number: `a1`.
fn message(name: &str) -> Message {
    Message::new("Tested", name.trim_end_matches(|c: char| c.is_ascii_digit()), name).with_topic("tests")
}

impl Suite<'_> {
    async fn enqueue(&self, names: &[&str]) {
        let mut transaction = self.under_test.begin().await;
        for name in names {
            transaction.enqueue(&message(name)).await;
        }
        transaction.commit().await;
    }

    /// The next batch that has rows.
    async fn claim(&self, rows: u32, lease: Duration) -> Option<Batch> {
        for _ in 0..100 {
            let request = BatchRequest::new("suite", rows, 16, lease);
            let batch = self.store.claim(&request).await.expect("the store answers")?;
            if !batch.rows.is_empty() {
                let topic = batch.rows[0].message.topic();
                let same = batch.rows.iter().all(|row| row.message.topic() == topic);
                assert!(same, "a batch has rows of several topics");
                assert!(batch.rows.is_sorted_by_key(|row| row.id), "a batch is not in the order of its ids");
                assert!(batch.rows.len() <= rows as usize, "a batch has more rows than were asked for");
                return Some(batch);
            }
            self.record(&batch, &[]).await;
        }
        unreachable!("a store that has nothing to claim says so")
    }

    async fn claim_soon(&self, rows: u32, lease: Duration, why: &str) -> Batch {
        for _ in 0..500 {
            if let Some(batch) = self.claim(rows, lease).await {
                return batch;
            }
            tokio::time::sleep(STEP).await;
        }
        unreachable!("{why}")
    }

    /// Records outcomes, and returns the number of rows that were recorded.
    async fn record(&self, batch: &Batch, outcomes: &[RowOutcome]) -> usize {
        let recorded = self.store.record(&batch.lease, outcomes, Retention::Delete).await;
        let recorded = recorded.expect("the store answers");
        let mut ids: Vec<i64> = outcomes.iter().map(|outcome| outcome.id).collect();
        ids.retain(|id| recorded.contains(id));
        assert_eq!(ids.len(), recorded.len(), "the store tells of rows that it was not told of");
        recorded.len()
    }

    async fn publish(&self, batch: &Batch) {
        let count = self.record(batch, &published(batch)).await;
        assert_eq!(count, batch.rows.len(), "outcomes under a valid lease were not recorded");
    }

    /// Publishes all that can be claimed, and returns the names in order.
    async fn drain(&self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(batch) = self.claim(100, LONG_LEASE).await {
            all.extend(names(&batch));
            self.publish(&batch).await;
        }
        all
    }

    async fn a_committed_row_is_claimed_and_recorded_once(&self) {
        let sent = message("a1").with_header("x-trace", "line\nand \\ more").with_header("empty", "");
        let mut transaction = self.under_test.begin().await;
        transaction.enqueue(&sent).await;
        if self.under_test.has_concurrent_writers() {
            assert!(
                self.claim(10, LONG_LEASE).await.is_none(),
                "a row was claimed before its transaction committed"
            );
        }
        transaction.commit().await;
        let mut transaction = self.under_test.begin().await;
        transaction.enqueue(&message("b1")).await;
        transaction.rollback().await;
        let batch = self.claim(10, LONG_LEASE).await.expect("a committed row is claimed");
        assert_eq!(names(&batch), ["a1"], "a row of a transaction that was rolled back was claimed");
        assert_eq!(batch.rows[0].message, sent, "a message came back changed");
        assert_eq!(
            (batch.rows[0].attempts, batch.rows[0].failures),
            (1, 0),
            "an attempt is not counted in the claim"
        );
        assert!(self.claim(10, LONG_LEASE).await.is_none(), "a leased row was claimed again");
        self.publish(&batch).await;
        assert!(self.claim(10, LONG_LEASE).await.is_none(), "a published row was claimed again");
    }

    async fn a_late_commit_is_found(&self) {
        if !self.under_test.has_concurrent_writers() {
            return;
        }
        let mut late = self.under_test.begin().await;
        late.enqueue(&message("a1")).await;
        late.enqueue(&message("b1")).await;
        self.enqueue(&["a2", "c1"]).await;
        let mut early = self.drain().await;
        early.sort();
        assert_eq!(early, ["a2", "c1"], "rows that are committed wait for a transaction that is open");
        late.commit().await;
        let mut found = self.drain().await;
        found.sort();
        assert_eq!(found, ["a1", "b1"], "a row that committed late was skipped");
    }

    async fn an_attempt_is_counted_in_the_claim(&self) {
        self.enqueue(&["a1"]).await;
        for attempts in 1..=3 {
            let batch =
                self.claim_soon(10, SHORT_LEASE, "a row is not claimed again after its lease ended").await;
            assert_eq!(
                (batch.rows[0].attempts, batch.rows[0].failures),
                (attempts, 0),
                "an attempt is not counted in the claim: a row that kills its relay is never set aside"
            );
        }
        let batch = self.claim_soon(10, LONG_LEASE, "a row is not claimed again after its lease ended").await;
        let failed =
            |outage, error: &str| OutcomeKind::Failed { delay: Duration::ZERO, error: error.into(), outage };
        self.record(&batch, &[RowOutcome { id: batch.rows[0].id, kind: failed(false, "who knows") }]).await;
        let batch = self.claim_soon(10, LONG_LEASE, "a row that failed is not claimed again").await;
        let counts = |row: &OutboxRow| (row.attempts, row.failures, row.outages);
        assert_eq!(counts(&batch.rows[0]), (5, 1, 0), "a failure is not counted");
        self.record(&batch, &[RowOutcome { id: batch.rows[0].id, kind: failed(true, "no broker") }]).await;
        let batch = self.claim_soon(10, LONG_LEASE, "a row that failed is not claimed again").await;
        assert_eq!(counts(&batch.rows[0]), (6, 2, 1), "a failure of an outage is not counted apart");
        assert_eq!(
            batch.rows[0].last_error.as_deref(),
            Some("no broker"),
            "the reason of a failure is not kept"
        );
        self.publish(&batch).await;
    }

    /// Errors hold what others sent: a text that a database can't hold must not keep an outcome from being recorded.
    async fn any_text_of_an_error_is_recorded(&self) {
        self.enqueue(&["text1"]).await;
        let batch = self.claim_soon(10, LONG_LEASE, "a committed row is not claimed").await;
        let kind = OutcomeKind::Failed { delay: Duration::ZERO, error: "no\0 broker".into(), outage: true };
        let count = self.record(&batch, &[RowOutcome { id: batch.rows[0].id, kind }]).await;
        assert_eq!(count, 1, "a failure with a NUL in its text is not recorded");
        let batch = self.claim_soon(10, LONG_LEASE, "a row that failed is not claimed again").await;
        let error = batch.rows[0].last_error.as_deref().unwrap_or_default();
        assert!(error.contains("broker"), "the text of a failure with a NUL is lost");
        let (id, kind) = (batch.rows[0].id, OutcomeKind::Dead { error: "too\0 large".into() });
        assert_eq!(
            self.record(&batch, &[RowOutcome { id, kind }]).await,
            1,
            "a row with a NUL in its error does not die"
        );
        self.store.discard(&[id]).await.expect("the store answers");
    }

    async fn outcomes_need_the_lease(&self) {
        self.enqueue(&["a1"]).await;
        let slow = self.claim_soon(10, SHORT_LEASE, "a committed row is not claimed").await;
        let quick = self.claim_soon(10, LONG_LEASE, "a row is not claimed again after its lease ended").await;
        assert!(quick.lease.token > slow.lease.token, "a later lease has a smaller token");
        let renewed = self.store.renew(&slow.lease, LONG_LEASE).await.expect("the store answers");
        assert!(!renewed, "a lease was renewed that another relay has");
        assert_eq!(
            self.record(&slow, &published(&slow)).await,
            0,
            "an outcome was recorded without the lease"
        );
        assert!(
            self.claim(10, LONG_LEASE).await.is_none(),
            "a relay without the lease ended the lease of another"
        );
        self.publish(&quick).await;
        assert_eq!(self.record(&quick, &published(&quick)).await, 0, "an outcome was recorded twice");
    }

    async fn a_renewed_lease_is_not_taken_over(&self) {
        self.enqueue(&["a1"]).await;
        let batch = self.claim_soon(10, SHORT_LEASE, "a committed row is not claimed").await;
        for _ in 0..9 {
            assert!(
                self.store.renew(&batch.lease, SHORT_LEASE).await.expect("the store answers"),
                "a lease was lost"
            );
            tokio::time::sleep(SHORT_LEASE / 4).await;
            assert!(self.claim(10, LONG_LEASE).await.is_none(), "a lease that is renewed was taken over");
        }
        self.publish(&batch).await;
    }
}
