//! `cargo xtask deny`: what all dependencies are: known holes, licences, where they come from.
//!
//! Why not in `ci`: the list of known holes is fetched from the network, and changes without a change of ours.
//! Licences and origins need no network, but cargo-deny itself has to be built first: that takes more than four minutes on two
//! cores, and the packages of it that are built already are too old to read `deny.toml`.

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
