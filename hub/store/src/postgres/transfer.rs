//! A whole database of PostgreSQL as rows, for `seawall migrate`: read from one, or written into an empty one.
//!
//! All of it is one transaction. Whoever is killed in its midst has changed nothing, and the server takes back what it wrote.

use std::pin::pin;

use seawall::Clock;
use tokio_postgres::Error;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::ToSql;

use super::PostgresOptions;
use super::engine::session::Session;
use super::engine::session::Timeline;
use super::engine::writer::{commit, roll_back};
use super::engine::{fault, node, schema};
use crate::OpenError;
use crate::migrate::cell::{Cell, Row};
use crate::migrate::tables::{CopiedTable, TABLES};

/// The state of a node that has stopped in an orderly way.
const STOPPED: i16 = 1;

/// The number of rows that are read at once. A row may have a megabyte.
const FETCH: usize = 128;

/// A copy takes as long as it takes.
const SETTINGS: &str =
    "SET statement_timeout = 0; SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10min'";

/// A database in a transaction that nobody else can disturb: no hub lives, and none can start.
pub(crate) struct Transfer {
    session: Session,
    label: String,
}

/// What is in a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DatabaseContent {
    Nothing,
    /// Tables of a hub; with the state of the folder that was copied there, and the place that all was moved to.
    Hub {
        imported: Option<String>,
        moved: Option<String>,
    },
}

impl Transfer {
    /// Connects, and begins the transaction. A hub that lives is a reason to refuse.
    pub(crate) async fn begin(options: &PostgresOptions, clock: &Clock) -> Result<Self, OpenError> {
        let connector = options.connector(clock)?;
        let session = connector.connect().await.map_err(|error| error.explained(&connector.address))?;
        let transfer = Transfer { session, label: connector.address.to_string() };
        transfer.session.run_text(SETTINGS).await.map_err(|error| transfer.failed(&error))?;
        schema::lock_start(&transfer.session).await?;
        if transfer.has_tables().await? {
            roll_back(&transfer.session).await.map_err(|error| transfer.failed(&error))?;
            node::wait_for_rivals(&transfer.session).await?;
        }
        Ok(transfer)
    }

    /// Returns the host and the database.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    fn failed(&self, error: &Error) -> OpenError {
        OpenError(format!("the database `{}` failed: {}", self.label, fault::text(error)))
    }

    async fn has_tables(&self) -> Result<bool, OpenError> {
        let found = self.session.find("SELECT to_regclass('meta') IS NOT NULL", &[]).await;
        Ok(found.map_err(|error| self.failed(&error))?.is_some_and(|row| row.get(0)))
    }

    pub(crate) async fn content(&self) -> Result<DatabaseContent, OpenError> {
        if !self.has_tables().await? {
            return Ok(DatabaseContent::Nothing);
        }
        let found = self.session.find("SELECT imported, moved FROM meta", &[]).await;
        let row = found.map_err(|error| self.failed(&error))?;
        let (imported, moved) = row.map_or((None, None), |row| (row.get(0), row.get(1)));
        Ok(DatabaseContent::Hub { imported, moved })
    }

    /// Creates the tables.
    pub(crate) async fn create_tables(&self) -> Result<(), OpenError> {
        schema::apply_steps(&self.session).await
    }

    /// Writes rows into a table that this transaction has created, as they come, until there are no more.
    pub(crate) async fn write(
        &self,
        table: &CopiedTable,
        mut next: impl AsyncFnMut() -> Result<Option<Vec<Row>>, OpenError>,
    ) -> Result<(), OpenError> {
        let sql = format!("COPY {} ({}) FROM STDIN (FORMAT binary, FREEZE)", table.name, table.names());
        let sink = self.session.client().copy_in(&sql).await.map_err(|error| self.failed(&error))?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &table.kinds()));
        while let Some(rows) = next().await? {
            for row in &rows {
                let values: Vec<&(dyn ToSql + Sync)> = row.iter().map(|cell| cell as _).collect();
                writer.as_mut().write(&values).await.map_err(|error| self.failed(&error))?;
            }
        }
        writer.finish().await.map(drop).map_err(|error| self.failed(&error))
    }

    /// Reads all rows of a table.
    pub(crate) async fn read(
        &self,
        table: &CopiedTable,
        mut each: impl AsyncFnMut(Vec<Row>) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let failed = |error: Error| self.failed(&error);
        let declare = format!("DECLARE rows CURSOR FOR SELECT {} FROM {}", table.names(), table.name);
        self.session.run_text(&declare).await.map_err(failed)?;
        // Prepared for each table anew: what it returns differs.
        let fetch =
            self.session.client().prepare(&format!("FETCH {FETCH} FROM rows")).await.map_err(failed)?;
        loop {
            let found = self.session.client().query(&fetch, &[]).await.map_err(failed)?;
            if found.is_empty() {
                break;
            }
            let columns = 0..table.columns.len();
            let mut rows = Vec::with_capacity(found.len());
            for row in &found {
                let cells = columns.clone().map(|column| row.try_get::<_, Cell>(column));
                rows.push(cells.collect::<Result<Row, Error>>().map_err(failed)?);
            }
            each(rows).await?;
        }
        self.session.run_text("CLOSE rows").await.map_err(failed)
    }

    /// Returns the number of rows of all tables.
    pub(crate) async fn rows(&self) -> Result<u64, OpenError> {
        let mut total = 0;
        for table in TABLES {
            total += self.number(&format!("SELECT count(*) FROM {}", table.name)).await?.unwrap_or(0);
        }
        Ok(total.cast_unsigned())
    }

    /// Runs a query that returns one number at most.
    async fn number(&self, sql: &str) -> Result<Option<i64>, OpenError> {
        let row = self.session.find(sql, &[]).await.map_err(|error| self.failed(&error))?;
        Ok(row.and_then(|row| row.get(0)))
    }

    /// Makes what was copied a database that goes on where the other one was: numbers and epochs only grow, and ids begin with
    /// the same half.
    pub(crate) async fn complete(&self, era: i64, epochs: &[i64], imported: &str) -> Result<(), OpenError> {
        let failed = |error: Error| self.failed(&error);
        for table in TABLES {
            let Some((sequence, column)) = table.sequence else { continue };
            let set = format!(
                "SELECT setval('{sequence}', max({column})) FROM {} HAVING max({column}) IS NOT NULL",
                table.name
            );
            self.number(&set).await?;
        }
        self.session
            .run("SELECT setval('node_epochs', $1)", &[epochs.first().unwrap_or(&1)])
            .await
            .map_err(failed)?;
        let ended = "INSERT INTO nodes (epoch, name, state, until, reclaimed)
            SELECT epoch, 'seawall migrate', 1, clock_timestamp(), true FROM unnest($1::bigint[]) AS epoch";
        self.session.run(ended, &[&epochs]).await.map_err(failed)?;
        let Timeline { system, number } = self.session.info().timeline;
        let insert = "INSERT INTO eras (system, timeline, era) VALUES ($1, $2, $3)";
        self.session.run(insert, &[&system, &number, &era]).await.map_err(failed)?;
        self.session.run("UPDATE meta SET imported = $1", &[&imported]).await.map_err(failed)?;
        // Without this the first queries guess how many rows there are.
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        self.session.run_text(&format!("ANALYZE {}", tables.join(", "))).await.map_err(failed)
    }

    /// Returns the last epoch and whether it stopped in an orderly way.
    pub(crate) async fn last_epoch(&self) -> Result<(i64, bool), OpenError> {
        let sql = "SELECT epoch, state FROM nodes ORDER BY epoch DESC LIMIT 1";
        let row = self.session.find(sql, &[]).await.map_err(|error| self.failed(&error))?;
        Ok(row.map_or((0, true), |row| (row.get(0), row.get::<_, i16>(1) == STOPPED)))
    }

    /// Returns the first halves of all ids.
    pub(crate) async fn eras(&self) -> Result<Vec<i64>, OpenError> {
        let sql = "SELECT era FROM (SELECT era FROM deliveries UNION SELECT replay_era FROM deliveries
            UNION SELECT era FROM operations) AS found WHERE era IS NOT NULL";
        let rows = self.session.rows(sql, &[]).await.map_err(|error| self.failed(&error))?;
        if !rows.is_empty() {
            return Ok(rows.iter().map(|row| row.get(0)).collect());
        }
        let rows = self.session.rows("SELECT era FROM eras ORDER BY timeline DESC LIMIT 1", &[]).await;
        Ok(rows.map_err(|error| self.failed(&error))?.iter().map(|row| row.get(0)).collect())
    }

    /// Says that all of it is in a folder now.
    pub(crate) async fn write_moved(&self, to: &str) -> Result<(), OpenError> {
        let written = self.session.run("UPDATE meta SET moved = $1", &[&to]).await;
        written.map(drop).map_err(|error| self.failed(&error))
    }

    /// Ends the transaction. `false` if the server has refused, so that nothing was changed; an error if nobody knows.
    pub(crate) async fn commit(&self) -> Result<bool, OpenError> {
        match commit(&self.session).await {
            Ok(()) => Ok(true),
            Err(error) if error.as_db_error().is_some() => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }
}
