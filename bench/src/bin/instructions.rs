//! How many instructions an event and a proxied call cost. See README.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use seawall_bench::hub::cli::Options;
use seawall_bench::hub::instructions::{USAGE, run};

fn main() -> ExitCode {
    // The folder of builds is on a disk, which the one for temporary files often is not.
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.parent().and_then(Path::parent).map_or_else(PathBuf::new, Path::to_path_buf);
    let options = match Options::parse(std::env::args().skip(1), beside) {
        Ok(options) if options.help => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
