//! What every store of an outbox has to hold.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall_dist::Message;
use seawall_dist::outbox::{Batch, ClaimRequest, OutboxStore, Outcome, OutcomeKind, Retention};

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
    suite.dead_rows_are_listed_released_and_discarded().await;
    suite.published_rows_are_kept_and_cleaned_up().await;
    suite.lost_attempts_make_batches_small().await;
    suite.a_busy_topic_leaves_room_for_others().await;
    suite.rows_are_counted().await;
}

struct Suite<'a> {
    under_test: &'a dyn OutboxUnderTest,
    store: Arc<dyn OutboxStore>,
}

fn published(batch: &Batch) -> Vec<Outcome> {
    batch.rows.iter().map(|row| Outcome { id: row.id, kind: OutcomeKind::Published }).collect()
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
            let request = ClaimRequest::new("suite", rows, 16, lease);
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

    async fn record(&self, batch: &Batch, outcomes: &[Outcome]) -> u64 {
        self.store.record(&batch.lease, outcomes, Retention::Delete).await.expect("the store answers")
    }

    async fn publish(&self, batch: &Batch) {
        let count = self.record(batch, &published(batch)).await;
        assert_eq!(count, batch.rows.len() as u64, "outcomes under a valid lease were not recorded");
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
        let failed = OutcomeKind::Failed { delay: Duration::ZERO, error: "no broker".into() };
        self.record(&batch, &[Outcome { id: batch.rows[0].id, kind: failed }]).await;
        let batch = self.claim_soon(10, LONG_LEASE, "a row that failed is not claimed again").await;
        assert_eq!((batch.rows[0].attempts, batch.rows[0].failures), (5, 1), "a failure is not counted");
        assert_eq!(
            batch.rows[0].last_error.as_deref(),
            Some("no broker"),
            "the reason of a failure is not kept"
        );
        self.publish(&batch).await;
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

    async fn an_aggregate_keeps_its_order(&self) {
        self.enqueue(&["a1", "a2", "b1", "a3"]).await;
        let batch = self.claim(10, LONG_LEASE).await.expect("committed rows are claimed");
        assert_eq!(names(&batch), ["a1", "a2", "b1", "a3"], "a batch leaves out rows that are due");
        let delay = HELD_UP;
        let kinds = [
            OutcomeKind::Failed { delay, error: "no broker".into() },
            OutcomeKind::Returned { delay },
            OutcomeKind::Published,
            OutcomeKind::Returned { delay },
        ];
        let outcomes: Vec<Outcome> =
            batch.rows.iter().zip(kinds).map(|(row, kind)| Outcome { id: row.id, kind }).collect();
        assert_eq!(self.record(&batch, &outcomes).await, 4);
        self.enqueue(&["a4", "b2"]).await;
        assert_eq!(self.drain().await, ["b2"], "a row was claimed before an earlier one of its aggregate");
        let batch = self.claim_soon(10, LONG_LEASE, "a row that failed is not claimed again").await;
        assert_eq!(names(&batch)[..3], ["a1", "a2", "a3"], "an aggregate lost its order");
        assert_eq!(
            batch.rows.iter().map(|row| row.attempts).collect::<Vec<_>>()[..3],
            [2, 1, 1],
            "a row that was returned has lost its attempt"
        );
        self.publish(&batch).await;
        let rest = self.drain().await;
        let all = [names(&batch), rest].concat();
        assert_eq!(
            all,
            ["a1", "a2", "a3", "a4"],
            "a row does not follow when the one before it is published"
        );
    }

    async fn a_failed_row_follows_a_late_one_that_failed_too(&self) {
        if !self.under_test.has_concurrent_writers() {
            return;
        }
        let fail = async |batch: &Batch, delay| {
            let kind = OutcomeKind::Failed { delay, error: "no broker".into() };
            self.record(batch, &[Outcome { id: batch.rows[0].id, kind }]).await;
        };
        let mut late = self.under_test.begin().await;
        late.enqueue(&message("a1")).await;
        self.enqueue(&["a2"]).await;
        let second = self.claim(1, LONG_LEASE).await.expect("a committed row is claimed");
        late.commit().await;
        fail(&second, Duration::ZERO).await;
        let first = self.claim(1, LONG_LEASE).await.expect("a row that committed late is claimed");
        assert_eq!(names(&first), ["a1"], "a row was claimed before an earlier one of its aggregate");
        fail(&first, HELD_UP).await;
        assert!(
            self.claim(1, LONG_LEASE).await.is_none(),
            "a row was claimed before an earlier one of its aggregate"
        );
        for name in ["a1", "a2"] {
            let batch = self
                .claim_soon(1, LONG_LEASE, "a row does not follow when the one before it is published")
                .await;
            assert_eq!(names(&batch), [name], "an aggregate lost its order");
            self.publish(&batch).await;
        }
    }

    async fn a_held_up_aggregate_holds_up_nobody_else(&self) {
        let deep: Vec<String> = (1..=60).map(|number| format!("a{number}")).collect();
        self.enqueue(&deep.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let batch = self.claim(1, LONG_LEASE).await.expect("committed rows are claimed");
        let failed = OutcomeKind::Failed { delay: HELD_UP, error: "no broker".into() };
        self.record(&batch, &[Outcome { id: batch.rows[0].id, kind: failed }]).await;
        self.enqueue(&["b1"]).await;
        let batch = self.claim(10, LONG_LEASE).await.expect("an aggregate that is held up holds up others");
        assert_eq!(names(&batch), ["b1"], "a row was claimed before an earlier one of its aggregate");
        self.publish(&batch).await;
        let mut all = Vec::new();
        while all.len() < deep.len() {
            let batch = self
                .claim_soon(25, LONG_LEASE, "rows do not follow when the one before them is published")
                .await;
            all.extend(names(&batch));
            self.publish(&batch).await;
        }
        assert_eq!(all, deep, "an aggregate lost its order");
    }

    async fn dead_rows_are_listed_released_and_discarded(&self) {
        self.enqueue(&["a1", "a2"]).await;
        let batch = self.claim(1, LONG_LEASE).await.expect("committed rows are claimed");
        let id = batch.rows[0].id;
        self.record(&batch, &[Outcome { id, kind: OutcomeKind::Dead { error: "too large".into() } }]).await;
        assert_eq!(self.drain().await, ["a2"], "a row that is set aside still holds up its aggregate");
        let dead = self.store.list_dead(0, 10).await.expect("the store answers");
        let errors: Vec<Option<&str>> = dead.iter().map(|row| row.last_error.as_deref()).collect();
        assert_eq!(errors, [Some("too large")], "a dead row is not listed");
        assert!(
            self.store.list_dead(id, 10).await.expect("the store answers").is_empty(),
            "a page repeats a row"
        );
        assert_eq!(self.store.release(&[id, id + 1_000]).await.expect("the store answers"), 1);
        let batch = self.claim(10, LONG_LEASE).await.expect("a row that was released is claimed again");
        assert_eq!(
            (names(&batch), batch.rows[0].attempts),
            (vec!["a1".to_owned()], 1),
            "a released row keeps its attempts"
        );
        self.record(&batch, &[Outcome { id, kind: OutcomeKind::Dead { error: "too large".into() } }]).await;
        assert_eq!(self.store.discard(&[id]).await.expect("the store answers"), 1);
        assert_eq!(self.store.discard(&[id]).await.expect("the store answers"), 0);
        assert!(self.store.list_dead(0, 10).await.expect("the store answers").is_empty());
    }

    async fn published_rows_are_kept_and_cleaned_up(&self) {
        self.enqueue(&["a1", "b1", "c1"]).await;
        let batch = self.claim(10, LONG_LEASE).await.expect("committed rows are claimed");
        let keep = Retention::Keep(LONG_LEASE);
        let count = self.store.record(&batch.lease, &published(&batch), keep).await;
        assert_eq!(count.expect("the store answers"), 3);
        assert!(self.claim(10, LONG_LEASE).await.is_none(), "a published row was claimed again");
        assert_eq!(
            self.store.clean_up(LONG_LEASE, 10).await.expect("the store answers"),
            0,
            "a row was deleted too early"
        );
        tokio::time::sleep(STEP).await;
        assert_eq!(
            self.store.clean_up(Duration::ZERO, 2).await.expect("the store answers"),
            2,
            "the limit is ignored"
        );
        assert_eq!(
            self.store.clean_up(Duration::ZERO, 2).await.expect("the store answers"),
            1,
            "a published row is never deleted"
        );
    }

    async fn lost_attempts_make_batches_small(&self) {
        let all: Vec<String> =
            (1..=64).map(|number| format!("k{}x1", (b'a' + number % 26) as char)).collect();
        self.enqueue(&all.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let lost = self.claim(64, SHORT_LEASE).await.expect("committed rows are claimed");
        assert!(lost.rows.len() >= 32, "a batch has {} rows of 64 that are due", lost.rows.len());
        let batch = self.claim_soon(64, LONG_LEASE, "a row is not claimed again after its lease ended").await;
        assert!(batch.rows.len() <= 16, "{} rows with a lost attempt are in one batch", batch.rows.len());
        self.publish(&batch).await;
        assert_eq!(batch.rows.len() + self.drain().await.len(), 64);
    }

    async fn a_busy_topic_leaves_room_for_others(&self) {
        let mut transaction = self.under_test.begin().await;
        for number in 0..400 {
            transaction
                .enqueue(&Message::new("Tested", format!("key-{number}"), "busy").with_topic("busy"))
                .await;
        }
        transaction.enqueue(&Message::new("Tested", "key", "calm").with_topic("calm")).await;
        transaction.commit().await;
        let mut batches = 0;
        loop {
            let request = ClaimRequest::new("suite", 5, 4, LONG_LEASE);
            let batch = self.store.claim(&request).await.expect("the store answers").expect("there are rows");
            batches += 1;
            let is_calm = names(&batch).first().is_some_and(|name| name == "calm");
            self.publish(&batch).await;
            if is_calm {
                break;
            }
            assert!(batches < 10, "a busy topic starves another one");
        }
        self.drain().await;
    }

    async fn rows_are_counted(&self) {
        let stats = async || self.store.stats().await.expect("the store answers");
        assert_eq!((stats().await.depth, stats().await.dead), (0, 0), "rows are left");
        self.store.store(&[message("a1"), message("b1")]).await.expect("the store answers");
        tokio::time::sleep(STEP).await;
        let now = stats().await;
        assert_eq!(now.depth, 2, "the depth is wrong");
        assert!(now.lag >= STEP / 2, "the lag is wrong: {:?}", now.lag);
        let batch = self.claim(1, LONG_LEASE).await.expect("committed rows are claimed");
        self.record(
            &batch,
            &[Outcome { id: batch.rows[0].id, kind: OutcomeKind::Dead { error: String::new() } }],
        )
        .await;
        assert_eq!((stats().await.depth, stats().await.dead), (1, 1), "the numbers are wrong");
        self.store.discard(&[batch.rows[0].id]).await.expect("the store answers");
        self.drain().await;
    }
}
