//! A database that an earlier version has written, and rows that nobody has written. Its recount by the API is in
//! `hub/cli/tests/hub/ops/upgrade.rs`.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use seawall::Clock;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::port::store::{
    Change, RegistryReads, SecretOwner, SecretRotation, StoreError, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_store::Sqlite;
use tempfile::TempDir;

use crate::suite::fixtures::slug;

/// A copy of the database of version 0.1.
fn version_0_1() -> TempDir {
    let folder = TempDir::new().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v0.1/data/seawall.db");
    fs::copy(fixture, folder.path().join("seawall.db")).unwrap();
    folder
}

fn open(folder: &TempDir) -> Sqlite {
    Sqlite::open(folder.path(), &Clock::system()).unwrap()
}

/// HUB-14, PRM-3: a key that was claimed under version 0.1 is still claimed, and everything that was registered is there. The API
/// can't tell that, since such a key is forgotten after a day.
#[tokio::test]
async fn hub_14_claimed_keys_and_the_registry_of_version_0_1_are_read() {
    let folder = version_0_1();
    let store = open(&folder);
    assert!(store.claimed("events", "admin once-1").await.unwrap().is_some());
    assert!(store.claimed("events", "admin once-2").await.unwrap().is_none());
    let found = store.registered().await.unwrap();
    let counts = [found.services.len(), found.rules.len(), found.sources.len(), found.keys.len()];
    assert_eq!(counts, [7, 13, 6, 5]);
    assert_eq!((found.alert_rules.len(), found.channels.len()), (11, 2));
}

/// HUB-14, SEC-2: a secret inside of a document is replaced if it is the one that was encrypted anew, and nothing else changes.
#[tokio::test]
async fn hub_14_a_secret_in_a_document_is_replaced_once() {
    let folder = version_0_1();
    let store = open(&folder);
    let before = store.registered().await.unwrap();
    let (service, source, channel) = (&before.services[0], &before.sources[0], &before.channels[0]);
    let secrets = [
        (SecretOwner::Service(service.name.clone()), service.auth.clone().unwrap()),
        (SecretOwner::Source(source.name.clone()), source.proof.clone()),
        (SecretOwner::Channel(channel.name.clone()), channel.settings.clone()),
    ];
    let now = SealedSecret(vec![1, 2, 3]);
    for (owner, was) in &secrets {
        let rotation = || SecretRotation { owner: owner.clone(), was: was.clone(), now: now.clone() };
        let unit = || UnitOfWork { changes: vec![Change::Reseal(rotation())] };
        assert_eq!(store.commit(WritePriority::Admin, unit()).await.unwrap().touched, 1);
        assert_eq!(store.commit(WritePriority::Admin, unit()).await.unwrap().touched, 0, "it is another one");
    }
    let mut expected = before;
    expected.services[0].auth = Some(now.clone());
    expected.sources[0].proof = now.clone();
    expected.channels[0].settings = now;
    assert_eq!(store.registered().await.unwrap(), expected);
}

/// HUB-14: a registry row that can't be read is named, with its table.
#[tokio::test]
async fn hub_14_an_unreadable_registry_row_is_named_with_its_table() {
    for (table, name) in [
        ("services", "billing"),
        ("rules", "invoices"),
        ("sources", "github"),
        ("keys", "limited"),
        ("alert_rules", "forced"),
        ("alert_channels", "duty"),
    ] {
        let folder = version_0_1();
        let store = open(&folder);
        let database = Connection::open(folder.path().join("seawall.db")).unwrap();
        let spoil = format!("UPDATE {table} SET document = '{{\"unknown\": 1}}' WHERE name = ?1");
        database.execute(&spoil, [slug(name).as_str()]).unwrap();
        let Err(StoreError::Failed(reason)) = store.registered().await else { panic!("{table} is read") };
        let expected = format!("the row `{name}` of the table `{table}` can't be read: missing field");
        assert!(reason.starts_with(&expected), "{reason}");
    }
}
