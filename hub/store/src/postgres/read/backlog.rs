//! How much is pending.

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{BacklogCounts, DeliverySelector};

use super::read_all;
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, ReadError};
use crate::sql::sql;

/// Counts what a service has claimed, what waits for its time and what waits for something else, each by its index.
const PENDING_OF_SERVICE: &str = sql!(
    "SELECT count(*) FROM (
         (SELECT 1 FROM work WHERE " IS_LEASED " AND service = $1 LIMIT $2)
         UNION ALL (SELECT 1 FROM work WHERE state IN (" QUEUED ", " WAITING ", " STALLED ") AND service = $1 LIMIT $2)
         UNION ALL (SELECT 1 FROM work WHERE state IN (" BLOCKED ", " HELD ") AND service = $1 LIMIT $2)
         LIMIT $2) pending"
);

const HELD_BY_RULE: &str =
    sql!("SELECT count(*) FROM (SELECT 1 FROM work WHERE state = " HELD " AND rule = $1 LIMIT $2) held");

pub(in crate::postgres) async fn pending(
    session: &Session,
    whose: &DeliverySelector,
    most: u32,
) -> Result<u32, ReadError> {
    let (sql, name) = match whose {
        DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
        DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
    };
    let count = session.find(sql, &[&name.as_str(), &i64::from(most)]).await?;
    Ok(count.map_or(Ok(0), |row| Columns::new("work", &row).count())?)
}

/// Counts what waits, for each service.
const WAITING: &str = sql!(
    "SELECT s.name, (SELECT count(*) FROM (
         (SELECT 1 FROM work w WHERE state IN (" QUEUED ", " WAITING ", " STALLED ") AND w.service = s.name LIMIT $2)
         UNION ALL (SELECT 1 FROM work w WHERE state IN (" BLOCKED ", " HELD ") AND w.service = s.name LIMIT $2)
         LIMIT $2) waiting)
     FROM unnest($1::text[]) WITH ORDINALITY s (name, place) ORDER BY s.place"
);

pub(in crate::postgres) async fn backlog_counts(
    session: &Session,
    services: Vec<Slug>,
    most: u32,
) -> Result<BacklogCounts, ReadError> {
    let names: Vec<&str> = services.iter().map(Slug::as_str).collect();
    let waiting = session.rows(WAITING, &[&names, &i64::from(most)]).await?;
    let open = "SELECT service, sum(open)::bigint FROM letter_groups GROUP BY service HAVING sum(open) > 0
                ORDER BY service";
    let open = session.rows(open, &[]).await?;
    Ok(BacklogCounts {
        waiting: read_all("work", &waiting, |columns| Ok((columns.slug()?, columns.count()?)))?,
        dead_letters: read_all("letter_groups", &open, |columns| Ok((columns.slug()?, columns.number()?)))?,
    })
}
