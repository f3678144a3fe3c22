//! One change after another, within a transaction.
//!
//! # Why does every look take a lock?
//! Several writers, in this process and in others, change rows at the same time. What a change decides on must not change until
//! it commits, so a look that leads to a write locks what it reads: the row with `FOR UPDATE`, an order by its key, a name by a
//! unique index. All take their locks in the same sequence: orders, keys, events, deliveries, dead letters, groups, operations.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{CommitResult, StoreError};
use tokio_postgres::{Error, Row};

use crate::postgres::engine::session::{Params, Session};

/// The process as a node: what its rows are marked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) struct NodeId {
    /// The epoch of the process.
    pub(in crate::postgres) epoch: u64,
    /// The first half of new ids.
    pub(in crate::postgres) era: u64,
}

/// Applies the changes of one unit within a transaction that its caller has begun.
pub(in crate::postgres) struct UnitApplier<'c> {
    pub(in crate::postgres) session: &'c Session,
    pub(in crate::postgres) node: NodeId,
    pub(in crate::postgres) committed: CommitResult,
}

/// Why a change was not applied.
#[derive(Debug)]
pub(in crate::postgres) enum ApplyError {
    /// The change is refused, and would be refused again.
    Refused(StoreError),
    /// The database has failed; its code says whether the unit may be tried again.
    Database(Error),
}

impl From<StoreError> for ApplyError {
    fn from(error: StoreError) -> Self {
        ApplyError::Refused(error)
    }
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> Self {
        ApplyError::Database(error)
    }
}

impl<'c> UnitApplier<'c> {
    pub(in crate::postgres) fn new(session: &'c Session, node: NodeId) -> Self {
        let committed = CommitResult { epoch: node.epoch, ..CommitResult::default() };
        UnitApplier { session, node, committed }
    }

    pub(in crate::postgres) async fn run(&self, sql: &str, params: Params<'_>) -> Result<u64, ApplyError> {
        Ok(self.session.run(sql, params).await?)
    }

    /// Returns one row, if there is one.
    pub(in crate::postgres) async fn find(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<Row>, ApplyError> {
        Ok(self.session.find(sql, params).await?)
    }

    pub(in crate::postgres) async fn rows(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, ApplyError> {
        Ok(self.session.rows(sql, params).await?)
    }

    /// Returns the id of a delivery that this node inserts.
    pub(in crate::postgres) fn id(&self, number: i64) -> DeliveryId {
        DeliveryId::new(self.node.era, number.cast_unsigned())
    }
}
