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
pub(super) const RETURN: &str = sql!(
    "UPDATE work w SET state = CASE WHEN w.failures = 0 AND NOT w.is_replay THEN " QUEUED " ELSE " STALLED " END
     FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS c (number, era, epoch) JOIN deliveries d ON d.number = c.number AND d.era = c.era
     WHERE w.number = c.number AND w.state = " LEASED " AND w.epoch = c.epoch"
);

/// `DeliveryFacts::is_due` and `claimed`. Each branch reads one range of the index, in its order, and locks what it takes; a row
/// that another claim has locked is left to it. `rest` is 0 for those that were never attempted, which have their own room.
pub(super) const TAKE_DUE: &str = concat!(
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
pub(super) const NEXT_DUE: &str = sql!(
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
pub(super) const START: &str = concat!(
    "UPDATE work SET epoch = $3, state = CASE WHEN $2::smallint = ",
    sql!(LEASED),
    " AND NOT ",
    is_live!("$3"),
    " THEN ",
    sql!(QUEUED),
    " ELSE $2 END WHERE number = $1 RETURNING state"
);

/// Turns a dead letter that holds its order into one that does not.
pub(super) const STOP_HOLDING: &str = sql!(
    "WITH held AS (DELETE FROM work WHERE number = $1 AND state = " HOLDING " RETURNING *)
     INSERT INTO outcomes
         (number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts)
     SELECT number, " DEAD ", epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts
     FROM held"
);

/// `DeliveryFacts::after_restart`, for all that a node had claimed.
pub(super) const RESTART: &str = sql!(
    "UPDATE work SET due = 0, crashes = crashes + $2,
         state = CASE WHEN failures = 0 AND NOT is_replay THEN " QUEUED " ELSE " WAITING " END
     WHERE state = " LEASED " AND epoch = $1 AND against < $3"
);

/// `DeliveryFacts::suspected`, for all that were not watched at the crash of a node.
pub(super) const SUSPECT_UNWATCHED: &str = sql!(
    "UPDATE work SET against = $2, step = $3, starts = $4 WHERE state = " LEASED " AND epoch = $1 AND crashes = 0"
);

/// `DeliveryFacts::is_guilty`, as a condition on the row `p`. The node of its claim has ended, so nobody else settles it.
pub(super) const GUILTY: &str = sql!(
    "p.state = " LEASED " AND p.against >= $2 AND p.epoch <> $1
     AND p.epoch IN (SELECT n.epoch FROM nodes n WHERE n.reclaimed)"
);

/// `StoredState::is_pending`, for those of a service, each by the index of its kind, with the order of each.
pub(super) const PENDING_OF_SERVICE: &str = sql!(
    "SELECT number, rule, ordering FROM (
         SELECT number, rule, ordering FROM work WHERE state = " LEASED " AND service = $1
         UNION ALL
         SELECT number, rule, ordering FROM work WHERE state IN (" QUEUED ", " WAITING ", " STALLED ") AND service = $1
         UNION ALL
         SELECT number, rule, ordering FROM work WHERE state IN (" BLOCKED ", " HELD ") AND service = $1
     ) AS pending LIMIT $2"
);

/// Every delivery that a rule holds, with its order.
pub(super) const HELD_BY_RULE: &str = sql!("SELECT number, rule, ordering FROM work WHERE rule = $1 AND state = " HELD " ORDER BY number LIMIT $2");

/// `DeliveryFacts::released`, for those that a rule holds, if their order is locked.
pub(super) const RELEASE: &str = sql!(
    "UPDATE work SET state = CASE WHEN ordering IS NULL THEN " QUEUED " ELSE " BLOCKED " END WHERE number IN
     (SELECT number FROM work WHERE rule = $1 AND state = " HELD " AND (ordering IS NULL OR ordering = ANY($3))
      ORDER BY number LIMIT $2 FOR UPDATE)"
);

/// `OrderFacts::next`, for these orders of a rule that holds nothing.
pub(super) const START_ORDERS: &str = sql!(
    "UPDATE work SET state = " QUEUED " WHERE state = " BLOCKED " AND number IN
     (SELECT min(number) FROM work WHERE rule = $1 AND ordering = ANY($2) GROUP BY ordering HAVING bool_and(" WAITS_IN_ORDER "))"
);

/// `DeliveryFacts::shifted`, for all that are pending.
pub(super) const SHIFT: &str = sql!(
    "UPDATE work SET accepted = least(accepted + $1, $2), touched = least(touched + $1, $2),
         due = CASE WHEN accepted + $1 > $2 THEN least(due + $1, $2) ELSE due + $1 END
     WHERE state < " HOLDING " AND ($1 <> 0 OR accepted > $2)"
);
