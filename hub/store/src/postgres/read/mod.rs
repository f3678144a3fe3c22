//! Queries, on connections that do nothing else.
//!
//! # Why does no query read a whole table?
//! The tables have years of deliveries, and a page of them must not take longer for that. So every query looks at a bounded number
//! of rows and finds each by an index; the [`READER_SETTINGS`] keep the planner from reading a table whole because its statistics
//! say that it is small.

pub(super) mod alerts;
pub(super) mod backlog;
pub(super) mod dead_letters;
pub(super) mod deliveries;
pub(super) mod events;
pub(super) mod groups;
pub(super) mod idempotency;
pub(super) mod operations;
pub(super) mod registry;
pub(super) mod retention;
mod scan;
mod search;
mod values;

use seawall_hub_core::port::store::PageRequest;
use tokio_postgres::Row;

use super::rows::{Columns, ReadError};
use crate::record::UnreadableRow;

/// The settings of sessions that read. Rows are joined one by one, each by its index, and a plan is made for the values of a query.
pub(super) const READER_SETTINGS: &str =
    "SET default_transaction_read_only = on; SET plan_cache_mode = force_custom_plan;
     SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
     SET max_parallel_workers_per_gather = 0";

/// Reads each row of a table.
fn read_all<T>(
    table: &'static str,
    rows: &[Row],
    read: impl Fn(&mut Columns<'_>) -> Result<T, UnreadableRow>,
) -> Result<Vec<T>, ReadError> {
    rows.iter().map(|row| Ok(read(&mut Columns::new(table, row))?)).collect()
}

/// Reads a row of a table, if there is one.
fn read_one<T>(
    table: &'static str,
    row: Option<&Row>,
    read: impl FnOnce(&mut Columns<'_>) -> Result<T, UnreadableRow>,
) -> Result<Option<T>, ReadError> {
    row.map(|row| Ok(read(&mut Columns::new(table, row))?)).transpose()
}

/// Returns the number that all rows of a page are below.
fn page_start(page: PageRequest) -> i64 {
    page.from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX))
}

/// Returns a limit as a parameter.
fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
