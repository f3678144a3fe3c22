//! Claims of due deliveries.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DueTimes, LaneCapacity, StoredDelivery};

use super::applier::{ApplyError, UnitApplier};
use super::is_live;
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, REQUEST, STORED, whole_delivery};
use crate::sql::sql;

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

/// The whole statement of a claim: what is claimed, with all that its attempt needs.
pub(super) static CLAIM: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TAKE_DUE} SELECT {STORED}, {REQUEST} FROM claimed p JOIN deliveries d ON d.number = p.number
         JOIN events e ON e.number = d.event ORDER BY p.lane, p.rest, p.place"
    )
});

impl UnitApplier<'_> {
    /// Claims due deliveries, the longest due first. It is one statement.
    pub(in crate::postgres) async fn take_due(
        &self,
        now: Millis,
        room: &[LaneCapacity],
    ) -> Result<Vec<StoredDelivery>, ApplyError> {
        let services: Vec<&str> = room.iter().map(|lane| lane.service.as_str()).collect();
        let limit = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
        let fresh: Vec<i64> = room.iter().map(|lane| limit(lane.fresh)).collect();
        let retries: Vec<i64> = room.iter().map(|lane| limit(lane.retries)).collect();
        let resume: Vec<Option<i64>> =
            room.iter().map(|lane| lane.resume_before.map(|before| before.0)).collect();
        let epoch = self.node.epoch.cast_signed();
        let rows = self.rows(&CLAIM, &[&services, &fresh, &retries, &resume, &now.0, &epoch]).await?;
        rows.iter().map(|row| Ok(whole_delivery(&mut Columns::new("work", row))?)).collect()
    }
}

/// Returns when the next delivery of each service is due.
pub(in crate::postgres) async fn next_due(session: &Session) -> Result<Vec<DueTimes>, ApplyError> {
    let mut found: BTreeMap<Slug, DueTimes> = BTreeMap::new();
    for row in session.rows(NEXT_DUE, &[]).await? {
        let mut columns = Columns::new("work", &row);
        let service = columns.slug()?;
        let (is_fresh, due): (bool, Millis) = (columns.value()?, columns.time()?);
        let times = found.entry(service.clone()).or_insert(DueTimes { service, fresh: None, retries: None });
        let earliest = if is_fresh { &mut times.fresh } else { &mut times.retries };
        *earliest = Some(earliest.map_or(due, |before| before.min(due)));
    }
    Ok(found.into_values().collect())
}

/// Returns a pending delivery with its request.
pub(super) async fn stored_delivery(
    session: &Session,
    number: i64,
) -> Result<Option<StoredDelivery>, ApplyError> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {STORED}, {REQUEST} FROM work p JOIN deliveries d ON d.number = p.number
             JOIN events e ON e.number = d.event WHERE p.number = $1"
        )
    });
    let row = session.find(&SQL, &[&number]).await?;
    Ok(row.map(|row| whole_delivery(&mut Columns::new("work", &row))).transpose()?)
}
