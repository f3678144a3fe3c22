//! `seawall audit`.

use clap::Args;
use seawall_client::api::AuditEntry;

use crate::connection::Session;
use crate::error::CommandResult;
use crate::lists::Pages;
use crate::output::{Column, cell};

const COLUMNS: &[Column<AuditEntry>] = &[
    ("TIME", |entry| cell(&entry.at)),
    ("KEY", |entry| cell(&entry.who)),
    ("ACTION", |entry| cell(&entry.action)),
    ("TARGET", |entry| cell(&entry.target)),
    ("REASON", |entry| cell(&entry.reason)),
    ("TRACE", |entry| cell(&entry.trace_id)),
];

#[derive(Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pages: Pages,
}

impl Audit {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        session.list(COLUMNS, &self.pages, |page| session.hub.ops().audit(&page)).await
    }
}
