//! `seawall dlq`: the dead letter desk.

mod choose;
mod edit;
mod export;
mod groups;
mod letter;
mod many;

use clap::Subcommand;
use seawall_hub_server::client::{Ask, path_part};

use self::choose::Filter;
use super::deliveries::REASONS;
use crate::failure::Done;
use crate::lists::{List, Pages};
use crate::output::Column;
use crate::talk::{Session, Why};

const DEAD_LETTERS: &str = "/api/v1/bridge/deadLetters";

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("GIVEN UP", "deadAt"),
    ("STANDING", "standing"),
    ("REASON", "reason"),
    ("SERVICE", "service"),
    ("RULE", "rule"),
    ("EVENT", "event"),
    ("STATUS", "status"),
    ("ERROR", "error"),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// What dead letters have in common, the newest first.
    Groups {
        #[command(flatten)]
        which: groups::Which,
        #[command(flatten)]
        pages: Pages,
    },
    /// One group: how many stand where, the note, and a sample.
    Group {
        #[arg(value_name = "FP")]
        fingerprint: String,
    },
    /// Somebody is at it: the group is acknowledged.
    Ack(groups::Said),
    /// Done with a group, until one more fails alike.
    Resolve(groups::Said),
    /// Not done with a group after all.
    Reopen(groups::Said),
    /// Writes something down beside a dead letter or a group; an empty text takes it away.
    Note {
        #[arg(value_name = "ID|FP")]
        name: String,
        text: String,
        #[command(flatten)]
        why: Why,
    },
    /// Dead letters, the newest first.
    List {
        #[command(flatten)]
        filter: Filter,
        /// Given up for this reason.
        #[arg(long, visible_alias = "cause", value_parser = REASONS)]
        reason: Option<String>,
        #[command(flatten)]
        pages: Pages,
    },
    /// One dead letter with all evidence.
    Show {
        id: String,
        /// Only its event, as it came.
        #[arg(long)]
        raw: bool,
    },
    /// The request of one as a line for a shell.
    Curl { id: String },
    /// Sends them again: one as a new delivery, many as work that is followed.
    Replay(many::Replay),
    /// Sends a changed copy of one, after showing what is different.
    Edit(edit::Edit),
    /// Puts them aside: no replay of many takes them.
    Park(many::Put),
    /// What was put aside is open again.
    Unpark(many::Put),
    /// Done with them: they go out of sight, and for good after a while.
    Delete(many::Put),
    /// What was deleted is back.
    Restore(many::Put),
    /// They go for good, with their evidence; only counted without `--force`.
    Purge(many::Purge),
    /// Dead letters with all evidence, a line of JSON each.
    Export(export::Export),
    /// The same as `delete`, for one.
    Discard {
        id: String,
        #[command(flatten)]
        why: Why,
    },
}

fn path(id: &str, verb: &str) -> String {
    format!("{DEAD_LETTERS}/{}{verb}", path_part(id))
}

fn letters(count: u64) -> String {
    if count == 1 { "1 dead letter".into() } else { format!("{count} dead letters") }
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::Groups { which, pages } => groups::list(session, &which, &pages).await,
            Verb::Group { fingerprint } => groups::show(session, &fingerprint).await,
            Verb::Ack(said) => groups::settle(session, &said, "acknowledge").await,
            Verb::Resolve(said) => groups::settle(session, &said, "resolve").await,
            Verb::Reopen(said) => groups::settle(session, &said, "reopen").await,
            Verb::Note { name, text, why } => groups::note(session, &name, &text, &why).await,
            Verb::List { filter, reason, pages } => {
                let said = filter.pairs(reason.as_deref());
                let query: Vec<(&str, Option<&str>)> =
                    said.iter().map(|(name, value)| (*name, value.as_deref())).collect();
                let list = List { path: DEAD_LETTERS, query: &query, name: "deadLetters", columns: COLUMNS };
                session.list(&list, &pages).await
            }
            Verb::Show { id, raw } => letter::show(session, &id, raw).await,
            Verb::Curl { id } => letter::curl(session, &id).await,
            Verb::Replay(replay) => replay.run(session).await,
            Verb::Edit(edit) => edit.run(session).await,
            Verb::Park(put) => put.run(session, "park").await,
            Verb::Unpark(put) => put.run(session, "unpark").await,
            Verb::Delete(put) => put.run(session, "delete").await,
            Verb::Restore(put) => put.run(session, "restore").await,
            Verb::Purge(purge) => purge.run(session).await,
            Verb::Export(export) => export.run(session).await,
            Verb::Discard { id, why } => {
                let data = session.ask(why.of(Ask::delete(path(&id, "")))).await?;
                session.told(&data, |data| {
                    format!("dead letter {} is discarded", data["id"].as_str().unwrap_or_default())
                })
            }
        }
    }
}
