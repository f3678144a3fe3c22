//! The binary `seawall`.

mod backup;
mod command;
mod confirm;
mod connection;
mod database;
mod demo;
mod error;
mod examples;
mod input;
mod lifecycle;
mod lists;
mod migrate;
mod open_files;
mod output;
mod reload;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use seawall::Clock;

use self::connection::ConnectArgs;
use self::error::CommandError;

/// Delivers events and calls services reliably, also while they fail.
#[derive(Parser)]
#[command(name = "seawall", version, after_help = examples::TOP)]
struct Cli {
    #[command(flatten)]
    connection: ConnectArgs,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the hub: accept events, deliver them and call services.
    Serve(serve::Serve),
    /// Run a demo hub with sample services, traffic and a scripted outage. It listens on loopback only and removes its data at the end.
    Demo(demo::Demo),
    /// Back up the data of a hub, which may be running or stopped.
    Backup(backup::Backup),
    /// Restore the data of a hub from a backup.
    Restore(backup::Restore),
    /// Move the data of a stopped hub from its data directory to PostgreSQL, or back.
    Migrate(migrate::Migrate),
    #[command(flatten)]
    Hub(Box<command::HubCommand>),
    #[command(flatten)]
    Local(command::LocalCommand),
}

/// Commands that do not connect to a hub, and the connection options that they accept nevertheless.
const ALONE: [(&str, &[&str]); 7] = [
    ("serve", &[]),
    ("demo", &[]),
    ("backup", &[]),
    ("restore", &[]),
    ("migrate", &[]),
    ("check-config", &["json"]),
    ("completions", &[]),
];

fn main() -> anyhow::Result<ExitCode> {
    let matches = command_line().try_get_matches().unwrap_or_else(|error| with_plain_usage(error).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match (nothing_is_ignored(&matches), cli.command) {
        (Err(failure), _) => Err(failure),
        (Ok(()), Command::Serve(serve)) => return serve.run(),
        (Ok(()), Command::Demo(demo)) => return demo.run(),
        (Ok(()), Command::Backup(backup)) => backup.run(),
        (Ok(()), Command::Restore(restore)) => restore.run(),
        (Ok(()), Command::Migrate(migrate)) => migrate.run(&Clock::system()),
        (Ok(()), Command::Local(command)) => command.run(&cli.connection),
        (Ok(()), Command::Hub(command)) => command.run(&cli.connection, Clock::system()),
    };
    Ok(done.map_or_else(CommandError::tell, |()| ExitCode::SUCCESS))
}

/// An error whose usage line does not show `--url`, which clap takes for a part of what was typed if SEAWALL_URL is set.
fn with_plain_usage(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = usage.to_string().replace(" --url <URL>", "");
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
    }
    error
}

/// The whole command line. Connection options are hidden in the help of commands that do not connect to a hub.
fn command_line() -> clap::Command {
    let command = examples::add(Cli::command());
    let global: Vec<clap::Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    ALONE.into_iter().fold(command, |command, (name, known)| {
        let unknown = global.iter().filter(|arg| !known.contains(&arg.get_id().as_str())).cloned();
        command.mut_subcommand(name, |alone| alone.args(unknown.map(|arg| arg.hide(true))))
    })
}

/// Refuses connection options that the command would ignore.
fn nothing_is_ignored(matches: &ArgMatches) -> Result<(), CommandError> {
    let Some((name, below)) = matches.subcommand() else { return Ok(()) };
    let Some((_, known)) = ALONE.iter().find(|(alone, _)| *alone == name) else { return Ok(()) };
    for id in ["url", "key_file", "key", "timeout", "json"].into_iter().filter(|id| !known.contains(id)) {
        if below.value_source(id) == Some(ValueSource::CommandLine) {
            let option = id.replace('_', "-");
            return Err(CommandError::usage(format!(
                "`--{option}` applies only to commands that connect to a hub; `{name}` does not"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: clap's own check of the whole command line.
    #[test]
    fn hub_10_the_command_line_makes_sense() {
        command_line().debug_assert();
    }

    /// The commands without commands below them, by their paths.
    fn leaves(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        let found: Vec<_> =
            below.flat_map(|below| leaves(below, &format!("{path} {}", below.get_name()))).collect();
        if found.is_empty() { vec![(path.trim().to_owned(), command.clone())] } else { found }
    }

    /// HUB-10: whoever asks for help about a command sees how it is used, and what each argument means.
    #[test]
    fn hub_10_every_command_has_an_example_and_every_argument_a_meaning() {
        let found = leaves(&command_line(), "");
        assert!(found.len() > 40, "{found:?}");
        for (path, command) in found {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("seawall {path}")), "{path}: {help}");
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                assert!(arg.get_help().is_some(), "{path}: {} has no help", arg.get_id());
            }
        }
    }

    /// HUB-10: the page about the command line names every command.
    #[test]
    fn hub_10_the_page_lists_every_command() {
        let page = include_str!("../../../docs/cli.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        for (path, _) in leaves(&command_line(), "") {
            let (group, verb) = path.rsplit_once(' ').unwrap_or(("", &path));
            let named = |row: &&str| {
                let cell = row.split(" | ").next().unwrap_or_default();
                let words = |text: &str| format!(" {} ", text.replace(['`', ',', '|', '(', ')'], " "));
                words(cell).contains(&format!(" {verb} ")) && cell.starts_with(&format!("| `{group}"))
            };
            assert!(rows.iter().any(named), "docs/cli.md does not list `{path}`");
        }
    }

    /// HUB-10: the usage line of an error shows no option that nobody has typed.
    #[test]
    fn hub_10_the_usage_line_of_an_error_is_plain() {
        let said = |line: &[&str]| {
            let error = command_line().try_get_matches_from(line).expect_err("an argument is missing");
            with_plain_usage(error).to_string()
        };
        let text = said(&["seawall", "--url", "http://127.0.0.1:1", "services", "show"]);
        assert!(text.contains("Usage: seawall services show <NAME>"), "{text}");
        assert!(said(&["seawall", "events", "list", "--limit", "0"]).contains("at least 1"));
        assert!(said(&["seawall", "dlq", "list", "--status", "42"]).contains("from 100 to 999"));
    }
}
