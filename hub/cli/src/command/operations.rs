//! `seawall operations`: work on many dead letters.

use clap::{Args, Subcommand};
use seawall_hub_server::client::Ask;

use super::follow::{follow, path, state, words};
use crate::failure::Done;
use crate::lists::{List, Pages};
use crate::output::{Column, cell};
use crate::talk::{Session, Why};

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("TASK", "task"),
    ("STATE", "state"),
    ("%", "percent"),
    ("TOTAL", "progress.total"),
    ("DELIVERED", "progress.delivered"),
    ("FAILED", "progress.failed"),
    ("UNDER WAY", "progress.underWay"),
    ("BEGAN", "beganAt"),
    ("WHO", "who"),
    ("REASON", "reason"),
];

const FIRST: &[&str] = &[
    "id",
    "task",
    "state",
    "why",
    "failedDelivery",
    "waitsFor",
    "percent",
    "progress",
    "plan",
    "filter",
    "max",
    "who",
    "reason",
];

#[derive(Args)]
pub(crate) struct Steered {
    id: String,
    #[command(flatten)]
    why: Why,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// All of it, the newest first.
    List {
        #[command(flatten)]
        pages: Pages,
    },
    /// One: what it does, how far it is, and what it waits for.
    Show { id: String },
    /// Goes on until it has ended; ends with 6 if not all of it went well. With `--json` each change is a line.
    Watch { id: String },
    /// Nothing more begins. What has begun goes on by itself.
    Pause(Steered),
    /// It goes on. What a canary has stopped goes on without one.
    Resume(Steered),
    /// It ends. What has begun goes on by itself.
    Cancel(Steered),
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List { pages } => {
                let list =
                    List { path: "/api/v1/ops/operations", query: &[], name: "operations", columns: COLUMNS };
                session.list(&list, &pages).await
            }
            Verb::Show { id } => session.show(&session.get(path(&id, "")).await?, FIRST),
            Verb::Watch { id } => follow(session, &id, true).await,
            Verb::Pause(steered) => steered.done(session, "pause").await,
            Verb::Resume(steered) => steered.done(session, "resume").await,
            Verb::Cancel(steered) => steered.done(session, "cancel").await,
        }
    }
}

impl Steered {
    async fn done(&self, session: &Session, verb: &str) -> Done {
        let ask = Ask::post(path(&self.id, &format!(":{verb}"))).json("{}");
        let data = session.ask(self.why.of(ask)).await?;
        session.told(&data, |data| format!("{} is {}: {}", cell(&data["id"]), state(data), words(data)))
    }
}
