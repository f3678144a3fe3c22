//! Rule of direction D9: services open units of work through a port, and a store never begins one by itself.
//!
//! A store that begins its own transaction looks harmless until two of its calls have to succeed or fail
//! together. The one file of each store in `hub/store` that implements the port is `engine/writer.rs`; nothing
//! else there may begin one.

use super::source::{code, product};
use super::{File, expect_none, files};

const STORE: &str = "hub/store/src/";
const THE_PORT: &str = "/engine/writer.rs";

/// How a transaction begins in sqlx, rusqlite and tokio-postgres, as code.
const BEGINNINGS: &[&str] = &[
    ".begin(",
    ".begin_with(",
    ".try_begin(",
    ".transaction(",
    ".transaction_with_behavior(",
    ".unchecked_transaction(",
    ".build_transaction(",
    ".build_transaction(",
];

/// How it begins as SQL. Looked for with the quote before it, so that comments may speak of it.
const SQL: &[&str] = &["\"BEGIN", "\"begin ", "\"begin\"", "\"START TRANSACTION", "\"SAVEPOINT"];

fn problems(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    let may_not = |file: &&File| {
        file.is_rust()
            && file.path.starts_with(STORE)
            && !file.path.ends_with(THE_PORT)
            && !file.path.contains("/tests/")
    };
    for file in files.iter().filter(may_not) {
        let text = product(&file.text);
        let code = code(&text);
        let lines = code.lines().zip(text.lines()).enumerate();
        for (index, (code, text)) in lines {
            let in_code = BEGINNINGS.iter().find(|beginning| code.contains(**beginning));
            let in_sql = SQL.iter().find(|beginning| text.contains(**beginning));
            if let Some(found) = in_code.or(in_sql) {
                problems.push(format!("D9: {}:{} begins a unit of work (`{found}`)", file.path, index + 1));
            }
        }
    }
    problems
}

#[test]
fn no_store_of_this_project_begins_a_unit_of_work() {
    expect_none(&problems(&files()));
}

#[test]
fn a_store_that_begins_a_unit_of_work_is_found() {
    let check = |path: &str, text: &str| problems(&[File::made_up(path, text)]).len();
    assert_eq!(check("hub/store/src/sqlite/event.rs", "let tx = pool.begin().await?;"), 1);
    assert_eq!(check("hub/store/src/event.rs", "connection.execute(\"BEGIN IMMEDIATE\")"), 1);
    assert_eq!(check("hub/store/src/postgres/event.rs", "client.build_transaction().start()"), 1);
    assert_eq!(check("hub/store/src/sqlite/engine/writer.rs", "let tx = pool.begin().await?;"), 0);
    assert_eq!(check("hub/store/src/postgres/write/event.rs", "client.build_transaction().start()"), 1);
    assert_eq!(check("hub/store/src/postgres/tests/event.rs", "run(\"BEGIN\")"), 0);
    assert_eq!(check("hub/store/src/event.rs", "// The service called pool.begin() before.\nfn f() {}"), 0);
    assert_eq!(check("libs/seawall-sql/src/outbox.rs", "let tx = pool.begin().await?;"), 0);
}
