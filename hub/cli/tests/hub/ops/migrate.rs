//! The data of a hub, from its folder into a database and back.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use seawall_testkit::servers::Postgres;
use serde_json::Value;
use tempfile::TempDir;

use super::upgrade::{assert_same, fixture, start_with};
use super::{refusal, well};
use crate::harness::{Hub, SEAWALL, until};

fn command(from: &str, to: &str) -> Command {
    let mut command = Command::new(SEAWALL);
    command.args(["migrate", "--from", from, "--to", to]);
    command
}

fn migrate(from: &str, to: &str) -> Output {
    command(from, to).output().unwrap()
}

/// A folder with everything that version 0.1 could store, and what its API says.
fn everything() -> (TempDir, Value) {
    let folder = TempDir::new().unwrap();
    for name in ["seawall.db", "secret.key"] {
        fs::copy(fixture("v0.1").join("data").join(name), folder.path().join(name)).unwrap();
    }
    let recount = fs::read_to_string(fixture("v0.1").join("recount.json")).unwrap();
    (folder, serde_json::from_str(&recount).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Waits until the one replay that was in hand at the end of the fixture is in hand again.
fn in_hand(hub: Hub) -> Hub {
    let letter = "/api/v1/bridge/deadLetters/dlv_3ce2bb14676988550000000000000026";
    until("the replay is in hand", || hub.get(letter)["replayed"]["state"] == "pending");
    hub
}

/// Asks a hub to stop and waits for it, so that the database knows that it is gone.
fn stop(mut hub: Hub) {
    let asked = Command::new("kill").arg(hub.process.id().to_string()).status().unwrap();
    assert!(asked.success() && hub.process.wait().unwrap().success());
}

/// HUB-15, HUB-14: a database with everything in it is told in the same way from PostgreSQL, and again when it is back in a file.
/// Neither starts where it was moved away from.
#[test]
fn hub_15_everything_moves_to_postgres_and_back_as_it_was() {
    let (folder, recount) = everything();
    let database = Postgres::shared().database().unwrap();
    let said = well(&migrate(text(folder.path()), database.url()));
    assert!(said.contains("moved and compared 50 events, 54 deliveries, 28 dead letters"), "{said}");
    let alone =
        Hub::command(Path::new(SEAWALL), folder.path()).env_remove("SEAWALL_DATABASE").output().unwrap();
    assert!(refusal(&alone).contains("was moved to the database"));
    let backup = Command::new(SEAWALL)
        .args(["backup", "--data-dir"])
        .arg(folder.path())
        .arg(folder.path().join("x"))
        .output();
    assert!(refusal(&backup.unwrap()).contains("pg_dump"));

    let hub = start_with(folder.path(), &["--database", database.url()]);
    let hub = in_hand(hub);
    assert_same(&hub, &recount);
    stop(hub);

    let back = TempDir::new().unwrap();
    let said = well(&migrate(database.url(), text(back.path())));
    assert!(said.contains("copy the `secret.key`"), "{said}");
    fs::copy(folder.path().join("secret.key"), back.path().join("secret.key")).unwrap();
    let gone = Hub::command(Path::new(SEAWALL), folder.path()).args(["--database", database.url()]).output();
    assert!(refusal(&gone.unwrap()).contains("was moved to the folder"));
    let hub = start_with(back.path(), &[]);
    assert_same(&in_hand(hub), &recount);
}

/// HUB-15: a move that is killed at any moment has moved nothing or all, and is run once more.
#[test]
fn hub_15_a_move_that_is_killed_is_run_once_more() {
    let (folder, recount) = everything();
    let (database, back) = (Postgres::shared().database().unwrap(), TempDir::new().unwrap());
    for (from, to) in [(text(folder.path()), database.url()), (database.url(), text(back.path()))] {
        for kill in 0..5_u64 {
            let mut process = command(from, to).spawn().unwrap();
            thread::sleep(Duration::from_millis(15 + 45 * kill));
            let _ = process.kill();
            process.wait().unwrap();
        }
        // What is moved already is compared once more, or refused if its last word is all that was missing.
        let moved = migrate(from, to);
        if moved.status.success() {
            let said = well(&moved);
            assert!(said.contains("54 deliveries, 28 dead letters, 403 rows in all"), "{said}");
        } else {
            assert!(refusal(&moved).contains("`seawall.db` is in it"));
        }
    }
    fs::copy(folder.path().join("secret.key"), back.path().join("secret.key")).unwrap();
    let hub = start_with(back.path(), &[]);
    assert_same(&in_hand(hub), &recount);
}

/// HUB-15: a source that is in use and a target that is not empty are refused, and nothing is changed.
#[test]
fn hub_15_a_move_from_a_hub_or_onto_data_is_refused() {
    let (folder, _) = everything();
    let (used, empty) = (Postgres::shared().database().unwrap(), Postgres::shared().database().unwrap());
    let other = TempDir::new().unwrap();
    let hub = start_with(other.path(), &["--database", used.url()]);
    let busy = migrate(used.url(), text(folder.path()));
    assert!(refusal(&busy).contains("is in use by the hub"), "a live hub was moved");
    stop(hub);
    assert!(refusal(&migrate(text(folder.path()), used.url())).contains("is not empty"));
    assert!(refusal(&migrate(used.url(), text(folder.path()))).contains("`seawall.db` is in it"));
    assert!(refusal(&migrate(empty.url(), text(other.path()))).contains("has no data of a hub"));

    let hub = start_with(folder.path(), &[]);
    assert!(refusal(&migrate(text(folder.path()), empty.url())).contains("another process uses it"));
    stop(hub);
    well(&migrate(text(folder.path()), empty.url()));
    for (from, to) in [("here", "there"), (used.url(), used.url())] {
        assert_eq!(migrate(from, to).status.code(), Some(2));
    }
    let shown = refusal(&migrate(text(folder.path()), "postgres://u:s3cret@127.0.0.1/x"));
    assert!(!shown.contains("s3cret") && shown.contains("PGPASSWORD"), "{shown}");
}
