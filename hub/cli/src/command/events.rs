//! `seawall events`.

use clap::Subcommand;
use seawall_client::api::{Event, EventQuery};

use crate::connection::Session;
use crate::error::CommandResult;
use crate::lists::Pages;
use crate::output::{Column, cell};

const COLUMNS: &[Column<Event>] = &[
    ("ID", |event| cell(&event.event.id)),
    ("TYPE", |event| cell(&event.event.r#type)),
    ("SOURCE", |event| cell(&event.event.source)),
    ("ACCEPTED", |event| cell(&event.accepted_at)),
    ("RULES", |event| cell(&event.rules_considered)),
    ("FILTERED", |event| cell(&event.rules_filtered)),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List events, newest first.
    List {
        /// Only events of this type; `order.*` matches several.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Only events from this source.
        #[arg(long)]
        source: Option<String>,
        /// Only events that no rule matched.
        #[arg(long)]
        unmatched: bool,
        #[command(flatten)]
        pages: Pages,
    },
    /// Show an event.
    Show { id: String },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let events = session.hub.events();
        match self {
            Verb::List { kind, source, unmatched, pages } => {
                let (kind, unmatched) = (kind.map(Into::into), unmatched.then_some(true));
                let list = |page| {
                    let (r#type, source) = (kind.clone(), source.clone());
                    events.list(&EventQuery { r#type, source, unmatched, page })
                };
                session.list(COLUMNS, &pages, list).await
            }
            Verb::Show { id } => {
                let reply = session.send(events.get(&id)).await?;
                let first = ["acceptedAt", "rulesConsidered", "rulesFiltered", "unmatched", "event"];
                session.show(&reply, &first)
            }
        }
    }
}
