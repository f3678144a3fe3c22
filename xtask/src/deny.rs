//! `cargo xtask deny`: what all dependencies are: known holes, licences, where they come from.
//!
//! Why not in `ci`: the list of known holes is fetched from the network, and changes without a change of ours.

use std::process::{Command, Stdio};

use crate::run::{self, Step, Usage};

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    Usage::expect_none("deny", args)?;
    let mut steps = Vec::new();
    if !is_installed() {
        steps.push(Step::cargo("install cargo-deny", "install cargo-deny --locked"));
    }
    steps.push(Step::cargo("dependencies", "deny check"));
    run::all(&steps)
}

fn is_installed() -> bool {
    let mut version = Command::new(run::cargo());
    version.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}
