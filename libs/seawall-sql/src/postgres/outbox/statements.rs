//! The statements of the outbox. Lease and claim are one short transaction, each other statement is one of its own; `now()` is the
//! beginning of the transaction by the clock of the database.

/// The lanes that have ready rows, each with the time from which its first one is due. Found by stepping from one lane to the next in
/// the index, so an idle poll is one probe, unless there are rows in the way that are gone and can't be removed.
macro_rules! present {
    () => {
        "present (lane, due_at) AS (
    (SELECT lane, due_at FROM seawall_outbox WHERE status = 'ready' ORDER BY lane, due_at, id LIMIT 1)
    UNION ALL
    SELECT next.lane, next.due_at FROM present CROSS JOIN LATERAL (
        SELECT lane, due_at FROM seawall_outbox
        WHERE status = 'ready' AND lane > present.lane ORDER BY lane, due_at, id LIMIT 1) next
)"
    };
}

/// Of the wanted lanes, leases those of one topic that were served longest ago, and are in `seawall_outbox_lanes` already.
macro_rules! taken {
    () => {
        "chosen AS MATERIALIZED (
    SELECT lane, served_at FROM wanted
    WHERE lane / 16 = (SELECT lane / 16 FROM wanted ORDER BY served_at NULLS FIRST, due_at LIMIT 1)
    ORDER BY served_at NULLS FIRST, lane LIMIT $2
), lease AS MATERIALIZED (
    SELECT nextval('seawall_outbox_tokens') AS token FROM chosen LIMIT 1
), free AS MATERIALIZED (
    SELECT lane FROM seawall_outbox_lanes
    WHERE lane = ANY (ARRAY(SELECT lane FROM chosen)) AND leased_until <= now()
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE seawall_outbox_lanes SET token = lease.token, leased_until = now() + make_interval(secs => $1), served_at = now(), owner = $3
    FROM lease WHERE lane = ANY (ARRAY(SELECT lane FROM free)) RETURNING lane
)"
    };
}

/// Begins the transaction of a claim. Each statement sees what was committed before it began, whatever the default of the database.
///
/// The first due rows of a lane are read in the order of the index. PostgreSQL can't know how many rows are due since a time that stands
/// in another table, takes them for a few, and would collect and sort all rows of the lane, in each claim.
pub(super) const BEGIN_CLAIM: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_bitmapscan = off";

/// Leases free lanes of one topic that have due rows: the topic and the lanes that were served longest ago.
/// Parameters: lease in seconds, number of lanes, owner.
pub(super) const LEASE: &str = concat!(
    "
WITH RECURSIVE ",
    present!(),
    ", wanted AS MATERIALIZED (
    SELECT present.lane, present.due_at, known.served_at
    FROM present LEFT JOIN seawall_outbox_lanes known USING (lane)
    WHERE present.due_at <= now() AND (known.lane IS NULL OR known.leased_until <= now())
), ",
    taken!(),
    ", made AS (
    INSERT INTO seawall_outbox_lanes (lane, token, leased_until, served_at, owner)
    SELECT chosen.lane, lease.token, now() + make_interval(secs => $1), now(), $3 FROM chosen, lease WHERE served_at IS NULL
    ON CONFLICT DO NOTHING RETURNING lane
)
SELECT lease.token, all_lanes.lane FROM lease, (SELECT lane FROM taken UNION ALL SELECT lane FROM made) all_lanes"
);

/// The same without a walk through the index: known lanes only, and only rows that are due from the lane's `clear_before` on.
/// Parameters: as those of [`LEASE`].
pub(super) const LEASE_SHORT: &str = concat!(
    "
WITH wanted AS MATERIALIZED (
    SELECT known.lane, first.due_at, known.served_at FROM seawall_outbox_lanes known CROSS JOIN LATERAL (
        SELECT due_at FROM seawall_outbox
        WHERE lane = known.lane AND status = 'ready' AND due_at >= known.clear_before AND due_at <= now()
        ORDER BY due_at, id LIMIT 1) first
    WHERE known.leased_until <= now()
), ",
    taken!(),
    "
SELECT lease.token, taken.lane FROM lease, taken"
);

/// Walks through the index: before which time each lane has no ready row, in microseconds since 1970; for lanes that have none at all
/// in a row without a lane. A second is left to transactions that have written a row and not committed yet.
pub(super) const WALK: &str = concat!(
    "
WITH RECURSIVE ",
    present!(),
    "
SELECT lane, floor(extract(epoch FROM least(due_at, now() - interval '1 second')) * 1000000)::BIGINT FROM present
UNION ALL
SELECT NULL, floor(extract(epoch FROM now() - interval '1 second') * 1000000)::BIGINT"
);

/// Notes what a walk found: apart from it, because it locks the lanes for a moment. A lane that somebody works on keeps what was
/// noted before, which is earlier. Parameters: lanes, their times, the time of all others.
pub(super) const NOTE_WALK: &str = "
WITH noted AS MATERIALIZED (
    -- Ten microseconds earlier, because a number with a fraction is not exact.
    SELECT lane, to_timestamp((micros - 10) / 1000000.0) AS clear_before FROM unnest($1::INT[], $2::BIGINT[]) AS found (lane, micros)
), made AS (
    INSERT INTO seawall_outbox_lanes (lane, token, leased_until, served_at, owner)
    -- Known lanes are left out, because a conflict with one that somebody leases at this moment waits for the end of that.
    SELECT lane, 0, '-infinity', '-infinity', '' FROM noted
    WHERE lane NOT IN (SELECT lane FROM seawall_outbox_lanes) ORDER BY lane ON CONFLICT DO NOTHING
), free AS MATERIALIZED (
    SELECT lane FROM seawall_outbox_lanes FOR UPDATE SKIP LOCKED
)
UPDATE seawall_outbox_lanes lanes
SET clear_before = coalesce(noted.clear_before, to_timestamp(($3::BIGINT - 10) / 1000000.0))
FROM free LEFT JOIN noted USING (lane) WHERE lanes.lane = free.lane";

/// Claims due rows in leased lanes, counts their attempts, and parks rows that wait for an earlier one of their aggregate.
///
/// It is a statement after that of the lease, because it must see what the holder of the lanes before has recorded: in
/// `READ COMMITTED` each statement sees what was committed before it began.
///
/// In a lane where a good part of what it looks at has to wait, it looks at more rows and parks them too. A few at a time would never end: an
/// aggregate may have many thousands, and the one that they wait for is due after them.
/// Parameters: lanes, token, number of rows, number of rows per lane, parked time in seconds, whether it goes the short way, number
/// of rows per lane to look at beyond those of the batch.
pub(super) const CLAIM: &str = "
WITH held AS MATERIALIZED (
    SELECT lane, CASE WHEN $6 THEN clear_before ELSE '-infinity' END AS since
    FROM seawall_outbox_lanes WHERE lane = ANY ($1) AND token = $2 FOR UPDATE
), due AS MATERIALIZED (
    SELECT row.* FROM held CROSS JOIN LATERAL (
        SELECT id, lane, topic, aggregate_id, due_at, retry_count - failure_count AS lost FROM seawall_outbox
        WHERE lane = held.lane AND status = 'ready' AND due_at >= held.since AND due_at <= now() ORDER BY due_at, id LIMIT $4) row
), aggregates AS (
    SELECT topic, aggregate_id, max(id) AS last_id FROM due GROUP BY topic, aggregate_id
), heads AS MATERIALIZED (
    -- The first row of each aggregate that waits and is not part of this batch.
    SELECT aggregates.topic, aggregates.aggregate_id, head.* FROM aggregates CROSS JOIN LATERAL (
        SELECT id AS head_id, due_at AS head_due_at, failure_count AS head_failures FROM seawall_outbox
        WHERE aggregate_id = aggregates.aggregate_id AND topic = aggregates.topic AND status = 'ready'
          AND id < aggregates.last_id AND id NOT IN (SELECT id FROM due)
        ORDER BY id LIMIT 1) head
), ranked AS (
    SELECT due.id, row_number() OVER before AS place, max(due.lost) OVER before AS lost
    FROM due LEFT JOIN heads USING (topic, aggregate_id) WHERE head_id IS NULL OR due.id < head_id
    WINDOW before AS (ORDER BY due.id ROWS UNBOUNDED PRECEDING)
), waiting AS MATERIALIZED (
    SELECT due.id, due.lane FROM due JOIN heads USING (topic, aggregate_id) WHERE due.id > head_id
), more AS MATERIALIZED (
    SELECT row.* FROM held CROSS JOIN LATERAL (
        SELECT id, topic, aggregate_id FROM seawall_outbox
        WHERE lane = held.lane AND status = 'ready' AND due_at >= held.since AND due_at <= now()
        ORDER BY due_at, id OFFSET $4 LIMIT $7) row
    WHERE held.lane IN (SELECT lane FROM waiting GROUP BY lane HAVING count(*) * 4 >= $4)
), parked AS (
    -- Behind a row that failed they are woken when it is done; behind one that is merely due later they come right after it.
    UPDATE seawall_outbox waiting
    SET due_at = heads.head_due_at + CASE WHEN heads.head_failures > 0 THEN make_interval(secs => $5) ELSE interval '0' END
    FROM heads
    WHERE waiting.id = ANY (ARRAY(
        SELECT id FROM waiting UNION ALL SELECT more.id FROM more JOIN heads USING (topic, aggregate_id) WHERE more.id > head_id))
      AND heads.topic = waiting.topic AND heads.aggregate_id = waiting.aggregate_id
)
UPDATE seawall_outbox SET retry_count = retry_count + 1
WHERE id = ANY (ARRAY(SELECT id FROM ranked WHERE place <= greatest(1, $3 >> least(lost * 2, 30))))
RETURNING id, event_id, event_type, topic, aggregate_id, payload, headers, retry_count, failure_count, last_error,
    (extract(epoch FROM created_at) * 1000)::BIGINT AS created_at, outage_count";

/// Extends a lease. Parameters: lanes, token, lease in seconds.
pub(super) const RENEW: &str = "
UPDATE seawall_outbox_lanes SET leased_until = now() + make_interval(secs => $3) WHERE lane = ANY ($1) AND token = $2";

/// Records outcomes and ends the lease, if it is still the latest one.
///
/// Parameters: lanes, token; ids of published rows, whether they are kept; ids, delays in seconds and errors of failed rows;
/// ids and delays of returned rows; ids and errors of dead rows; number of rows to wake per aggregate; whether failed rows failed
/// because of an outage. Returns the ids of the recorded rows.
pub(super) const RECORD: &str = "
WITH held AS MATERIALIZED (
    SELECT lane FROM seawall_outbox_lanes WHERE lane = ANY ($1) AND token = $2 FOR UPDATE
), deleted AS (
    DELETE FROM seawall_outbox WHERE NOT $4 AND id = ANY ($3) AND lane IN (SELECT lane FROM held)
    RETURNING id, topic, aggregate_id, failure_count > 0 OR wakes AS wakes
), kept AS (
    UPDATE seawall_outbox SET status = 'published', finished_at = now()
    WHERE $4 AND id = ANY ($3) AND lane IN (SELECT lane FROM held) AND status = 'ready'
    RETURNING id, topic, aggregate_id, failure_count > 0 OR wakes AS wakes
), failed AS (
    UPDATE seawall_outbox SET failure_count = failure_count + 1, outage_count = outage_count + outcome.outage::INT,
        last_error = outcome.error, due_at = now() + make_interval(secs => outcome.delay)
    FROM unnest($5::BIGINT[], $6::FLOAT8[], $7::TEXT[], $13::BOOLEAN[]) AS outcome (id, delay, error, outage)
    WHERE seawall_outbox.id = outcome.id AND lane IN (SELECT lane FROM held) AND status = 'ready'
    RETURNING seawall_outbox.id, topic, aggregate_id
), returned AS (
    -- Rows that are due at once keep their place before the later rows of their aggregate.
    UPDATE seawall_outbox SET retry_count = greatest(0, retry_count - 1),
        due_at = CASE WHEN outcome.delay > 0 THEN now() + make_interval(secs => outcome.delay) ELSE due_at END
    FROM unnest($8::BIGINT[], $9::FLOAT8[]) AS outcome (id, delay)
    WHERE seawall_outbox.id = outcome.id AND lane IN (SELECT lane FROM held) AND status = 'ready' RETURNING seawall_outbox.id
), dead AS (
    UPDATE seawall_outbox SET status = 'dead', last_error = outcome.error, finished_at = now()
    FROM unnest($10::BIGINT[], $11::TEXT[]) AS outcome (id, error)
    WHERE seawall_outbox.id = outcome.id AND lane IN (SELECT lane FROM held) AND status = 'ready'
    RETURNING seawall_outbox.id, topic, aggregate_id
), done AS (
    SELECT topic, aggregate_id, count(*) FROM (
        SELECT topic, aggregate_id, wakes FROM deleted
        UNION ALL SELECT topic, aggregate_id, wakes FROM kept
        UNION ALL SELECT topic, aggregate_id, true FROM dead) finished
    -- Those behind a row that failed now are woken when it is done.
    WHERE (topic, aggregate_id) NOT IN (SELECT topic, aggregate_id FROM failed)
    GROUP BY topic, aggregate_id HAVING bool_or(wakes)
), woken AS (
    -- As many as `woken_limit` says.
    UPDATE seawall_outbox SET due_at = now(), wakes = true
    WHERE id = ANY (ARRAY(
        SELECT waiting.id FROM done CROSS JOIN LATERAL (
            SELECT id FROM seawall_outbox row
            WHERE row.aggregate_id = done.aggregate_id AND row.topic = done.topic AND row.status = 'ready'
              AND row.due_at > now()
              AND row.id <> ALL ($3) AND row.id <> ALL ($5) AND row.id <> ALL ($8) AND row.id <> ALL ($10)
            ORDER BY id LIMIT least($12, done.count * 2 + 8)) waiting))
), released AS (
    UPDATE seawall_outbox_lanes SET token = 0, leased_until = '-infinity' WHERE lane IN (SELECT lane FROM held)
)
SELECT id FROM deleted UNION ALL SELECT id FROM kept UNION ALL SELECT id FROM failed
UNION ALL SELECT id FROM returned UNION ALL SELECT id FROM dead";

/// Ends a lease without outcomes. Parameters: lanes, token.
pub(super) const END: &str = "
UPDATE seawall_outbox_lanes SET token = 0, leased_until = '-infinity' WHERE lane = ANY ($1) AND token = $2";

/// Writes rows. Parameters: one array for each column.
pub(super) const ENQUEUE: &str = "
INSERT INTO seawall_outbox (event_id, event_type, topic, aggregate_id, payload, headers)
SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BYTEA[], $6::TEXT[])";

/// Writes one row: the usual case, planned once.
pub(super) const ENQUEUE_ONE: &str = "
INSERT INTO seawall_outbox (event_id, event_type, topic, aggregate_id, payload, headers) VALUES ($1, $2, $3, $4, $5, $6)";

pub(super) const STATS: &str = "
SELECT count(*) AS depth, coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::FLOAT8 AS lag,
    (SELECT count(*) FROM seawall_outbox WHERE status = 'dead') AS dead
FROM seawall_outbox WHERE status = 'ready'";

/// Parameters: id, number of rows.
pub(super) const LIST_DEAD: &str = "
SELECT id, event_id, event_type, topic, aggregate_id, payload, headers, retry_count, failure_count, last_error,
    (extract(epoch FROM created_at) * 1000)::BIGINT AS created_at, outage_count
FROM seawall_outbox WHERE status = 'dead' AND id > $1 ORDER BY id LIMIT $2";

/// Parameter: ids.
pub(super) const RELEASE: &str = "
UPDATE seawall_outbox SET status = 'ready', retry_count = 0, failure_count = 0, outage_count = 0, due_at = now(), finished_at = NULL
WHERE status = 'dead' AND id = ANY ($1)";

/// Parameter: ids.
pub(super) const DISCARD: &str = "DELETE FROM seawall_outbox WHERE status = 'dead' AND id = ANY ($1)";

/// Parameters: age in seconds, number of rows.
pub(super) const CLEAN_UP: &str = "
DELETE FROM seawall_outbox WHERE id = ANY (ARRAY(
    SELECT id FROM seawall_outbox WHERE status = 'published' AND finished_at < now() - make_interval(secs => $1)
    ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
