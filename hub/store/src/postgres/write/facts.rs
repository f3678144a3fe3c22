//! The row of a delivery as the domain sees it, read under a lock and written back.

use std::sync::LazyLock;
use std::time::Duration;

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryFacts};
use tokio_postgres::types::ToSql;

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::rows::{Columns, FACTS, facts};
use crate::record::{StoredNumber, step_to_number};

/// The columns that `work` and `outcomes` share, without the number.
const COLUMNS: &str =
    "state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts";

static LOAD_WORK: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FACTS} FROM work p JOIN deliveries d ON d.number = p.number WHERE p.number = $1 FOR UPDATE OF p"
    )
});

static LOAD_OUTCOME: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FACTS} FROM outcomes p JOIN deliveries d ON d.number = p.number WHERE p.number = $1 FOR UPDATE OF p"
    )
});

const STORE_WORK: &str = "UPDATE work SET state = $2, epoch = $3, due = $4, touched = $5, accepted = $6, counted = $7, failures = $8,
     panics = $9, reason = $10, crashes = $11, against = $12, step = $13, starts = $14 WHERE number = $1";

/// Moves a delivery that has ended, or changes it where it is.
static STORE_OUTCOME: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH ended AS (DELETE FROM work WHERE number = $1)
         INSERT INTO outcomes (number, {COLUMNS}, took, status, answer)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
         ON CONFLICT (number) DO UPDATE SET state = excluded.state, touched = excluded.touched, reason = excluded.reason"
    )
});

impl UnitApplier<'_> {
    /// Reads and locks what the transitions of a delivery depend on; `None` if there is no such delivery.
    pub(in crate::postgres) async fn load_facts(
        &self,
        number: i64,
    ) -> Result<Option<DeliveryFacts>, ApplyError> {
        // If it ends while this waits for its lock, the second statement sees where it is now.
        let row = match self.find(&LOAD_WORK, &[&number]).await? {
            Some(row) => Some(row),
            None => self.find(&LOAD_OUTCOME, &[&number]).await?,
        };
        Ok(row.map(|row| facts(&mut Columns::new("work", &row))).transpose()?)
    }

    /// Writes the facts of a delivery that [`load_facts`](Self::load_facts) has locked. One that has ended moves from `work` to
    /// `outcomes`.
    pub(in crate::postgres) async fn store_facts(
        &self,
        number: i64,
        facts: &DeliveryFacts,
    ) -> Result<(), ApplyError> {
        self.store_facts_with(number, facts, None).await
    }

    /// The same, with the attempt that delivered it.
    pub(super) async fn store_facts_with(
        &self,
        number: i64,
        facts: &DeliveryFacts,
        delivered: Option<&Attempt>,
    ) -> Result<(), ApplyError> {
        let DeliveryFacts { progress, suspicion, .. } = facts;
        let (state, reason) = (small(facts.state), reason_number(facts.reason));
        let (epoch, step) = (facts.epoch.cast_signed(), step_to_number(suspicion.step) as i16);
        let (counted, failures, panics) =
            (int(progress.counted), int(progress.failures), int(progress.panics));
        let (crashes, against) = (int(facts.crashes), int(suspicion.crashes));
        let answer = delivered.and_then(|attempt| attempt.answer.as_ref());
        let took = delivered.map(|attempt| micros(attempt.took));
        let (status, body) =
            (answer.map(|answer| i32::from(answer.status)), answer.map(|answer| &answer.body));
        let ended = [&took as &(dyn ToSql + Sync), &status, &body];
        let (sql, ended) = if facts.state.occupies_order() {
            (STORE_WORK, &ended[..0])
        } else {
            (STORE_OUTCOME.as_str(), &ended[..])
        };
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![
            &number,
            &state,
            &epoch,
            &facts.due.0,
            &facts.touched.0,
            &progress.accepted.0,
            &counted,
            &failures,
            &panics,
            &reason,
            &crashes,
            &against,
            &step,
            &facts.starts,
        ];
        params.extend(ended);
        self.run(sql, &params).await.map(drop)
    }
}

/// Returns the number of a state or a reason as its column has it.
pub(super) fn small(value: impl StoredNumber) -> i16 {
    value.to_number() as i16
}

pub(super) fn reason_number(reason: Option<DeadLetterReason>) -> Option<i16> {
    reason.map(small)
}

/// Returns a count as its column has it.
pub(super) fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
