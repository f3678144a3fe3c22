//! How rows are claimed.

use std::collections::{HashMap, HashSet};

use seawall_dist::Millis;
use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, LANES_PER_TOPIC, OutboxRow, PARKED_TIME, batch_limit,
};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};

use super::{json, millis, now};
use crate::outbox_row::message;

/// The lanes that have rows, found by stepping from one to the next in the index; with when they were served last.
const LANES: &str = "
WITH RECURSIVE present (lane) AS (
    SELECT min(lane) FROM seawall_outbox WHERE status = 'ready'
    UNION ALL
    SELECT (SELECT min(lane) FROM seawall_outbox WHERE status = 'ready' AND lane > present.lane)
    FROM present WHERE present.lane IS NOT NULL
), heads AS (
    SELECT lane, (SELECT min(due_at) FROM seawall_outbox o WHERE status = 'ready' AND o.lane = present.lane) AS due_at
    FROM present WHERE lane IS NOT NULL
)
SELECT heads.lane FROM heads LEFT JOIN seawall_outbox_lanes known USING (lane)
WHERE heads.due_at <= ?1 AND (known.lane IS NULL OR known.leased_until <= ?1)
ORDER BY known.served_at IS NOT NULL, known.served_at, heads.due_at";

/// The first row of each aggregate that waits and is not among these.
const HEADS: &str = "
WITH due AS MATERIALIZED (
    SELECT o.id, o.topic, o.aggregate_id FROM json_each(?1) JOIN seawall_outbox o ON o.id = json_each.value
), aggregates AS MATERIALIZED (
    SELECT topic, aggregate_id, max(id) AS last_id FROM due GROUP BY topic, aggregate_id
), heads AS (
    SELECT aggregates.*, (
        SELECT id FROM seawall_outbox o
        WHERE o.aggregate_id = aggregates.aggregate_id AND o.topic = aggregates.topic AND o.status = 'ready'
          AND o.id < aggregates.last_id AND o.id NOT IN (SELECT id FROM due)
        ORDER BY o.id LIMIT 1) AS head_id
    FROM aggregates
)
SELECT heads.topic, heads.aggregate_id, o.id, o.due_at, o.failure_count
FROM heads JOIN seawall_outbox o ON o.id = heads.head_id";

pub(super) const COLUMNS: &str = "id, event_id, event_type, topic, aggregate_id, payload, headers, retry_count, failure_count, last_error, created_at, outage_count";

pub(super) fn row_of(row: &SqliteRow) -> OutboxRow {
    let message = message(row.get(1), row.get(2), row.get(3), row.get(4), row.get(6), row.get(5));
    let mut stored = OutboxRow::new(row.get(0), message, Millis(row.get(10)));
    (stored.attempts, stored.failures, stored.last_error) = (row.get(7), row.get(8), row.get(9));
    stored.outages = row.get(11);
    stored
}

/// Whether a free lane has a due row. It only reads: it waits for no writer, and no writer waits for it.
pub(super) async fn has_due(pool: &SqlitePool) -> Result<bool, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let now = now(&mut connection).await?;
    let lane: Option<i32> = sqlx::query_scalar(LANES).bind(now).fetch_optional(&mut *connection).await?;
    Ok(lane.is_some())
}

/// A row that is due.
struct Due {
    id: i64,
    key: (String, String),
    lost: u32,
}

pub(super) async fn claim(
    connection: &mut SqliteConnection,
    request: &BatchRequest,
) -> Result<Option<Batch>, sqlx::Error> {
    let now = now(connection).await?;
    let Some(lease) = lease(connection, request, now).await? else { return Ok(None) };
    let mut due = Vec::new();
    let per_lane = i64::from(request.rows_max.div_ceil(lease.lanes.len().max(1) as u32));
    for lane in &lease.lanes {
        let rows = sqlx::query(
            "SELECT id, topic, aggregate_id, retry_count - failure_count FROM seawall_outbox WHERE lane = ? AND status = 'ready' AND due_at <= ? ORDER BY due_at, id LIMIT ?",
        );
        let rows = rows.bind(lane).bind(now).bind(per_lane).fetch_all(&mut *connection).await?;
        due.extend(rows.iter().map(|row| Due {
            id: row.get(0),
            key: (row.get(1), row.get(2)),
            lost: row.get(3),
        }));
    }
    due.sort_unstable_by_key(|row| row.id);
    let waiting = park(connection, &due).await?;
    let (mut picked, mut lost) = (Vec::new(), 0);
    for row in due.iter().filter(|row| !waiting.contains(&row.id)) {
        lost = lost.max(row.lost);
        if !picked.is_empty() && picked.len() >= batch_limit(request.rows_max, lost) as usize {
            break;
        }
        picked.push(row.id);
    }
    let update = format!(
        "UPDATE seawall_outbox SET retry_count = retry_count + 1 WHERE id IN (SELECT value FROM json_each(?)) RETURNING {COLUMNS}"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(update)).bind(json(&picked)).fetch_all(connection).await?;
    let mut rows: Vec<OutboxRow> = rows.iter().map(row_of).collect();
    rows.sort_unstable_by_key(|row| row.id);
    Ok(Some(Batch::new(lease, rows)))
}

/// Leases free lanes of one topic that have due rows: the topic and the lanes that were served longest ago.
async fn lease(
    connection: &mut SqliteConnection,
    request: &BatchRequest,
    now: i64,
) -> Result<Option<BatchLease>, sqlx::Error> {
    let mut lanes: Vec<i32> = sqlx::query_scalar(LANES).bind(now).fetch_all(&mut *connection).await?;
    let Some(&first) = lanes.first() else { return Ok(None) };
    lanes.retain(|lane| lane / LANES_PER_TOPIC == first / LANES_PER_TOPIC);
    lanes.truncate(request.lanes_max as usize);
    let token: i64 = sqlx::query_scalar("UPDATE seawall_outbox_tokens SET last = last + 1 RETURNING last")
        .fetch_one(&mut *connection)
        .await?;
    for lane in &lanes {
        sqlx::query("INSERT OR REPLACE INTO seawall_outbox_lanes (lane, token, leased_until, served_at, owner) VALUES (?, ?, ?, ?, ?)")
            .bind(lane)
            .bind(token)
            .bind(now + millis(request.lease))
            .bind(now)
            .bind(&request.owner)
            .execute(&mut *connection)
            .await?;
    }
    Ok(Some(BatchLease::new(token, lanes)))
}

/// Parks the rows that wait for an earlier one of their aggregate, and returns their ids. Behind a row that failed they are
/// woken when it is done; behind one that is merely due later they come right after it.
async fn park(connection: &mut SqliteConnection, due: &[Due]) -> Result<HashSet<i64>, sqlx::Error> {
    let heads =
        sqlx::query(HEADS).bind(json(due.iter().map(|row| &row.id))).fetch_all(&mut *connection).await?;
    let heads: HashMap<(String, String), (i64, i64, i64)> =
        heads.iter().map(|row| ((row.get(0), row.get(1)), (row.get(2), row.get(3), row.get(4)))).collect();
    let mut waiting = HashSet::new();
    for (key, (head, due_at, failures)) in &heads {
        let behind: Vec<i64> =
            due.iter().filter(|row| row.key == *key && row.id > *head).map(|row| row.id).collect();
        let due_at = if *failures > 0 { due_at + millis(PARKED_TIME) } else { *due_at };
        sqlx::query("UPDATE seawall_outbox SET due_at = ? WHERE id IN (SELECT value FROM json_each(?))")
            .bind(due_at)
            .bind(json(&behind))
            .execute(&mut *connection)
            .await?;
        waiting.extend(behind);
    }
    Ok(waiting)
}
