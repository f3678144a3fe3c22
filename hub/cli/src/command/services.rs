//! `seawall services`.

use clap::Subcommand;
use seawall_hub_server::client::Ask;
use serde_json::json;

use super::resource::{Act, Pending, Put, Resource};
use crate::failure::{Done, Failure, REFUSED};
use crate::talk::{Session, Why};

pub(super) const SERVICES: Resource = Resource {
    path: "/api/v1/registry/services",
    noun: "service",
    columns: &[
        ("NAME", "name"),
        ("ADDRESS", "address"),
        ("CIRCUIT", "circuit"),
        ("PAUSED", "paused"),
        ("WAITING", "waiting"),
        ("IN FLIGHT", "inFlight"),
        ("AUTH", "auth.type"),
        ("VERSION", "version"),
    ],
    first: &[
        "name",
        "address",
        "circuit",
        "paused",
        "waiting",
        "waitsBecause",
        "inFlight",
        "version",
        "changedAt",
    ],
};

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// All services.
    List,
    /// One service.
    Show { name: String },
    /// Registers a service, or changes one.
    Put(Put),
    /// Deletes a service.
    Delete {
        name: String,
        /// What becomes of deliveries that still wait for it.
        #[arg(long)]
        pending: Option<Pending>,
        #[command(flatten)]
        why: Why,
    },
    /// Holds its deliveries.
    Pause {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Lets its deliveries go on.
    Resume {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Sends one request through its guard, to see whether it answers.
    Test {
        name: String,
        /// Below its address.
        #[arg(long, default_value = "/")]
        path: String,
        #[arg(long, default_value = "GET")]
        method: String,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        let act = |verb, done, why| Act { verb, body: None, done, why };
        match self {
            Verb::List => SERVICES.list(session).await,
            Verb::Show { name } => SERVICES.show(session, &name).await,
            Verb::Put(put) => SERVICES.put(session, &put).await,
            Verb::Delete { name, pending, why } => SERVICES.delete(session, &name, pending, &why).await,
            Verb::Pause { name, why } => SERVICES.act(session, &name, act("pause", "paused", &why)).await,
            Verb::Resume { name, why } => {
                SERVICES.act(session, &name, act("resume", "at work again", &why)).await
            }
            Verb::Test { name, path, method } => test(session, &name, &path, &method).await,
        }
    }
}

async fn test(session: &Session, name: &str, path: &str, method: &str) -> Done {
    let ask = Ask::post(SERVICES.at(name, ":test")).json(json!({"path": path, "method": method}).to_string());
    let data = session.ask(ask).await?;
    session.show(
        &data,
        &["reached", "good", "httpStatus", "fault", "error", "decidedBy", "latencyMs", "circuit"],
    )?;
    if data.value["good"] == true { Ok(()) } else { Err(Failure::silent(REFUSED)) }
}
