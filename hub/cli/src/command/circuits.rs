//! `seawall circuits`.

use clap::Subcommand;
use seawall_client::ApiCall;
use seawall_client::api::{CircuitChange, CircuitMove, Reason, RequiredReason, Service};

use crate::connection::Session;
use crate::error::CommandResult;
use crate::output::{Column, cell};

const COLUMNS: &[Column<Service>] = &[
    ("SERVICE", |service| cell(&service.spec.name)),
    ("CIRCUIT", |service| cell(&service.circuit)),
    ("PAUSED", |service| cell(&service.spec.paused)),
    ("WAITING", |service| cell(&service.waiting)),
    ("WAITS FOR", |service| cell(&service.wait.waits_because)),
];
const HISTORY: &[Column<CircuitMove>] = &[
    ("AT", |moved| cell(&moved.at)),
    ("STATE", |moved| cell(&moved.state)),
    ("UNTIL", |moved| cell(&moved.until)),
    ("FAILED PROBES", |moved| cell(&moved.failed_probes)),
    ("REASON", |moved| cell(&moved.reason)),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List the circuits of all services.
    List,
    /// Show a circuit and its history.
    Show { service: String },
    /// Close a circuit and clear its counts.
    Reset {
        service: String,
        /// Reason, recorded in the history and the audit log.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Force a circuit open: reject every call until it is reset.
    ForceOpen {
        service: String,
        /// Reason, visible to other operators and recorded in the audit log.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Force a circuit closed: admit every call until it is reset.
    ForceClosed {
        service: String,
        /// Reason, visible to other operators and recorded in the audit log.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let circuits = session.hub.circuits();
        match self {
            Verb::List => session.whole_list(COLUMNS, session.hub.services().list()).await,
            Verb::Show { service } => show(session, &service).await,
            Verb::Reset { service, reason } => {
                let call = circuits.reset(&service, &Reason { reason: reason.clone() });
                let call = if let Some(reason) = reason { call.reason(reason) } else { call };
                act(session, &service, call).await
            }
            Verb::ForceOpen { service, reason } => {
                let call = circuits.force_open(&service, &RequiredReason { reason: reason.clone() });
                act(session, &service, call.reason(reason)).await
            }
            Verb::ForceClosed { service, reason } => {
                let call = circuits.force_closed(&service, &RequiredReason { reason: reason.clone() });
                act(session, &service, call.reason(reason)).await
            }
        }
    }
}

async fn show(session: &Session, service: &str) -> CommandResult {
    let reply = session.send(session.hub.circuits().get(service)).await?;
    let first = ["state", "reason", "policy", "opened", "refused", "window"];
    session.show_without(&reply, &first, &["history", "guard"])?;
    if session.out.json {
        return Ok(());
    }
    if let Some(guard) = &reply.guard {
        session.out.text(&format!("\n{guard}"))?;
    }
    let history = reply.details.as_ref().map_or(&[][..], |details| &details.history);
    session.out.section("History", HISTORY, history)
}

async fn act(session: &Session, service: &str, call: ApiCall<CircuitChange>) -> CommandResult {
    let reply = session.send(call).await?;
    session.told(&reply, |change| {
        format!("circuit of `{service}`: {}", change.state.as_ref().map_or("none", |state| state.as_str()))
    })
}
