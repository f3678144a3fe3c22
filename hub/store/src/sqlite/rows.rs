//! Rows to domain and back.

use std::time::Duration;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Error, Row};
use seawall_dist::deadletter::{Answer, Attempt, SentRequest};
use seawall_hub_core::domain::dead_letter::{GroupState, LetterState};
use seawall_hub_core::domain::delivery::suspects::{HandlingStep, Suspicion};
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, DeliveryFacts, DeliveryId, DeliveryState, Progress, StoredState,
};
use seawall_hub_core::domain::operation::OperationState;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoredDelivery;
use serde_json::{Value, json};

use super::sql::sql;

/// The condition that a query needs to use the index of waiting deliveries: SQLite does not see that `state = 2` implies it.
pub(super) const WAITING_INDEX: &str = sql!(IS_WAITING);

/// Returns the number of a state. The numbers never change.
pub(super) const fn state_to_number(state: StoredState) -> i64 {
    state as i64
}

pub(super) fn stored_state(row: &Row<'_>, column: usize) -> rusqlite::Result<StoredState> {
    let number = row.get::<_, i64>(column)?;
    let state = StoredState::ALL.into_iter().find(|state| state_to_number(*state) == number);
    state.ok_or_else(|| strange(column, format!("{number} is no state")))
}

pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<DeliveryState> {
    stored_state(row, column).map(StoredState::shown)
}

/// The error for a row that this program has not written.
pub(super) fn strange(column: usize, what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

pub(super) fn slug(row: &Row<'_>, column: usize) -> rusqlite::Result<Slug> {
    Slug::new(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))
}

pub(super) fn pairs_to_text(pairs: &[(String, String)]) -> String {
    Value::from(pairs.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>()).to_string()
}

fn pairs(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<(String, String)>> {
    let text = json(row, column)?;
    pairs_of(&text).ok_or_else(|| strange(column, "no pairs of texts"))
}

fn pairs_of(json: &Value) -> Option<Vec<(String, String)>> {
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    json.as_array().and_then(|pairs| pairs.iter().map(pair).collect())
}

fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))
}

pub(super) fn sent_to_text(sent: &SentRequest) -> String {
    let headers: Vec<Value> = sent.headers.iter().map(|(name, value)| json!([name, value])).collect();
    json!([sent.line, headers]).to_string()
}

/// Reads an attempt from its columns, from the first on.
pub(super) fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let sent = match row.get_ref(4)? {
        ValueRef::Null => None,
        _ => {
            let sent = json(row, 4)?;
            let line = sent[0].as_str().unwrap_or_default().to_owned();
            Some(SentRequest { line, headers: pairs_of(&sent[1]).unwrap_or_default() })
        }
    };
    let headers = if row.get_ref(5)? == ValueRef::Null { Vec::new() } else { pairs(row, 5)? };
    let status: Option<u16> = row.get(2)?;
    let body = row.get::<_, Option<Vec<u8>>>(6)?.unwrap_or_default();
    Ok(Attempt {
        at: Millis(row.get(0)?),
        took: Duration::from_micros(row.get::<_, i64>(1)?.cast_unsigned()),
        sent,
        error: row.get(3)?,
        answer: status.map(|status| Answer { status, headers, body }),
    })
}

pub(super) fn reason_to_number(reason: DeadLetterReason) -> i64 {
    match reason {
        DeadLetterReason::Refused => 0,
        DeadLetterReason::Gone => 1,
        DeadLetterReason::Impossible => 2,
        DeadLetterReason::Attempts => 3,
        DeadLetterReason::Age => 4,
        DeadLetterReason::Deleted => 5,
        DeadLetterReason::Poison => 6,
    }
}

pub(super) fn reason(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<DeadLetterReason>> {
    let Some(number) = row.get::<_, Option<i64>>(column)? else { return Ok(None) };
    let reason = DeadLetterReason::ALL.into_iter().find(|reason| reason_to_number(*reason) == number);
    reason.map(Some).ok_or_else(|| strange(column, format!("{number} is no reason")))
}

pub(super) const fn letter_state_to_number(state: LetterState) -> i64 {
    state as i64
}

pub(super) fn letter_state(row: &Row<'_>, column: usize) -> rusqlite::Result<LetterState> {
    let number = usize::from(row.get::<_, u8>(column)?);
    let state = LetterState::ALL.get(number).copied();
    state.ok_or_else(|| strange(column, format!("{number} is no state of a dead letter")))
}

pub(super) const fn group_state_to_number(state: GroupState) -> i64 {
    state as i64
}

pub(super) fn group_state(row: &Row<'_>, column: usize) -> rusqlite::Result<GroupState> {
    let number = usize::from(row.get::<_, u8>(column)?);
    let state = GroupState::ALL.get(number).copied();
    state.ok_or_else(|| strange(column, format!("{number} is no state of a group")))
}

pub(super) const fn run_to_number(run: OperationState) -> i64 {
    run as i64
}

pub(super) fn run(row: &Row<'_>, column: usize) -> rusqlite::Result<OperationState> {
    let number = usize::from(row.get::<_, u8>(column)?);
    let run = OperationState::ALL.get(number).copied();
    run.ok_or_else(|| strange(column, format!("{number} is no state of an operation")))
}

/// The columns of a delivery, without its request; `e` is its event.
pub(super) const STORED: &str = "d.number, e.id, e.accepted, d.rule, d.rule_version, d.service, d.state, d.due, d.accepted, \
                               d.counted, d.failures, d.reason, d.ordering, d.replay_of, e.trace, e.source, d.panics, \
                               d.crashes > 0, d.against > 0, d.epoch";
/// The column of the request, and that of the event if that is its body.
pub(super) const REQUEST: &str = "r.request, CASE WHEN substr(r.request, 1, 1) = x'01' THEN e.payload END";
/// The number of columns in `KEPT`.
pub(super) const STORED_COLUMNS: usize = 20;

/// Reads a delivery. `request` is the column of its request, followed by that of the payload, if they were asked for.
pub(super) fn stored_row(
    row: &Row<'_>,
    database: u64,
    request: Option<usize>,
) -> rusqlite::Result<StoredDelivery> {
    let name = |number: i64| DeliveryId::new(database, number.cast_unsigned());
    Ok(StoredDelivery {
        id: name(row.get(0)?),
        event: row.get(1)?,
        source: row.get(15)?,
        event_accepted: Millis(row.get(2)?),
        trace: row.get_ref(14)?.as_str_or_null()?.and_then(TraceId::of),
        rule: (slug(row, 3)?, row.get::<_, i64>(4)?.cast_unsigned()),
        service: slug(row, 5)?,
        state: state(row, 6)?,
        epoch: row.get::<_, i64>(19)?.cast_unsigned(),
        reason: reason(row, 11)?,
        due: Millis(row.get(7)?),
        progress: Progress {
            accepted: Millis(row.get(8)?),
            counted: row.get(9)?,
            failures: row.get(10)?,
            panics: row.get(16)?,
        },
        order: row.get(12)?,
        is_suspect: row.get(17)?,
        on_probation: row.get(18)?,
        replay_of: row.get::<_, Option<i64>>(13)?.map(name),
        request: request.map(|column| row.get(column)).transpose()?.unwrap_or_default(),
        payload: request
            .map(|column| row.get::<_, Option<Vec<u8>>>(column + 1))
            .transpose()?
            .flatten()
            .unwrap_or_default()
            .into(),
    })
}

/// The columns of a delivery that transitions of the domain read or change.
pub(super) const FACTS: &str = "state, epoch, due, touched, accepted, counted, failures, panics, reason, ordering IS NOT NULL, \
                              replay_of IS NOT NULL, crashes, against, step, starts";

pub(super) fn facts(row: &Row<'_>) -> rusqlite::Result<DeliveryFacts> {
    Ok(DeliveryFacts {
        state: stored_state(row, 0)?,
        epoch: row.get::<_, i64>(1)?.cast_unsigned(),
        due: Millis(row.get(2)?),
        touched: Millis(row.get(3)?),
        progress: Progress {
            accepted: Millis(row.get(4)?),
            counted: row.get(5)?,
            failures: row.get(6)?,
            panics: row.get(7)?,
        },
        reason: reason(row, 8)?,
        has_order: row.get(9)?,
        is_replay: row.get(10)?,
        crashes: row.get(11)?,
        suspicion: Suspicion { crashes: row.get(12)?, step: HandlingStep::of(row.get(13)?) },
        starts: row.get(14)?,
    })
}

/// Returns the number of a step; 0 stands for none.
pub(super) fn step_to_number(step: Option<HandlingStep>) -> u8 {
    step.map_or(0, HandlingStep::number)
}

#[cfg(test)]
mod tests {
    use super::super::sql::part;
    use super::*;

    /// HUB-14: the numbers in statements are those of the rows, and those of the first version of the tables.
    #[test]
    fn hub_14_a_state_has_one_number() {
        let deliveries = [
            part!(LEASED),
            part!(QUEUED),
            part!(WAITING),
            part!(STALLED),
            part!(BLOCKED),
            part!(HELD),
            part!(HOLDING),
            part!(DELIVERED),
            part!(DEAD),
        ];
        assert_eq!(deliveries.concat(), "012345678");
        assert_eq!(StoredState::ALL.map(|state| state_to_number(state).to_string()), deliveries);
        for (state, number) in [
            (LetterState::Replaying, part!(LETTER_REPLAYING)),
            (LetterState::Delivered, part!(LETTER_DELIVERED)),
            (LetterState::FailedAgain, part!(LETTER_FAILED_AGAIN)),
            (LetterState::Deleted, part!(LETTER_DELETED)),
        ] {
            assert_eq!(letter_state_to_number(state).to_string(), number);
        }
        let words = |numbers: &[i64]| numbers.iter().map(ToString::to_string).collect::<String>();
        assert_eq!(words(&LetterState::ALL.map(letter_state_to_number)), "012345");
        assert_eq!(words(&GroupState::ALL.map(group_state_to_number)), "012");
        assert_eq!(words(&OperationState::ALL.map(run_to_number)), "01234");
    }
}
