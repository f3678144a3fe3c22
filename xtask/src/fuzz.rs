//! `cargo xtask fuzz`: texts that nobody would write, read as configurations and as what comes to the hub from outside.
//!
//! The targets and their corpus lie in `fuzz/`. A text that breaks something lands in `fuzz/artifacts`; it becomes a test
//! when it is mended.

use std::process::{Command, Stdio};

use anyhow::Context;

use crate::run::{self, Step};

const TARGETS: [&str; 11] = [
    "config_yaml",
    "config_toml",
    "config_json",
    "config_properties",
    "hub_event",
    "hub_cloud_events",
    "hub_webhook",
    "hub_template",
    "hub_rendering",
    "hub_kept_request",
    "hub_names",
];
/// For all targets together.
const MINUTES: u32 = 20;

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let minutes = run::minutes("fuzz", args, MINUTES)?;
    let mut steps = Vec::new();
    if !is_installed() {
        steps.push(Step::cargo("install cargo-fuzz", "install cargo-fuzz --locked"));
    }
    require_nightly()?;
    steps.extend(TARGETS.map(|target| fuzz(target, minutes * 60 / TARGETS.len() as u32)));
    run::all(&steps)
}

/// What is read is small, and a text that takes a second is a bug as much as one that panics.
fn fuzz(target: &str, seconds: u32) -> Step {
    Step::cargo(format!("fuzz {target}"), "fuzz run --fuzz-dir fuzz")
        .arg(target)
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg("-max_len=4096")
        .arg("-timeout=5")
        .env("RUSTUP_TOOLCHAIN", "nightly")
        // The C code of the store has two tables of one name, each for itself, which the sanitizer takes for one.
        .env("ASAN_OPTIONS", "detect_odr_violation=0")
}

fn is_installed() -> bool {
    let mut version = Command::new(run::cargo());
    version.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

fn require_nightly() -> anyhow::Result<()> {
    let list =
        Command::new("rustup").args(["toolchain", "list"]).output().context("could not start `rustup`")?;
    let found = String::from_utf8_lossy(&list.stdout).lines().any(|line| line.starts_with("nightly"));
    anyhow::ensure!(
        found,
        "fuzzing needs a nightly compiler: rustup toolchain install nightly --profile minimal"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_time_is_refused_before_anything_runs() {
        let refusal = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            run(&args).expect_err("the arguments are wrong").to_string()
        };
        assert_eq!(refusal(&["--minutes"]), "`--minutes` needs a number");
        assert_eq!(refusal(&["--minutes", "ten"]), "`ten` is not a number of minutes");
        assert_eq!(refusal(&["--hours", "1"]), "`fuzz` does not know `--hours`");
    }

    #[test]
    fn a_target_runs_on_nightly_for_its_share_of_the_time() {
        assert_eq!(
            fuzz("config_yaml", 200).line(),
            "RUSTUP_TOOLCHAIN=nightly ASAN_OPTIONS=detect_odr_violation=0 cargo fuzz run --fuzz-dir fuzz config_yaml -- -max_total_time=200 -max_len=4096 \
             -timeout=5"
        );
    }
}
