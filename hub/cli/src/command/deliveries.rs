//! `seawall deliveries`.

use std::time::Duration;

use clap::{Args, Subcommand};
use seawall_hub_server::client::path_part;
use serde_json::Value;

use crate::failure::{Done, Failure, REFUSED};
use crate::lists::{List, Pages};
use crate::output::{Column, cell, note};
use crate::talk::{Data, Session};

const DELIVERIES: &str = "/api/v1/bridge/deliveries";
/// The states that a list can be asked for.
const STATES: [&str; 7] = ["waiting", "pending", "held", "inFlight", "delivered", "deadLettered", "open"];
/// Why a delivery is given up.
pub(super) const REASONS: [&str; 7] =
    ["refused", "gone", "impossible", "attempts", "age", "deleted", "poison"];
/// How often a delivery is looked at that somebody watches.
const LOOK: Duration = Duration::from_millis(500);

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("STATE", "state"),
    ("WAITS FOR", "waitsBecause"),
    ("SERVICE", "service"),
    ("RULE", "rule"),
    ("EVENT", "event"),
    ("FAILURES", "failures"),
    ("DUE", "dueAt"),
    ("ACCEPTED", "acceptedAt"),
];

const FIRST: &[&str] = &[
    "id",
    "state",
    "waitsFor",
    "waitsBecause",
    "waitsUntil",
    "dueAt",
    "reason",
    "status",
    "error",
    "deadAt",
    "service",
    "rule",
    "ruleVersion",
    "event",
    "acceptedAt",
    "failures",
    "counted",
];

pub(super) const TRIES: &[Column] = &[
    ("AT", "at"),
    ("TOOK µs", "tookMicros"),
    ("STATUS", "status"),
    ("ERROR", "error"),
    ("ANSWER", "answer"),
];

/// Which ones.
#[derive(Args)]
pub(crate) struct Filter {
    /// For this service.
    #[arg(long)]
    service: Option<String>,
    /// Because of this rule.
    #[arg(long)]
    rule: Option<String>,
    /// Because of the event with this id.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Given up for this reason.
    #[arg(long, value_parser = REASONS)]
    reason: Option<String>,
}

impl Filter {
    pub(super) fn query(&self) -> Vec<(&'static str, Option<&str>)> {
        vec![
            ("service", self.service.as_deref()),
            ("rule", self.rule.as_deref()),
            ("event", self.event.as_deref()),
            ("reason", self.reason.as_deref()),
        ]
    }
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Deliveries, the newest first.
    List {
        #[command(flatten)]
        filter: Filter,
        /// In this state. `pending` and `held` are kinds of `waiting`; `open` are all that have not ended.
        #[arg(long, value_parser = STATES)]
        state: Option<String>,
        #[command(flatten)]
        pages: Pages,
    },
    /// One delivery with its tries.
    Show {
        id: String,
        /// Goes on until it is delivered or given up; ends with 1 if it is given up.
        #[arg(long)]
        watch: bool,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List { filter, state, pages } => {
                let mut query = filter.query();
                query.push(("state", state.as_deref()));
                let list = List { path: DELIVERIES, query: &query, name: "deliveries", columns: COLUMNS };
                session.list(&list, &pages).await
            }
            Verb::Show { id, watch: false } => shown(session, session.get(path(&id)).await?),
            Verb::Show { id, watch: true } => match watch(session, &id).await? {
                true => Ok(()),
                false => Err(Failure::silent(REFUSED)),
            },
        }
    }
}

fn path(id: &str) -> String {
    format!("{DELIVERIES}/{}", path_part(id))
}

/// What it is, then its tries.
fn shown(session: &Session, mut data: Data) -> Done {
    if session.out.json {
        return session.out.line(&data.text);
    }
    let tries = data.value["attempts"].take();
    data.value.as_object_mut().and_then(|fields| fields.remove("attempts"));
    session.out.describe(&data.value, FIRST)?;
    session.out.section("Tries", TRIES, tries.as_array().map_or(&[], Vec::as_slice))
}

/// Says each change on stderr, and at the end what became of it, and whether it is delivered.
pub(super) async fn watch(session: &Session, id: &str) -> Result<bool, Failure> {
    let mut before = String::new();
    loop {
        let data = session.get(path(id)).await?;
        let now = change(&data.value);
        if now != before {
            note(&now);
            before = now;
        }
        match data.value["state"].as_str() {
            Some("delivered") => return shown(session, data).map(|()| true),
            Some("deadLettered") => return shown(session, data).map(|()| false),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

fn change(delivery: &Value) -> String {
    let word = |field: &str| cell(&delivery[field]);
    let mut out = format!("{}, failures: {}", word("state"), word("failures"));
    if !delivery["waitsFor"].is_null() {
        out.push_str(&format!(", waits for: {}", word("waitsFor")));
    }
    if !delivery["dueAt"].is_null() {
        out.push_str(&format!(", due {}", word("dueAt")));
    }
    out
}
