//! `seawall audit`.

use clap::Args;

use crate::failure::Done;
use crate::lists::{List, Pages};
use crate::output::Column;
use crate::talk::Session;

const COLUMNS: &[Column] = &[
    ("AT", "at"),
    ("WHO", "who"),
    ("ACTION", "action"),
    ("TARGET", "target"),
    ("REASON", "reason"),
    ("TRACE", "traceId"),
];

#[derive(Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pages: Pages,
}

impl Audit {
    pub(super) async fn run(self, session: &Session) -> Done {
        let list = List { path: "/api/v1/ops/audit", query: &[], name: "entries", columns: COLUMNS };
        session.list(&list, &self.pages).await
    }
}
