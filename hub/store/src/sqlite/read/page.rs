//! Pages of rows.
//!
//! # Why a page may be short
//! A page reads a bounded number of rows, however few of them match the filter, so that no request can hold up the machine. It then
//! says where the next page begins. Pending deliveries are found by an index, unless there are more of them than a page reads: then
//! they are among the newest rows anyway.

use rusqlite::{Connection, Row, params};
use seawall_hub_core::port::store::{Page, PageRequest};

/// The maximum number of rows that a page reads.
pub(crate) const LOOKED_AT: usize = 10_000;

/// Returns a page of a query. Its first column is the number, `?1` the number that it has to be below, `?2` the limit, and `?3`
/// an optional parameter.
pub(crate) fn page_of<T>(
    connection: &Connection,
    sql: &str,
    page: PageRequest,
    what_else: Option<i64>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    takes: impl Fn(&T) -> bool,
) -> rusqlite::Result<Page<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let from = page.from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    let limit = i64::try_from(LOOKED_AT).unwrap_or(i64::MAX);
    let mut rows = match what_else {
        Some(what_else) => statement.query(params![from, limit, what_else])?,
        None => statement.query(params![from, limit])?,
    };
    let (mut items, mut looked_at, mut last) = (Vec::new(), 0, None);
    while items.len() < page.size {
        let Some(row) = rows.next()? else { break };
        looked_at += 1;
        last = Some(row.get::<_, i64>(0)?.cast_unsigned());
        let item = read(row)?;
        if takes(&item) {
            items.push(item);
        }
    }
    let full = items.len() >= page.size || looked_at >= LOOKED_AT;
    Ok(Page { items, next: last.filter(|_| full) })
}

pub(crate) fn is_among(sources: Option<&[String]>, source: &str) -> bool {
    sources.is_none_or(|sources| sources.iter().any(|known| known == source))
}
