//! What the `main` functions of the benchmarks share: the help, the errors and the file for the numbers.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows the help, or runs the benchmark with its options.
pub fn launch<O>(
    usage: &str,
    options: Result<O, String>,
    wants_help: impl FnOnce(&O) -> bool,
    run: impl FnOnce(&O) -> Result<(), String>,
) -> ExitCode {
    let options = match options {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}\n\n{usage}");
            return ExitCode::from(2);
        }
    };
    if wants_help(&options) {
        println!("{usage}");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Opens the file of `--json` before the run, so that a path that can't be written is found before minutes are spent.
pub fn numbers_file(path: Option<&PathBuf>) -> Result<Option<File>, String> {
    let create = |path: &PathBuf| {
        File::create(path).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    };
    path.map(create).transpose()
}
