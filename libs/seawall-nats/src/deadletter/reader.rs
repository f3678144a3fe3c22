//! Takes letters over into a dead letter store.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use seawall_dist::messaging::{DeadLetterIntake, Delivery};
use tokio::sync::Semaphore;

use super::place::DeadLetterPlace;
use crate::connection::OpenConnection;
use crate::consumer::ConsumerSettings;
use crate::format::message_of;
use crate::log::ConsumerLog;
use crate::names;
use crate::position::Position;
use crate::pull::{Declaration, DeclareFuture, PullLoop, PullTarget, PulledMessage};
use crate::settle::settle;
use crate::{NatsConnection, NatsError};

/// Takes the dead letters of a stream over into [`DeadLetters`](seawall_dist::deadletter::DeadLetters), where they can be
/// searched, edited, parked and replayed.
///
/// A letter is acknowledged when the store has it. While the store is away letters wait in their stream. It is a handle: clones
/// share everything.
#[derive(Clone)]
pub struct NatsDeadLetterReader(Arc<Inner>);

struct Inner {
    connection: NatsConnection,
    place: DeadLetterPlace,
    settings: ConsumerSettings,
    intake: DeadLetterIntake,
    log: ConsumerLog,
}

/// The durable consumer of the letters.
const NAME: &str = "seawall-intake";
/// How long a letter waits until it is tried again, because the store is away.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// How long the server waits for the acknowledgement of a letter.
const ACK_WAIT: Duration = Duration::from_secs(60);
const PREFETCH: u32 = 16;

impl NatsDeadLetterReader {
    /// Creates a reader of the dead letters of a stream. The kind of the intake should be `nats`, its component `NATS-DLQ`.
    ///
    /// # Errors
    /// The name of the stream is none that a stream can have.
    pub fn new(
        connection: NatsConnection,
        stream: impl Into<String>,
        intake: DeadLetterIntake,
    ) -> Result<Self, seawall::ConfigError> {
        let stream = stream.into();
        names::check(&stream)
            .map_err(|reason| seawall::ConfigError::new("the dead letter reader", [("stream", reason)]))?;
        let settings = ConsumerSettings {
            stream: names::dead_letter_stream(&stream).into(),
            name: NAME.into(),
            filter_subject: String::new(),
            ack_wait: ACK_WAIT,
            max_deliver: -1,
            max_ack_pending: i64::from(PREFETCH) * 64,
            backoff: Vec::new(),
        };
        let place = DeadLetterPlace { stream: stream.into(), kept_for: None };
        let log = ConsumerLog::new("NATS-DLQ", connection.clock());
        Ok(NatsDeadLetterReader(Arc::new(Inner { connection, place, settings, intake, log })))
    }

    /// Runs until the future ends. A server or a store that is away is waited for.
    ///
    /// # Errors
    /// No further attempt can help: the stream is not there, or the credentials were refused from the beginning.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), NatsError> {
        let Inner { connection, settings, log, .. } = &*self.0;
        let target = PullTarget::new(settings.stream.clone(), settings.name.clone(), PREFETCH, 1);
        let room = Arc::new(Semaphore::new(PREFETCH as usize));
        let mut pull = PullLoop::new(connection, &*self.0, target.clone(), room, log);
        tokio::pin!(shutdown);
        loop {
            let pulled = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                pulled = pull.next() => pulled?,
            };
            self.take(pulled, &target).await;
        }
    }

    async fn take(&self, pulled: PulledMessage, target: &PullTarget) {
        let message = &pulled.message;
        let Some(reply) = &message.reply else { return };
        let Some(Position { sequence, delivered }) = Position::of_reply(reply) else { return };
        let content = message_of(message.subject.as_str(), message.headers.as_ref(), &message.payload);
        let delivery = Delivery::new(content, &*target.stream, delivered).with_position("sequence", sequence);
        let taken = self.0.intake.take(&delivery).await;
        let kind = match &taken {
            Ok(_) => AckKind::Ack,
            Err(_) => AckKind::Nak(Some(RETRY_PAUSE)),
        };
        let settled = settle(&self.0.connection, reply, kind, true, ACK_WAIT / 2).await;
        if let Err(error) = taken {
            self.0.log.failed("Intake", target, sequence, &error);
        }
        if let Err(error) = settled {
            self.0.log.failed("Intake", target, sequence, &error);
        }
    }
}

impl Declaration for Inner {
    fn declare<'a>(&'a self, open: &'a OpenConnection) -> DeclareFuture<'a> {
        Box::pin(async move {
            self.place.declare(&open.jetstream).await?;
            self.settings.declare(&open.jetstream).await
        })
    }
}

impl fmt::Debug for NatsDeadLetterReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsDeadLetterReader").field("stream", &self.0.place.stream).finish_non_exhaustive()
    }
}
