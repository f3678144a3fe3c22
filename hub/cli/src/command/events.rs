//! `seawall events`.

use clap::Subcommand;
use seawall_hub_server::client::path_part;

use crate::failure::Done;
use crate::lists::{List, Pages};
use crate::output::Column;
use crate::talk::Session;

const EVENTS: &str = "/api/v1/bridge/events";

const COLUMNS: &[Column] = &[
    ("ID", "event.id"),
    ("TYPE", "event.type"),
    ("SOURCE", "event.source"),
    ("ACCEPTED", "acceptedAt"),
    ("RULES", "rulesConsidered"),
    ("FILTERED", "rulesFiltered"),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Events, the newest first.
    List {
        /// Of this type, or of those that `order.*` stands for.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// From this source.
        #[arg(long)]
        source: Option<String>,
        /// Only those that no rule was for.
        #[arg(long)]
        unmatched: bool,
        #[command(flatten)]
        pages: Pages,
    },
    /// One event.
    Show { id: String },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List { kind, source, unmatched, pages } => {
                let query = &[
                    ("type", kind.as_deref()),
                    ("source", source.as_deref()),
                    ("unmatched", unmatched.then_some("true")),
                ];
                let list = List { path: EVENTS, query, name: "events", columns: COLUMNS };
                session.list(&list, &pages).await
            }
            Verb::Show { id } => {
                let data = session.get(format!("{EVENTS}/{}", path_part(&id))).await?;
                session.show(&data, &["acceptedAt", "rulesConsidered", "rulesFiltered", "unmatched", "event"])
            }
        }
    }
}
