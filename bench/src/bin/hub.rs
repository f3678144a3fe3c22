//! What the hub costs and how fast it is. See README.md.

use std::process::ExitCode;

use seawall_bench::hub::cli::{USAGE, launch};
use seawall_bench::hub::run;

fn main() -> ExitCode {
    launch(USAGE, run)
}
