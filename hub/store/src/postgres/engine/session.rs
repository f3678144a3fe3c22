//! One connection, with the statements that it has prepared.

use std::collections::HashMap;

use seawall_hub_core::sync::Lock;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

/// The values of a statement.
pub(in crate::postgres) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The maximum number of prepared statements of a connection. Searches put their text together, so there are many.
const STATEMENTS_MAX: usize = 256;

/// A connection that one task owns. Statements are prepared once.
pub(in crate::postgres) struct Session {
    client: Client,
    statements: Lock<HashMap<String, Statement>>,
}

impl Session {
    pub(in crate::postgres) fn new(client: Client) -> Self {
        Session { client, statements: Lock::default() }
    }

    /// Returns the connection itself, for what is not prepared.
    pub(in crate::postgres) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the connection is lost.
    pub(in crate::postgres) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(in crate::postgres) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.lock().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        let mut statements = self.statements.lock();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(in crate::postgres) async fn run(&self, sql: &str, params: Params<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.client.execute(&statement, params).await
    }

    /// Returns one row, if there is one.
    pub(in crate::postgres) async fn find(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query_opt(&statement, params).await
    }

    pub(in crate::postgres) async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, params).await
    }
}
