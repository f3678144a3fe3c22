//! Runs queries on the first side that answers.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use seawall::failover::{Failover, Side};
use seawall::{Attempt, Class};
use sqlx::{Database, Pool};

use super::config::{SqlFailoverBuilder, WritePolicy};
use super::log::{CallLog, SourceLog};
use super::rows::RowCount;
use crate::{SqlxErrors, fault_of};

/// The result of a query, and which side gave it. It dereferences to the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlAnswer<T> {
    value: T,
    side: Side,
}

impl<T> SqlAnswer<T> {
    /// The side that gave the result.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// The result.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for SqlAnswer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Why no side gave a result. `first()` has the error of the primary.
pub type SqlFailoverError = seawall::Error<sqlx::Error>;

/// Two databases or more of the same content, asked in order. A handle: clones share everything.
pub struct SqlFailover<DB: Database> {
    failover: Failover,
    pools: Arc<[Pool<DB>]>,
    writes: WritePolicy,
    log: Arc<SourceLog>,
}

impl<DB: Database> SqlFailover<DB> {
    /// Begins a failover whose log lines begin with this name, such as `DataSource`.
    pub fn builder(name: impl Into<String>) -> SqlFailoverBuilder<DB> {
        SqlFailoverBuilder::new(name.into())
    }

    pub(super) fn new(
        failover: Failover,
        pools: Arc<[Pool<DB>]>,
        writes: WritePolicy,
        log: SourceLog,
    ) -> Self {
        SqlFailover { failover, pools, writes, log: Arc::new(log) }
    }

    /// Runs a read on the primary, and on the next side if that fails. The closure may be called once per side, so it must only
    /// read. A fault of the query itself, such as a wrong column, is not asked elsewhere.
    pub async fn read<T, F, Fut>(&self, mut query: F) -> Result<SqlAnswer<T>, SqlFailoverError>
    where
        T: RowCount,
        F: FnMut(Pool<DB>) -> Fut,
        Fut: Future<Output = Result<T, sqlx::Error>>,
    {
        let log = self.log.call();
        let call = self.failover.idempotent().classify(SqlxErrors);
        let result = call.call(|attempt: Attempt| self.ask(attempt.side(), &log, &mut query)).await;
        let result = result.map(|answer| (answer.side(), answer.into_value()));
        self.tell(&log, result)
    }

    /// Runs a write where the [`WritePolicy`] says: on the primary alone, unless the builder was told otherwise. It is never
    /// repeated where it may have taken effect.
    ///
    /// The closure runs one statement or one transaction. Of two statements without a transaction the first may have taken effect
    /// when the error of the second says that nothing was done.
    pub async fn write<T, F, Fut>(&self, mut statement: F) -> Result<SqlAnswer<T>, SqlFailoverError>
    where
        T: RowCount,
        F: FnMut(Pool<DB>) -> Fut,
        Fut: Future<Output = Result<T, sqlx::Error>>,
    {
        let log = self.log.call();
        let ask = |attempt: Attempt| self.ask(attempt.side(), &log, &mut statement);
        let result = match self.writes {
            WritePolicy::AnySide => {
                let result = self.failover.once().classify(SqlxErrors).call(ask).await;
                result.map(|answer| (answer.side(), answer.into_value()))
            }
            WritePolicy::PrimaryOnly => {
                let result = self.failover.sides()[0].once().classify(SqlxErrors).call(ask).await;
                result.map(|value| (Side::PRIMARY, value))
            }
        };
        self.tell(&log, result)
    }

    /// The pools, in the order in which they are asked.
    #[must_use]
    pub fn pools(&self) -> &[Pool<DB>] {
        &self.pools
    }

    /// The failover of the engine, with the guards of the sides.
    #[must_use]
    pub fn failover(&self) -> &Failover {
        &self.failover
    }

    /// Asks one side. The future borrows nothing, because the guard may hold it while it asks for the next one.
    fn ask<T, Q, Fut>(
        &self,
        side: Side,
        log: &CallLog<'_>,
        query: &mut Q,
    ) -> impl Future<Output = Result<T, sqlx::Error>> + use<T, Q, Fut, DB>
    where
        Q: FnMut(Pool<DB>) -> Fut,
        Fut: Future<Output = Result<T, sqlx::Error>>,
    {
        log.asks(side);
        let pool = self.pools[side.index()].clone();
        let future = query(pool.clone());
        let failures = log.failures();
        async move {
            let result = future.await;
            if let Err(error) = &result {
                failures.note(error);
                if broke_connection(error) {
                    discard_idle(&pool);
                }
            }
            result
        }
    }

    fn tell<T: RowCount>(
        &self,
        log: &CallLog<'_>,
        result: Result<(Side, T), SqlFailoverError>,
    ) -> Result<SqlAnswer<T>, SqlFailoverError> {
        match result {
            Ok((side, value)) => {
                log.answered(side, value.row_count());
                Ok(SqlAnswer { value, side })
            }
            Err(error) => {
                log.failed(self.pools.len(), &error);
                Err(error)
            }
        }
    }
}

/// Whether the error says something about the other connections of the pool too.
fn broke_connection(error: &sqlx::Error) -> bool {
    let from_server = matches!(error, sqlx::Error::Database(_));
    matches!(error, sqlx::Error::PoolTimedOut) || (!from_server && fault_of(error).class() == Class::Io)
}

/// Throws away the connections that lie idle: what broke one of them has broken all, and each of them would have to be found
/// out by a call that waits for it.
fn discard_idle<DB: Database>(pool: &Pool<DB>) {
    for _ in 0..pool.size() {
        let Some(connection) = pool.try_acquire() else { return };
        drop(connection.detach());
    }
}

impl<DB: Database> Clone for SqlFailover<DB> {
    fn clone(&self) -> Self {
        SqlFailover {
            failover: self.failover.clone(),
            pools: self.pools.clone(),
            writes: self.writes,
            log: self.log.clone(),
        }
    }
}

impl<DB: Database> fmt::Debug for SqlFailover<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlFailover").field("failover", &self.failover).field("writes", &self.writes).finish()
    }
}
