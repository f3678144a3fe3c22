//! How many instructions an event and a proxied call cost. See README.md.

use std::process::ExitCode;

use seawall_bench::hub::cli::launch;
use seawall_bench::hub::instructions::{USAGE, run};

fn main() -> ExitCode {
    launch(USAGE, run)
}
