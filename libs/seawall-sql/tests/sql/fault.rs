//! What the errors of real databases mean.

use std::time::Duration;

use seawall::{Class, Fault, Guard, Ran, Retry};
use seawall_sql::{SqlxErrors, fault_of, sqlite};
use seawall_testkit::servers::Postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, Executor, PgConnection, PgPool};

fn code_of(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.code().unwrap_or_default().into_owned(),
        other => format!("{other:?}"),
    }
}

/// The error that this script ends with on a connection of its own.
async fn error_of(url: &str, script: &str) -> sqlx::Error {
    let mut connection = PgConnection::connect(url).await.unwrap();
    for statement in script.split("; ") {
        if let Err(error) = connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await {
            return error;
        }
    }
    panic!("`{script}` fails");
}

/// ADP-9, ENG-1: the table of SQLSTATEs, each from a real server.
#[tokio::test]
async fn adp_9_the_errors_of_postgres_are_judged() {
    let database = Postgres::shared().database().unwrap();
    let url = database.url();
    let pool = PgPool::connect(url).await.unwrap();
    pool.execute("CREATE TABLE t (id INT PRIMARY KEY CHECK (id < 100), text TEXT NOT NULL); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        .await
        .unwrap();
    let mut holder = pool.begin().await.unwrap();
    holder.execute("SELECT * FROM t WHERE id = 2 FOR UPDATE").await.unwrap();
    let busy = Fault::protocol().ran(Ran::No);
    let late = Fault::timeout().ran(Ran::No);
    let table = [
        ("INSERT INTO t VALUES (1, 'again')", "23505", Fault::business()),
        ("INSERT INTO t VALUES (3, NULL)", "23502", Fault::business()),
        ("INSERT INTO t VALUES (100, 'x')", "23514", Fault::business()),
        ("SELECT nothing FROM t", "42703", Fault::business()),
        ("SELECT 1 / 0", "22012", Fault::business()),
        ("SET statement_timeout = 50; SELECT pg_sleep(5)", "57014", late),
        ("SET lock_timeout = 50; SELECT * FROM t WHERE id = 2 FOR UPDATE", "55P03", Fault::conflict()),
        ("SELECT * FROM t WHERE id = 2 FOR UPDATE NOWAIT", "55P03", Fault::conflict()),
        ("SET default_transaction_read_only = on; INSERT INTO t VALUES (4, 'x')", "25006", busy),
        ("SELECT pg_terminate_backend(pg_backend_pid())", "57P01", Fault::io()),
    ];
    for (script, code, fault) in table {
        let error = error_of(url, script).await;
        assert_eq!((code_of(&error).as_str(), fault_of(&error)), (code, fault), "{script}");
    }
    holder.rollback().await.unwrap();
    let wrong = url.replace("/test_", "/no_such_");
    let error = PgConnection::connect(&wrong).await.expect_err("there is no such database");
    assert_eq!((code_of(&error).as_str(), fault_of(&error)), ("3D000", Fault::business().ran(Ran::No)));
}

/// ADP-9: a serialisation failure and a deadlock did nothing, and may be tried again.
#[tokio::test]
async fn adp_9_conflicts_of_postgres_are_judged() {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    pool.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 0), (2, 0)")
        .await
        .unwrap();
    let mut first = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    first.execute("SELECT * FROM t").await.unwrap();
    pool.execute("UPDATE t SET n = 1 WHERE id = 1").await.unwrap();
    let error = first.execute("UPDATE t SET n = 2 WHERE id = 1").await.unwrap_err();
    assert_eq!((code_of(&error).as_str(), fault_of(&error)), ("40001", Fault::conflict()));
    drop(first);

    let (mut first, mut second) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
    first.execute("UPDATE t SET n = 3 WHERE id = 1").await.unwrap();
    second.execute("UPDATE t SET n = 3 WHERE id = 2").await.unwrap();
    let (one, two) = tokio::join!(first.execute("UPDATE t SET n = 3 WHERE id = 2"), async {
        let result = second.execute("UPDATE t SET n = 3 WHERE id = 1").await;
        second.rollback().await.ok();
        result
    });
    let error = one.err().or(two.err()).expect("one of them is the victim");
    assert_eq!((code_of(&error).as_str(), fault_of(&error)), ("40P01", Fault::conflict()));
}

/// ADP-9: a server without a place asks for fewer calls; one that is gone is an i/o fault; a pool without a free connection
/// sent nothing.
#[tokio::test]
async fn adp_9_servers_that_are_full_or_gone_are_judged() {
    let server = Postgres::builder()
        .setting("max_connections=4")
        .setting("superuser_reserved_connections=0")
        .start()
        .unwrap();
    let url = format!("postgres://postgres@{}/postgres", server.address());
    let mut held = Vec::new();
    let error = loop {
        match PgConnection::connect(&url).await {
            Ok(connection) => held.push(connection),
            Err(error) => break error,
        }
    };
    assert_eq!((code_of(&error).as_str(), fault_of(&error)), ("53300", Fault::throttled().ran(Ran::No)));
    drop(held);
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(300))
        .connect_lazy(&url)
        .unwrap();
    let mut connection = loop {
        // The server needs a moment to see that the others have gone.
        match pool.acquire().await {
            Ok(connection) => break connection,
            Err(error) => assert_ne!(fault_of(&error).class(), Class::Business),
        }
    };
    let error = pool.acquire().await.expect_err("the only connection is taken");
    assert_eq!(fault_of(&error), Fault::timeout().ran(Ran::No));
    server.control().stop().unwrap();
    let error = connection.execute("SELECT 1").await.unwrap_err();
    assert_eq!(
        (fault_of(&error).class(), fault_of(&error).did_run()),
        (Class::Io, Ran::Unknown),
        "{error:?}"
    );
    let error = PgConnection::connect(&url).await.expect_err("nobody listens");
    assert_eq!((fault_of(&error).class(), fault_of(&error).did_run()), (Class::Io, Ran::No), "{error:?}");
}

/// ADP-9: the result codes of SQLite.
#[tokio::test]
async fn adp_9_the_errors_of_sqlite_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let pool = sqlite::open(&path).await.unwrap();
    pool.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT NOT NULL)").await.unwrap();
    pool.execute("INSERT INTO t VALUES (1, 'a')").await.unwrap();
    for (script, code) in [
        ("INSERT INTO t VALUES (1, 'again')", "1555"),
        ("INSERT INTO t VALUES (2, NULL)", "1299"),
        ("SELECT nothing FROM t", "1"),
    ] {
        let error = pool.execute(script).await.unwrap_err();
        assert_eq!((code_of(&error).as_str(), fault_of(&error)), (code, Fault::business()), "{script}");
    }
    let impatient = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).busy_timeout(Duration::ZERO);
    let mut impatient = sqlx::SqliteConnection::connect_with(&impatient).await.unwrap();
    let writer = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = impatient.execute("INSERT INTO t VALUES (3, 'x')").await.unwrap_err();
    assert_eq!((code_of(&error).as_str(), fault_of(&error)), ("5", Fault::conflict()));
    drop(writer);
}

/// ADP-9, ENG-1: the classifier alone makes a guard retry what may help, and nothing else.
#[tokio::test]
async fn adp_9_a_guard_with_the_classifier_retries_conflicts_only() {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    let guard = Guard::builder("orders").retry(Retry::max_attempts(3)).build().unwrap();
    for (script, attempts) in
        [("SELECT 1 / 0", 1), ("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)", 3)]
    {
        let call = guard.classify(SqlxErrors).call(|_| async { pool.execute(script).await.map(|_| ()) });
        assert_eq!(call.await.unwrap_err().attempts(), attempts, "{script}");
    }
}
