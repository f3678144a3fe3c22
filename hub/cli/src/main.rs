//! The binary `seawall`.

mod backup;
mod keep;
mod reload;
mod serve;
mod settings;

use clap::{Parser, Subcommand};

/// Keeps a system standing when what it depends on breaks.
#[derive(Parser)]
#[command(name = "seawall", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the hub: takes events in, and delivers them.
    Serve(serve::Serve),
    /// Copies everything that the hub keeps, while it runs or not.
    Backup(backup::Backup),
    /// Makes the data of a hub from a copy.
    Restore(backup::Restore),
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    match Cli::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
    }
}
