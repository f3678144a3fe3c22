//! `seawall services`.

use clap::Subcommand;
use seawall_client::api::{Auth, Name, Service, TestRequest};

use super::resource::{self, ChangeArgs, DeleteArgs, PutArgs, Resource};
use crate::connection::Session;
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::output::{Column, cell};

impl Resource for Service {
    const NOUN: &'static str = "service";

    const COLUMNS: &'static [Column<Service>] = &[
        ("NAME", |service| cell(&service.spec.name)),
        ("ADDRESS", |service| cell(&service.spec.address)),
        ("CIRCUIT", |service| cell(&service.circuit)),
        ("PAUSED", |service| cell(&service.spec.paused)),
        ("WAITING", |service| cell(&service.waiting)),
        ("IN PROGRESS", |service| cell(&service.in_flight)),
        ("AUTH", |service| cell(service.spec.auth.as_ref().map_or("", Auth::r#type))),
        ("VERSION", |service| cell(&service.version)),
    ];

    const FIRST: &'static [&'static str] = &[
        "name",
        "address",
        "circuit",
        "paused",
        "waiting",
        "waitsBecause",
        "inFlight",
        "version",
        "changedAt",
    ];

    fn name(&self) -> &Name {
        &self.spec.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List services.
    List,
    /// Show a service.
    Show { name: String },
    /// Create or update a service.
    Put(PutArgs),
    /// Delete a service.
    Delete(DeleteArgs),
    /// Pause its deliveries.
    Pause(ChangeArgs),
    /// Resume its deliveries.
    Resume(ChangeArgs),
    /// Send a test request through its resilience policies.
    Test {
        name: String,
        /// Path below the address of the service.
        #[arg(long, default_value = "/")]
        path: String,
        /// HTTP method.
        #[arg(long, default_value = "GET")]
        method: String,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let services = session.hub.services();
        match self {
            Verb::List => resource::list(session, services.list()).await,
            Verb::Show { name } => resource::show(session, services.get(&name)).await,
            Verb::Put(put) => resource::put(session, &put, |file| services.create(file)).await,
            Verb::Delete(args) => {
                let delete = |name: &str, pending| services.delete(name, pending);
                resource::delete_with_pending::<Service>(session, &args, delete).await
            }
            Verb::Pause(args) => {
                resource::change(session, &args, "paused", |name| services.pause(name)).await
            }
            Verb::Resume(args) => {
                resource::change(session, &args, "resumed", |name| services.resume(name)).await
            }
            Verb::Test { name, path, method } => {
                let request = TestRequest { method, path: path.into(), ..TestRequest::default() };
                test(session, &name, &request).await
            }
        }
    }
}

async fn test(session: &Session, name: &str, request: &TestRequest) -> CommandResult {
    let reply = session.send(session.hub.services().test(name, request)).await?;
    session.show(
        &reply,
        &["reached", "good", "httpStatus", "fault", "error", "decidedBy", "latencyMs", "circuit"],
    )?;
    if reply.good == Some(true) { Ok(()) } else { Err(CommandError::silent(REFUSED)) }
}
