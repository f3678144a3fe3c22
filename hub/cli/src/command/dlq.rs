//! `seawall dlq`.

use clap::{Subcommand, ValueEnum};
use seawall_hub_server::client::{Ask, path_part};
use serde_json::json;

use super::deliveries::{Filter, shown};
use super::rules::request;
use crate::failure::Done;
use crate::lists::{List, Pages};
use crate::output::Column;
use crate::talk::{Session, Why};

const DEAD_LETTERS: &str = "/api/v1/bridge/deadLetters";

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("GIVEN UP", "deadAt"),
    ("REASON", "reason"),
    ("SERVICE", "service"),
    ("RULE", "rule"),
    ("EVENT", "event"),
    ("STATUS", "status"),
    ("REPLAYED", "replayed.state"),
    ("ERROR", "error"),
];

/// How a dead letter is sent again.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// Again by today's rule.
    Render,
    /// The same bytes.
    Same,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Dead letters, the newest first.
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        pages: Pages,
    },
    /// One dead letter with all evidence.
    Show { id: String },
    /// Sends it again, as a new delivery.
    Replay {
        id: String,
        #[arg(long, default_value = "render")]
        mode: Mode,
        /// Also if it was replayed before.
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        why: Why,
    },
    /// Done with it: it goes out of sight.
    Discard {
        id: String,
        #[command(flatten)]
        why: Why,
    },
}

fn path(id: &str, verb: &str) -> String {
    format!("{DEAD_LETTERS}/{}{verb}", path_part(id))
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List { filter, pages } => {
                let list = List {
                    path: DEAD_LETTERS,
                    query: &filter.query(),
                    name: "deadLetters",
                    columns: COLUMNS,
                };
                session.list(&list, &pages).await
            }
            Verb::Show { id } => show(session, &id).await,
            Verb::Replay { id, mode, again, why } => {
                let mode = match mode {
                    Mode::Render => "render",
                    Mode::Same => "same",
                };
                let ask =
                    Ask::post(path(&id, ":replay")).json(json!({"mode": mode, "again": again}).to_string());
                let data = session.ask(why.of(ask)).await;
                let data =
                    data.map_err(|failure| failure.in_options("`again: true`", "here that is `--again`"))?;
                session.told(&data, |data| {
                    let delivery = data["delivery"].as_str().unwrap_or_default();
                    format!(
                        "it goes out again as delivery {delivery}\nseawall deliveries show {delivery} --watch"
                    )
                })
            }
            Verb::Discard { id, why } => {
                let data = session.ask(why.of(Ask::delete(path(&id, "")))).await?;
                session.told(&data, |data| {
                    format!("dead letter {} is discarded", data["id"].as_str().unwrap_or_default())
                })
            }
        }
    }
}

async fn show(session: &Session, id: &str) -> Done {
    let mut data = session.get(path(id, "")).await?;
    if session.out.json {
        return session.out.line(&data.text);
    }
    let (mut sent, mut happened) = (None, None);
    if let Some(fields) = data.value.as_object_mut() {
        (sent, happened) = (fields.remove("request"), fields.remove("rawEvent"));
    }
    shown(session, data)?;
    if let Some(sent) = sent.filter(|sent| !sent.is_null()) {
        session.out.text(&format!("\nRequest\n{}", request(&sent)))?;
    }
    match happened {
        Some(event) => session.out.text(&format!("\nEvent\n{event:#}")),
        None => Ok(()),
    }
}
