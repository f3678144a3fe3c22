//! `seawall dlq`: dead letters.

mod bulk;
mod edit;
mod export;
mod groups;
mod letter;
mod selection;

use clap::Subcommand;
use seawall_client::api::{BulkTask, DeadLetter, DeadLetterQuery};

use self::selection::LetterFilterArgs;
use super::deliveries::REASONS;
use crate::connection::{ReasonArg, Session};
use crate::error::CommandResult;
use crate::lists::Pages;
use crate::output::{Column, cell};

const COLUMNS: &[Column<DeadLetter>] = &[
    ("ID", |letter| cell(&letter.delivery.id)),
    ("DEAD-LETTERED", |letter| cell(&letter.dead_at)),
    ("STATE", |letter| cell(&letter.standing)),
    ("REASON", |letter| cell(&letter.delivery.reason)),
    ("SERVICE", |letter| cell(&letter.delivery.service)),
    ("RULE", |letter| cell(&letter.delivery.rule)),
    ("EVENT", |letter| cell(&letter.delivery.event)),
    ("STATUS", |letter| cell(&letter.status)),
    ("ERROR", |letter| cell(&letter.error)),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List groups of dead letters with the same failure, newest first.
    Groups {
        #[command(flatten)]
        which: groups::GroupFilterArgs,
        #[command(flatten)]
        pages: Pages,
    },
    /// Show a group: its counts, its note and a sample.
    Group {
        /// Fingerprint of the group: `grp_…`.
        #[arg(value_name = "FP")]
        fingerprint: String,
    },
    /// Acknowledge a group.
    Ack(groups::GroupNoteArgs),
    /// Resolve a group; the next dead letter of the group reopens it.
    Resolve(groups::GroupNoteArgs),
    /// Reopen a group.
    Reopen(groups::GroupNoteArgs),
    /// Set the note of a dead letter or a group; an empty text removes it.
    Note {
        /// Id of the dead letter, or fingerprint of the group.
        #[arg(value_name = "ID|FP")]
        name: String,
        /// The note; empty to remove it.
        text: String,
        #[command(flatten)]
        why: ReasonArg,
    },
    /// List dead letters, newest first.
    List {
        #[command(flatten)]
        filter: LetterFilterArgs,
        /// Only those dead-lettered for this reason.
        #[arg(long, visible_alias = "cause", value_parser = REASONS)]
        reason: Option<String>,
        #[command(flatten)]
        pages: Pages,
    },
    /// Show a dead letter with its attempts, request and event.
    Show {
        id: String,
        /// Print only the original event.
        #[arg(long)]
        raw: bool,
    },
    /// Print the request of a dead letter as a curl command.
    Curl { id: String },
    /// Replay dead letters: one as a new delivery, several as a bulk operation.
    Replay(bulk::ReplayArgs),
    /// Edit and replay a dead letter, after showing the differences.
    Edit(edit::Edit),
    /// Park dead letters, so that bulk replays skip them.
    Park(bulk::MoveArgs),
    /// Unpark dead letters.
    Unpark(bulk::MoveArgs),
    /// Delete dead letters; they can be restored until their retention ends.
    Delete(bulk::MoveArgs),
    /// Restore deleted dead letters.
    Restore(bulk::MoveArgs),
    /// Purge dead letters permanently, with all evidence; a dry run without `--force`.
    Purge(bulk::PurgeArgs),
    /// Export dead letters with all evidence, one line of JSON each.
    Export(export::Export),
    /// Delete one dead letter; the same as `delete ID`.
    Discard {
        id: String,
        #[command(flatten)]
        why: ReasonArg,
    },
}

fn letters(count: u64) -> String {
    if count == 1 { "1 dead letter".into() } else { format!("{count} dead letters") }
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let (dead_letters, groups) = (session.hub.dead_letters(), session.hub.dead_letter_groups());
        match self {
            Verb::Groups { which, pages } => groups::list(session, &which, &pages).await,
            Verb::Group { fingerprint } => groups::show(session, &fingerprint).await,
            Verb::Ack(args) => {
                groups::changed(session, &args, groups.acknowledge(&args.fingerprint, &args.input())).await
            }
            Verb::Resolve(args) => {
                groups::changed(session, &args, groups.resolve(&args.fingerprint, &args.input())).await
            }
            Verb::Reopen(args) => {
                groups::changed(session, &args, groups.reopen(&args.fingerprint, &args.input())).await
            }
            Verb::Note { name, text, why } => groups::note(session, &name, &text, &why).await,
            Verb::List { filter, reason, pages } => {
                let filter = filter.query(&session.clock, reason.as_deref());
                let list = |page| dead_letters.list(&DeadLetterQuery { filter: filter.clone(), page });
                session.list(COLUMNS, &pages, list).await
            }
            Verb::Show { id, raw } => letter::show(session, &id, raw).await,
            Verb::Curl { id } => letter::curl(session, &id).await,
            Verb::Replay(replay) => replay.run(session).await,
            Verb::Edit(edit) => edit.run(session).await,
            Verb::Park(args) => args.run(session, BulkTask::Park).await,
            Verb::Unpark(args) => args.run(session, BulkTask::Unpark).await,
            Verb::Delete(args) => args.run(session, BulkTask::Delete).await,
            Verb::Restore(args) => args.run(session, BulkTask::Restore).await,
            Verb::Purge(purge) => purge.run(session).await,
            Verb::Export(export) => export.run(session).await,
            Verb::Discard { id, why } => {
                let reply = session.send(why.of(dead_letters.delete(&id))).await?;
                session.told(&reply, |deleted| format!("dead letter {} deleted", deleted.id))
            }
        }
    }
}
