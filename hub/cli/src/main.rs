//! The binary `seawall`.

mod keep;
mod serve;

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
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    let Command::Serve(serve) = Cli::parse().command;
    serve.run()
}
