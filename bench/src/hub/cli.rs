//! The flags.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::database::DatabaseServer;

pub const USAGE: &str = "\
Usage: cargo xtask bench hub [--quick] [--filter TEXT] [--seconds N] [--pending N] [--folder DIR] [--database URL] [--json FILE]

  --quick         a short look: one round of a second, small curves
  --filter TEXT   only scenes and rows whose names contain TEXT, in any case
  --seconds N     how long each of the three rounds of a row takes; 2 unless told
  --pending N     the most deliveries that wait in the curve of pending ones; 1000000 unless told
  --folder DIR    where the hubs keep their data: on the disk that is meant, not in memory
  --database URL  PostgreSQL server on this machine in which the hubs keep their data, without a database: each gets an empty one
  --json FILE     writes all numbers there
  --hub FILE      the binary of the hub; `cargo xtask` builds it and says where it is";

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub hub: PathBuf,
    pub folder: PathBuf,
    pub filter: Option<String>,
    pub seconds: u64,
    pub pending: u64,
    pub quick: bool,
    pub database: Option<DatabaseServer>,
    pub json: Option<PathBuf>,
    pub help: bool,
}

impl Options {
    /// Reads the arguments without the program's name; `beside` is the folder of the program.
    pub fn parse(args: impl IntoIterator<Item = String>, beside: PathBuf) -> Result<Self, String> {
        let (mut hub, mut folder, mut seconds, mut pending) = (None, beside.join("bench-hub"), None, None);
        let mut database = None;
        let (mut filter, mut json, mut quick, mut help) = (None, None, false, false);
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value after it"));
            match flag.as_str() {
                "--hub" => hub = Some(value()?.into()),
                "--folder" => folder = value()?.into(),
                "--filter" => filter = Some(value()?.to_lowercase()),
                "--seconds" => seconds = Some(number("--seconds", &value()?)?),
                "--pending" => pending = Some(number("--pending", &value()?)?),
                "--json" => json = Some(value()?.into()),
                "--database" => database = Some(DatabaseServer::new(&value()?)),
                "--quick" => quick = true,
                "--help" | "-h" => help = true,
                other => return Err(format!("`{other}` is not a flag of this benchmark")),
            }
        }
        let hub = match hub {
            Some(hub) => hub,
            None if help => PathBuf::new(),
            None => return Err("--hub is missing: start it as `cargo xtask bench hub`".into()),
        };
        let seconds = seconds.unwrap_or(if quick { 1 } else { 2 });
        let pending = pending.unwrap_or(if quick { 20_000 } else { 1_000_000 });
        Ok(Self { hub, folder, filter, seconds, pending, quick, database, json, help })
    }

    /// Whether this row of this scene was asked for.
    pub fn wants(&self, scene: &str, row: &str) -> bool {
        let Some(filter) = &self.filter else { return true };
        format!("{scene}: {row}").to_lowercase().contains(filter)
    }
}

/// The `main` of a benchmark that needs a hub: reads the flags of the program, and shows the help or runs.
pub fn launch(usage: &str, run: impl FnOnce(&Options) -> Result<(), String>) -> ExitCode {
    // The folder of builds is on a disk, which the one for temporary files often is not.
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.parent().and_then(Path::parent).map_or_else(PathBuf::new, Path::to_path_buf);
    let options = Options::parse(std::env::args().skip(1), beside);
    crate::launch::launch(usage, options, |options| options.help, run)
}

fn number(flag: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{flag} needs a whole number above 0, not `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(ToOwned::to_owned), "t".into())
    }

    #[test]
    fn reads_every_flag() {
        let options = parse("--hub h --folder f --filter Drain --seconds 2 --pending 9 --json j").unwrap();
        assert_eq!((options.hub, options.folder), ("h".into(), "f".into()));
        assert_eq!((options.seconds, options.pending, options.json), (2, 9, Some("j".into())));
        assert_eq!(options.filter.as_deref(), Some("drain"));
        let quick = parse("--hub h --quick").unwrap();
        assert_eq!((quick.seconds, quick.folder), (1, "t/bench-hub".into()));
    }

    #[test]
    fn a_wrong_flag_is_an_error_that_names_it() {
        assert_eq!(parse("--fast"), Err("`--fast` is not a flag of this benchmark".to_owned()));
        assert_eq!(parse("--hub"), Err("--hub needs a value after it".to_owned()));
        assert_eq!(parse(""), Err("--hub is missing: start it as `cargo xtask bench hub`".to_owned()));
        assert_eq!(
            parse("--hub h --seconds 0"),
            Err("--seconds needs a whole number above 0, not `0`".to_owned())
        );
    }

    #[test]
    fn the_filter_looks_at_scene_and_row() {
        let options = parse("--hub h --filter ACKNOWLEDGED:").unwrap();
        assert!(options.wants("acknowledged", "64 clients"));
        assert!(!options.wants("drain", "64 clients"));
    }
}
