//! Runs a handler on the messages of a stream, through a durable consumer.

mod config;
mod crew;
mod declare;
mod failures;
mod held;
mod queue;
mod work;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use seawall_dist::messaging::MessageProcessor;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use config::{
    ACK_PENDING_MAX, ACK_WAIT, ACK_WAIT_MIN, CONCURRENCY, NatsConsumerBuilder, PREFETCH, STOP_TIMEOUT,
};
use crew::Crew;
pub(crate) use declare::ConsumerSettings;
use queue::MessageQueue;
use work::Worker;
pub(crate) use work::stop;

use crate::connection::OpenConnection;
use crate::deadletter::NatsAdvisoryCollector;
use crate::pull::{Declaration, DeclareFuture, PullLoop};
use crate::{NatsConnection, NatsError};

/// Runs a handler on the messages of a stream. It is a handle: clones share everything, and only one of them should run.
///
/// [The crate](crate) describes its behaviour.
#[derive(Clone)]
pub struct NatsConsumer(Arc<Inner>);

struct Inner {
    worker: Arc<Worker>,
    settings: ConsumerSettings,
    stream_subjects: Option<Vec<String>>,
    collector: NatsAdvisoryCollector,
    room: Arc<Semaphore>,
    stop_timeout: Duration,
}

impl NatsConsumer {
    /// Starts to configure the consumer of this name on a stream.
    pub fn builder(
        connection: NatsConnection,
        stream: impl Into<String>,
        name: impl Into<String>,
        processor: MessageProcessor,
    ) -> NatsConsumerBuilder {
        NatsConsumerBuilder::new(connection, stream.into(), name.into(), processor)
    }

    /// Declares the durable consumer and the place of its dead letters, without running it.
    ///
    /// # Errors
    /// The stream is not there, or a consumer of this name has settings that exclude ours, or the server is away.
    pub async fn declare(&self) -> Result<(), NatsError> {
        let open = self.0.worker.connection.open().await?;
        Declaration::declare(&*self.0, &open).await
    }

    /// Runs until the future ends. Then no further message is taken, handlers that run may end, and messages that no handler
    /// has begun with are given back.
    ///
    /// A server that is away is waited for. A future that is dropped leaves its messages to their next delivery.
    ///
    /// # Errors
    /// No further attempt can help: the stream is not there, its consumer has settings that exclude ours, the consumer was
    /// deleted, or the credentials were refused from the beginning.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), NatsError> {
        let (stop, stopped) = watch::channel(false);
        let work = self.0.consume(&stop, stopped.clone());
        let collect = async {
            let result = self.0.collector.run_until(work::stop(&mut stopped.clone())).await;
            stop.send_replace(true);
            result
        };
        let mut both = pin!(async { tokio::join!(work, collect) });
        let (worked, collected) = tokio::select! {
            results = &mut both => results,
            () = shutdown => {
                stop.send_replace(true);
                both.await
            }
        };
        worked.and(collected)
    }

    /// The number of messages in hand: those that a handler runs on, and those that wait for one.
    #[must_use]
    pub fn messages_in_hand(&self) -> usize {
        self.0.worker.held.count()
    }
}

impl Inner {
    /// Works on messages, and tells the server that those in hand are worked on.
    async fn consume(
        self: &Arc<Self>,
        stop_all: &watch::Sender<bool>,
        stopped: watch::Receiver<bool>,
    ) -> Result<(), NatsError> {
        let worker = &self.worker;
        let signals = worker.held.signal_progress(&worker.connection, worker.ack_wait);
        // The messages have a task of their own. Whatever the future of the caller waits for besides would be looked at with each
        // of them, and a caller that is no task of the runtime would be woken as a thread.
        let mut task = JoinSet::new();
        task.spawn(self.clone().work(stop_all.clone(), stopped));
        let ended = tokio::select! {
            ended = task.join_next() => ended,
            () = signals => None,
        };
        match ended {
            Some(Ok(result)) => result,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) | None => Ok(()),
        }
    }

    async fn work(
        self: Arc<Self>,
        stop_all: watch::Sender<bool>,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), NatsError> {
        let Inner { worker, room, .. } = &*self;
        let (connection, target) = (&worker.connection, &worker.target);
        let mut crew = Crew::new(worker, stopped.clone());
        let mut pull = PullLoop::new(connection, &*self, target.clone(), room.clone(), &worker.log);
        let result = tokio::select! {
            biased;
            () = stop(&mut stopped) => Ok(()),
            result = self.pull(&mut pull, crew.queue()) => result,
            never = crew.run() => match never {},
        };
        stop_all.send_replace(true);
        let (returned, aborted) = crew.stop(pull, self.stop_timeout).await;
        // Acknowledgements are on their way when they are written to the connection, and not earlier.
        if let Ok(open) = connection.open().await {
            let _ = timeout(connection.request_timeout(), open.client.flush()).await;
        }
        worker.log.stopped(target, returned, aborted);
        result
    }

    /// Puts messages into the queue as they arrive.
    async fn pull(&self, pull: &mut PullLoop<'_>, queue: Arc<MessageQueue>) -> Result<(), NatsError> {
        let mut messages = Vec::new();
        loop {
            pull.next(&mut messages).await?;
            queue.put(messages.drain(..).filter_map(|pulled| self.worker.job(pulled)));
        }
    }
}

impl Declaration for Inner {
    fn declare<'a>(&'a self, open: &'a OpenConnection) -> DeclareFuture<'a> {
        Box::pin(async move {
            if let Some(subjects) = &self.stream_subjects {
                let config = async_nats::jetstream::stream::Config {
                    name: self.settings.stream.to_string(),
                    subjects: subjects.clone(),
                    ..Default::default()
                };
                crate::deadletter::declare_stream(&open.jetstream, config).await?;
            }
            self.worker.place.declare(&open.jetstream).await?;
            self.settings.declare(&open.jetstream).await
        })
    }
}

impl fmt::Debug for NatsConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConsumer").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
