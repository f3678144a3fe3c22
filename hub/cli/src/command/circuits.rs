//! `seawall circuits`.

use clap::Subcommand;
use seawall_hub_server::client::Ask;
use serde_json::{Value, json};

use super::services::SERVICES;
use crate::failure::Done;
use crate::output::Column;
use crate::talk::{Session, because};

const COLUMNS: &[Column] = &[
    ("SERVICE", "name"),
    ("CIRCUIT", "circuit"),
    ("PAUSED", "paused"),
    ("WAITING", "waiting"),
    ("WAITS FOR", "waitsBecause"),
];
const HISTORY: &[Column] = &[
    ("AT", "at"),
    ("STATE", "state"),
    ("UNTIL", "until"),
    ("FAILED PROBES", "failedProbes"),
    ("REASON", "reason"),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// The circuits of all services.
    List,
    /// A circuit, with what it went through.
    Show { service: String },
    /// Closes a circuit and forgets what it counted.
    Reset {
        service: String,
        /// Why you do it: kept in the history and in the audit log.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Lets nothing through until somebody says otherwise.
    ForceOpen {
        service: String,
        /// Why you do it: the next one on duty will ask.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Lets everything through until somebody says otherwise.
    ForceClosed {
        service: String,
        /// Why you do it: the next one on duty will ask.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List => session.whole_list(SERVICES.path, COLUMNS).await,
            Verb::Show { service } => show(session, &service).await,
            Verb::Reset { service, reason } => act(session, &service, "reset", reason.as_deref()).await,
            Verb::ForceOpen { service, reason } => act(session, &service, "forceOpen", Some(&reason)).await,
            Verb::ForceClosed { service, reason } => {
                act(session, &service, "forceClosed", Some(&reason)).await
            }
        }
    }
}

async fn show(session: &Session, service: &str) -> Done {
    let mut data = session.get(SERVICES.at(service, "/circuit")).await?;
    if session.out.json {
        return session.out.line(&data.text);
    }
    let mut take = |name: &str| data.value.as_object_mut().and_then(|fields| fields.remove(name));
    let (history, guard) = (take("history").unwrap_or_default(), take("guard"));
    session.out.describe(&data.value, &["state", "reason", "policy", "opened", "refused", "window"])?;
    if let Some(guard) = guard.as_ref().and_then(Value::as_str) {
        session.out.text(&format!("\n{guard}"))?;
    }
    session.out.section("History", HISTORY, history.as_array().map_or(&[], Vec::as_slice))
}

async fn act(session: &Session, service: &str, verb: &str, reason: Option<&str>) -> Done {
    let body = reason.map_or(json!({}), |reason| json!({"reason": reason}));
    let ask = Ask::post(SERVICES.at(service, &format!("/circuit:{verb}"))).json(body.to_string());
    let data = session.ask(because(ask, reason)).await?;
    session.told(&data, |data| {
        format!("the circuit of `{service}` is {}", data["state"].as_str().unwrap_or("not there"))
    })
}
