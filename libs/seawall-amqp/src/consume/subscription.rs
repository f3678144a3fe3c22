//! Subscribes to a queue, again and again, and has workers for what comes.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use lapin::message::Delivery as ReceivedDelivery;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};
use seawall::Backoff;
use seawall::backoff::Jitter;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::log::SubscriptionLog;
use super::suspects::SuspectsEnd;
use crate::connection::{
    AmqpConnection, OpenConnection, Purpose, RECONNECT_WAIT, RECONNECT_WAIT_MAX, random_word,
};
use crate::error::AmqpError;
use crate::topology::{QueueTopology, TopologyError};

/// Works on one delivery until it is acknowledged, or until the server takes it back.
pub(super) trait Worker: Send + Sync + 'static {
    fn work(self: Arc<Self>, delivery: ReceivedDelivery, terms: WorkTerms)
    -> impl Future<Output = ()> + Send;
}

/// What a worker keeps to.
#[derive(Clone, Debug)]
pub(super) struct WorkTerms {
    /// When it is true, the worker gives back what it can't finish soon.
    pub(super) stop: watch::Receiver<bool>,
    /// Whether others wait until this worker has ended, so that it must not hold a message.
    pub(super) is_alone: bool,
}

/// A queue, and how it is consumed.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) connection: AmqpConnection,
    pub(super) topology: QueueTopology,
    pub(super) queue: String,
    pub(super) concurrency: usize,
    pub(super) prefetch: u16,
    /// Whether messages that were delivered before are worked on alone at first.
    pub(super) is_careful: bool,
    pub(super) stop_timeout: Duration,
    pub(super) log: SubscriptionLog,
}

/// Why a session ended.
enum SessionEnd {
    /// The consumer was told to stop, and has.
    Stopped,
    /// The server or the network ended it.
    Lost(String),
}

impl Subscription {
    /// Consumes until the signal comes. Fails if the first attempt to subscribe fails for a reason that no other attempt helps.
    pub(super) async fn run<W: Worker>(
        &self,
        worker: Arc<W>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), TopologyError> {
        let mut shutdown = pin!(shutdown);
        let backoff = Backoff::exponential(RECONNECT_WAIT).cap(RECONNECT_WAIT_MAX).jitter(Jitter::Equal);
        let (mut failures, mut was_subscribed) = (0, false);
        loop {
            let cause = match self.session(&worker, shutdown.as_mut()).await {
                Ok(SessionEnd::Stopped) => return Ok(()),
                Ok(SessionEnd::Lost(cause)) => {
                    (failures, was_subscribed) = (0, true);
                    cause
                }
                // Later on the server may refuse for a while, such as when its users are loaded after a restart.
                Err(error) if !was_subscribed && !error.fault().is_transient() => {
                    self.log.refused(&describe(&error));
                    return Err(error);
                }
                Err(error) => describe(&error),
            };
            let wait = backoff.wait(failures, Duration::ZERO, false, random_word());
            failures = failures.saturating_add(1);
            self.log.lost(wait, &cause);
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                () = sleep(wait) => {}
            }
        }
    }

    /// Declares, works off what is suspect, subscribes and consumes, until the signal comes or the server ends it. However it ends,
    /// its channel is closed, so that the server takes back every message that was sent over it and not acknowledged.
    async fn session<W: Worker>(
        &self,
        worker: &Arc<W>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<SessionEnd, TopologyError> {
        let line = tokio::select! {
            biased;
            () = &mut shutdown => return Ok(SessionEnd::Stopped),
            line = self.open() => line?,
        };
        let end = self.session_on(&line, worker, shutdown).await;
        line.close().await;
        end
    }

    async fn session_on<W: Worker>(
        &self,
        line: &Line,
        worker: &Arc<W>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<SessionEnd, TopologyError> {
        let mut first = None;
        if self.is_careful {
            let worked = self.work_alone(line, worker, shutdown.as_mut()).await;
            match worked.map_err(TopologyError::Server)? {
                SuspectsEnd::Done(new) => first = new,
                SuspectsEnd::Stopped => return Ok(SessionEnd::Stopped),
            }
        }
        let session = tokio::select! {
            biased;
            () = &mut shutdown => return Ok(SessionEnd::Stopped),
            session = self.subscribe(line.clone()) => session.map_err(TopologyError::Server)?,
        };
        self.log.subscribed();
        Ok(self.consume(session, first, worker, shutdown).await)
    }

    async fn open(&self) -> Result<Line, TopologyError> {
        self.topology.declare(&self.connection).await?;
        let open = self.connection.open(Purpose::Consume).await.map_err(TopologyError::Server)?;
        let channel = open.channel().await.map_err(TopologyError::Server)?;
        Ok(Line { open, channel })
    }

    async fn subscribe(&self, line: Line) -> Result<Session, AmqpError> {
        let Line { open, channel } = &line;
        let qos = channel.basic_qos(self.prefetch, BasicQosOptions::default());
        open.within("limiting unacknowledged messages", qos).await?;
        let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
        let consume = channel.basic_consume(self.queue.as_str().into(), "".into(), options, arguments);
        let consumer = open.within("consuming a queue", consume).await?;
        Ok(Session { line, consumer })
    }

    /// Hands deliveries to workers until the signal comes or the session is lost.
    async fn consume<W: Worker>(
        &self,
        mut session: Session,
        first: Option<Box<ReceivedDelivery>>,
        worker: &Arc<W>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> SessionEnd {
        // Dropped with this future, which ends the workers and so gives back what they have.
        let mut workers = JoinSet::new();
        let (stop, stopping) = watch::channel(false);
        let terms = WorkTerms { stop: stopping, is_alone: false };
        if let Some(first) = first {
            workers.spawn(worker.clone().work(*first, terms.clone()));
        }
        let mut deadline: Option<Pin<Box<Sleep>>> = None;
        let mut lost = None;
        // What is running is waited for, so that this process does not work on a message twice at the same time.
        while lost.is_none() || !workers.is_empty() {
            let has_room = workers.len() < self.concurrency && lost.is_none();
            tokio::select! {
                biased;
                () = &mut shutdown, if deadline.is_none() => {
                    deadline = Some(Box::pin(sleep(self.stop_timeout)));
                    let _ = stop.send(true);
                    session.cancel().await;
                }
                () = async { deadline.as_mut().expect("it is checked").await }, if deadline.is_some() => break,
                Some(done) = workers.join_next(), if !workers.is_empty() => {
                    // The message of a worker that panicked comes again when the channel is closed.
                    if done.is_err() {
                        lost.get_or_insert_with(|| "a worker panicked".to_owned());
                    }
                }
                delivery = session.next(), if has_room => match delivery {
                    Some(Ok(delivery)) => {
                        workers.spawn(worker.clone().work(delivery, terms.clone()));
                    }
                    None => lost = Some("the server cancelled the consumer".to_owned()),
                    Some(Err(error)) => {
                        // The server takes back what it has no acknowledgement for, so nobody holds on to it.
                        let _ = stop.send(true);
                        lost = Some(error.to_string());
                    }
                },
            }
        }
        let given_back = workers.len();
        workers.shutdown().await;
        match (deadline, lost) {
            (None, Some(cause)) => SessionEnd::Lost(cause),
            _ => {
                self.log.stopped(given_back);
                SessionEnd::Stopped
            }
        }
    }
}

/// A channel of a connection.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) open: Arc<OpenConnection>,
    pub(super) channel: Channel,
}

impl Line {
    /// Closes the channel, which gives back what was not acknowledged.
    pub(super) async fn close(&self) {
        let _ = self.open.within("closing a channel", self.channel.close(200, "stopped".into())).await;
    }
}

/// A channel with a consumer on it.
struct Session {
    line: Line,
    consumer: Consumer,
}

impl Session {
    /// The next delivery; `None` when the server or this side has cancelled the consumer.
    async fn next(&mut self) -> Option<Result<ReceivedDelivery, lapin::Error>> {
        poll_fn(|context| Pin::new(&mut self.consumer).poll_next(context)).await
    }

    /// Tells the server to send nothing more. What it has sent before still comes.
    async fn cancel(&self) {
        let cancel = self.line.channel.basic_cancel(self.consumer.tag(), BasicCancelOptions::default());
        if self.line.open.within("cancelling a consumer", cancel).await.is_err() {
            // A server that does not answer takes everything back when the connection ends.
            self.line.open.cut();
        }
    }
}

/// An error with what is behind it, in one line.
fn describe(error: &TopologyError) -> String {
    match error {
        TopologyError::Server(cause) => cause.to_string(),
        other => other.to_string(),
    }
}
