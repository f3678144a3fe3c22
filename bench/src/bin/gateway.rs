//! What the hub's proxy costs beside others. See README.md.

use std::process::ExitCode;

use seawall_bench::gateway::{USAGE, run};
use seawall_bench::hub::cli::launch;

fn main() -> ExitCode {
    launch(USAGE, run)
}
