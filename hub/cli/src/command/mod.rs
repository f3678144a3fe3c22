//! The commands beside `serve`: one file for each noun.

mod alerts;
mod audit;
mod call;
mod check_config;
mod circuits;
mod completions;
mod deliveries;
mod dlq;
mod events;
mod follow;
mod health;
mod keys;
mod operations;
mod resource;
mod rules;
mod send;
mod services;
mod sources;

use clap::Subcommand;
use seawall::Clock;

use crate::connection::ConnectArgs;
use crate::error::{CommandError, CommandResult, REFUSED};

/// Commands that connect to a running hub.
#[derive(Subcommand)]
pub(crate) enum HubCommand {
    /// Call a service through its resilience policies.
    Call(call::Call),
    /// Send an event, or a file of events.
    Send(send::Send),
    /// Manage services.
    #[command(subcommand)]
    Services(services::Verb),
    /// Manage rules, which turn events into requests.
    #[command(subcommand)]
    Rules(rules::Verb),
    /// Manage webhook sources.
    #[command(subcommand)]
    Sources(sources::Verb),
    /// Inspect events.
    #[command(subcommand)]
    Events(events::Verb),
    /// Inspect deliveries.
    #[command(subcommand)]
    Deliveries(deliveries::Verb),
    /// Inspect, replay and delete dead letters.
    #[command(subcommand)]
    Dlq(dlq::Verb),
    /// Monitor and control bulk operations on dead letters.
    #[command(subcommand)]
    Operations(operations::Verb),
    /// Inspect and control circuit breakers.
    #[command(subcommand)]
    Circuits(circuits::Verb),
    /// Manage alerts.
    #[command(subcommand)]
    Alerts(alerts::Verb),
    /// Manage API keys.
    #[command(subcommand)]
    Keys(keys::Verb),
    /// Show the audit log, newest first.
    Audit(audit::Audit),
    /// Show health.
    Health,
}

/// Commands that need no hub.
#[derive(Subcommand)]
pub(crate) enum LocalCommand {
    /// Validate guard configuration files and report every problem.
    CheckConfig(check_config::CheckConfig),
    /// Generate shell completions.
    Completions(completions::Completions),
}

impl HubCommand {
    pub(crate) fn run(self, connection: &ConnectArgs, clock: Clock) -> CommandResult {
        let session = connection.session(clock)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::new(REFUSED, format!("can't start: {error}")))?;
        runtime.block_on(async {
            match self {
                HubCommand::Call(call) => call.run(&session).await,
                HubCommand::Send(send) => send.run(&session).await,
                HubCommand::Services(verb) => verb.run(&session).await,
                HubCommand::Rules(verb) => verb.run(&session).await,
                HubCommand::Sources(verb) => verb.run(&session).await,
                HubCommand::Events(verb) => verb.run(&session).await,
                HubCommand::Deliveries(verb) => verb.run(&session).await,
                HubCommand::Dlq(verb) => verb.run(&session).await,
                HubCommand::Operations(verb) => verb.run(&session).await,
                HubCommand::Circuits(verb) => verb.run(&session).await,
                HubCommand::Alerts(verb) => verb.run(&session).await,
                HubCommand::Keys(verb) => verb.run(&session).await,
                HubCommand::Audit(audit) => audit.run(&session).await,
                HubCommand::Health => health::run(&session).await,
            }
        })
    }
}

impl LocalCommand {
    pub(crate) fn run(self, connection: &ConnectArgs) -> CommandResult {
        match self {
            LocalCommand::CheckConfig(check) => check.run(&connection.out()),
            LocalCommand::Completions(completions) => completions.run(&connection.out()),
        }
    }
}
