//! The one place that begins and ends transactions.
//!
//! # What if COMMIT has no answer?
//! Every transaction of a writer first writes a number that was never used before into the writer's own row. Whoever asks for that
//! row with a lock waits until the transaction has ended, whichever way; the number says which. So what was acknowledged is there,
//! and what is applied again was not there before.

use std::sync::Arc;
use std::time::Duration;

use seawall::Tick;
use seawall_hub_core::port::store::StoreError;
use tokio::time::sleep;
use tokio_postgres::Error;

use super::fault::{self, DatabaseFault};
use super::link::Link;
use super::node::HubNode;
use super::session::{Params, Session};
use crate::postgres::write::applier::{ApplyError, NodeId};

/// The pause before a transaction is applied once more that others were in the way of. It grows with every conflict.
const CONFLICT_PAUSE: Duration = Duration::from_millis(5);

pub(in crate::postgres) async fn begin(session: &Session) -> Result<(), Error> {
    session.take_failed();
    session.run_text("BEGIN").await
}

pub(in crate::postgres) async fn commit(session: &Session) -> Result<(), Error> {
    session.run_text("COMMIT").await
}

pub(in crate::postgres) async fn roll_back(session: &Session) -> Result<(), Error> {
    session.run_text("ROLLBACK").await
}

/// Runs transactions one after the other, each until it is known how it ended.
pub(in crate::postgres) struct Transactor {
    link: Link,
    node: Arc<HubNode>,
    /// The row of this writer.
    slot: i16,
    /// The number of the last transaction. None is used twice.
    number: i64,
    /// Whether it takes every COMMIT without an answer for one that failed: a mistake that a test has to find.
    #[cfg(test)]
    forgets: bool,
}

/// Why a transaction has no result.
#[derive(Debug)]
pub(in crate::postgres) enum TransactError {
    /// It was refused: nothing was changed.
    Refused(StoreError),
    /// The database has failed and is there: nothing was changed. Its parts may succeed where the whole does not.
    Failed(StoreError),
    /// The database could not be asked within the time; `sent` is true if the transaction may have been committed.
    Away { sent: bool },
    /// Another process has taken over from this node.
    Lost,
}

/// How far a transaction has come.
enum Applied<T> {
    /// Everything but COMMIT has succeeded.
    Ready(T),
    Refused(StoreError),
    Failed(StoreError),
    /// Others were in the way.
    Conflict,
    /// The connection is of no use any more; nothing was committed.
    Broken,
    /// The row of this writer is gone.
    Lost,
}

impl Transactor {
    pub(in crate::postgres) fn new(link: Link, node: Arc<HubNode>, slot: i16) -> Self {
        Transactor {
            link,
            node,
            slot,
            number: 0,
            #[cfg(test)]
            forgets: false,
        }
    }

    /// Runs the work in a transaction, and again if others were in the way or the connection was lost, until the database has
    /// not answered for too long.
    pub(in crate::postgres) async fn run<T>(
        &mut self,
        since: Tick,
        work: impl AsyncFn(&Session, NodeId) -> Result<T, ApplyError>,
    ) -> Result<T, TransactError> {
        let away = Err(TransactError::Away { sent: false });
        let mut conflicts: u32 = 0;
        while !self.node.is_over(since) {
            let Some(session) = self.node.answer(since, self.link.session()).await else { return away };
            self.number += 1;
            let ids = (self.node.id(), self.slot, self.number);
            let value = match self.node.answer(since, apply(session, ids, &work)).await {
                Some(Applied::Ready(value)) => value,
                Some(Applied::Refused(error)) => return Err(TransactError::Refused(error)),
                Some(Applied::Failed(error)) => return Err(TransactError::Failed(error)),
                Some(Applied::Lost) => return Err(TransactError::Lost),
                Some(Applied::Conflict) => {
                    conflicts += 1;
                    sleep(CONFLICT_PAUSE * conflicts.min(20)).await;
                    continue;
                }
                Some(Applied::Broken) => {
                    self.link.drop_session();
                    continue;
                }
                None => {
                    self.link.drop_session();
                    return away;
                }
            };
            match self.node.answer(since, commit(session)).await {
                Some(Ok(())) => return Ok(value),
                // The server has said that it was not committed.
                Some(Err(error))
                    if error.code().is_some() && DatabaseFault::of(&error) != DatabaseFault::Connection =>
                {
                    if DatabaseFault::of(&error) != DatabaseFault::Conflict {
                        return Err(TransactError::Failed(fault::translate(&error)));
                    }
                }
                Some(Err(_)) | None => {
                    self.link.drop_session();
                    if self.took_place(since, ids.0).await? {
                        return Ok(value);
                    }
                }
            }
        }
        away
    }

    /// Finds out whether the last transaction was committed.
    async fn took_place(&mut self, since: Tick, node: NodeId) -> Result<bool, TransactError> {
        #[cfg(test)]
        if self.forgets {
            return Ok(false);
        }
        while !self.node.is_over(since) {
            let unknown = TransactError::Away { sent: true };
            let Some(session) = self.node.answer(since, self.link.session()).await else {
                return Err(unknown);
            };
            let epoch = node.epoch.cast_signed();
            let params: Params<'_> = &[&epoch, &self.slot];
            let asked =
                session.find("SELECT number FROM writers WHERE epoch = $1 AND slot = $2 FOR UPDATE", params);
            match self.node.answer(since, asked).await {
                Some(Ok(Some(row))) => return Ok(row.get::<_, i64>(0) == self.number),
                Some(Ok(None)) if node == self.node.id() => return Err(TransactError::Lost),
                // The server was replaced by one that does not know this epoch.
                Some(Ok(None)) => return Err(unknown),
                Some(Err(error)) if DatabaseFault::of(&error) == DatabaseFault::Conflict => {
                    sleep(CONFLICT_PAUSE).await;
                }
                Some(Err(_)) => self.link.drop_session(),
                None => {
                    self.link.drop_session();
                    return Err(unknown);
                }
            }
        }
        Err(TransactError::Away { sent: true })
    }
}

/// Begins a transaction and does the work in it. What has not succeeded is rolled back.
async fn apply<T>(
    session: &Session,
    (node, slot, number): (NodeId, i16, i64),
    work: &impl AsyncFn(&Session, NodeId) -> Result<T, ApplyError>,
) -> Applied<T> {
    let epoch = node.epoch.cast_signed();
    let params: Params<'_> = &[&number, &epoch, &slot];
    // They are sent one behind the other, without waiting for the answers.
    let (began, marked, made) = tokio::join!(
        begin(session),
        session.run("UPDATE writers SET number = $1 WHERE epoch = $2 AND slot = $3", params),
        work(session, node)
    );
    let marked = match began {
        Ok(()) => marked,
        Err(error) => Err(error),
    };
    let applied = match (marked, made) {
        (Ok(0), _) => Applied::Lost,
        (Err(error), _) | (Ok(_), Err(ApplyError::Database(error))) => match DatabaseFault::of(&error) {
            DatabaseFault::Conflict => Applied::Conflict,
            DatabaseFault::Connection => return Applied::Broken,
            DatabaseFault::Full | DatabaseFault::Damaged | DatabaseFault::Other => {
                Applied::Failed(fault::translate(&error))
            }
        },
        (Ok(_), Err(ApplyError::Refused(error))) => Applied::Refused(error),
        // The server would roll it back on COMMIT, and the driver would call that a success.
        (Ok(_), Ok(_)) if session.take_failed() => Applied::Failed(StoreError::Failed(
            "a statement has failed, and its error was not noticed".into(),
        )),
        (Ok(_), Ok(value)) => return Applied::Ready(value),
    };
    if roll_back(session).await.is_err() { Applied::Broken } else { applied }
}

#[cfg(test)]
mod tests;
