//! Takes letters over into a dead letter store.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use seawall_dist::messaging::{DeadLetterIntake, Delivery};

use super::side::{SideHandler, SideStream, TakeFuture, place_of};
use crate::format::message_of;
use crate::names;
use crate::position::Position;
use crate::{NatsConnection, NatsError};

/// Takes the dead letters of a stream over into [`DeadLetters`](seawall_dist::deadletter::DeadLetters), where they can be
/// searched, edited, parked and replayed.
///
/// A letter is acknowledged when the store has it. While the store is away letters wait in their stream. It is a handle: clones
/// share everything.
#[derive(Clone)]
pub struct NatsDeadLetterReader(Arc<Inner>);

struct Inner {
    side: SideStream,
    intake: DeadLetterIntake,
}

/// The durable consumer of the letters.
const NAME: &str = "seawall-intake";
/// How long the server waits for the acknowledgement of a letter.
const ACK_WAIT: Duration = Duration::from_secs(60);

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
        let place = place_of(stream, "the dead letter reader")?;
        let stream = names::dead_letter_stream(&place.stream);
        let side = SideStream::new(connection, place, stream, NAME, ACK_WAIT, "Intake");
        Ok(NatsDeadLetterReader(Arc::new(Inner { side, intake })))
    }

    /// Runs until the future ends. A server or a store that is away is waited for.
    ///
    /// # Errors
    /// No further attempt can help: the stream is not there, or the credentials were refused from the beginning.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), NatsError> {
        self.0.side.run_until(&*self.0, shutdown).await
    }
}

impl SideHandler for Inner {
    fn take<'a>(&'a self, message: &'a Message, position: Position) -> TakeFuture<'a> {
        Box::pin(async move {
            let content = message_of(message.subject.as_str(), message.headers.as_ref(), &message.payload);
            let place = names::dead_letter_stream(&self.side.place.stream);
            let delivery = Delivery::new(content, place, position.delivered);
            self.intake.take(&delivery.with_position("sequence", position.sequence)).await?;
            Ok(())
        })
    }
}

impl fmt::Debug for NatsDeadLetterReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = &self.0.side.place.stream;
        f.debug_struct("NatsDeadLetterReader").field("stream", stream).finish_non_exhaustive()
    }
}
