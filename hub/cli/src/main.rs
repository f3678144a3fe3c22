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
    let matches = command_line().get_matches();
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

    /// HUB-10: whoever asks for help about a command sees how it is used.
    #[test]
    fn hub_10_every_command_has_an_example() {
        fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
            let below: Vec<_> =
                command.get_subcommands().filter(|below| below.get_name() != "help").collect();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if below.is_empty() {
                found.push((path.trim().to_owned(), help));
            }
            for command in below {
                leaves(command, &format!("{path} {}", command.get_name()), found);
            }
        }
        let mut found = Vec::new();
        leaves(&command_line(), "", &mut found);
        assert!(found.len() > 40, "{found:?}");
        for (path, help) in found {
            assert!(help.contains(&format!("seawall {path}")), "{path}: {help}");
        }
    }
}
