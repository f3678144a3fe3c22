//! Events, one or a page of them.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::port::store::{EventFilter, Page, PageRequest};

use super::scan::{RESERVED, Scan};
use super::values::Conditions;
use super::{read_all, read_one};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{self, EVENT, ReadError};
use crate::postgres::text::stored;

/// The maximum size of the events of a page, which is in memory more than once.
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The numbers of the events with the id `$1`, as `found`. They are few, and found before anything is put in order: the other way
/// round the planner may look for them from the newest event on.
const WITH_ID: &str = "WITH found AS MATERIALIZED (SELECT number, source FROM events WHERE id = $1)";

pub(in crate::postgres) async fn event(
    session: &Session,
    id: &str,
    source: Option<&str>,
) -> Result<Option<Event>, ReadError> {
    let sql = format!(
        "{WITH_ID} SELECT {EVENT} FROM events e
         WHERE e.number = (SELECT max(number) FROM found WHERE $2::text IS NULL OR source = $2)"
    );
    let found = session.find(&sql, &[&stored(id), &source.map(stored)]).await?;
    read_one("events", found.as_ref(), rows::event)
}

/// Returns the number of the newest event with this id, among those from these sources.
pub(super) async fn newest(
    session: &Session,
    id: &str,
    sources: Option<&[String]>,
) -> Result<Option<i64>, ReadError> {
    let sql =
        format!("{WITH_ID} SELECT max(number) FROM found WHERE $2::text[] IS NULL OR source = ANY ($2)");
    let sources: Option<Vec<_>> =
        sources.map(|sources| sources.iter().map(|source| stored(source)).collect());
    let found = session.find(&sql, &[&stored(id), &sources]).await?;
    Ok(found.map(|row| row.try_get(0)).transpose()?.flatten())
}

/// Returns the event of a delivery.
pub(super) async fn event_of(session: &Session, delivery: DeliveryId) -> Result<Option<Event>, ReadError> {
    let sql = format!(
        "SELECT {EVENT} FROM events e WHERE e.number = (SELECT event FROM deliveries WHERE number = $1 AND era = $2)"
    );
    let DeliveryId { number, database, .. } = delivery;
    let found = session.find(&sql, &[&number.cast_signed(), &database.cast_signed()]).await?;
    read_one("events", found.as_ref(), rows::event)
}

pub(in crate::postgres) async fn events(
    session: &Session,
    filter: &EventFilter,
    page: PageRequest,
) -> Result<Page<Event>, ReadError> {
    let found =
        scan(filter).page(session, page, |columns| Ok((columns.integer()?, columns.number()?))).await?;
    // Payloads are large, and are read only of those that the filter takes.
    let (mut numbers, mut bytes, mut next) = (Vec::new(), 0, found.next);
    for (number, size) in found.items {
        bytes += size;
        numbers.push(number);
        if bytes >= PAGE_BYTES_MAX {
            next = Some(number.cast_unsigned());
            break;
        }
    }
    let sql = format!("SELECT {EVENT} FROM events e WHERE e.number = ANY ($1) ORDER BY e.number DESC");
    Ok(Page { items: read_all("events", &session.rows(&sql, &[&numbers]).await?, rows::event)?, next })
}

/// Returns the list of the events that a filter takes: their numbers, and the sizes of their payloads.
fn scan(filter: &EventFilter) -> Scan {
    let mut conditions = Conditions::behind(RESERVED);
    let (kind, above) = match &filter.kind {
        None | Some(Pattern::Everything) => (None, None),
        Some(Pattern::Exactly(kind)) => (Some(kind.as_str().to_owned()), None),
        Some(Pattern::Below(above)) => (None, Some(format!("{above}."))),
    };
    conditions.ask("kind = ?", kind);
    conditions.ask("starts_with(kind, ?)", above);
    let sources = filter.sources.as_ref().map(|sources| stored_all(sources));
    conditions.ask("source = ANY (?)", sources);
    if filter.unmatched {
        conditions.push("considered = 0");
    }
    Scan {
        table: "events",
        walk: "SELECT number, kind, source, considered, octet_length(payload) AS size FROM events WHERE number < $1"
            .to_owned(),
        matches: format!("SELECT number, size FROM chunk WHERE true{}", conditions.sql()),
        conditions,
    }
}

/// Returns texts as the database holds them.
pub(super) fn stored_all(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| stored(text).into_owned()).collect()
}
