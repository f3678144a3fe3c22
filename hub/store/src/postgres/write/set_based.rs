//! Statements that carry out a transition of the domain by themselves, for one row or for many.
//!
//! Each does exactly what a function of [`DeliveryFacts`](seawall_hub_core::domain::delivery::DeliveryFacts) or a sibling of it
//! says: `tests/equivalence` inserts every combination of the facts, runs the statement and compares each row. Whoever adds a
//! statement here adds it there; a test of the project's shape sees to that.
//!
//! # Why conditions on the state in every statement?
//! Others may have changed a row since this transaction looked at it. Whatever a statement decides on is in its own condition, which
//! PostgreSQL checks once more on the row as it is when its lock is granted.

use crate::sql::sql;

/// `DeliveryFacts::returned`, for those that are claimed under these epochs.
pub(in crate::postgres) const RETURN: &str = sql!(
    "UPDATE work w SET state = CASE WHEN w.failures = 0 AND NOT w.is_replay THEN " QUEUED " ELSE " STALLED " END
     FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS c (number, era, epoch) JOIN deliveries d ON d.number = c.number AND d.era = c.era
     WHERE w.number = c.number AND w.state = " LEASED " AND w.epoch = c.epoch"
);

/// `DeliveryFacts::is_due` and `claimed`. Each branch reads one range of the index, in its order, and locks what it takes; a row
/// that another claim has locked is left to it. `rest` is 0 for those that were never attempted, which have their own room.
pub(in crate::postgres) const TAKE_DUE: &str = concat!(
    "WITH candidates AS MATERIALIZED (
         SELECT c.number, c.due, c.rest, r.lane, r.retries
         FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[])
             WITH ORDINALITY AS r (service, fresh, retries, resume_before, lane)
         CROSS JOIN LATERAL (
             SELECT * FROM (SELECT number, due, 0 AS rest FROM work WHERE state = ",
    sql!(QUEUED),
    " AND service = r.service AND due <= $5 ORDER BY due, number LIMIT r.fresh FOR UPDATE SKIP LOCKED) AS fresh
             UNION ALL
             SELECT * FROM (SELECT number, due, 1 AS rest FROM work WHERE state = ",
    sql!(WAITING),
    " AND service = r.service AND due <= $5 ORDER BY due, number LIMIT r.retries FOR UPDATE SKIP LOCKED) AS waiting
             UNION ALL
             SELECT * FROM (SELECT number, due, 1 AS rest FROM work WHERE state = ",
    sql!(STALLED),
    " AND service = r.service
                 AND due <= CASE WHEN r.resume_before IS NULL THEN $5 ELSE 9223372036854775807 END
                 AND (due <= $5 OR touched <= r.resume_before)
                 ORDER BY due, number LIMIT r.retries FOR UPDATE SKIP LOCKED) AS stalled
         ) AS c
         WHERE ",
    is_live!("$6"),
    "
     ), ranked AS (
         SELECT number, lane, rest, retries, row_number() OVER (PARTITION BY lane, rest ORDER BY due, number) AS place FROM candidates
     ), claimed AS (
         UPDATE work w SET state = ",
    sql!(LEASED),
    ", epoch = $6 FROM ranked r WHERE w.number = r.number AND (r.rest = 0 OR r.place <= r.retries)
         RETURNING w.*, r.lane, r.rest, r.place
     )"
);

/// The first due time of each service and state: one look into the index for each, however many wait.
pub(in crate::postgres) const NEXT_DUE: &str = sql!(
    "WITH RECURSIVE first AS (
         (SELECT service, state, due FROM work WHERE state IN (" QUEUED ", " WAITING ", " STALLED ")
          ORDER BY service, state, due LIMIT 1)
         UNION ALL
         SELECT next.service, next.state, next.due FROM first CROSS JOIN LATERAL
             (SELECT service, state, due FROM work WHERE state IN (" QUEUED ", " WAITING ", " STALLED ")
              AND (service, state) > (first.service, first.state) ORDER BY service, state, due LIMIT 1) AS next
     ) SELECT service, state = " QUEUED ", due FROM first"
);

/// `DeliveryFacts::claimed` or queued, for one whose turn has come. A node that is no longer live claims nothing.
pub(in crate::postgres) const START: &str = concat!(
    "UPDATE work SET epoch = $3, state = CASE WHEN $2::smallint = ",
    sql!(LEASED),
    " AND NOT ",
    is_live!("$3"),
    " THEN ",
    sql!(QUEUED),
    " ELSE $2 END WHERE number = $1 RETURNING state"
);

/// Turns a dead letter that holds its order into one that does not.
pub(in crate::postgres) const STOP_HOLDING: &str = sql!(
    "WITH held AS (DELETE FROM work WHERE number = $1 AND state = " HOLDING " RETURNING *)
     INSERT INTO outcomes
         (number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts)
     SELECT number, " DEAD ", epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts
     FROM held"
);

/// `DeliveryFacts::after_restart`, for all that a node had claimed.
pub(in crate::postgres) const RESTART: &str = sql!(
    "UPDATE work SET due = 0, crashes = crashes + $2,
         state = CASE WHEN failures = 0 AND NOT is_replay THEN " QUEUED " ELSE " WAITING " END
     WHERE state = " LEASED " AND epoch = $1 AND against < $3"
);

/// `DeliveryFacts::suspected`, for all that were not watched at the crash of a node.
pub(in crate::postgres) const SUSPECT_UNWATCHED: &str = sql!(
    "UPDATE work SET against = $2, step = $3, starts = $4 WHERE state = " LEASED " AND epoch = $1 AND crashes = 0"
);

/// `DeliveryFacts::is_guilty`, as a condition on the row `p`. The node of its claim has ended, so nobody else settles it.
pub(in crate::postgres) const GUILTY: &str = sql!(
    "p.state = " LEASED " AND p.against >= $2 AND p.epoch <> $1
     AND p.epoch IN (SELECT n.epoch FROM nodes n WHERE n.reclaimed)"
);

/// `StoredState::is_pending`, for those of a service, each by the index of its kind, with the order of each.
pub(in crate::postgres) const PENDING_OF_SERVICE: &str = sql!(
    "SELECT number, rule, ordering FROM (
         SELECT number, rule, ordering FROM work WHERE state = " LEASED " AND service = $1
         UNION ALL
         SELECT number, rule, ordering FROM work WHERE state IN (" QUEUED ", " WAITING ", " STALLED ") AND service = $1
         UNION ALL
         SELECT number, rule, ordering FROM work WHERE state IN (" BLOCKED ", " HELD ") AND service = $1
     ) AS pending LIMIT $2"
);

/// Every delivery that a rule holds, with its order.
pub(in crate::postgres) const HELD_BY_RULE: &str = sql!("SELECT number, rule, ordering FROM work WHERE rule = $1 AND state = " HELD " ORDER BY number LIMIT $2");

/// `DeliveryFacts::released`, for those that a rule holds, if their order is locked.
pub(in crate::postgres) const RELEASE: &str = sql!(
    "UPDATE work SET state = CASE WHEN ordering IS NULL THEN " QUEUED " ELSE " BLOCKED " END WHERE number IN
     (SELECT number FROM work WHERE rule = $1 AND state = " HELD " AND (ordering IS NULL OR ordering = ANY($3))
      ORDER BY number LIMIT $2 FOR UPDATE)"
);

/// `OrderFacts::next_when_released`, for these orders of a rule that holds nothing: the first starts if all of its order are blocked.
pub(in crate::postgres) const START_ORDERS: &str = sql!(
    "UPDATE work SET state = " QUEUED " WHERE state = " BLOCKED " AND number IN
     (SELECT min(number) FROM work WHERE rule = $1 AND ordering = ANY($2) GROUP BY ordering HAVING bool_and(state = " BLOCKED "))"
);

/// `DeliveryFacts::shifted`, for all that are pending.
pub(in crate::postgres) const SHIFT: &str = sql!(
    "UPDATE work SET accepted = least(accepted + $1::int8, $2::int8), touched = least(touched + $1, $2),
         due = CASE WHEN accepted + $1 > $2 THEN least(due + $1, $2) ELSE due + $1 END
     WHERE state < " HOLDING " AND ($1::bigint <> 0 OR accepted > $2)"
);

/// `initial_state` of deliveries without an order, for new events with all that comes of them. Numbers are drawn in the order of the
/// batch, and events are inserted in that of their unique key, so that no two batches wait for each other. The numbers of events are
/// looked up by their places in an array, because no join of a few hundred rows with themselves is as cheap. What comes back is the
/// number of each event, of those that were inserted, and of each delivery, and whether the node is live.
pub(in crate::postgres) const ADD_EVENTS: &str = concat!(
    "WITH new AS MATERIALIZED (
         SELECT nextval('event_numbers') AS number, u.* FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::int8[], $6::int4[],
             $7::int4[], $8::text[], $9::bytea[])
             WITH ORDINALITY AS u (id, source, kind, fingerprint, accepted, considered, filtered, trace, payload, place)
     ), added AS (
         INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, trace, payload)
         SELECT number, id, source, kind, fingerprint, accepted, considered, filtered, trace, payload FROM new ORDER BY id, source
         ON CONFLICT (id, source) DO NOTHING RETURNING number
     ), numbered AS MATERIALIZED (
         SELECT nextval('delivery_numbers') AS number, u.* FROM unnest($10::int8[], $11::int8[], $12::text[], $13::int8[], $14::text[],
             $15::bytea[], $16::smallint[])
             WITH ORDINALITY AS u (event, accepted, rule, version, service, request, state, place)
     ), known AS MATERIALIZED (
         SELECT (SELECT array_agg(number ORDER BY place) FROM new) AS drawn, (SELECT array_agg(number) FROM added) AS added
     ), wanted AS MATERIALIZED (
         SELECT d.*, k.drawn[d.event] AS event_number FROM numbered d CROSS JOIN known k
         WHERE cardinality(k.drawn) = cardinality(k.added) OR k.drawn[d.event] = ANY(k.added)
     ), inserted AS (
         INSERT INTO deliveries (number, era, event, rule, rule_version, service, request)
         SELECT number, $17, event_number, rule, version, service, request FROM wanted
     ), pending AS (
         INSERT INTO work (number, service, rule, is_replay, state, epoch, due, touched, accepted)
         SELECT number, service, rule, false, CASE WHEN ",
    is_live!("$18"),
    " THEN state ELSE ",
    sql!(QUEUED),
    " END, $18, accepted, accepted, accepted FROM wanted
     ) SELECT drawn, coalesce(added, '{}'), coalesce((SELECT array_agg(number ORDER BY place) FROM numbered), '{}'), ",
    is_live!("$18"),
    " FROM known"
);

/// `seawall_dist::idempotency::claim`, for keys that were never claimed or have expired.
pub(in crate::postgres) const CLAIM_KEYS: &str = "INSERT INTO once AS o (scope, key, fingerprint, note, deliveries, at, until)
     SELECT scope, key, fingerprint, note, '{}', at, until
     FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::int8[], $6::int8[]) AS u (scope, key, fingerprint, note, at, until)
     ON CONFLICT (scope, key) DO UPDATE
     SET fingerprint = excluded.fingerprint, note = excluded.note, deliveries = '{}', at = excluded.at, until = excluded.until
     WHERE o.until <= excluded.at RETURNING o.scope, o.key";

/// `DeliveryFacts::settled` for those that were delivered. Most have nothing in `attempts`.
pub(in crate::postgres) const SETTLE_DELIVERED: &str = sql!(
    "WITH ended AS (
         DELETE FROM work w USING unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int4[], $6::bytea[])
             AS s (number, epoch, touched, took, status, answer)
         WHERE w.number = s.number AND w.state = " LEASED " AND w.epoch = s.epoch
         RETURNING w.number, w.epoch, w.due, s.touched, w.accepted, w.counted, w.failures, w.panics, w.reason, w.crashes, w.against,
             w.step, w.starts, s.took, s.status, s.answer
     ) INSERT INTO outcomes (number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts,
         took, status, answer)
     SELECT number, " DELIVERED ", epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts,
         took, status, answer FROM ended RETURNING number"
);

/// `DeliveryFacts::settled` for those that are attempted again, with the attempts.
pub(in crate::postgres) const SETTLE_RETRY: &str = sql!(
    "WITH settled AS MATERIALIZED (
         SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::smallint[], $5::int8[], $6::int4[], $7::int4[], $8::int4[], $9::int4[],
             $10::int8[], $11::int8[], $12::int4[], $13::text[], $14::text[], $15::text[], $16::bytea[])
             AS s (number, epoch, touched, state, due, counted, failures, panics, attempt, at, took, status, error, sent, headers, answer)
     ), changed AS (
         UPDATE work w SET state = s.state, touched = s.touched, due = s.due, counted = s.counted, failures = s.failures,
             panics = s.panics, crashes = 0, against = 0, step = 0, starts = NULL
         FROM settled s WHERE w.number = s.number AND w.state = " LEASED " AND w.epoch = s.epoch
         RETURNING w.number, s.attempt, s.at, s.took, s.status, s.error, s.sent, s.headers, s.answer
     ), recorded AS (
         INSERT INTO attempts (delivery, number, at, took, status, error, sent, headers, answer)
         SELECT number, attempt, at, took, status, error, sent, headers, answer FROM changed WHERE at IS NOT NULL
     ) SELECT number FROM changed"
);

/// `DeliveryFacts::settled` for those that their rule holds, if it is one of these disabled ones.
pub(in crate::postgres) const SETTLE_HOLD: &str = sql!(
    "UPDATE work w SET touched = s.touched, crashes = 0, against = 0, step = 0, starts = NULL,
         state = CASE WHEN w.rule = ANY($4) THEN " HELD " WHEN w.failures = 0 THEN " QUEUED " ELSE " WAITING " END
     FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS s (number, epoch, touched)
     WHERE w.number = s.number AND w.state = " LEASED " AND w.epoch = s.epoch RETURNING w.number"
);
