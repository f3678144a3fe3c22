//! The publisher.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapin::types::ShortString;
use seawall::fault::Ran;
use seawall::{Clock, ConfigError, Fault, Guard};
use seawall_dist::messaging::PublishTelemetry;
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};

use super::channels::Channels;
use super::config::{AmqpPublisherBuilder, HEADER_BYTES_MAX, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
use super::wire::{OutgoingMessage, SendOutcome, send};
use crate::connection::AmqpConnection;
use crate::message::{self, header_bytes};

/// Publishes messages to RabbitMQ. A handle: clones share everything.
///
/// A result is `Ok` when the server has confirmed the message: a quorum queue has written it to the disks of a majority. A message
/// that no queue takes is an error and not lost. All messages of a call are in flight at the same time.
///
/// The routing key is the message's topic; without a topic it is the [routing key](AmqpPublisherBuilder::routing_key) of the
/// publisher, or else the event type.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_amqp::AmqpConnection;
/// use seawall_amqp::publish::AmqpPublisher;
/// use seawall_dist::{Message, Publisher};
/// let connection = AmqpConnection::new("amqp://guest:guest@127.0.0.1:5672/%2f")?;
/// let publisher = AmqpPublisher::builder(connection).exchange("events").build()?;
/// let paid = Message::new("order.paid", "order-17", br#"{"total": 20}"#);
/// for result in publisher.publish(&[paid]).await {
///     result?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AmqpPublisher {
    inner: Arc<Inner>,
}

struct Inner {
    channels: Channels,
    exchange: ShortString,
    routing_key: Option<String>,
    guard: Guard,
    message_bytes_max: usize,
    telemetry: PublishTelemetry,
    clock: Clock,
}

/// What became of each message of a call so far; `None` while nobody knows.
type Results = Mutex<Vec<Option<Result<(), PublishError>>>>;

impl AmqpPublisher {
    /// Configures a publisher.
    pub fn builder(connection: AmqpConnection) -> AmqpPublisherBuilder {
        AmqpPublisherBuilder::new(connection)
    }

    pub(super) fn from_builder(builder: AmqpPublisherBuilder) -> Result<Self, ConfigError> {
        let telemetry = PublishTelemetry::new(&builder.component, crate::SYSTEM, &builder.clock);
        Ok(AmqpPublisher {
            inner: Arc::new(Inner {
                channels: Channels::new(builder.connection),
                exchange: builder.exchange.into(),
                routing_key: builder.routing_key,
                guard: builder.guard.build()?,
                message_bytes_max: builder.message_bytes_max,
                telemetry,
                clock: builder.clock,
            }),
        })
    }

    /// The guard around each call, for its circuit and its snapshot.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.inner.guard
    }

    async fn publish_all(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let Inner { guard, telemetry, clock, .. } = &*self.inner;
        let began = clock.precise();
        messages.iter().for_each(|message| telemetry.start(message));
        let mut prepared = Vec::with_capacity(messages.len());
        let mut results = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            match self.prepare(message) {
                Ok(outgoing) => {
                    prepared.push((index, outgoing));
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let results = Results::new(results);
        if !prepared.is_empty() {
            // Consumers recognise a repeated message by its event id.
            let call = guard.idempotent().operation("publish").call(|_| self.attempt(&prepared, &results));
            if let Err(error) = call.await {
                let left = PublishError::new(error.fault(), describe(&error));
                let mut results = lock(&results);
                // What was not sent has no result, and what failed has a better one than "the time is up".
                results
                    .iter_mut()
                    .filter(|result| result.is_none())
                    .for_each(|result| *result = Some(Err(left.clone())));
            }
        }
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let unknown = || Err(PublishError::new(Fault::system(), "nobody knows what became of the message"));
        let results = results.into_iter().map(|result| result.unwrap_or_else(unknown));
        let took = clock.precise().since(began);
        let tell = |(result, message): (Result<(), PublishError>, &Message)| {
            match &result {
                Ok(()) => telemetry.acknowledged(message, None, None, took),
                Err(error) => telemetry.failed(message, error, took),
            }
            result
        };
        results.zip(messages).map(tell).collect()
    }

    /// Sends everything that has no final result yet. Fails if another attempt may help.
    async fn attempt(
        &self,
        prepared: &[(usize, OutgoingMessage<'_>)],
        results: &Results,
    ) -> Result<(), PublishError> {
        let is_open = |index: usize| match &lock(results)[index] {
            None => true,
            Some(Ok(())) => false,
            Some(Err(error)) => error.fault().is_transient(),
        };
        let open: Vec<&(usize, OutgoingMessage<'_>)> =
            prepared.iter().filter(|(index, _)| is_open(*index)).collect();
        for (index, _) in &open {
            lock(results)[*index] = None;
        }
        let mut rest = &open[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(window(rest));
            self.send_window(now, results).await?;
            rest = later;
        }
        let results = lock(results);
        let transient = results
            .iter()
            .flatten()
            .find_map(|result| result.as_ref().err().filter(|error| error.fault().is_transient()));
        transient.map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Sends messages together. If the server refuses one of them by closing the channel, those without a confirmation are sent
    /// one by one, so that only the one that it refuses has the error.
    async fn send_window(
        &self,
        window: &[&(usize, OutgoingMessage<'_>)],
        results: &Results,
    ) -> Result<(), PublishError> {
        let outgoing: Vec<&OutgoingMessage<'_>> = window.iter().map(|(_, message)| message).collect();
        let mut refused = Vec::new();
        let lent = self.inner.channels.take().await.map_err(|error| publish_error(&error))?;
        let keep = |position: usize, result| lock(results)[window[position].0] = Some(result);
        send(lent, &outgoing, |position, outcome| match outcome {
            SendOutcome::Confirmed => keep(position, Ok(())),
            SendOutcome::Failed(error) => keep(position, Err(publish_error(&error))),
            SendOutcome::ChannelRefused(error) if window.len() == 1 => {
                keep(position, Err(publish_error(&error)));
            }
            SendOutcome::ChannelRefused(_) => refused.push(position),
        })
        .await;
        for position in refused {
            Box::pin(self.send_window(&window[position..=position], results)).await?;
        }
        Ok(())
    }

    /// Checks a message against the limits of the protocol, whose violation would close the connection for all.
    fn prepare<'m>(&self, message: &'m Message) -> Result<OutgoingMessage<'m>, PublishError> {
        let refuse = |text: String| PublishError::new(Fault::business().ran(Ran::No), text);
        let bytes = message.payload().len();
        if bytes > self.inner.message_bytes_max {
            let max = self.inner.message_bytes_max;
            return Err(refuse(format!("the message has {bytes} bytes, and the limit is {max}")));
        }
        let properties = message::properties_of(message).map_err(&refuse)?;
        let header_bytes = header_bytes(&properties);
        if header_bytes > HEADER_BYTES_MAX {
            return Err(refuse(format!(
                "the headers have {header_bytes} bytes, and the limit is {HEADER_BYTES_MAX}"
            )));
        }
        let key = match (message.topic(), &self.inner.routing_key) {
            ("", Some(key)) => key,
            ("", None) => message.event_type(),
            (topic, _) => topic,
        };
        let routing_key = message::short(key, "the routing key").map_err(refuse)?;
        Ok(OutgoingMessage {
            exchange: self.inner.exchange.clone(),
            routing_key,
            properties,
            payload: message.payload(),
        })
    }
}

/// How many of these messages are sent together.
fn window(messages: &[&(usize, OutgoingMessage<'_>)]) -> usize {
    let mut bytes = 0;
    let fits = |(_, message): &&&(usize, OutgoingMessage<'_>)| {
        bytes += message.payload.len();
        bytes <= IN_FLIGHT_BYTES_MAX
    };
    messages.iter().take(IN_FLIGHT_MAX).take_while(fits).count().max(1)
}

fn lock(results: &Results) -> MutexGuard<'_, Vec<Option<Result<(), PublishError>>>> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

fn publish_error(error: &crate::error::AmqpError) -> PublishError {
    PublishError::new(error.fault(), error.to_string())
}

/// What the last attempt said, or what the guard says if there was none.
fn describe(error: &seawall::Error<PublishError>) -> String {
    match error.last() {
        Some(last) => last.to_string(),
        None => error.to_string(),
    }
}

impl Publisher for AmqpPublisher {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(self.publish_all(messages))
    }
}

impl fmt::Debug for AmqpPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpPublisher")
            .field("exchange", &self.inner.exchange.as_str())
            .finish_non_exhaustive()
    }
}
