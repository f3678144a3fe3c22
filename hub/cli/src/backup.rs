//! `seawall backup` and `seawall restore`.

use std::path::PathBuf;

use clap::Args;
use seawall_hub_server::backup::{Copy, NotCopied, copy, restore};

use crate::output::say;

/// Copies everything that the hub keeps, while it runs or not.
#[derive(Args)]
pub(crate) struct Backup {
    /// Where the copy goes: a folder that is new or empty.
    to: PathBuf,

    /// Where the hub keeps everything.
    #[arg(long, env = "SEAWALL_DATA_DIR")]
    data_dir: PathBuf,

    /// Copies `secret.key` too. Whoever gets hold of such a copy can read every secret of every service and source. Without it,
    /// a copy is of use only together with the key, which has to be kept elsewhere.
    #[arg(long)]
    with_secrets: bool,
}

/// Makes the data of a hub from a copy.
#[derive(Args)]
pub(crate) struct Restore {
    /// The folder that `seawall backup` has written.
    from: PathBuf,

    /// Where the hub will keep everything: a folder that is new or empty.
    #[arg(long, env = "SEAWALL_DATA_DIR")]
    data_dir: PathBuf,
}

impl Backup {
    pub(crate) fn run(self) -> Result<(), NotCopied> {
        let Copy { database, secrets } = copy(&self.data_dir, &self.to, self.with_secrets)?;
        let (bytes, events, version) = (database.bytes, database.events, database.version);
        tell(&format!(
            "`{}`: {events} events, {bytes} bytes, tables of version {version}",
            self.to.display()
        ));
        tell(if secrets {
            "with `secret.key`: whoever has this copy can read every secret; keep it like one"
        } else {
            "without `secret.key`: keep that elsewhere; without it no secret of this copy can be opened"
        });
        Ok(())
    }
}

impl Restore {
    pub(crate) fn run(self) -> Result<(), NotCopied> {
        let Copy { database, secrets } = restore(&self.from, &self.data_dir)?;
        let (events, version, folder) = (database.events, database.version, self.data_dir.display());
        tell(&format!("`{folder}`: {events} events, tables of version {version}"));
        if !secrets {
            tell(&format!(
                "the copy has no `secret.key`: put the one of its time into `{folder}` before the hub starts"
            ));
        }
        tell(
            "what was delivered after the copy was made is sent again, under new names of deliveries; receivers know it by its event",
        );
        Ok(())
    }
}

/// What is done is done, whether or not anybody hears of it.
fn tell(line: &str) {
    let _ = say(line);
}
