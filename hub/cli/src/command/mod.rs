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

use crate::failure::{Done, Failure, REFUSED};
use crate::talk::Talk;

/// What is asked of a running hub.
#[derive(Subcommand)]
pub(crate) enum Asking {
    /// Calls a service through its guard.
    Call(call::Call),
    /// Sends an event, or a file of them.
    Send(send::Send),
    /// Whom the hub calls.
    #[command(subcommand)]
    Services(services::Verb),
    /// Which events become which requests.
    #[command(subcommand)]
    Rules(rules::Verb),
    /// Who sends webhooks to the hub.
    #[command(subcommand)]
    Sources(sources::Verb),
    /// What happened.
    #[command(subcommand)]
    Events(events::Verb),
    /// What becomes of events, one service at a time.
    #[command(subcommand)]
    Deliveries(deliveries::Verb),
    /// Dead letters: deliveries that were given up.
    #[command(subcommand)]
    Dlq(dlq::Verb),
    /// Work on many dead letters: how far it is, and its brake.
    #[command(subcommand)]
    Operations(operations::Verb),
    /// The circuits of services.
    #[command(subcommand)]
    Circuits(circuits::Verb),
    /// What is wrong, and who is told.
    #[command(subcommand)]
    Alerts(alerts::Verb),
    /// Keys to the API.
    #[command(subcommand)]
    Keys(keys::Verb),
    /// Who has changed what, the newest first.
    Audit(audit::Audit),
    /// How the hub is.
    Health,
}

/// What needs no hub.
#[derive(Subcommand)]
pub(crate) enum Alone {
    /// Reads configurations of guards, and says everything that is wrong with them.
    CheckConfig(check_config::CheckConfig),
    /// Prints what makes a shell complete this command line.
    Completions(completions::Completions),
}

impl Asking {
    pub(crate) fn run(self, talk: &Talk) -> Done {
        let session = talk.session()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(REFUSED, format!("can't start: {error}")))?;
        runtime.block_on(async {
            match self {
                Asking::Call(call) => call.run(&session).await,
                Asking::Send(send) => send.run(&session).await,
                Asking::Services(verb) => verb.run(&session).await,
                Asking::Rules(verb) => verb.run(&session).await,
                Asking::Sources(verb) => verb.run(&session).await,
                Asking::Events(verb) => verb.run(&session).await,
                Asking::Deliveries(verb) => verb.run(&session).await,
                Asking::Dlq(verb) => verb.run(&session).await,
                Asking::Operations(verb) => verb.run(&session).await,
                Asking::Circuits(verb) => verb.run(&session).await,
                Asking::Alerts(verb) => verb.run(&session).await,
                Asking::Keys(verb) => verb.run(&session).await,
                Asking::Audit(audit) => audit.run(&session).await,
                Asking::Health => health::run(&session).await,
            }
        })
    }
}

impl Alone {
    pub(crate) fn run(self, talk: &Talk) -> Done {
        match self {
            Alone::CheckConfig(check) => check.run(&talk.out()),
            Alone::Completions(completions) => completions.run(&talk.out()),
        }
    }
}
