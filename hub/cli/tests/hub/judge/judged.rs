//! The judges judged: a hub that makes a mistake on purpose must be found out.
//!
//! The hub with mistakes is built here, by the cargo that runs the test, into a folder of its own: other flags in the same
//! folder would throw the normal build away each time. The first time takes as long as building the hub from nothing, later
//! ones about a second.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::power::Disk;
use super::trial::{self, Folder, Plan};
use super::verdict::Fault;
use super::{alone, chance};

/// A judge who does not find a mistake that is always made in so many crashes is blind.
const TRIES: u32 = 60;

pub(super) fn sabotaged() -> PathBuf {
    // `target/debug/seawall` is the hub that is tested; its folder's folder is where cargo builds.
    let target = Path::new(crate::harness::SEAWALL).ancestors().nth(2).unwrap().join("sabotage");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--offline",
            "--package",
            "seawall-hub-cli",
            "--bin",
            "seawall",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "--cfg seawall_sabotage")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "the hub with mistakes can't be built");
    target.join("debug/seawall")
}

fn plan(mistake: &str) -> Plan {
    let mut plan = Plan::new(chance::seed(), TRIES);
    plan.binary = sabotaged();
    plan.variables = vec![("SEAWALL_SABOTAGE", mistake.to_owned())];
    plan.until_first_fault = true;
    plan
}

/// PRM-1: a hub that acknowledges before it commits is found out by killing it.
#[test]
fn prm_1_the_judge_finds_an_acknowledgement_before_the_commit() {
    let plan = plan("acknowledge-before-commit");
    let _alone = alone();
    let report = trial::run(&plan, &mut Folder::new());
    eprintln!("acknowledge-before-commit: {report}");
    assert!(
        report.faults.iter().any(|fault| matches!(fault, Fault::Lost { .. })),
        "no loss was found: {report}"
    );
}

/// PRM-1: a hub whose commits do not wait for the disk is found out by cutting the power.
#[test]
fn prm_1_the_judge_finds_a_commit_that_does_not_wait_for_the_disk() {
    let plan = plan("synchronous-normal");
    let _alone = alone();
    let report = trial::run(&plan, &mut Disk::new(256));
    eprintln!("synchronous-normal: {report}");
    assert!(
        report.faults.iter().any(|fault| matches!(fault, Fault::Lost { .. })),
        "no loss was found: {report}"
    );
}
