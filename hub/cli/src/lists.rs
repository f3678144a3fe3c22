//! Lists: page after page, to a table or to one JSON array.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use clap::Args;
use seawall_hub_server::client::path_part;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::{Done, Failure, UNREACHABLE};
use crate::output::{Column, Out, Table, note};
use crate::talk::Session;

/// The hub gives no more at once.
const PAGE_MAX: usize = 500;

/// How much of a list is wanted.
#[derive(Args)]
pub(crate) struct Pages {
    /// So many at most.
    #[arg(long, value_name = "N", default_value = "50")]
    limit: NonZeroUsize,

    /// Everything there is, page by page.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// A list of the hub that has pages.
pub(crate) struct List<'a> {
    pub(crate) path: &'a str,
    /// What is asked for; what is not said is left out.
    pub(crate) query: &'a [(&'a str, Option<&'a str>)],
    /// Where the items stand in an answer.
    pub(crate) name: &'a str,
    pub(crate) columns: &'a [Column],
}

impl Session {
    /// Everything in a list, as far as it is wanted.
    pub(crate) async fn list(&self, list: &List<'_>, pages: &Pages) -> Done {
        let mut rows = Rows::new(&self.out, list.columns);
        let (mut left, mut token) = (if pages.all { usize::MAX } else { pages.limit.get() }, String::new());
        loop {
            // One more than is wanted, so that it is known whether there is more.
            let mut query = format!("page_size={}", left.saturating_add(1).min(PAGE_MAX));
            for (name, value) in
                list.query.iter().chain(&[("page_token", Some(&*token).filter(|it| !it.is_empty()))])
            {
                query.extend(value.map(|value| format!("&{name}={}", path_part(value))));
            }
            let data = self.get(format!("{}?{query}", list.path)).await?;
            let items = parts(&data.text, list.name)?;
            rows.add(&items[..items.len().min(left)])?;
            data.value["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
            // A page may be short, and is not the last one for that.
            let more = !token.is_empty() || items.len() > left;
            left -= items.len().min(left);
            if !more || left == 0 {
                rows.end()?;
                if let Some(missing) =
                    data.value["search"]["unindexed"].as_u64().filter(|missing| *missing > 0)
                {
                    note(&format!("{missing} can't be found by their words yet, and may be missing here"));
                }
                if more {
                    note("there may be more: `--all` shows everything, `--limit N` shows N");
                }
                return Ok(());
            }
        }
    }

    /// A list that comes whole.
    pub(crate) async fn whole_list(&self, path: &str, columns: &[Column]) -> Done {
        let data = self.get(path).await?;
        let mut rows = Rows::new(&self.out, columns);
        rows.add(&serde_json::from_str::<Vec<Box<RawValue>>>(&data.text).map_err(|_| no_list())?)?;
        rows.end()
    }
}

fn parts(data: &str, name: &str) -> Result<Vec<Box<RawValue>>, Failure> {
    let mut fields: HashMap<String, Box<RawValue>> = serde_json::from_str(data).map_err(|_| no_list())?;
    let items = fields.remove(name).ok_or_else(no_list)?;
    serde_json::from_str(items.get()).map_err(|_| no_list())
}

fn no_list() -> Failure {
    Failure::new(UNREACHABLE, "the answer holds no list; is it a hub of another version?")
}

/// Items on their way out. Nothing is kept: a list may be longer than memory.
struct Rows<'a> {
    out: &'a Out,
    table: Table<'a>,
    count: usize,
}

impl<'a> Rows<'a> {
    fn new(out: &'a Out, columns: &'a [Column]) -> Self {
        Rows { out, table: Table::new(columns), count: 0 }
    }

    fn add(&mut self, items: &[Box<RawValue>]) -> Done {
        if self.out.json {
            for item in items {
                let before = if self.count == 0 { "[" } else { "," };
                self.out.line(&format!("{before}{}", item.get()))?;
                self.count += 1;
            }
            return Ok(());
        }
        self.count += items.len();
        let items: Vec<Value> =
            items.iter().map(|item| serde_json::from_str(item.get()).unwrap_or_default()).collect();
        self.table.rows(self.out, &items)
    }

    /// A list for programs is closed when it is whole: one that broke off is no JSON, so that nobody takes it for everything.
    fn end(self) -> Done {
        match (self.out.json, self.count) {
            (true, 0) => self.out.line("[]"),
            (true, _) => self.out.line("]"),
            (false, 0) => {
                note("there are none");
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }
}
