//! Makes letters of the messages that JetStream itself gave up.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{RawMessageErrorKind, RetentionPolicy};
use seawall_dist::Millis;
use seawall_dist::messaging::{AttemptFailure, FailureEvidence};

use super::advisory::Advisory;
use super::place::{Casualty, DeadLetterPlace};
use super::side::{SideHandler, SideStream, TakeFuture, place_of};
use crate::names;
use crate::position::Position;
use crate::{NatsConnection, NatsError};

/// Makes letters of the messages that JetStream gave up by itself: whose deliveries all ended without an outcome because the
/// process died each time, and those that a consumer terminated.
///
/// JetStream tells of them in advisories, which a stream beside the original one captures, so that none is lost while nobody
/// listens. A [`NatsConsumer`](crate::NatsConsumer) runs one; it is here for streams whose consumers use another library.
#[derive(Clone)]
pub struct NatsAdvisoryCollector(Arc<SideStream>);

/// The durable consumer of the advisories.
const NAME: &str = "seawall-collector";
/// How long the server waits for the acknowledgement of an advisory.
const ACK_WAIT: Duration = Duration::from_secs(30);

impl NatsAdvisoryCollector {
    /// Creates the collector of a stream.
    ///
    /// # Errors
    /// The name of the stream is none that a stream can have.
    pub fn new(connection: NatsConnection, stream: impl Into<String>) -> Result<Self, seawall::ConfigError> {
        let place = place_of(stream, "the advisory collector")?;
        Ok(NatsAdvisoryCollector::of_place(connection, place))
    }

    pub(crate) fn of_place(connection: NatsConnection, place: DeadLetterPlace) -> Self {
        let stream = names::advisory_stream(&place.stream);
        let side = SideStream::new(connection, place, stream, NAME, ACK_WAIT, "DeadLetter");
        NatsAdvisoryCollector(Arc::new(side))
    }

    /// Runs until the future ends. A server that is away is waited for.
    ///
    /// # Errors
    /// No further attempt can help: the stream is not there, or the credentials were refused from the beginning.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), NatsError> {
        self.0.run_until(self, shutdown).await
    }

    async fn store(&self, advisory: &Advisory) -> Result<(), NatsError> {
        const READING: &str = "reading a message that JetStream gave up";
        let SideStream { connection, place, log, .. } = &*self.0;
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

impl SideHandler for NatsAdvisoryCollector {
    /// Makes the letter of an advisory.
    fn take<'a>(&'a self, message: &'a Message, _: Position) -> TakeFuture<'a> {
        Box::pin(async {
            match Advisory::parse(&message.payload) {
                Some(advisory) => Ok(self.store(&advisory).await?),
                // Another version of the server says something that is no end of a message.
                None => Ok(()),
            }
        })
    }
}

impl fmt::Debug for NatsAdvisoryCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsAdvisoryCollector").field("stream", &self.0.place.stream).finish_non_exhaustive()
    }
}
