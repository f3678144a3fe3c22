//! Statements that carry out a transition of the domain by themselves, for one row or for many.
//!
//! They stay SQL because they are on the way of every event, or change many rows at once. Each does exactly what a function of
//! [`DeliveryFacts`](seawall_hub_core::domain::delivery::DeliveryFacts) or a sibling of it says: `tests/equivalence` inserts every
//! combination of the facts, runs the statement and compares each row. A new statement here needs a proof there; a test of the
//! project's shape demands it.

use crate::sql::sql;

/// `DeliveryFacts::settled` for a delivered one: a single update, and nothing in `attempts`.
pub(crate) const SETTLE_DELIVERED: &str = sql!(
    "UPDATE deliveries SET state = " DELIVERED ", touched = ?3, took = ?4, status = ?5, answer = ?6
     WHERE number = ?1 AND state = " LEASED " AND epoch = ?2"
);

/// `DeliveryFacts::settled` for one that its rule holds.
pub(crate) const SETTLE_HOLD: &str = sql!(
    "UPDATE deliveries SET touched = ?3, crashes = 0, against = 0, step = 0, starts = NULL, state = CASE
         WHEN EXISTS (SELECT 1 FROM rules WHERE name = deliveries.rule AND current = 1 AND enabled = 0) THEN " HELD "
         WHEN failures = 0 THEN " QUEUED " ELSE " WAITING " END
     WHERE number = ?1 AND state = " LEASED " AND epoch = ?2"
);

/// `DeliveryFacts::settled` for one that is attempted again.
pub(crate) const SETTLE_RETRY: &str = sql!(
    "UPDATE deliveries SET state = ?3, touched = ?4, due = ?5, counted = ?6, failures = ?7, panics = ?8,
         crashes = 0, against = 0, step = 0, starts = NULL
     WHERE number = ?1 AND state = " LEASED " AND epoch = ?2"
);

/// `DeliveryFacts::settled` for a dead letter.
pub(crate) const SETTLE_DEAD: &str = sql!(
    "UPDATE deliveries SET state = ?3, touched = ?4, reason = ?5, counted = ?6, failures = ?7, panics = ?8
     WHERE number = ?1 AND state = " LEASED " AND epoch = ?2"
);

/// `DeliveryFacts::returned`, for one that is claimed under this epoch.
pub(crate) const RETURN: &str = sql!(
    "UPDATE deliveries SET state = CASE WHEN failures = 0 AND replay_of IS NULL THEN " QUEUED " ELSE " STALLED " END
     WHERE number = ?1 AND state = " LEASED " AND epoch = ?2"
);

/// `DeliveryFacts::is_due` for those that were never attempted, the longest due first.
pub(crate) const DUE_FRESH: &str = sql!(
    "SELECT number, due FROM deliveries WHERE " IS_WAITING " AND state = " QUEUED " AND service = ?1 AND due <= ?2
     ORDER BY due LIMIT ?3"
);

/// `DeliveryFacts::is_due` for those that wait for their next attempt.
pub(crate) const DUE_WAITING: &str = sql!(
    "SELECT number, due FROM deliveries WHERE " IS_WAITING " AND state = " WAITING " AND service = ?1 AND due <= ?2
     ORDER BY due LIMIT ?3"
);

/// `DeliveryFacts::is_due` for those that wait for their service.
pub(crate) const DUE_STALLED: &str = sql!(
    "SELECT number, due FROM deliveries WHERE " IS_WAITING " AND state = " STALLED " AND service = ?1
     AND (due <= ?2 OR touched <= ?4) ORDER BY due LIMIT ?3"
);

/// `DeliveryFacts::claimed`, for one that is due.
pub(crate) const CLAIM: &str = sql!("UPDATE deliveries SET state = " LEASED ", epoch = ?2 WHERE number = ?1");

/// `DeliveryFacts::after_restart`, for all that the process before had claimed.
pub(crate) const RESTART: &str = sql!(
    "UPDATE deliveries SET due = 0, crashes = crashes + ?1,
         state = CASE WHEN failures = 0 AND replay_of IS NULL THEN " QUEUED " ELSE " WAITING " END
     WHERE state = " LEASED " AND against < ?2"
);

/// `DeliveryFacts::suspected`, for all that were not watched at a crash.
pub(crate) const SUSPECT_UNWATCHED: &str = sql!(
    "UPDATE deliveries SET against = ?1, step = ?2, starts = ?3 WHERE state = " LEASED " AND crashes = 0"
);

/// `DeliveryFacts::is_guilty`, as a condition on the row `d`.
pub(crate) const GUILTY: &str = sql!("d.state = " LEASED " AND d.against >= ?2 AND d.epoch <> ?1");

/// `DeliveryFacts::released`, for those that a rule holds.
pub(crate) const RELEASE: &str = sql!(
    "UPDATE deliveries SET state = CASE WHEN ordering IS NULL THEN " QUEUED " ELSE " BLOCKED " END WHERE number IN
     (SELECT number FROM deliveries WHERE rule = ?1 AND state = " HELD " ORDER BY number LIMIT ?2)"
);

/// `OrderFacts::next_when_released`, for every order of a rule that holds nothing: the first starts if all that occupy the order are
/// blocked. A replay that has failed holds it with a number behind those that wait for it.
pub(crate) const START_ORDERS: &str = sql!(
    "UPDATE deliveries SET state = " QUEUED " WHERE state = " BLOCKED " AND number IN
     (SELECT min(number) FROM deliveries WHERE rule = ?1 AND ordering IS NOT NULL AND " OCCUPIES_ORDER "
      GROUP BY ordering HAVING max(state <> " BLOCKED ") = 0)"
);

/// `StoredState::is_pending`, for those of a service: the claimed ones, which are few, and those that wait.
pub(crate) const PENDING_OF_SERVICE: &str = sql!(
    "SELECT number FROM (
     SELECT number FROM deliveries WHERE " IS_LEASED " AND service = ?1
     UNION ALL SELECT number FROM deliveries WHERE " IS_WAITING " AND state IN " PENDING_UNCLAIMED " AND service = ?1)"
);

/// Every delivery that a rule holds.
pub(crate) const HELD_BY_RULE: &str = sql!("SELECT number FROM deliveries WHERE rule = ?1 AND state = " HELD);

/// `DeliveryFacts::dead_lettered`, for one whose service or rule is gone.
pub(crate) const DEAD_LETTER: &str =
    sql!("UPDATE deliveries SET state = " DEAD ", touched = ?2, reason = ?3 WHERE number = ?1");

/// `DeliveryFacts::shifted`, for those that are claimed.
pub(crate) const SHIFT_LEASED: &str = sql!(
    "UPDATE deliveries SET accepted = min(accepted + ?1, ?2), touched = min(touched + ?1, ?2),
         due = CASE WHEN accepted + ?1 > ?2 THEN min(due + ?1, ?2) ELSE due + ?1 END
     WHERE " IS_LEASED " AND (?1 <> 0 OR accepted > ?2)"
);

/// `DeliveryFacts::shifted`, for those that wait.
pub(crate) const SHIFT_WAITING: &str = sql!(
    "UPDATE deliveries SET accepted = min(accepted + ?1, ?2), touched = min(touched + ?1, ?2),
         due = CASE WHEN accepted + ?1 > ?2 THEN min(due + ?1, ?2) ELSE due + ?1 END
     WHERE " IS_WAITING " AND (?1 <> 0 OR accepted > ?2)"
);

/// `PruneFacts::is_prunable`, as a condition on the event `e`. `?1` and `?2` are the limits. Where there is no dead letter its
/// columns are unknown, and `NOT` of something unknown would let a young event go.
pub(crate) const IS_OLD: &str = sql!(
    "NOT EXISTS (
         SELECT 1 FROM deliveries d LEFT JOIN dead_letters l ON l.delivery = d.number WHERE d.event = e.number
         AND (d.number = (SELECT max(number) FROM deliveries)
              OR NOT (d.state = " DELIVERED " AND d.touched < ?1
                      OR d.state = " DEAD " AND d.touched < ?1
                         AND (l.delivery IS NULL OR l.standing IN (" LETTER_DELIVERED ", " LETTER_FAILED_AGAIN "))
                      OR d.state = " DEAD " AND coalesce(l.standing = " LETTER_DELETED " AND l.discarded < ?2, 0))))
     AND (e.accepted < ?1 OR EXISTS (SELECT 1 FROM deliveries d WHERE d.event = e.number))"
);

/// `seawall_dist::idempotency::claim`, for keys that anybody may claim again.
pub(crate) const PRUNE_KEYS: &str =
    "DELETE FROM once WHERE (scope, key) IN (SELECT scope, key FROM once WHERE until <= ?1 LIMIT ?2)";
