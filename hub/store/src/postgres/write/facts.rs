//! The row of a delivery as the domain sees it, read under a lock and written back.

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::suspects::Suspicion;
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryFacts, Progress, StoredState};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::StoreError;
use tokio_postgres::{Error, Row};

use super::applier::{ApplyError, UnitApplier};
use crate::record::{StoredNumber, UnreadableValue, step_from_number, step_to_number};
use crate::sql::sql;

/// The columns that `work` and `outcomes` share, in the order in which [`facts`] reads them.
macro_rules! fact_columns {
    ($row:literal) => {
        concat!(
            $row, "state, ", $row, "epoch, ", $row, "due, ", $row, "touched, ", $row, "accepted, ", $row, "counted, ",
            $row, "failures, ", $row, "panics, ", $row, "reason, ", $row, "crashes, ", $row, "against, ", $row, "step, ",
            $row, "starts"
        )
    };
}

const LOAD_WORK: &str = concat!(
    "SELECT ",
    fact_columns!(""),
    ", ordering IS NOT NULL, is_replay FROM work WHERE number = $1 FOR UPDATE"
);

const LOAD_OUTCOME: &str = concat!(
    "SELECT ",
    fact_columns!("o."),
    ", d.ordering IS NOT NULL, d.replay_of IS NOT NULL FROM outcomes o JOIN deliveries d ON d.number = o.number
     WHERE o.number = $1 FOR UPDATE OF o"
);

const STORE_WORK: &str = "UPDATE work SET state = $2, epoch = $3, due = $4, touched = $5, accepted = $6, counted = $7, failures = $8,
     panics = $9, reason = $10, crashes = $11, against = $12, step = $13, starts = $14 WHERE number = $1";

/// Moves a delivery that has ended, or changes it where it is.
const STORE_OUTCOME: &str = concat!(
    "WITH ended AS (DELETE FROM work WHERE number = $1)
     INSERT INTO outcomes (number, ",
    fact_columns!(""),
    ", took, status, answer)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
     ON CONFLICT (number) DO UPDATE SET state = excluded.state, touched = excluded.touched, reason = excluded.reason"
);

/// Turns a dead letter that holds its order into one that does not.
pub(super) const STOP_HOLDING: &str = concat!(
    "WITH held AS (DELETE FROM work WHERE number = $1 AND state = ",
    sql!(HOLDING),
    " RETURNING *) INSERT INTO outcomes (number, ",
    fact_columns!(""),
    ") SELECT number, ",
    sql!(DEAD),
    ", epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts FROM held"
);

impl UnitApplier<'_> {
    /// Reads and locks what the transitions of a delivery depend on; `None` if there is no such delivery.
    pub(in crate::postgres) async fn load_facts(
        &self,
        number: i64,
    ) -> Result<Option<DeliveryFacts>, ApplyError> {
        // If it ends while this waits for its lock, the second statement sees where it is now.
        let row = match self.find(LOAD_WORK, &[&number]).await? {
            Some(row) => Some(row),
            None => self.find(LOAD_OUTCOME, &[&number]).await?,
        };
        row.map(|row| facts(&row)).transpose()
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
        let ended = [&took as &(dyn tokio_postgres::types::ToSql + Sync), &status, &body];
        let (sql, ended) =
            if facts.state.occupies_order() { (STORE_WORK, &ended[..0]) } else { (STORE_OUTCOME, &ended[..]) };
        let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
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

/// Reads the facts from their columns, which are the first ones.
pub(super) fn facts(row: &Row) -> Result<DeliveryFacts, ApplyError> {
    let reason = row.try_get::<_, Option<i16>>(8)?.map(|number| DeadLetterReason::from_number(number.into()));
    Ok(DeliveryFacts {
        state: stored_state(row, 0)?,
        epoch: row.try_get::<_, i64>(1)?.cast_unsigned(),
        due: Millis(row.try_get(2)?),
        touched: Millis(row.try_get(3)?),
        progress: Progress {
            accepted: Millis(row.try_get(4)?),
            counted: count(row, 5)?,
            failures: count(row, 6)?,
            panics: count(row, 7)?,
        },
        reason: reason.transpose().map_err(unreadable)?,
        crashes: count(row, 9)?,
        suspicion: Suspicion {
            crashes: count(row, 10)?,
            step: step_from_number(row.try_get::<_, i16>(11)?.into()),
        },
        starts: row.try_get(12)?,
        has_order: row.try_get(13)?,
        is_replay: row.try_get(14)?,
    })
}

pub(super) fn stored_state(row: &Row, column: usize) -> Result<StoredState, ApplyError> {
    StoredState::from_number(row.try_get::<_, i16>(column)?.into()).map_err(unreadable)
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

fn count(row: &Row, column: usize) -> Result<u32, Error> {
    row.try_get::<_, i32>(column).map(|count| u32::try_from(count).unwrap_or_default())
}

pub(super) fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The refusal for a row that this program has not written.
pub(super) fn unreadable(value: UnreadableValue) -> ApplyError {
    ApplyError::Refused(StoreError::Failed(value.to_string()))
}
