//! `cargo xtask mutants`: changes the machines in small ways and looks whether a test notices.
//!
//! A test that passes proves little; that it fails when the code is wrong proves something. The machines are pure
//! functions, so every change to them that no test notices is either a gap in the tests or a line that does nothing.

use std::process::{Command, Stdio};

use crate::run::{self, Step, Usage};

/// Every policy's pure rules.
const MACHINES: &str = "**/machine.rs";

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut steps = Vec::new();
    let files = match args {
        [] => MACHINES,
        [files] => files.as_str(),
        [_, rest @ ..] => return Usage::expect_none("mutants", rest).map_err(Into::into),
    };
    if !is_installed() {
        steps.push(Step::cargo("install cargo-mutants", "install cargo-mutants --locked"));
    }
    steps.push(mutants(files));
    run::all(&steps)
}

fn mutants(files: &str) -> Step {
    let step = Step::cargo("mutants", "mutants --package seawall --all-features --timeout 60 --file");
    ["--", "--lib", "--test", "engine"].into_iter().fold(step.arg(files), Step::arg)
}

fn is_installed() -> bool {
    let mut version = Command::new(run::cargo());
    version.args(["mutants", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_file_is_refused() {
        let error = run(&["a".into(), "b".into()]).expect_err("one pattern of files at a time");
        assert_eq!(error.to_string(), "`mutants` does not know `b`");
    }
}
