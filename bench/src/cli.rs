//! The flags.

use std::path::PathBuf;

/// Enough for the least of them to be quiet on a machine that is not.
const DEFAULT_ROUNDS: u32 = 15;

pub const USAGE: &str = "\
Usage: cargo xtask bench engine [--filter TEXT] [--rounds N] [--json FILE]

  --filter TEXT   only rows whose group or name contains TEXT, in any case (and the rows that they are measured above)
  --rounds N      rounds of every row; 15 unless told
  --json FILE     writes all raw numbers there";

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub filter: Option<String>,
    pub rounds: u32,
    pub json: Option<PathBuf>,
    pub help: bool,
}

impl Options {
    /// Reads the arguments without the program's name.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { filter: None, rounds: DEFAULT_ROUNDS, json: None, help: false };
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value after it"));
            match flag.as_str() {
                "--filter" => options.filter = Some(value()?.to_lowercase()),
                "--json" => options.json = Some(value()?.into()),
                "--rounds" => options.rounds = rounds(&value()?)?,
                "--help" | "-h" => options.help = true,
                other => return Err(format!("`{other}` is not a flag of this benchmark")),
            }
        }
        Ok(options)
    }

    /// Whether a row of this group and name was asked for.
    pub fn wants(&self, group: &str, name: &str) -> bool {
        let Some(filter) = &self.filter else { return true };
        group.to_lowercase().contains(filter) || name.to_lowercase().contains(filter)
    }
}

fn rounds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(rounds) if rounds > 0 => Ok(rounds),
        _ => Err(format!("--rounds needs a whole number above 0, not `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn reads_every_flag() {
        let options = parse("--filter Retry --rounds 3 --json out.json").unwrap();
        assert_eq!((options.rounds, options.json), (3, Some("out.json".into())));
        assert_eq!(options.filter.as_deref(), Some("retry"));
    }

    #[test]
    fn a_wrong_flag_is_an_error_that_names_it() {
        assert_eq!(parse("--fast"), Err("`--fast` is not a flag of this benchmark".to_owned()));
        assert_eq!(parse("--json"), Err("--json needs a value after it".to_owned()));
        assert_eq!(parse("--rounds 0"), Err("--rounds needs a whole number above 0, not `0`".to_owned()));
        assert_eq!(
            parse("--rounds many"),
            Err("--rounds needs a whole number above 0, not `many`".to_owned())
        );
    }

    #[test]
    fn the_filter_looks_at_group_and_name_in_any_case() {
        let options = parse("--filter TOKIO").unwrap();
        assert!(options.wants("timeouts", "tokio timeout"));
        assert!(!options.wants("timeouts", "tower timeout"));
    }
}
