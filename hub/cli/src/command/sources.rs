//! `seawall sources`.

use clap::Subcommand;
use seawall_client::api::{Name, Source, Verify};

use super::resource::{self, ChangeArgs, PutArgs, Resource};
use crate::connection::Session;
use crate::error::CommandResult;
use crate::output::{Column, cell};

impl Resource for Source {
    const NOUN: &'static str = "source";

    const COLUMNS: &'static [Column<Source>] = &[
        ("NAME", |source| cell(&source.spec.name)),
        ("PATH", |source| cell(&source.path)),
        ("VERIFY", |source| cell(source.spec.verify.as_ref().map_or("", Verify::r#type))),
        ("EVENT TYPE", |source| cell(&source.spec.event_type)),
        ("ENABLED", |source| cell(&source.spec.enabled)),
        ("VERSION", |source| cell(&source.version)),
    ];

    const FIRST: &'static [&'static str] =
        &["name", "path", "enabled", "eventType", "eventId", "version", "changedAt"];

    fn name(&self) -> &Name {
        &self.spec.name
    }

    fn version(&self) -> u64 {
        self.version
    }
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List sources.
    List,
    /// Show a source.
    Show { name: String },
    /// Create or update a source.
    Put(PutArgs),
    /// Delete a source.
    Delete(ChangeArgs),
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let sources = session.hub.sources();
        match self {
            Verb::List => resource::list(session, sources.list()).await,
            Verb::Show { name } => resource::show(session, sources.get(&name)).await,
            Verb::Put(put) => resource::put(session, &put, |file| sources.create(file)).await,
            Verb::Delete(change) => {
                resource::delete::<Source>(session, &change, |name| sources.delete(name)).await
            }
        }
    }
}
