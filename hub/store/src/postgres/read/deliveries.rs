//! Deliveries, one or a page of them.

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState, StoredState};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{DeliveryFilter, Page, PageRequest, StoredDelivery};

use super::events::{newest, stored_all};
use super::scan::{RESERVED, Scan};
use super::values::Conditions;
use super::{read_all, read_one};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{self, ATTEMPTS, REQUEST, ReadError, STORED, small};
use crate::sql::sql;

pub(in crate::postgres) async fn delivery(
    session: &Session,
    id: DeliveryId,
) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, ReadError> {
    let Some(delivery) = whole(session, id).await? else { return Ok(None) };
    Ok(Some((delivery, attempts(session, id).await?)))
}

/// Returns a delivery with its request.
pub(super) async fn whole(session: &Session, id: DeliveryId) -> Result<Option<StoredDelivery>, ReadError> {
    let sql = format!(
        "SELECT {STORED}, {REQUEST} FROM deliveries d JOIN events e ON e.number = d.event
         JOIN progress p ON p.number = d.number WHERE d.number = $1 AND d.era = $2"
    );
    let found = session.find(&sql, &[&id.number.cast_signed(), &id.database.cast_signed()]).await?;
    read_one("deliveries", found.as_ref(), rows::whole_delivery)
}

/// Returns the attempts of a delivery, the oldest first.
pub(super) async fn attempts(session: &Session, id: DeliveryId) -> Result<Vec<Attempt>, ReadError> {
    read_all("attempts", &session.rows(ATTEMPTS, &[&id.number.cast_signed()]).await?, rows::attempt)
}

pub(in crate::postgres) async fn deliveries(
    session: &Session,
    filter: &DeliveryFilter,
    page: PageRequest,
) -> Result<Page<StoredDelivery>, ReadError> {
    let event = match &filter.event {
        None => None,
        // The newest, if several sources use the same id.
        Some(id) => match newest(session, id, filter.sources.as_deref()).await? {
            None => return Ok(Page { items: Vec::new(), next: None }),
            event => event,
        },
    };
    scan(filter, event).page(session, page, rows::stored_delivery).await
}

/// Returns the list of the deliveries that a filter takes. What is pending or dead is found among its like, however many others
/// have come since. `OFFSET 0` has the rows of the chunk looked up one by one; without it, the planner may begin at the other end.
fn scan(filter: &DeliveryFilter, event: Option<i64>) -> Scan {
    let mut conditions = Conditions::behind(RESERVED);
    let (walk, progress) = match (event, Kind::of(filter)) {
        (Some(event), _) => {
            let event = conditions.add(event);
            let of_event = format!("SELECT number FROM deliveries WHERE event = {event} OFFSET 0");
            (format!("SELECT number FROM ({of_event}) of_event WHERE number < $1"), "progress")
        }
        (None, Kind::Pending) => ("SELECT number FROM work WHERE number < $1".to_owned(), "work"),
        (None, Kind::Dead) => (DEAD.to_owned(), "progress"),
        (None, Kind::Any) => ("SELECT number FROM deliveries WHERE number < $1".to_owned(), "progress"),
    };
    let name = |slug: &Option<Slug>| slug.as_ref().map(|slug| slug.as_str().to_owned());
    conditions.ask("d.service = ?", name(&filter.service));
    conditions.ask("d.rule = ?", name(&filter.rule));
    conditions.ask("p.reason = ?", filter.reason.map(small));
    let states = StoredState::ALL.into_iter().filter(|state| filter.states.contains(&state.shown()));
    let states: Vec<i16> = states.map(small).collect();
    conditions.ask("p.state = ANY (?)", (!filter.states.is_empty()).then_some(states));
    let sources = filter.sources.as_ref().map(|sources| stored_all(sources));
    conditions.ask("e.source = ANY (?)", sources);
    Scan {
        table: "deliveries",
        walk,
        matches: format!(
            "SELECT {STORED} FROM chunk
             CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE deliveries.number = chunk.number OFFSET 0) d
             CROSS JOIN LATERAL (SELECT * FROM {progress} WHERE {progress}.number = chunk.number OFFSET 0) p
             CROSS JOIN LATERAL (SELECT * FROM events WHERE events.number = d.event OFFSET 0) e WHERE true{}",
            conditions.sql()
        ),
        conditions,
    }
}

/// The deliveries that have become dead letters: most have ended, some hold their order.
const DEAD: &str = sql!(
    "SELECT number FROM (
         (SELECT number FROM outcomes WHERE state = " DEAD " AND number < $1 ORDER BY number DESC LIMIT $2)
         UNION ALL (SELECT number FROM work WHERE state = " HOLDING " AND number < $1 ORDER BY number DESC LIMIT $2)) dead"
);

/// What is asked for.
enum Kind {
    /// Only deliveries that have not ended.
    Pending,
    /// Only dead letters.
    Dead,
    Any,
}

impl Kind {
    fn of(filter: &DeliveryFilter) -> Self {
        let is_dead = |state: &DeliveryState| *state == DeliveryState::DeadLettered;
        let has_ended = |state: &DeliveryState| is_dead(state) || *state == DeliveryState::Delivered;
        match &filter.states[..] {
            _ if filter.reason.is_some() => Kind::Dead,
            [] => Kind::Any,
            states if states.iter().all(is_dead) => Kind::Dead,
            states if states.iter().any(has_ended) => Kind::Any,
            _ => Kind::Pending,
        }
    }
}
