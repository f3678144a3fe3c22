//! How outcomes are recorded.

use std::collections::HashMap;

use seawall_dist::outbox::{BatchLease, OutcomeKind, Retention, RowOutcome, woken_limit};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::{json, millis, now};
use crate::text::error_text;

/// Records outcomes and ends the lease, if it is still the latest one. Returns the ids of the rows that were recorded.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    lease: &BatchLease,
    outcomes: &[RowOutcome],
    retention: Retention,
) -> Result<Vec<i64>, sqlx::Error> {
    let now = now(connection).await?;
    let mut recorded = publish(connection, lease, outcomes, retention, now).await?;
    for RowOutcome { id, kind } in outcomes {
        let count = match kind {
            OutcomeKind::Failed { delay, error, outage } => {
                let set = if *outage {
                    "failure_count = failure_count + 1, outage_count = outage_count + 1, last_error = ?3, due_at = ?4"
                } else {
                    "failure_count = failure_count + 1, last_error = ?3, due_at = ?4"
                };
                update(connection, lease, *id, set, Some(error), Some(now + millis(*delay))).await?
            }
            OutcomeKind::Returned { delay } => {
                let set = "retry_count = max(0, retry_count - 1), last_error = coalesce(?3, last_error), due_at = coalesce(?4, due_at)";
                // Rows that are due at once keep their place before the later rows of their aggregate.
                let due_at = (!delay.is_zero()).then(|| now + millis(*delay));
                update(connection, lease, *id, set, None, due_at).await?
            }
            OutcomeKind::Dead { error } => {
                let set = "status = 'dead', last_error = ?3, finished_at = ?4";
                let count = update(connection, lease, *id, set, Some(error), Some(now)).await?;
                if count > 0 {
                    let row = sqlx::query("SELECT topic, aggregate_id FROM seawall_outbox WHERE id = ?");
                    let row = row.bind(id).fetch_one(&mut *connection).await?;
                    wake(connection, (row.get(0), row.get(1)), 1, outcomes, now).await?;
                }
                count
            }
            // Published rows are recorded already; a kind of a later release leaves the row as it is.
            _ => 0,
        };
        if count > 0 {
            recorded.push(*id);
        }
    }
    sqlx::query("UPDATE seawall_outbox_lanes SET token = 0, leased_until = 0 WHERE token = ?")
        .bind(lease.token)
        .execute(connection)
        .await?;
    Ok(recorded)
}

/// The condition under which an outcome may be recorded: the token (parameter 1) is that of the lane's latest lease.
const HELD: &str = "status = 'ready' AND EXISTS (SELECT 1 FROM seawall_outbox_lanes l WHERE l.lane = seawall_outbox.lane AND l.token = ?1)";

async fn publish(
    connection: &mut SqliteConnection,
    lease: &BatchLease,
    outcomes: &[RowOutcome],
    retention: Retention,
    now: i64,
) -> Result<Vec<i64>, sqlx::Error> {
    let ids =
        outcomes.iter().filter(|outcome| outcome.kind == OutcomeKind::Published).map(|outcome| &outcome.id);
    let change = match retention {
        Retention::Delete => "DELETE FROM seawall_outbox",
        _ => "UPDATE seawall_outbox SET status = 'published', finished_at = ?3",
    };
    let statement = format!(
        "{change} WHERE id IN (SELECT value FROM json_each(?2)) AND {HELD} AND ?3 > 0 RETURNING topic, aggregate_id, failure_count > 0 OR wakes, id"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(lease.token)
        .bind(json(ids))
        .bind(now)
        .fetch_all(&mut *connection)
        .await?;
    let mut waking: HashMap<(String, String), u32> = HashMap::new();
    for row in rows.iter().filter(|row| row.get(2)) {
        *waking.entry((row.get(0), row.get(1))).or_default() += 1;
    }
    if !waking.is_empty() {
        // Those behind a row that failed now are woken when it is done.
        let failed = outcomes.iter().filter(|outcome| matches!(outcome.kind, OutcomeKind::Failed { .. }));
        let held_up =
            "SELECT topic, aggregate_id FROM seawall_outbox WHERE id IN (SELECT value FROM json_each(?))";
        let ids = json(failed.map(|outcome| &outcome.id));
        for key in sqlx::query_as(held_up).bind(ids).fetch_all(&mut *connection).await? {
            waking.remove(&key);
        }
    }
    for ((topic, aggregate_id), count) in &waking {
        wake(connection, (topic, aggregate_id), *count, outcomes, now).await?;
    }
    Ok(rows.iter().map(|row| row.get(3)).collect())
}

async fn update(
    connection: &mut SqliteConnection,
    lease: &BatchLease,
    id: i64,
    set: &str,
    error: Option<&str>,
    at: Option<i64>,
) -> Result<u64, sqlx::Error> {
    let statement = format!("UPDATE seawall_outbox SET {set} WHERE id = ?2 AND {HELD}");
    let query = sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(lease.token)
        .bind(id)
        .bind(error.map(error_text))
        .bind(at);
    Ok(query.execute(connection).await?.rows_affected())
}

/// Makes rows due that waited for rows of their aggregate that are finished now.
async fn wake(
    connection: &mut SqliteConnection,
    (topic, aggregate_id): (&str, &str),
    finished: u32,
    outcomes: &[RowOutcome],
    now: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE seawall_outbox SET due_at = ?3, wakes = 1 WHERE id IN (
            SELECT id FROM seawall_outbox
            WHERE aggregate_id = ?2 AND topic = ?1 AND status = 'ready' AND due_at > ?3
              AND id NOT IN (SELECT value FROM json_each(?4))
            ORDER BY id LIMIT ?5)",
    )
    .bind(topic)
    .bind(aggregate_id)
    .bind(now)
    .bind(json(outcomes.iter().map(|outcome| &outcome.id)))
    .bind(woken_limit(finished))
    .execute(connection)
    .await
    .map(drop)
}
