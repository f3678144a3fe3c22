//! Takes over what a stream beside the original one has, one message after the other: advisories, and letters.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::AckKind;
use seawall::ConfigError;
use tokio::sync::Semaphore;

use super::place::DeadLetterPlace;
use crate::connection::OpenConnection;
use crate::consumer::ConsumerSettings;
use crate::log::ConsumerLog;
use crate::names;
use crate::position::Position;
use crate::pull::{Declaration, DeclareFuture, PullLoop, PullTarget};
use crate::settle::settle;
use crate::{NatsConnection, NatsError};

/// A stream beside the original one, and the durable consumer that it is read through.
pub(super) struct SideStream {
    pub(super) connection: NatsConnection,
    pub(super) place: DeadLetterPlace,
    pub(super) log: ConsumerLog,
    settings: ConsumerSettings,
    /// The name of the work in log lines.
    operation: &'static str,
}

/// The future of [`SideHandler::take`].
pub(super) type TakeFuture<'a> = Pin<Box<dyn Future<Output = Result<(), TakeError>> + Send + 'a>>;

/// Why a message was not taken over.
pub(super) type TakeError = Box<dyn std::error::Error + Send + Sync>;

/// Does something with each message of a [`SideStream`].
pub(super) trait SideHandler: Send + Sync {
    /// Takes a message over. It is acknowledged with `Ok`, and comes again after an error.
    fn take<'a>(&'a self, message: &'a Message, position: Position) -> TakeFuture<'a>;
}

/// How long a message waits until it is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
const PREFETCH: u32 = 16;

impl SideStream {
    /// Creates the reader of a stream by its name. `ack_wait` is how long the server waits for an acknowledgement.
    pub(super) fn new(
        connection: NatsConnection,
        place: DeadLetterPlace,
        stream: String,
        consumer: &str,
        ack_wait: Duration,
        operation: &'static str,
    ) -> Self {
        let settings = ConsumerSettings {
            stream: stream.into(),
            name: consumer.into(),
            filter_subject: String::new(),
            ack_wait,
            // It is never given up: it is all that is known of a message.
            max_deliver: -1,
            max_ack_pending: i64::from(PREFETCH) * 64,
            backoff: Vec::new(),
        };
        let log = ConsumerLog::new("NATS-DLQ", connection.clock());
        SideStream { connection, place, log, settings, operation }
    }

    /// Gives each message to the handler until the shutdown ends. Fails only if no further attempt can help.
    pub(super) async fn run_until(
        &self,
        handler: &dyn SideHandler,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), NatsError> {
        let Self { connection, settings, log, .. } = self;
        let target = PullTarget::new(settings.stream.clone(), settings.name.clone(), PREFETCH, 1);
        let room = Arc::new(Semaphore::new(PREFETCH as usize));
        let mut pull = PullLoop::new(connection, self, target.clone(), room, log);
        let mut shutdown = pin!(shutdown);
        let mut messages = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                pulled = pull.next(&mut messages) => pulled?,
            }
            for pulled in messages.drain(..) {
                tokio::select! {
                    biased;
                    () = &mut shutdown => return Ok(()),
                    () = std::future::ready(()) => {}
                }
                self.take(handler, &pulled.message, &target).await;
            }
        }
    }

    async fn take(&self, handler: &dyn SideHandler, message: &Message, target: &PullTarget) {
        let Some(reply) = &message.reply else { return };
        let Some(position) = Position::of_reply(reply) else { return };
        let taken = handler.take(message, position).await;
        let kind = match &taken {
            Ok(()) => AckKind::Ack,
            Err(_) => AckKind::Nak(Some(RETRY_PAUSE)),
        };
        let settled = settle(&self.connection, reply, kind, true, self.settings.ack_wait / 2).await;
        if let Err(error) = taken.and(settled.map_err(Into::into)) {
            self.log.failed(self.operation, target, position.sequence, &error);
        }
    }
}

impl Declaration for SideStream {
    fn declare<'a>(&'a self, open: &'a OpenConnection) -> DeclareFuture<'a> {
        Box::pin(async move {
            self.place.declare(&open.jetstream).await?;
            self.settings.declare(&open.jetstream).await
        })
    }
}

/// The dead letter place of a stream, if that is the name of one.
pub(super) fn place_of(
    stream: impl Into<String>,
    what: &'static str,
) -> Result<DeadLetterPlace, ConfigError> {
    let stream = stream.into();
    names::check(&stream).map_err(|reason| ConfigError::new(what, [("stream", reason)]))?;
    Ok(DeadLetterPlace { stream: stream.into(), kept_for: None })
}
