//! Bulk operations, and how far their replays are.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Page, PageRequest};

use super::{limit, page_start, read_all, read_one};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{self, OPERATION, ReadError};
use crate::sql::sql;

pub(in crate::postgres) async fn operations(
    session: &Session,
    page: PageRequest,
) -> Result<Page<Operation>, ReadError> {
    let sql = format!("SELECT {OPERATION} FROM operations WHERE number < $1 ORDER BY number DESC LIMIT $2");
    let rows = session.rows(&sql, &[&page_start(page), &limit(page.size)]).await?;
    let items = read_all("operations", &rows, rows::operation)?;
    let next = items.last().filter(|_| items.len() >= page.size).map(|last| last.id.number);
    Ok(Page { items, next })
}

pub(in crate::postgres) async fn operation(
    session: &Session,
    id: OperationId,
) -> Result<Option<Operation>, ReadError> {
    let sql = format!("SELECT {OPERATION} FROM operations WHERE number = $1 AND era = $2");
    let found = session.find(&sql, &[&id.number.cast_signed(), &id.database.cast_signed()]).await?;
    read_one("operations", found.as_ref(), rows::operation)
}

pub(in crate::postgres) async fn running(session: &Session) -> Result<Vec<Operation>, ReadError> {
    let sql = format!("SELECT {OPERATION} FROM operations WHERE run = 0 ORDER BY number");
    read_all("operations", &session.rows(&sql, &[]).await?, rows::operation)
}

pub(in crate::postgres) async fn failed_replay(
    session: &Session,
    operation: OperationId,
    up_to: u64,
) -> Result<Option<DeliveryId>, ReadError> {
    let sql = "SELECT d.number, d.era FROM dead_letters l JOIN deliveries d ON d.number = l.replayed
               WHERE l.delivery <= $2 AND l.operation = $1
               AND (SELECT failures FROM progress WHERE progress.number = l.replayed) > 0
               ORDER BY l.delivery LIMIT 1";
    let up_to = i64::try_from(up_to).unwrap_or(i64::MAX);
    let found = session.find(sql, &[&operation.number.cast_signed(), &up_to]).await?;
    Ok(read_one("deliveries", found.as_ref(), rows::delivery_id_or_null)?.flatten())
}

/// Counts replays that were not attempted. Those in progress are few in each group.
pub(in crate::postgres) async fn untried_replays(
    session: &Session,
    operation: OperationId,
    services: &[Slug],
) -> Result<Vec<(Slug, u64)>, ReadError> {
    let sql = sql!(
        "SELECT s.name, count(*) FROM unnest($1::text[]) WITH ORDINALITY s (name, place)
         JOIN letter_groups g ON g.service = s.name AND g.replaying > 0
         JOIN dead_letters l ON l.grouping = g.number AND l.standing = " LETTER_REPLAYING " AND l.operation = $2
         JOIN work p ON p.number = l.replayed AND p.failures = 0 AND p.state < " HOLDING "
         GROUP BY s.name, s.place ORDER BY s.place"
    );
    let names: Vec<&str> = services.iter().map(Slug::as_str).collect();
    let rows = session.rows(sql, &[&names, &operation.number.cast_signed()]).await?;
    read_all("letter_groups", &rows, |columns| Ok((columns.slug()?, columns.number()?)))
}
