//! Running a hub: its start, what is old, copies, keys.

#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod backup;
mod config;
mod database;
mod deploy;
mod files;
mod folder;
mod migrate;
mod retention;
mod start;
mod traces;
mod upgrade;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::harness::{Hub, SEAWALL};
use crate::peer::Peer;

/// Runs a command to its end.
fn seawall(command: &str, folder: &Path, data: &Path, more: &[&str]) -> Output {
    let mut process = Command::new(SEAWALL);
    process.arg(command).arg(folder).arg("--data-dir").arg(data).args(more);
    process.output().unwrap()
}

/// What it said, if it went well.
fn well(output: &Output) -> String {
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{wrong}");
    said.into_owned()
}

/// Why it did not.
fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A service that asks for a secret, and a rule that sends everything to it.
fn register(hub: &Hub, peer: &Peer) {
    let service = json!({"name": "billing", "address": peer.address, "auth": {"type": "bearer", "secret": "t0p-s3cret"}});
    hub.must("POST", "/api/v1/registry/services", &service);
    hub.must(
        "POST",
        "/api/v1/registry/rules",
        &json!({"name": "all", "eventType": "*", "service": "billing"}),
    );
}
