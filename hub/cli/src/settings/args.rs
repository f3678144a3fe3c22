//! The settings as options and environment variables.

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::table::{SettingRow, TABLE};
use seawall_hub_server::DatabaseUrl;

/// Without the value, which would be printed together with the refusal.
const PASSWORD_SHOWN: &str = "a password in `--database` is not supported: every user of this machine can read command lines; \
                              set PGPASSWORD, SEAWALL_DATABASE or `--database-password-file`\n";

/// Settings of one origin: the command line with the environment, or a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SettingOverrides(BTreeMap<&'static str, Vec<String>>);

impl SettingOverrides {
    /// Adds a value. A setting that is empty is not set.
    pub(super) fn add(&mut self, key: &'static str, text: String) {
        if !text.trim().is_empty() {
            self.0.entry(key).or_default().push(text);
        }
    }

    /// The values of a setting; `None` if it is not set.
    pub(super) fn texts(&self, key: &str) -> Option<&[String]> {
        self.0.get(key).map(Vec::as_slice)
    }
}

impl Args for SettingOverrides {
    fn augment_args(command: Command) -> Command {
        command.args(TABLE.iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(row: &'static SettingRow) -> Arg {
    let default = row.default.trim_matches(['(', ')']);
    let doc = row.doc.strip_suffix('.').unwrap_or(row.doc);
    let help = if default.is_empty() { doc.to_owned() } else { format!("{doc} [default: {default}]") };
    let arg = Arg::new(row.key).long(row.option).value_name(row.unit).help(help);
    let arg = if row.variable.is_empty() { arg } else { arg.env(row.variable) };
    let arg = arg.hide_env_values(row.holds_secret());
    let arg = if row.field.is_list { arg.action(ArgAction::Append) } else { arg };
    let words = row.words();
    if words.is_empty() {
        arg.value_parser(|text: &str| row.check(text))
    } else {
        arg.value_parser(PossibleValuesParser::new(words)).hide_possible_values(true)
    }
}

impl FromArgMatches for SettingOverrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut overrides = SettingOverrides::default();
        overrides.update_from_arg_matches(matches)?;
        Ok(overrides)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for row in TABLE {
            let is_visible = matches.value_source(row.key) == Some(ValueSource::CommandLine);
            for text in matches.get_many::<String>(row.key).into_iter().flatten() {
                if row.holds_secret() && is_visible && DatabaseUrl::new(text).has_password() {
                    return Err(Error::raw(ErrorKind::ValueValidation, PASSWORD_SHOWN));
                }
                self.add(row.key, text.clone());
            }
        }
        Ok(())
    }
}
