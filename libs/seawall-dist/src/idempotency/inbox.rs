//! Messages that are handled once.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::error::OnceError;
use super::key::{IdempotencyKey, InvalidKey};
use super::machine::Fingerprint;
use super::once::{Execute, Execution, FailureAction, Idempotency};

/// A message is identified by its id alone.
const NO_FINGERPRINT: Fingerprint = [0; 32];

/// Recognises messages that a broker delivers again. A handle: clones share everything.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use seawall_dist::idempotency::{MessageOutcome, Idempotency, Inbox, MemoryIdempotency};
///
/// let inbox = Inbox::new("billing", Idempotency::new(Arc::new(MemoryIdempotency::new())))?;
/// let first = inbox.handle("event-7", |_| async { Ok::<_, std::io::Error>("invoice 12") }).await?;
/// let again = inbox.handle("event-7", |_| async { Ok::<_, std::io::Error>("invoice 13") }).await?;
/// assert_eq!((first, again), (MessageOutcome::Done("invoice 12"), MessageOutcome::Duplicate));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Inbox {
    consumer: Arc<str>,
    idempotency: Idempotency,
}

/// What became of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageOutcome<T> {
    /// This call did the work.
    Done(T),
    /// An earlier call did the work: acknowledge the message and do nothing.
    Duplicate,
}

impl Inbox {
    /// Makes the inbox of a consumer. Consumers with other names handle the same message each for themselves.
    pub fn new(consumer: &str, idempotency: Idempotency) -> Result<Self, InvalidKey> {
        IdempotencyKey::new(consumer, "id")?;
        Ok(Inbox { consumer: consumer.into(), idempotency })
    }

    /// Does the work of a message, unless it was done before.
    ///
    /// [`OnceError::InFlight`] says that another consumer works on it: leave the message unacknowledged and take it again after
    /// the time that the error names. A failure of the work frees the message, so that its next delivery is handled. A message
    /// with an empty id is refused with [`OnceError::InvalidKey`].
    pub async fn handle<T, E, F>(
        &self,
        message_id: &str,
        work: impl FnOnce(Execution) -> F + Send,
    ) -> Result<MessageOutcome<T>, OnceError<E>>
    where
        F: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        let key = IdempotencyKey::of_message(&self.consumer, message_id).map_err(OnceError::InvalidKey)?;
        let work = |execution| {
            let work = work(execution);
            async move { work.await.map(|value| (value, Vec::new())) }
        };
        let release = |_: &E| FailureAction::Release;
        Ok(match self.idempotency.execute(&key, NO_FINGERPRINT, work, release).await? {
            Execute::Ran(value, _) => MessageOutcome::Done(value),
            Execute::Replayed(_) => MessageOutcome::Duplicate,
        })
    }

    /// The name of the consumer.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.consumer
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("consumer", &self.consumer).finish_non_exhaustive()
    }
}
