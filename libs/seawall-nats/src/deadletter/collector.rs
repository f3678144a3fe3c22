//! Makes letters of the messages that JetStream itself gave up.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::{RawMessageErrorKind, RetentionPolicy};
use async_nats::jetstream::{AckKind, Context};
use seawall_dist::Millis;
use seawall_dist::messaging::{AttemptFailure, FailureEvidence};
use tokio::sync::{Semaphore, watch};

use super::advisory::Advisory;
use super::place::{Casualty, DeadLetterPlace};
use crate::connection::OpenConnection;
use crate::consumer::{ConsumerSettings, stop};
use crate::log::ConsumerLog;
use crate::names;
use crate::position::Position;
use crate::pull::{Declaration, DeclareFuture, PullLoop, PullTarget, PulledMessage};
use crate::settle::settle;
use crate::{NatsConnection, NatsError};

/// Makes letters of the messages that JetStream gave up by itself: whose deliveries all ended without an outcome because the
/// process died each time, and those that a consumer terminated.
///
/// JetStream tells of them in advisories, which a stream beside the original one captures, so that none is lost while nobody
/// listens. A [`NatsConsumer`](crate::NatsConsumer) runs one; it is here for streams whose consumers use another library.
#[derive(Clone)]
pub struct NatsAdvisoryCollector(Arc<Inner>);

struct Inner {
    connection: NatsConnection,
    place: DeadLetterPlace,
    settings: ConsumerSettings,
    log: ConsumerLog,
}

/// The durable consumer of the advisories.
const NAME: &str = "seawall-collector";
/// How long an advisory waits until it is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// How long the server waits for the acknowledgement of an advisory.
const ACK_WAIT: Duration = Duration::from_secs(30);
const PREFETCH: u32 = 16;

impl NatsAdvisoryCollector {
    /// Creates the collector of a stream.
    ///
    /// # Errors
    /// The name of the stream is none that a stream can have.
    pub fn new(connection: NatsConnection, stream: impl Into<String>) -> Result<Self, seawall::ConfigError> {
        let stream = stream.into();
        names::check(&stream)
            .map_err(|reason| seawall::ConfigError::new("the advisory collector", [("stream", reason)]))?;
        let place = DeadLetterPlace { stream: stream.into(), kept_for: None };
        Ok(NatsAdvisoryCollector::of_place(connection, place))
    }

    pub(crate) fn of_place(connection: NatsConnection, place: DeadLetterPlace) -> Self {
        let settings = ConsumerSettings {
            stream: names::advisory_stream(&place.stream).into(),
            name: NAME.into(),
            filter_subject: String::new(),
            ack_wait: ACK_WAIT,
            // An advisory is never given up: it is all that is known of a message.
            max_deliver: -1,
            max_ack_pending: i64::from(PREFETCH) * 64,
            backoff: Vec::new(),
        };
        let log = ConsumerLog::new("NATS-DLQ", connection.clock());
        NatsAdvisoryCollector(Arc::new(Inner { connection, place, settings, log }))
    }

    /// Runs until the future ends. A server that is away is waited for.
    ///
    /// # Errors
    /// No further attempt can help: the stream is not there, or the credentials were refused from the beginning.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), NatsError> {
        let (stop, stopped) = watch::channel(false);
        let stopping = async {
            shutdown.await;
            stop.send_replace(true);
        };
        let collecting = self.collect(stopped);
        tokio::pin!(collecting, stopping);
        tokio::select! {
            result = &mut collecting => result,
            () = stopping => collecting.await,
        }
    }

    pub(crate) async fn collect(&self, mut stopped: watch::Receiver<bool>) -> Result<(), NatsError> {
        let Inner { connection, settings, log, .. } = &*self.0;
        let target = PullTarget::new(settings.stream.clone(), settings.name.clone(), PREFETCH, 1);
        let room = Arc::new(Semaphore::new(PREFETCH as usize));
        let mut pull = PullLoop::new(connection, &*self.0, target.clone(), room, log);
        loop {
            let pulled = tokio::select! {
                biased;
                () = stop(&mut stopped) => return Ok(()),
                pulled = pull.next() => pulled?,
            };
            self.take(pulled, &target).await;
        }
    }

    /// Makes the letter of an advisory, and acknowledges it when the letter is stored.
    async fn take(&self, pulled: PulledMessage, target: &PullTarget) {
        let Some(reply) = &pulled.message.reply else { return };
        let sequence = Position::of_reply(reply).map_or(0, |position| position.sequence);
        let stored = match Advisory::parse(&pulled.message.payload) {
            Some(advisory) => self.store(&advisory).await,
            // Another version of the server says something that is no end of a message.
            None => Ok(()),
        };
        let kind = match &stored {
            Ok(()) => AckKind::Ack,
            Err(_) => AckKind::Nak(Some(RETRY_PAUSE)),
        };
        let settled = settle(&self.0.connection, reply, kind, true, ACK_WAIT / 2).await;
        if let Err(error) = stored.and(settled) {
            self.0.log.failed("DeadLetter", target, sequence, &error);
        }
    }

    async fn store(&self, advisory: &Advisory) -> Result<(), NatsError> {
        const READING: &str = "reading a message that JetStream gave up";
        let Inner { connection, place, log, .. } = &*self.0;
        let Advisory { consumer, sequence, .. } = advisory;
        let context = connection.jetstream().await?;
        let stream =
            context.get_stream(&*place.stream).await.map_err(|error| NatsError::of(READING, error))?;
        let evidence = self.evidence(advisory);
        let found = match stream.get_raw_message(*sequence).await {
            Ok(found) => Some(found),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => None,
            Err(error) => return Err(NatsError::of(READING, error)),
        };
        let subject = found.as_ref().map_or("", |message| message.subject.as_str());
        let casualty = Casualty {
            consumer,
            sequence: *sequence,
            subject,
            headers: found.as_ref().map(|message| &message.headers),
            payload: found.as_ref().map_or(&[], |message| &message.payload),
        };
        let is_new = place.bury(&context, &casualty, evidence, advisory.reason).await?;
        match (is_new, &found) {
            (true, Some(_)) => log.buried(&place.stream, consumer, *sequence, advisory.reason.name()),
            (true, None) => log.gone(&place.stream, consumer, *sequence),
            (false, _) => {}
        }
        let retention = stream.cached_info().config.retention;
        if found.is_some() && retention == RetentionPolicy::WorkQueue {
            self.remove(&context, *sequence).await?;
        }
        Ok(())
    }

    /// Removes a message from a work queue. Nobody gets it any more, and it would stay for ever.
    async fn remove(&self, context: &Context, sequence: u64) -> Result<(), NatsError> {
        const REMOVING: &str = "removing a message whose letter is stored";
        let stream = context.get_stream_no_info(&*self.0.place.stream).await;
        let stream = stream.map_err(|error| NatsError::of(REMOVING, error))?;
        match stream.delete_message(sequence).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = NatsError::of(REMOVING, error);
                // It is gone already.
                if error.fault().is_transient() { Err(error) } else { Ok(()) }
            }
        }
    }

    fn evidence(&self, advisory: &Advisory) -> FailureEvidence {
        let since_1970 = self.0.connection.clock().wall().duration_since(std::time::UNIX_EPOCH);
        let mut evidence = FailureEvidence::default();
        evidence.add(AttemptFailure {
            attempt: advisory.deliveries.max(1),
            at: Millis(0) + since_1970.unwrap_or_default(),
            took: Duration::ZERO,
            error: advisory.text.clone(),
        });
        evidence
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

impl fmt::Debug for NatsAdvisoryCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsAdvisoryCollector").field("stream", &self.0.place.stream).finish_non_exhaustive()
    }
}
