//! Pulls messages from a durable consumer, and begins again after whatever broke.

mod request;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::fault::Verdict;
use tokio::sync::Semaphore;
use tokio::time::sleep;

pub(crate) use request::{PullRequests, PullTarget, PulledMessage};

use crate::connection::{CONNECTING, OpenConnection, reconnect_pause};
use crate::log::ConsumerLog;
use crate::{NatsConnection, NatsError};

/// Declares what is pulled from: streams and a durable consumer.
pub(crate) trait Declaration: Send + Sync {
    fn declare<'a>(&'a self, open: &'a OpenConnection) -> DeclareFuture<'a>;
}

pub(crate) type DeclareFuture<'a> = Pin<Box<dyn Future<Output = Result<(), NatsError>> + Send + 'a>>;

/// The messages of a durable consumer, one after the other, over any number of connections.
pub(crate) struct PullLoop<'a> {
    connection: &'a NatsConnection,
    declaration: &'a dyn Declaration,
    target: PullTarget,
    room: Arc<Semaphore>,
    log: &'a ConsumerLog,
    requests: Option<PullRequests>,
    opened_before: bool,
    failures: usize,
}

impl<'a> PullLoop<'a> {
    /// Creates the loop. `room` has a permit for each message that may be in hand at the same time.
    pub(crate) fn new(
        connection: &'a NatsConnection,
        declaration: &'a dyn Declaration,
        target: PullTarget,
        room: Arc<Semaphore>,
        log: &'a ConsumerLog,
    ) -> Self {
        PullLoop {
            connection,
            declaration,
            target,
            room,
            log,
            requests: None,
            opened_before: false,
            failures: 0,
        }
    }

    /// Waits for the next message, and adds it with all others that have arrived. Fails only if no further attempt can help: the stream is not there, its consumer has
    /// settings that exclude ours or was deleted, or the credentials were refused from the beginning.
    pub(crate) async fn next(&mut self, messages: &mut Vec<PulledMessage>) -> Result<(), NatsError> {
        loop {
            let error = match &mut self.requests {
                None => match self.open().await {
                    Ok(requests) => {
                        self.log.subscribed(&self.target);
                        self.opened_before = true;
                        self.requests = Some(requests);
                        continue;
                    }
                    Err(error) => error,
                },
                Some(requests) => match requests.next(messages).await {
                    Ok(()) => {
                        self.failures = 0;
                        return Ok(());
                    }
                    Err(error) => {
                        if requests.had_sign_of_life() {
                            self.failures = 0;
                        }
                        self.requests = None;
                        error
                    }
                },
            };
            self.connection.forget_if_ended(&error);
            if self.is_final(&error) {
                self.log.ended(&self.target, &error);
                return Err(error);
            }
            let pause = reconnect_pause(self.failures);
            self.failures += 1;
            self.log.interrupted(&self.target, &error, pause);
            sleep(pause).await;
        }
    }

    /// Stops pulling within this time, and returns what has arrived already and was not taken.
    pub(crate) async fn close(self, limit: Duration) -> Vec<PulledMessage> {
        match self.requests {
            Some(requests) => requests.close(limit.min(self.connection.request_timeout())).await,
            None => Vec::new(),
        }
    }

    async fn open(&self) -> Result<PullRequests, NatsError> {
        let open = self.connection.open().await?;
        self.declaration.declare(&open).await?;
        PullRequests::open(open, self.target.clone(), self.room.clone()).await
    }

    fn is_final(&self, error: &NatsError) -> bool {
        // Credentials that were good once may be good again: somebody changes them on both sides.
        let may_pass = self.opened_before && error.action() == CONNECTING;
        error.fault().verdict() == Verdict::Permanent && !may_pass
    }
}

/// How long the server keeps a request for messages. It says so when the time has passed.
pub(crate) const REQUEST_EXPIRY: Duration = Duration::from_secs(30);

/// How often the server shows a sign of life while it has no messages. Two that are missing mean that it forgot the request.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
