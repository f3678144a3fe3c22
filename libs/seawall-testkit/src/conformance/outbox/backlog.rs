//! What holds for an aggregate that has thousands of rows.

use super::*;

/// Rows of one aggregate: many more than a batch holds.
const ROWS: usize = 2_000;
const BATCH: u32 = 10;
/// One batch in this many ends with a failure.
const FAILURES: usize = 4;

impl Suite<'_> {
    /// A claim may find nothing but rows that wait for another one. It must not take a claim for every few of them: rows that
    /// were parked would be due again before the last one is, and the first one, which they wait for, would never come.
    pub(super) async fn a_deep_aggregate_that_fails_takes_few_claims(&self) {
        let all: Vec<String> = (1..=ROWS).map(|number| format!("deep{number}")).collect();
        let messages: Vec<Message> = all.iter().map(|name| message(name)).collect();
        self.store.store(&messages).await.expect("the store answers");
        let first = self.claim(BATCH, LONG_LEASE).await.expect("committed rows are claimed");
        self.fail_at(&first, 0, HELD_UP).await;
        let mut empty = 0;
        while let Some(batch) = self.claim_any().await {
            assert_eq!(names(&batch), [""; 0], "a row was claimed before an earlier one of its aggregate");
            self.record(&batch, &[]).await;
            empty += 1;
            assert!(empty < 20, "rows behind one that failed take {empty} claims, and more");
        }
        let (mut sent, mut claims, mut batches) = (Vec::new(), 0, 0);
        while sent.len() < ROWS {
            let Some(batch) = self.claim_any().await else {
                tokio::time::sleep(STEP).await;
                continue;
            };
            claims += 1;
            assert!(claims < ROWS, "{} rows were published in {claims} claims of {BATCH}", sent.len());
            batches += usize::from(!batch.rows.is_empty());
            let done = if batches % FAILURES == 0 { batch.rows.len() / 2 } else { batch.rows.len() };
            sent.extend_from_slice(&names(&batch)[..done]);
            self.fail_at(&batch, done, Duration::ZERO).await;
        }
        assert_eq!(sent, all, "an aggregate lost its order");
        let least = ROWS / BATCH as usize;
        assert!(claims < least * 2, "{ROWS} rows took {claims} claims of {BATCH}, and {least} would do");
    }

    /// The next batch, which may be empty.
    async fn claim_any(&self) -> Option<Batch> {
        let request = BatchRequest::new("suite", BATCH, 16, LONG_LEASE);
        self.store.claim(&request).await.expect("the store answers")
    }

    /// Records a batch of one aggregate: the rows before this place were published, that one failed, and the others wait for it.
    async fn fail_at(&self, batch: &Batch, failed: usize, delay: Duration) {
        let kind = |place: usize| match place.cmp(&failed) {
            std::cmp::Ordering::Less => OutcomeKind::Published,
            std::cmp::Ordering::Equal => {
                OutcomeKind::Failed { delay, error: "no broker".into(), outage: true }
            }
            std::cmp::Ordering::Greater => OutcomeKind::Returned { delay },
        };
        let rows = batch.rows.iter().enumerate();
        let outcomes: Vec<RowOutcome> =
            rows.map(|(place, row)| RowOutcome { id: row.id, kind: kind(place) }).collect();
        assert_eq!(self.record(batch, &outcomes).await, batch.rows.len());
    }
}
