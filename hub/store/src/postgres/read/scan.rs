//! Pages of lists that are in the order of their numbers, the newest first.
//!
//! # Why a page may be short
//! A page looks at a bounded number of rows, however few of them the filter takes, so that no question can hold up the database. It
//! then says where the next one begins, and whoever asks goes on. Rows are looked at in chunks: a page without a filter needs one,
//! as large as itself.

use seawall_hub_core::port::store::{Page, PageRequest};

use super::values::Conditions;
use super::{limit, page_start};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, ReadError};
use crate::record::UnreadableRow;

/// The maximum number of rows that a page looks at.
const LOOKED_AT: usize = 10_000;

/// The maximum number of rows that one statement looks at.
const CHUNK: usize = 1_000;

/// How many times as many rows the next statement looks at, if the filter has not taken enough.
const CHUNK_GROWTH: usize = 4;

/// A list of rows of a table.
pub(super) struct Scan {
    /// The table, for errors.
    pub(super) table: &'static str,
    /// The query for the rows to look at, below the number `$1`. Their number is `number`.
    pub(super) walk: String,
    /// The query for those rows of `chunk` that the filter takes. Its first column is the number.
    pub(super) matches: String,
    /// The conditions of `matches`, for their values: they begin behind [`RESERVED`].
    pub(super) conditions: Conditions,
}

/// The number of values that every list has.
pub(super) const RESERVED: usize = 3;

impl Scan {
    fn sql(&self) -> String {
        let Scan { walk, matches, .. } = self;
        format!(
            "WITH chunk AS MATERIALIZED ({walk} ORDER BY number DESC LIMIT $2)
             SELECT m.*, b.last, b.seen FROM (SELECT min(number) AS last, count(*) AS seen FROM chunk) b
             LEFT JOIN LATERAL ({matches} ORDER BY 1 DESC LIMIT $3) m ON true"
        )
    }

    /// Returns a page of the list.
    pub(super) async fn page<T>(
        mut self,
        session: &Session,
        page: PageRequest,
        read: impl Fn(&mut Columns<'_>) -> Result<T, UnreadableRow>,
    ) -> Result<Page<T>, ReadError> {
        let (mut items, mut looked_at, mut below) = (Vec::new(), 0, page_start(page));
        let (sql, mut chunk) = (self.sql(), page.size.min(CHUNK));
        while items.len() < page.size {
            self.conditions.set(&[below, limit(chunk), limit(page.size - items.len())]);
            let rows = session.rows(&sql, &self.conditions.params()).await?;
            let Some(bounds) = rows.first() else { break };
            let (last, seen): (Option<i64>, i64) = (bounds.try_get("last")?, bounds.try_get("seen")?);
            for row in &rows {
                if let Some(number) = row.try_get::<_, Option<i64>>(0)? {
                    items.push(read(&mut Columns::new(self.table, row))?);
                    below = number;
                }
            }
            if items.len() >= page.size {
                return Ok(Page { items, next: Some(below.cast_unsigned()) });
            }
            let (Some(last), true) = (last, seen >= limit(chunk)) else { break };
            below = last;
            looked_at += chunk;
            if looked_at >= LOOKED_AT {
                return Ok(Page { items, next: Some(below.cast_unsigned()) });
            }
            chunk = (chunk * CHUNK_GROWTH).min(CHUNK);
        }
        Ok(Page { items, next: None })
    }
}
