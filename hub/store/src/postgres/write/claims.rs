//! Claims of due deliveries.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DueTimes, LaneCapacity, StoredDelivery};

use super::applier::{ApplyError, UnitApplier};
use super::set_based::{NEXT_DUE, TAKE_DUE};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, REQUEST, STORED, whole_delivery};

/// The whole statement of a claim: what is claimed, with all that its attempt needs.
pub(in crate::postgres) static CLAIM: LazyLock<String> = LazyLock::new(|| {
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
