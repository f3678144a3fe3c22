//! Queries, on a few connections that do nothing else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use seawall::{Clock, Tick};
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::sync::Lock;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connect::Connector;
use super::fault::QueryError;
use super::link::Link;
use super::node::HubNode;
use super::session::Session;

/// The maximum number of concurrent readers.
pub(in crate::postgres) const READERS_MAX: usize = 4;

/// The answer of a query, still to come.
pub(in crate::postgres) type QueryFuture<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// The connections of readers. They belong to a thread of their own.
pub(in crate::postgres) struct Readers {
    connector: Connector,
    node: Arc<HubNode>,
    idle: Lock<Vec<Link>>,
    reading: Semaphore,
    thread: Handle,
    clock: Clock,
}

impl Readers {
    pub(in crate::postgres) fn new(
        connector: Connector,
        node: Arc<HubNode>,
        thread: Handle,
        clock: Clock,
    ) -> Self {
        let (idle, reading) = (Lock::default(), Semaphore::new(READERS_MAX));
        Readers { connector, node, idle, reading, thread, clock }
    }

    /// Runs a query, and once more on another connection if it was lost meanwhile.
    pub(in crate::postgres) async fn read<A, T, E>(
        self: &Arc<Self>,
        args: A,
        query: impl for<'a> Fn(&'a Session, &'a A) -> QueryFuture<'a, T, E> + Send + 'static,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: QueryError + 'static,
    {
        let (readers, since) = (self.clone(), self.clock.precise());
        // A set, so that a query that nobody waits for any more is given up.
        let mut running = JoinSet::new();
        running.spawn_on(async move { readers.run(since, args, query).await }, &self.thread);
        match running.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => Err(StoreError::Failed(error.to_string())),
            None => Err(StoreError::Failed("nobody reads any more".into())),
        }
    }

    async fn run<A, T, E: QueryError>(
        &self,
        since: Tick,
        args: A,
        query: impl for<'a> Fn(&'a Session, &'a A) -> QueryFuture<'a, T, E>,
    ) -> Result<T, StoreError> {
        let away = Err(StoreError::Unavailable { sent: false });
        let Some(Ok(_one_of_them)) = self.node.answer(since, self.reading.acquire()).await else {
            return away;
        };
        let idle = self.idle.lock().pop();
        let mut link = idle.unwrap_or_else(|| Link::new(self.connector.clone(), self.node.clone()));
        while !self.node.is_over(since) {
            let Some(session) = self.node.answer(since, link.session()).await else { return away };
            let answer = match self.node.answer(since, query(session, &args)).await {
                Some(Err(error)) if error.is_of_connection() => {
                    link.drop_session();
                    continue;
                }
                Some(answer) => answer,
                // The connection goes with the link, and the query with it.
                None => return away,
            };
            self.idle.lock().push(link);
            return answer.map_err(|error| error.translated());
        }
        away
    }
}
