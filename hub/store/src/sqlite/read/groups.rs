//! Groups of dead letters.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_hub_core::domain::dead_letter::{
    FailureSignature, Fingerprint, GroupFilter, LetterCounts, LetterGroup, LetterState,
};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Page, PageRequest};

use crate::record::{StoredNumber, fingerprint_from_number, fingerprint_to_number};
use crate::sqlite::read::database;
use crate::sqlite::rows;

const GROUP: &str = "g.number, g.fingerprint, g.service, g.rule, g.reason, g.status, g.message, g.state, g.note, g.first, \
                     g.last, g.reopened, g.open, g.replaying, g.delivered, g.failed_again, g.parked, g.deleted";

/// Reads a group with its row number.
fn group_row(row: &Row<'_>) -> rusqlite::Result<(i64, LetterGroup)> {
    let mut counts = LetterCounts::default();
    for (place, count) in counts.0.iter_mut().enumerate() {
        *count = row.get::<_, i64>(12 + place)?.cast_unsigned();
    }
    let group = LetterGroup {
        fingerprint: fingerprint_from_number(row.get(1)?),
        failure: FailureSignature {
            service: rows::slug(row, 2)?,
            rule: rows::slug(row, 3)?,
            reason: rows::reason(row, 4)?.ok_or_else(|| rows::strange(4, "no reason"))?,
            status: row.get(5)?,
            message: row.get(6)?,
        },
        state: rows::numbered(row, 7)?,
        note: row.get(8)?,
        first: Millis(row.get(9)?),
        last: Millis(row.get(10)?),
        reopened: row.get(11)?,
        counts,
        sample: None,
    };
    Ok((row.get(0)?, group))
}

/// Returns the newest open dead letter, or else the newest of all.
fn sample(
    connection: &Connection,
    number: i64,
    counts: &LetterCounts,
) -> rusqlite::Result<Option<DeliveryId>> {
    let Some(state) = LetterState::ALL.into_iter().find(|state| counts.of(*state) > 0) else {
        return Ok(None);
    };
    let mut newest = connection
        .prepare_cached("SELECT max(delivery) FROM dead_letters WHERE grouping = ?1 AND standing = ?2")?;
    let newest: Option<i64> = newest.query_row([number, state.to_number()], |row| row.get(0))?;
    let database = database(connection)?;
    Ok(newest.map(|number| DeliveryId::new(database, number.cast_unsigned())))
}

/// Lists groups. There are few, so the position of a page is the number of groups before it.
pub(crate) fn groups(
    connection: &Connection,
    filter: &GroupFilter,
    page: PageRequest,
) -> rusqlite::Result<Page<LetterGroup>> {
    let sql = format!(
        "SELECT {GROUP} FROM letter_groups g WHERE (?1 IS NULL OR g.service = ?1) AND (?2 IS NULL OR g.rule = ?2)
         ORDER BY g.last DESC, g.number DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let name = |slug: &Option<Slug>| slug.as_ref().map(|slug| slug.as_str().to_owned());
    let mut rows = statement.query(params![name(&filter.service), name(&filter.rule)])?;
    let from = page.from.and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
    let (mut items, mut place, mut more) = (Vec::new(), 0, false);
    while let Some(row) = rows.next()? {
        let (number, mut group) = group_row(row)?;
        let seen = filter.services.as_ref().is_none_or(|seen| seen.contains(&group.failure.service));
        if !seen || (!filter.states.is_empty() && !filter.states.contains(&group.state)) {
            continue;
        }
        place += 1;
        if place <= from {
            continue;
        }
        if items.len() == page.size {
            more = true;
            break;
        }
        group.sample = sample(connection, number, &group.counts)?;
        items.push(group);
    }
    let next = more.then(|| u64::try_from(from + items.len()).unwrap_or(u64::MAX));
    Ok(Page { items, next })
}

pub(crate) fn group(
    connection: &Connection,
    fingerprint: Fingerprint,
) -> rusqlite::Result<Option<LetterGroup>> {
    let sql = format!("SELECT {GROUP} FROM letter_groups g WHERE g.fingerprint = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([fingerprint_to_number(fingerprint)], group_row).optional()?;
    let Some((number, mut group)) = found else { return Ok(None) };
    group.sample = sample(connection, number, &group.counts)?;
    Ok(Some(group))
}
