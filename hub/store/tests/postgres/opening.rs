//! Databases that can't be opened, and what is said about it.

use seawall_testkit::servers::{Database, Postgres, free_port};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use super::place::*;

/// Runs statements as an operator does, beside the store.
async fn run(database: &Database, sql: &str) {
    let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    let (done, _) = tokio::join!(
        async move {
            let done = client.batch_execute(sql).await;
            drop(client);
            done
        },
        connection
    );
    done.unwrap();
}

async fn refusal(url: &str) -> String {
    let folder = TempDir::new().unwrap();
    let refused = open(url, folder.path(), "hub").await.unwrap_err().to_string();
    assert!(!refused.contains("s3cret"), "{refused}");
    refused
}

/// HUB-15: a database that a newer program has changed is not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_newer_database_is_refused() {
    let database = blocking(|| Postgres::shared().database().unwrap()).await;
    let folder = TempDir::new().unwrap();
    drop(open(database.url(), folder.path(), "hub").await.unwrap());
    run(&database, "INSERT INTO seawall_schema (version) VALUES (99)").await;
    drop(open(database.url(), folder.path(), "hub").await.expect("it is newer, and this program may use it"));
    run(&database, "UPDATE meta SET oldest_program = 99").await;
    let refused = refusal(database.url()).await;
    assert!(refused.contains("written by a newer Seawall (it needs version 99, this one knows"), "{refused}");
}

/// HUB-15: a role that may not make tables, and a database with tables of somebody else, are refused with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_database_that_is_not_the_hubs_is_refused() {
    let [guarded, foreign] = blocking(|| [(); 2].map(|()| Postgres::shared().database().unwrap())).await;
    run(&guarded, "CREATE ROLE guest LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    let refused = refusal(&guarded.url().replace("postgres@", "guest:s3cret@")).await;
    assert!(refused.contains("may not create its tables") && refused.contains("owner"), "{refused}");
    run(&foreign, "CREATE TABLE events (id integer)").await;
    let refused = refusal(foreign.url()).await;
    assert!(refused.contains("tables of another program"), "{refused}");
}

/// HUB-15: an address where nothing is, a database that is not there and a role that is not there are told apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_wrong_address_is_refused_with_what_is_wrong() {
    let database = blocking(|| Postgres::shared().database().unwrap()).await;
    let port = free_port().unwrap();
    let nobody = refusal(&format!("postgres://postgres:s3cret@127.0.0.1:{port}/hub")).await;
    assert!(nobody.contains(&format!("can't connect to the database `127.0.0.1:{port}/hub`")), "{nobody}");
    assert!(nobody.contains("refused"), "{nobody}");
    let missing = refusal(&database.url().replace("/test_", "/missing_")).await;
    assert!(missing.contains("does not exist") && missing.contains("create it first"), "{missing}");
    let stranger = refusal(&database.url().replace("postgres@", "stranger:s3cret@")).await;
    assert!(stranger.contains("\"stranger\" does not exist"), "{stranger}");
    let no_tls = refusal(&format!("{}?sslmode=require", database.url())).await;
    assert!(no_tls.contains("TLS"), "{no_tls}");
}

/// HUB-15: a server that acknowledges what is not on its disk is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_server_without_fsync_is_refused() {
    let server = blocking(|| Postgres::builder().setting("fsync=off").start().unwrap()).await;
    let refused = refusal(server.database().unwrap().url()).await;
    assert!(refused.contains("its setting `fsync` is off"), "{refused}");
    let small = blocking(|| Postgres::builder().setting("max_connections=8").start().unwrap()).await;
    let refused = refusal(small.database().unwrap().url()).await;
    assert!(
        refused.contains("a hub needs 7 connections, and `max_connections` of the server leaves 5"),
        "{refused}"
    );
}
