//! Dead letters, one or a page of them.

use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::delivery::{DeliveryId, StoredState};
use seawall_hub_core::domain::operation::OperationId;
use seawall_hub_core::port::store::{
    DeadLetter, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, MatchCount, Page, PageRequest,
    StoredDelivery,
};

use super::deliveries::{attempts, whole};
use super::events::event_of;
use super::search::{LetterSearch, ScanDirection};
use super::{limit, page_start, read_all, read_one};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{self, Columns, EVENT, REQUEST, ReadError, STORED};
use crate::record::{UnreadableRow, fingerprint_from_number};

/// The maximum number of related deliveries of an event.
const RELATED: usize = 100;

/// The maximum number of bytes of events and requests that a bulk operation reads at once.
const TOGETHER_BYTES: u64 = 8 * 1024 * 1024;

/// The columns of the dead letter `l` besides its delivery. `g` is its group, `x` its last replay and `o` the operation of that; if
/// the operation is gone, it was of the era of its replay.
const DEAD: &str = "l.at, l.error, l.status, x.number, x.era, \
    (SELECT state FROM progress WHERE progress.number = x.number), l.replayed_at, l.standing, g.fingerprint, l.discarded, l.note, \
    l.operation, coalesce(o.era, x.era, d.era), l.edited";

const DEAD_FROM: &str =
    "dead_letters l JOIN deliveries d ON d.number = l.delivery JOIN events e ON e.number = d.event
     JOIN progress p ON p.number = l.delivery JOIN letter_groups g ON g.number = l.grouping
     LEFT JOIN deliveries x ON x.number = l.replayed LEFT JOIN operations o ON o.number = l.operation";

/// Reads [`STORED`] and [`DEAD`].
fn dead_letter_row(columns: &mut Columns<'_>) -> Result<DeadLetter, UnreadableRow> {
    let delivery = rows::stored_delivery(columns)?;
    let (at, error, status) = (columns.time()?, columns.text_or_null()?, columns.count_or_null()?);
    let replay = rows::delivery_id_or_null(columns)?;
    let state = columns.numbered_or_null()?.map(StoredState::shown);
    let replayed = replay.zip(state).zip(columns.time_or_null()?);
    Ok(DeadLetter {
        source: delivery.source.clone(),
        delivery,
        at,
        error,
        status,
        replayed: replayed.map(|((replay, state), at)| (replay, state, at)),
        state: columns.numbered()?,
        group: fingerprint_from_number(columns.integer()?),
        deleted: columns.time_or_null()?,
        note: columns.text_or_null()?,
        operation: {
            let (number, era) = (columns.number_or_null()?, columns.number()?);
            number.map(|number| OperationId::new(era, number))
        },
        edited: columns.value()?,
    })
}

/// Reads [`STORED`], [`DEAD`] and [`REQUEST`].
fn whole_dead_letter(columns: &mut Columns<'_>) -> Result<DeadLetter, UnreadableRow> {
    let mut dead = dead_letter_row(columns)?;
    rows::request(columns, &mut dead.delivery)?;
    Ok(dead)
}

pub(in crate::postgres) async fn dead_letter(
    session: &Session,
    id: DeliveryId,
) -> Result<Option<DeadLetterDetails>, ReadError> {
    let sql =
        format!("SELECT {STORED}, {DEAD}, {REQUEST} FROM {DEAD_FROM} WHERE l.delivery = $1 AND d.era = $2");
    let found = session.find(&sql, &[&id.number.cast_signed(), &id.database.cast_signed()]).await?;
    let Some(dead) = read_one("dead_letters", found.as_ref(), whole_dead_letter)? else { return Ok(None) };
    let Some(event) = event_of(session, id).await? else { return Ok(None) };
    let before = match dead.delivery.replay_of {
        Some(original) => whole(session, original).await?.map(|stored| (stored.request, stored.payload)),
        None => None,
    };
    let (attempts, related) = (attempts(session, id).await?, related(session, id).await?);
    Ok(Some(DeadLetterDetails { dead, attempts, event, related, before }))
}

/// Returns other deliveries of the same event, the newest first.
async fn related(session: &Session, id: DeliveryId) -> Result<Vec<StoredDelivery>, ReadError> {
    let sql = format!(
        "WITH others AS MATERIALIZED (SELECT number FROM deliveries
             WHERE event = (SELECT event FROM deliveries WHERE number = $1) AND number <> $1)
         SELECT {STORED} FROM (SELECT number FROM others ORDER BY number DESC LIMIT $2) other
         JOIN deliveries d ON d.number = other.number JOIN events e ON e.number = d.event
         JOIN progress p ON p.number = d.number ORDER BY d.number DESC"
    );
    let rows = session.rows(&sql, &[&id.number.cast_signed(), &limit(RELATED)]).await?;
    read_all("deliveries", &rows, rows::stored_delivery)
}

pub(in crate::postgres) async fn dead_letters(
    session: &Session,
    filter: &LetterFilter,
    page: PageRequest,
) -> Result<DeadLetterPage, ReadError> {
    let search = LetterSearch::new(session, filter).await?;
    let numbers = search.numbers(session, ScanDirection::Newest, page_start(page), page.size).await?;
    let sql = format!(
        "SELECT {STORED}, {DEAD} FROM {DEAD_FROM} WHERE l.delivery = ANY ($1) ORDER BY l.delivery DESC"
    );
    let items = read_all("dead_letters", &session.rows(&sql, &[&numbers]).await?, dead_letter_row)?;
    let next = numbers.last().filter(|_| numbers.len() >= page.size).map(|last| last.cast_unsigned());
    Ok(DeadLetterPage { page: Page { items, next }, unindexed: unindexed(session, filter).await? })
}

pub(in crate::postgres) async fn count_letters(
    session: &Session,
    filter: &LetterFilter,
    most: u64,
) -> Result<MatchCount, ReadError> {
    let count = LetterSearch::new(session, filter).await?.count(session, most).await?;
    Ok(MatchCount { count, all: count < most, unindexed: unindexed(session, filter).await? })
}

/// Counts the dead letters that a search for words can't find yet.
async fn unindexed(session: &Session, filter: &LetterFilter) -> Result<u64, ReadError> {
    if filter.text.is_none() {
        return Ok(0);
    }
    let count = session.find("SELECT count(*) FROM dead_letters WHERE NOT indexed", &[]).await?;
    Ok(count.map_or(Ok(0), |row| Columns::new("dead_letters", &row).number())?)
}

pub(in crate::postgres) async fn letters_behind(
    session: &Session,
    filter: &LetterFilter,
    behind: u64,
    most: usize,
) -> Result<DeadLetterBatch, ReadError> {
    let search = LetterSearch::new(session, filter).await?;
    let numbers = search.numbers(session, ScanDirection::Oldest, behind.cast_signed(), most).await?;
    let together = together(session, &numbers).await?;
    let more = together.len() < numbers.len() || numbers.len() >= most;
    let last = together.last().map_or(behind, |last| last.cast_unsigned());
    let sql = format!(
        "SELECT {STORED}, {DEAD}, {REQUEST}, {EVENT} FROM {DEAD_FROM} WHERE l.delivery = ANY ($1) ORDER BY l.delivery"
    );
    let rows = session.rows(&sql, &[&together]).await?;
    let found =
        read_all("dead_letters", &rows, |columns| Ok((whole_dead_letter(columns)?, rows::event(columns)?)))?;
    Ok((found, last, more))
}

/// Returns as many of these dead letters as may be in memory together, with their events.
async fn together<'n>(session: &Session, numbers: &'n [i64]) -> Result<&'n [i64], ReadError> {
    let sql = "SELECT d.number, octet_length(e.payload)::bigint + octet_length(d.request)
               FROM deliveries d JOIN events e ON e.number = d.event WHERE d.number = ANY ($1)";
    let sizes = session.rows(sql, &[&numbers]).await?;
    let sizes = read_all("deliveries", &sizes, |columns| Ok((columns.integer()?, columns.number()?)))?;
    let sizes: std::collections::HashMap<i64, u64> = sizes.into_iter().collect();
    let mut bytes = 0;
    let fits = numbers.iter().take_while(|number| {
        let fits = bytes <= TOGETHER_BYTES;
        bytes += sizes.get(number).copied().unwrap_or(0);
        fits
    });
    Ok(&numbers[..fits.count()])
}
