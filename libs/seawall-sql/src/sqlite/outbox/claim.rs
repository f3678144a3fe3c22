//! How rows are claimed.

use std::collections::HashMap;

use seawall_dist::Millis;
use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, LANES_PER_TOPIC, OutboxRow, PARKED_MAX, PARKED_TIME, batch_limit,
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
    lane: i32,
    key: (String, String),
    lost: u32,
}

/// The due rows of a lane, after those that are skipped.
async fn due_rows(
    connection: &mut SqliteConnection,
    lane: i32,
    now: i64,
    skipped: i64,
    limit: i64,
) -> Result<Vec<Due>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT id, topic, aggregate_id, retry_count - failure_count FROM seawall_outbox WHERE lane = ? AND status = 'ready' AND due_at <= ? ORDER BY due_at, id LIMIT ? OFFSET ?",
    );
    let rows = rows.bind(lane).bind(now).bind(limit).bind(skipped).fetch_all(connection).await?;
    let due = |row: &SqliteRow| Due { id: row.get(0), lane, key: (row.get(1), row.get(2)), lost: row.get(3) };
    Ok(rows.iter().map(due).collect())
}

pub(super) async fn claim(
    connection: &mut SqliteConnection,
    request: &BatchRequest,
) -> Result<Option<Batch>, sqlx::Error> {
    let now = now(connection).await?;
    let Some(lease) = lease(connection, request, now).await? else { return Ok(None) };
    let mut due = Vec::new();
    let per_lane = i64::from(request.rows_max.div_ceil(lease.lanes.len().max(1) as u32));
    for &lane in &lease.lanes {
        due.extend(due_rows(connection, lane, now, 0, per_lane).await?);
    }
    due.sort_unstable_by_key(|row| row.id);
    let heads = heads(connection, &due).await?;
    let waits = |row: &Due| heads.get(&row.key).is_some_and(|head| row.id > head.id);
    let waiting: Vec<&Due> = due.iter().filter(|row| waits(row)).collect();
    let mut more = Vec::new();
    for &lane in &lease.lanes {
        // A few at a time would never end: an aggregate may have many thousands, and the one that they wait for is due after
        // them.
        let count = waiting.iter().filter(|row| row.lane == lane).count() as i64;
        if count > 0 && count * 4 >= per_lane {
            more.extend(due_rows(connection, lane, now, per_lane, i64::from(PARKED_MAX)).await?);
        }
    }
    park(connection, &heads, waiting.into_iter().chain(more.iter().filter(|row| waits(row)))).await?;
    let (mut picked, mut lost) = (Vec::new(), 0);
    for row in due.iter().filter(|row| !waits(row)) {
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

/// The first row of an aggregate that waits and is not part of the batch.
struct Head {
    id: i64,
    due_at: i64,
    failures: i64,
}

/// By the topic and the id of the aggregate.
type Heads = HashMap<(String, String), Head>;

async fn heads(connection: &mut SqliteConnection, due: &[Due]) -> Result<Heads, sqlx::Error> {
    let rows = sqlx::query(HEADS).bind(json(due.iter().map(|row| &row.id))).fetch_all(connection).await?;
    let head = |row: &SqliteRow| Head { id: row.get(2), due_at: row.get(3), failures: row.get(4) };
    Ok(rows.iter().map(|row| ((row.get(0), row.get(1)), head(row))).collect())
}

/// Parks rows that wait for an earlier one of their aggregate. Behind a row that failed they are woken when it is done; behind one
/// that is merely due later they come right after it.
async fn park<'a>(
    connection: &mut SqliteConnection,
    heads: &Heads,
    waiting: impl Iterator<Item = &'a Due>,
) -> Result<(), sqlx::Error> {
    let mut behind: HashMap<&(String, String), Vec<i64>> = HashMap::new();
    for row in waiting {
        behind.entry(&row.key).or_default().push(row.id);
    }
    for (key, ids) in behind {
        let Some(head) = heads.get(key) else { continue };
        let due_at = if head.failures > 0 { head.due_at + millis(PARKED_TIME) } else { head.due_at };
        sqlx::query("UPDATE seawall_outbox SET due_at = ? WHERE id IN (SELECT value FROM json_each(?))")
            .bind(due_at)
            .bind(json(&ids))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
