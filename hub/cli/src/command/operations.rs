//! `seawall operations`: bulk operations on dead letters.

use clap::{Args, Subcommand};
use seawall_client::ApiCall;
use seawall_client::api::{Operation, ReasonInput};

use super::follow::{follow, summary};
use crate::connection::{ReasonArg, Session};
use crate::error::CommandResult;
use crate::lists::Pages;
use crate::output::{Column, cell};

const COLUMNS: &[Column<Operation>] = &[
    ("ID", |operation| cell(&operation.id)),
    ("TASK", |operation| cell(&operation.task)),
    ("STATE", |operation| cell(&operation.state)),
    ("%", |operation| cell(&operation.percent)),
    ("TOTAL", |operation| cell(&operation.progress.total)),
    ("DELIVERED", |operation| cell(&operation.progress.delivered)),
    ("FAILED", |operation| cell(&operation.progress.failed)),
    ("IN PROGRESS", |operation| cell(&operation.progress.under_way)),
    ("STARTED", |operation| cell(&operation.began_at)),
    ("STARTED BY", |operation| cell(&operation.who)),
    ("REASON", |operation| cell(&operation.reason)),
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
pub(crate) struct OperationArg {
    id: String,
    #[command(flatten)]
    why: ReasonArg,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List bulk operations, newest first.
    List {
        #[command(flatten)]
        pages: Pages,
    },
    /// Show an operation: its task, its progress and what it waits for.
    Show { id: String },
    /// Follow an operation to its end; exit with 6 if it did not succeed in full. With `--json`, print a line per change.
    Watch { id: String },
    /// Pause an operation. Replays already started will finish.
    Pause(OperationArg),
    /// Resume an operation. One that its canary stopped continues without a canary.
    Resume(OperationArg),
    /// Cancel an operation. Replays already started will finish.
    Cancel(OperationArg),
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let (operations, none) = (session.hub.operations(), ReasonInput::default());
        match self {
            Verb::List { pages } => session.list(COLUMNS, &pages, |page| operations.list(&page)).await,
            Verb::Show { id } => session.show(&session.send(operations.get(&id)).await?, FIRST),
            Verb::Watch { id } => follow(session, &id, true).await,
            Verb::Pause(OperationArg { id, why }) => {
                changed(session, why.of(operations.pause(&id, &none))).await
            }
            Verb::Resume(OperationArg { id, why }) => {
                changed(session, why.of(operations.resume(&id, &none))).await
            }
            Verb::Cancel(OperationArg { id, why }) => {
                changed(session, why.of(operations.cancel(&id, &none))).await
            }
        }
    }
}

async fn changed(session: &Session, call: ApiCall<Operation>) -> CommandResult {
    let reply = session.send(call).await?;
    session.told(&reply, summary)
}
