//! What holds for the order of rows, for rows that fail, and for rows that are done.

use super::*;

impl Suite<'_> {
    pub(super) async fn an_aggregate_keeps_its_order(&self) {
        self.enqueue(&["a1", "a2", "b1", "a3"]).await;
        let batch = self.claim(10, LONG_LEASE).await.expect("committed rows are claimed");
        assert_eq!(names(&batch), ["a1", "a2", "b1", "a3"], "a batch leaves out rows that are due");
        let delay = HELD_UP;
        let kinds = [
            OutcomeKind::Failed { delay, error: "no broker".into(), outage: true },
            OutcomeKind::Returned { delay },
            OutcomeKind::Published,
            OutcomeKind::Returned { delay },
        ];
        let outcomes: Vec<RowOutcome> =
            batch.rows.iter().zip(kinds).map(|(row, kind)| RowOutcome { id: row.id, kind }).collect();
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

    pub(super) async fn a_failed_row_follows_a_late_one_that_failed_too(&self) {
        if !self.under_test.has_concurrent_writers() {
            return;
        }
        let fail = async |batch: &Batch, delay| {
            let kind = OutcomeKind::Failed { delay, error: "no broker".into(), outage: true };
            self.record(batch, &[RowOutcome { id: batch.rows[0].id, kind }]).await;
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

    pub(super) async fn a_held_up_aggregate_holds_up_nobody_else(&self) {
        let deep: Vec<String> = (1..=60).map(|number| format!("a{number}")).collect();
        self.enqueue(&deep.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let batch = self.claim(1, LONG_LEASE).await.expect("committed rows are claimed");
        let failed = OutcomeKind::Failed { delay: HELD_UP, error: "no broker".into(), outage: true };
        self.record(&batch, &[RowOutcome { id: batch.rows[0].id, kind: failed }]).await;
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

    pub(super) async fn dead_rows_are_listed_released_and_discarded(&self) {
        self.enqueue(&["a1", "a2"]).await;
        let batch = self.claim(1, LONG_LEASE).await.expect("committed rows are claimed");
        let id = batch.rows[0].id;
        self.record(&batch, &[RowOutcome { id, kind: OutcomeKind::Dead { error: "too large".into() } }])
            .await;
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
        self.record(&batch, &[RowOutcome { id, kind: OutcomeKind::Dead { error: "too large".into() } }])
            .await;
        assert_eq!(self.store.discard(&[id]).await.expect("the store answers"), 1);
        assert_eq!(self.store.discard(&[id]).await.expect("the store answers"), 0);
        assert!(self.store.list_dead(0, 10).await.expect("the store answers").is_empty());
    }

    pub(super) async fn published_rows_are_kept_and_cleaned_up(&self) {
        self.enqueue(&["a1", "b1", "c1"]).await;
        let batch = self.claim(10, LONG_LEASE).await.expect("committed rows are claimed");
        let keep = Retention::Keep(LONG_LEASE);
        let count = self.store.record(&batch.lease, &published(&batch), keep).await;
        assert_eq!(count.expect("the store answers").len(), 3);
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

    pub(super) async fn lost_attempts_make_batches_small(&self) {
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

    pub(super) async fn a_busy_topic_leaves_room_for_others(&self) {
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
            let request = BatchRequest::new("suite", 5, 4, LONG_LEASE);
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

    pub(super) async fn rows_are_counted(&self) {
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
            &[RowOutcome { id: batch.rows[0].id, kind: OutcomeKind::Dead { error: String::new() } }],
        )
        .await;
        assert_eq!((stats().await.depth, stats().await.dead), (1, 1), "the numbers are wrong");
        self.store.discard(&[batch.rows[0].id]).await.expect("the store answers");
        self.drain().await;
    }
}
