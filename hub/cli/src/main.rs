//! The binary `seawall`.

mod backup;
mod command;
mod confirm;
mod demo;
mod examples;
mod failure;
mod files;
mod input;
mod keep;
mod lists;
mod output;
mod reload;
mod serve;
mod settings;
mod stand;
mod talk;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::failure::Failure;
use self::talk::Talk;

/// Keeps a system standing when what it depends on breaks.
#[derive(Parser)]
#[command(name = "seawall", version, after_help = examples::TOP)]
struct Cli {
    #[command(flatten)]
    talk: Talk,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the hub: takes events in, and delivers them.
    Serve(serve::Serve),
    /// Shows a hub at work: with sample services, traffic and a story, on this machine only, and nothing left behind.
    Demo(demo::Demo),
    /// Copies everything that the hub keeps, while it runs or not.
    Backup(backup::Backup),
    /// Makes the data of a hub from a copy.
    Restore(backup::Restore),
    #[command(flatten)]
    Asking(command::Asking),
    #[command(flatten)]
    Alone(command::Alone),
}

/// Commands that talk to no hub, and which of the options for talking they understand all the same.
const ALONE: [(&str, &[&str]); 6] = [
    ("serve", &[]),
    ("demo", &[]),
    ("backup", &[]),
    ("restore", &[]),
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
        (Ok(()), Command::Backup(backup)) => backup.run().map_err(Failure::of),
        (Ok(()), Command::Restore(restore)) => restore.run().map_err(Failure::of),
        (Ok(()), Command::Alone(command)) => command.run(&cli.talk),
        (Ok(()), Command::Asking(command)) => command.run(&cli.talk),
    };
    Ok(done.map_or_else(Failure::tell, |()| ExitCode::SUCCESS))
}

/// The whole command line. What is for talking to a hub is not shown in the help of what talks to none.
fn command_line() -> clap::Command {
    let command = examples::add(Cli::command());
    let global: Vec<clap::Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    ALONE.into_iter().fold(command, |command, (name, known)| {
        let unknown = global.iter().filter(|arg| !known.contains(&arg.get_id().as_str())).cloned();
        command.mut_subcommand(name, |alone| alone.args(unknown.map(|arg| arg.hide(true))))
    })
}

/// What would be ignored is refused.
fn nothing_is_ignored(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, below)) = matches.subcommand() else { return Ok(()) };
    let Some((_, known)) = ALONE.iter().find(|(alone, _)| *alone == name) else { return Ok(()) };
    for id in ["url", "key_file", "key", "timeout", "json"].into_iter().filter(|id| !known.contains(id)) {
        if below.value_source(id) == Some(ValueSource::CommandLine) {
            let option = id.replace('_', "-");
            return Err(Failure::usage(format!(
                "`--{option}` is for commands that talk to a hub, and `{name}` talks to none"
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
