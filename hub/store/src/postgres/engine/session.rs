//! One connection, with the statements that it has prepared.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use seawall_hub_core::sync::Lock;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

/// The values of a statement.
pub(in crate::postgres) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The maximum number of prepared statements of a connection. Searches put their text together, so there are many.
const STATEMENTS_MAX: usize = 256;

/// A process of the server. Numbers of processes repeat, but not with the same start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) struct ServerProcess {
    pub(in crate::postgres) pid: i32,
    pub(in crate::postgres) started: SystemTime,
}

/// What a server is a copy of, and since which of its promotions and restores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) struct Timeline {
    pub(in crate::postgres) system: i64,
    pub(in crate::postgres) number: i32,
}

/// What serves a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::postgres) struct SessionInfo {
    pub(in crate::postgres) process: ServerProcess,
    pub(in crate::postgres) timeline: Timeline,
}

/// A connection that one task owns. Statements are prepared once.
pub(in crate::postgres) struct Session {
    client: Client,
    statements: Lock<HashMap<String, Statement>>,
    /// True if a statement has failed since the transaction began. The server rolls such a transaction back on COMMIT, and the
    /// driver does not say so.
    failed: AtomicBool,
    info: SessionInfo,
    /// What reads and writes the socket. It ends with the session.
    _socket: JoinSet<()>,
}

impl Session {
    /// Takes a connection with the task that drives its socket.
    pub(in crate::postgres) fn new(client: Client, info: SessionInfo, socket: JoinSet<()>) -> Self {
        Session { client, statements: Lock::default(), failed: AtomicBool::new(false), info, _socket: socket }
    }

    /// Returns what serves the connection.
    pub(in crate::postgres) fn info(&self) -> SessionInfo {
        self.info
    }

    /// Returns the connection itself, for what is not prepared.
    pub(in crate::postgres) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the connection is lost.
    pub(in crate::postgres) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether a statement has failed since this was last asked.
    pub(in crate::postgres) fn take_failed(&self) -> bool {
        self.failed.swap(false, Ordering::Relaxed)
    }

    fn noticed<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        if answer.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        answer
    }

    pub(in crate::postgres) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.lock().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.noticed(self.client.prepare(sql).await)?;
        let mut statements = self.statements.lock();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Whether a statement with this text has run.
    #[cfg(test)]
    pub(in crate::postgres) fn has_run(&self, text: &str) -> bool {
        self.statements.lock().keys().any(|sql| sql.contains(text))
    }

    /// Runs statements that are not prepared and have no values.
    pub(in crate::postgres) async fn run_text(&self, sql: &str) -> Result<(), Error> {
        self.noticed(self.client.batch_execute(sql).await)
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(in crate::postgres) async fn run(&self, sql: &str, params: Params<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.noticed(self.client.execute(&statement, params).await)
    }

    /// Returns one row, if there is one.
    pub(in crate::postgres) async fn find(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.noticed(self.client.query_opt(&statement, params).await)
    }

    pub(in crate::postgres) async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.noticed(self.client.query(&statement, params).await)
    }
}
