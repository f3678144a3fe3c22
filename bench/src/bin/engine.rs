//! Benchmarks of the engine. See README.md.

use std::process::ExitCode;

use seawall_bench::cli::{Options, USAGE};
use seawall_bench::engine::run;
use seawall_bench::launch::launch;

fn main() -> ExitCode {
    launch(USAGE, Options::parse(std::env::args().skip(1)), |options| options.help, run)
}
