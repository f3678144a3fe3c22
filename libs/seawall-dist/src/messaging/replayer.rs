//! Sends dead letters back to where they came from.

use std::fmt;
use std::sync::Arc;

use super::{AGGREGATE_ID_HEADER, EVENT_ID_HEADER, EVENT_TYPE_HEADER};
use crate::deadletter::{ReplayFuture, ReplayMessage, Replayer};
use crate::{Message, Publisher};

/// Chooses the topic of a replay.
type TopicChoice = Arc<dyn Fn(&ReplayMessage) -> String + Send + Sync>;

/// A [`Replayer`] that publishes a letter to the place that it came from, with the event id that it had, so that a consumer that
/// did process it after all recognises it.
#[derive(Clone)]
pub struct PublisherReplayer {
    publisher: Arc<dyn Publisher>,
    topic: TopicChoice,
}

impl PublisherReplayer {
    /// Creates a replayer that publishes to the place of the letter's origin.
    #[must_use]
    pub fn new(publisher: Arc<dyn Publisher>) -> Self {
        PublisherReplayer { publisher, topic: Arc::new(|message| message.origin.place.clone()) }
    }

    /// Publishes to another place than that of the origin.
    #[must_use]
    pub fn topic(mut self, choice: impl Fn(&ReplayMessage) -> String + Send + Sync + 'static) -> Self {
        self.topic = Arc::new(choice);
        self
    }

    fn message(&self, replay: ReplayMessage) -> Message {
        let topic = (self.topic)(&replay);
        let own = [EVENT_ID_HEADER, EVENT_TYPE_HEADER, AGGREGATE_ID_HEADER];
        let value = |name: &str| {
            let found = replay.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let (event_type, aggregate_id) = (value(EVENT_TYPE_HEADER), value(AGGREGATE_ID_HEADER));
        let message = Message::new(event_type, aggregate_id, replay.payload)
            .with_event_id(replay.origin.id)
            .with_topic(topic);
        let others = replay
            .headers
            .into_iter()
            .filter(|(name, _)| !own.iter().any(|own| own.eq_ignore_ascii_case(name)));
        others.fold(message, |message, (name, value)| message.with_header(name, value))
    }
}

impl Replayer for PublisherReplayer {
    fn replay(&self, message: ReplayMessage) -> ReplayFuture<'_> {
        let message = self.message(message);
        Box::pin(async move {
            let mut results = self.publisher.publish(std::slice::from_ref(&message)).await;
            match results.pop() {
                Some(result) => result.map_err(Into::into),
                None => Err("the publisher returned no result".into()),
            }
        })
    }
}

impl fmt::Debug for PublisherReplayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherReplayer").finish_non_exhaustive()
    }
}
