//! `seawall migrate`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use seawall::Clock;
use seawall_hub_server::DatabaseUrl;
use seawall_hub_server::migrate::{MigrationProgress, MigrationReport, to_database, to_folder};

use crate::database::with_password;
use crate::error::{CommandError, CommandResult};
use crate::output::{ProgressBar, say};

/// Move the data of a stopped hub from its data directory to PostgreSQL, or back.
#[derive(Args)]
pub(crate) struct Migrate {
    /// Data directory of the hub, or the URL of its database.
    #[arg(long, value_name = "DIR|URL")]
    from: String,

    /// URL of an empty database, or a directory without a database.
    #[arg(long, value_name = "URL|DIR")]
    to: String,

    /// File with the password of the database. Without it, the password comes from PGPASSWORD.
    #[arg(long, env = "SEAWALL_DATABASE_PASSWORD_FILE", value_name = "FILE")]
    database_password_file: Option<PathBuf>,
}

/// One of the two places.
enum Place<'a> {
    Folder(&'a Path),
    Database(DatabaseUrl),
}

impl Migrate {
    pub(crate) fn run(self, clock: &Clock) -> CommandResult {
        let places = self.place(&self.from).and_then(|from| Ok((from, self.place(&self.to)?)));
        let places = places.map_err(|error| CommandError::usage(format!("{error:#}")))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(CommandError::of)?;
        let bar = ProgressBar::new(Some(100));
        let tell = |at: MigrationProgress| bar.at(percent(at), at.table);
        let moved = runtime.block_on(async {
            match &places {
                (Place::Folder(from), Place::Database(to)) => {
                    to_database(from, to, clock, &tell).await.map_err(CommandError::of)
                }
                (Place::Database(from), Place::Folder(to)) => {
                    to_folder(from, to, clock, &tell).await.map_err(CommandError::of)
                }
                _ => Err(CommandError::usage(
                    "one of `--from` and `--to` must be a directory, and the other a URL that begins with `postgres://`",
                )),
            }
        });
        bar.clear();
        let report = moved?;
        match places {
            (Place::Folder(from), _) => told_of_database(&report, from),
            (_, Place::Folder(to)) => told_of_folder(&report, to),
            _ => Vec::new(),
        }
        .iter()
        .for_each(|line| {
            // A closed stdout does not undo the work.
            let _ = say(line);
        });
        Ok(())
    }

    fn place<'a>(&self, text: &'a str) -> anyhow::Result<Place<'a>> {
        if !text.contains("://") {
            return Ok(Place::Folder(Path::new(text)));
        }
        let url = DatabaseUrl::new(text);
        anyhow::ensure!(
            !url.has_password(),
            "a password on the command line is not supported: every user of this machine can read it; set PGPASSWORD or \
             `--database-password-file`"
        );
        let url = with_password(&url, self.database_password_file.as_deref());
        url.map(Place::Database).context("can't get the password")
    }
}

fn percent(at: MigrationProgress) -> u64 {
    at.done.saturating_mul(100).checked_div(at.total).unwrap_or(100)
}

fn told_of_database(report: &MigrationReport, from: &Path) -> Vec<String> {
    let from = from.display();
    vec![
        summary(report),
        format!(
            "start the hub with `--database` and `--data-dir {from}`, where its `secret.key` is; `seawall.db` there is not used any \
             more and stays as a copy of before"
        ),
    ]
}

fn told_of_folder(report: &MigrationReport, to: &Path) -> Vec<String> {
    let (folder, key) = (to.display(), to.join("secret.key"));
    let mut lines = vec![summary(report)];
    if !key.exists() {
        lines.push(format!("copy the `secret.key` of the hub to `{folder}` before it starts there"));
    }
    lines.push(format!("start the hub with `--data-dir {folder}` and without `--database`; no hub starts on the database any more"));
    lines
}

fn summary(report: &MigrationReport) -> String {
    let rows =
        |wanted: &str| report.tables.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, rows)| *rows);
    let all: u64 = report.tables.iter().map(|(_, rows)| rows).sum();
    let how = if report.resumed { "an earlier run had moved" } else { "moved" };
    format!(
        "{how} and compared {} events, {} deliveries, {} dead letters, {all} rows in all",
        rows("events"),
        rows("deliveries"),
        rows("dead_letters")
    )
}
