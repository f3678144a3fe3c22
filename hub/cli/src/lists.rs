//! Lists, page by page, as a table or one JSON array.

use clap::Args;
use seawall_client::api::{Listing, PageQuery};
use seawall_client::{ApiCall, Reply};
use serde::de::DeserializeOwned;

use crate::connection::Session;
use crate::error::CommandResult;
use crate::input::whole;
use crate::output::{Column, OutputWriter, Table, note};

/// The maximum page size of the hub.
const PAGE_MAX: usize = 500;

/// The length of a list.
#[derive(Args)]
pub(crate) struct Pages {
    /// Maximum number of rows.
    #[arg(long, value_name = "N", default_value = "50", value_parser = whole::<usize>(1..=u64::MAX))]
    limit: usize,

    /// Show all rows.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Session {
    /// Prints a list up to its limit. `page` makes the request for a page.
    pub(crate) async fn list<P: Listing + DeserializeOwned>(
        &self,
        columns: &[Column<P::Item>],
        pages: &Pages,
        page: impl Fn(PageQuery) -> ApiCall<P>,
    ) -> CommandResult {
        let mut rows = Rows::new(&self.out, columns);
        let (mut left, mut page_token) = (if pages.all { usize::MAX } else { pages.limit }, None);
        loop {
            // One more than is wanted, so that it is known whether there is more.
            let page_size = u32::try_from(left.saturating_add(1).min(PAGE_MAX)).ok();
            let reply = self.send(page(PageQuery { page_size, page_token })).await?;
            rows.add(&reply, left)?;
            page_token = Some(reply.next_page_token().to_owned()).filter(|token| !token.is_empty());
            let count = reply.items().len();
            // A page may be short, and is not the last one for that.
            let more = page_token.is_some() || count > left;
            left -= count.min(left);
            if !more || left == 0 {
                rows.end()?;
                if reply.unindexed() > 0 {
                    note(&format!(
                        "{} dead letters are not indexed yet and may be missing here",
                        reply.unindexed()
                    ));
                }
                if more {
                    note("there may be more: use `--all` or `--limit N`");
                }
                return Ok(());
            }
        }
    }

    /// Prints a list without pages.
    pub(crate) async fn whole_list<T: DeserializeOwned>(
        &self,
        columns: &[Column<T>],
        call: ApiCall<Vec<T>>,
    ) -> CommandResult {
        let reply = self.send(call).await?;
        let mut rows = Rows::new(&self.out, columns);
        rows.add(&reply, usize::MAX)?;
        rows.end()
    }
}

/// Prints items as they arrive. A list may be longer than memory.
struct Rows<'a, T> {
    out: &'a OutputWriter,
    table: Table<'a, T>,
    count: usize,
}

impl<'a, T> Rows<'a, T> {
    fn new(out: &'a OutputWriter, columns: &'a [Column<T>]) -> Self {
        Rows { out, table: Table::new(columns), count: 0 }
    }

    /// Prints the first `limit` items of a page.
    fn add<P: Listing<Item = T>>(&mut self, reply: &Reply<P>, limit: usize) -> CommandResult {
        let items = &reply.items()[..reply.items().len().min(limit)];
        if self.out.json {
            for item in reply.raw_items().into_iter().take(limit) {
                let before = if self.count == 0 { "[" } else { "," };
                self.out.line(&format!("{before}{}", item.get()))?;
                self.count += 1;
            }
            return Ok(());
        }
        self.count += items.len();
        self.table.rows(self.out, items)
    }

    /// Closes a JSON list only when it is complete, so that an interrupted one is invalid JSON.
    fn end(self) -> CommandResult {
        match (self.out.json, self.count) {
            (true, 0) => self.out.line("[]"),
            (true, _) => self.out.line("]"),
            (false, 0) => {
                note("no results");
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }
}
