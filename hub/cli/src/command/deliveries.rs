//! `seawall deliveries`.

use std::time::Duration;

use clap::{Args, Subcommand};
use seawall_client::Reply;
use seawall_client::api::{
    Attempt, Delivery, DeliveryQuery, DeliveryState, DeliveryStateFilter, DeliveryWithAttempts,
};

use crate::connection::Session;
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::lists::Pages;
use crate::output::{Column, cell, note};

/// The states that a list can be filtered by.
const STATES: [&str; 7] = ["waiting", "pending", "held", "inFlight", "delivered", "deadLettered", "open"];
/// The reasons for dead letters.
pub(super) const REASONS: [&str; 7] =
    ["refused", "gone", "impossible", "attempts", "age", "deleted", "poison"];
/// The polling interval of `--watch`.
const LOOK: Duration = Duration::from_millis(500);

const COLUMNS: &[Column<Delivery>] = &[
    ("ID", |delivery| cell(&delivery.id)),
    ("STATE", |delivery| cell(&delivery.state)),
    ("WAITS FOR", |delivery| cell(&delivery.wait.waits_because)),
    ("SERVICE", |delivery| cell(&delivery.service)),
    ("RULE", |delivery| cell(&delivery.rule)),
    ("EVENT", |delivery| cell(&delivery.event)),
    ("FAILURES", |delivery| cell(&delivery.failures)),
    ("DUE", |delivery| cell(&delivery.due_at)),
    ("ACCEPTED", |delivery| cell(&delivery.accepted_at)),
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

pub(super) const ATTEMPTS: &[Column<Attempt>] = &[
    ("AT", |attempt| cell(&attempt.at)),
    ("TOOK µs", |attempt| cell(&attempt.took_micros)),
    ("STATUS", |attempt| cell(&attempt.status)),
    ("ERROR", |attempt| cell(&attempt.error)),
    ("RESPONSE", |attempt| cell(&attempt.answer)),
];

/// A filter for deliveries.
#[derive(Args)]
pub(crate) struct DeliveryFilterArgs {
    /// Only deliveries to this service.
    #[arg(long)]
    service: Option<String>,
    /// Only deliveries of this rule.
    #[arg(long)]
    rule: Option<String>,
    /// Only deliveries of this event.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Only deliveries that were dead-lettered for this reason.
    #[arg(long, value_parser = REASONS)]
    reason: Option<String>,
}

impl DeliveryFilterArgs {
    fn query(&self) -> DeliveryQuery {
        DeliveryQuery {
            service: self.service.as_deref().map(Into::into),
            rule: self.rule.as_deref().map(Into::into),
            event: self.event.clone(),
            reason: self.reason.as_deref().map(Into::into),
            ..DeliveryQuery::default()
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List deliveries, newest first.
    List {
        #[command(flatten)]
        filter: DeliveryFilterArgs,
        /// Only deliveries in this state. `waiting` includes `pending` and `held`; `open` means in progress.
        #[arg(long, value_parser = STATES)]
        state: Option<String>,
        #[command(flatten)]
        pages: Pages,
    },
    /// Show a delivery with its attempts.
    Show {
        id: String,
        /// Wait until it is delivered or dead-lettered; exit with 1 if it is dead-lettered.
        #[arg(long)]
        watch: bool,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let deliveries = session.hub.deliveries();
        match self {
            Verb::List { filter, state, pages } => {
                let state = state.as_deref().map(DeliveryStateFilter::from);
                let list =
                    |page| deliveries.list(&DeliveryQuery { state: state.clone(), page, ..filter.query() });
                session.list(COLUMNS, &pages, list).await
            }
            Verb::Show { id, watch: false } => shown(session, &session.send(deliveries.get(&id)).await?),
            Verb::Show { id, watch: true } => match watch(session, &id).await? {
                true => Ok(()),
                false => Err(CommandError::silent(REFUSED)),
            },
        }
    }
}

/// Prints a delivery, then its attempts.
fn shown(session: &Session, reply: &Reply<DeliveryWithAttempts>) -> CommandResult {
    session.show_without(reply, FIRST, &["attempts"])?;
    if session.out.json { Ok(()) } else { session.out.section("Attempts", ATTEMPTS, &reply.attempts) }
}

/// Prints each change on stderr and the result at the end. True if it was delivered.
pub(super) async fn watch(session: &Session, id: &str) -> Result<bool, CommandError> {
    let mut before = String::new();
    loop {
        let reply = session.send(session.hub.deliveries().get(id)).await?;
        let now = change(&reply.delivery);
        if now != before {
            note(&now);
            before = now;
        }
        match reply.delivery.state {
            DeliveryState::Delivered => return shown(session, &reply).map(|()| true),
            DeliveryState::DeadLettered => return shown(session, &reply).map(|()| false),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

fn change(delivery: &Delivery) -> String {
    let mut out = format!("{}, failures: {}", cell(&delivery.state), delivery.failures);
    if let Some(what) = &delivery.wait.waits_for {
        out.push_str(&format!(", waits for: {}", cell(what)));
    }
    if let Some(due) = &delivery.due_at {
        out.push_str(&format!(", due {}", cell(due)));
    }
    out
}
