//! `seawall backup` and `seawall restore`.

use std::path::PathBuf;

use clap::Args;
use seawall::Clock;
use seawall_hub_server::backup::{BackupError, BackupReport, copy, restore};

use crate::error::{CommandError, CommandResult};
use crate::output::say;

/// Back up the data of a hub, which may be running or stopped.
#[derive(Args)]
pub(crate) struct Backup {
    /// Target directory, new or empty.
    to: PathBuf,

    /// Data directory of the hub.
    #[arg(long, env = "SEAWALL_DATA_DIR")]
    data_dir: PathBuf,

    /// Include `secret.key`. Anyone with such a backup can read every secret of every service and source. A backup without it
    /// is usable only together with the key, which must be stored elsewhere.
    #[arg(long)]
    with_secrets: bool,
}

/// Restore the data of a hub from a backup.
#[derive(Args)]
pub(crate) struct Restore {
    /// Directory that `seawall backup` has written.
    from: PathBuf,

    /// Data directory of the restored hub, new or empty.
    #[arg(long, env = "SEAWALL_DATA_DIR")]
    data_dir: PathBuf,
}

/// The variable of the setting `database`.
const DATABASE: &str = "SEAWALL_DATABASE";

/// Refuses to back up a folder, or to fill one, while the data is somewhere else.
fn refuse_database() -> Result<(), CommandError> {
    if std::env::var_os(DATABASE).is_none_or(|url| url.is_empty()) {
        return Ok(());
    }
    let why = format!("{DATABASE} is set: the data of this hub is in PostgreSQL, which has its own backups");
    Err(CommandError::of(why).and(
        "use `pg_dump` and `pg_restore`, or `pg_basebackup` with archived WAL, and save `secret.key` too",
    ))
}

impl Backup {
    pub(crate) fn run(self) -> CommandResult {
        refuse_database()?;
        self.copy().map_err(CommandError::of)
    }

    fn copy(self) -> Result<(), BackupError> {
        let BackupReport { database, secrets } = copy(&self.data_dir, &self.to, self.with_secrets)?;
        let (bytes, events, version) = (database.bytes, database.events, database.version);
        tell(&format!(
            "backup created in `{}`: {events} events, {bytes} bytes, schema version {version}",
            self.to.display()
        ));
        tell(if secrets {
            "it includes `secret.key`: protect it, because anyone who has it can read every secret"
        } else {
            "it does not include `secret.key`: store that elsewhere; without it no secret of this backup can be decrypted"
        });
        Ok(())
    }
}

impl Restore {
    pub(crate) fn run(self) -> CommandResult {
        refuse_database()?;
        self.restore().map_err(CommandError::of)
    }

    fn restore(self) -> Result<(), BackupError> {
        let BackupReport { database, secrets } = restore(&self.from, &self.data_dir, &Clock::system())?;
        let (events, version, folder) = (database.events, database.version, self.data_dir.display());
        tell(&format!("restored to `{folder}`: {events} events, schema version {version}"));
        if !secrets {
            tell(&format!(
                "the backup has no `secret.key`: copy the one from its time to `{folder}` before the hub starts"
            ));
        }
        tell(
            "what was delivered after the backup is sent again, with new delivery ids; receivers recognise it by its event id",
        );
        Ok(())
    }
}

/// Prints a line. A closed stdout does not undo the work.
fn tell(line: &str) {
    let _ = say(line);
}
