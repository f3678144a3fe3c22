//! `seawall sources`.

use clap::Subcommand;

use super::resource::{Put, Resource};
use crate::failure::Done;
use crate::talk::{Session, Why};

const SOURCES: Resource = Resource {
    path: "/api/v1/registry/sources",
    noun: "source",
    columns: &[
        ("NAME", "name"),
        ("PATH", "path"),
        ("VERIFY", "verify.type"),
        ("EVENT TYPE", "eventType"),
        ("ENABLED", "enabled"),
        ("VERSION", "version"),
    ],
    first: &["name", "path", "enabled", "eventType", "eventId", "version", "changedAt"],
};

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// All sources.
    List,
    /// One source.
    Show { name: String },
    /// Registers a source, or changes one.
    Put(Put),
    /// Deletes a source.
    Delete {
        name: String,
        #[command(flatten)]
        why: Why,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List => SOURCES.list(session).await,
            Verb::Show { name } => SOURCES.show(session, &name).await,
            Verb::Put(put) => SOURCES.put(session, &put).await,
            Verb::Delete { name, why } => SOURCES.delete(session, &name, None, &why).await,
        }
    }
}
