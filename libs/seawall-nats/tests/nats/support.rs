//! What the tests share: streams of their own, and waiting with a limit.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use async_nats::jetstream::{Context, stream::Stream};
use seawall::Backoff;
use seawall_dist::Message;
use seawall_dist::messaging::{Delivery, MessageHandler, MessageProcessor};
use seawall_nats::{NatsAdvisoryCollector, NatsConnection, NatsConsumer, NatsDeadLetterReader, NatsError};
use seawall_testkit::servers::Nats;
pub(crate) use seawall_testkit::{poll_at_most, until};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How long a test waits for something that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A name that no other test has.
pub(crate) fn unique(name: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn connect(nats: &Nats) -> NatsConnection {
    NatsConnection::new(&nats.url()).unwrap()
}

/// The client library itself, which looks at what the server has.
pub(crate) async fn bare(nats: &Nats) -> Context {
    async_nats::jetstream::new(async_nats::connect(nats.url()).await.unwrap())
}

/// A stream with the subjects `{name}.>`.
pub(crate) async fn stream(context: &Context, name: &str) -> Stream {
    let subjects = vec![format!("{name}.>")];
    let discard = DiscardPolicy::New;
    context
        .create_stream(Config { name: name.to_owned(), subjects, discard, ..Config::default() })
        .await
        .unwrap()
}

pub(crate) fn order(stream: &str, number: usize) -> Message {
    Message::new("OrderCreated", format!("order-{number}"), number.to_string())
        .with_event_id(format!("{stream}-e-{number}"))
        .with_topic(format!("{stream}.created"))
}

pub(crate) async fn count(context: &Context, stream: &str) -> u64 {
    context.get_stream(stream).await.unwrap().cached_info().state.messages
}

/// Something that runs until the test stops it.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    tasks: JoinSet<Result<(), NatsError>>,
}

impl Running {
    pub(crate) fn consumer(consumer: &NatsConsumer) -> Running {
        let consumer = consumer.clone();
        Running::start(|stopped| async move { consumer.run_until(stopped).await })
    }

    pub(crate) fn reader(reader: &NatsDeadLetterReader) -> Running {
        let reader = reader.clone();
        Running::start(|stopped| async move { reader.run_until(stopped).await })
    }

    pub(crate) fn collector(collector: &NatsAdvisoryCollector) -> Running {
        let collector = collector.clone();
        Running::start(|stopped| async move { collector.run_until(stopped).await })
    }

    fn start<F: Future<Output = Result<(), NatsError>> + Send + 'static>(
        run: impl FnOnce(Pin<Box<dyn Future<Output = ()> + Send>>) -> F,
    ) -> Running {
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(run(Box::pin(async { drop(stopped.await) })));
        Running { stop: Some(stop), tasks }
    }

    /// Stops it and waits until it has ended.
    pub(crate) async fn stop(mut self) -> Result<(), NatsError> {
        drop(self.stop.take());
        self.end().await
    }

    /// Waits until it ends by itself.
    pub(crate) async fn end(&mut self) -> Result<(), NatsError> {
        let ended = tokio::time::timeout(PATIENCE, self.tasks.join_next()).await;
        ended.expect("it ends").unwrap().unwrap()
    }
}

/// What a handler saw: the payload and the attempt of each delivery.
#[derive(Clone, Default)]
pub(crate) struct HandledMessages(Arc<Mutex<Vec<(String, u32)>>>);

impl HandledMessages {
    pub(crate) fn add(&self, delivery: &Delivery) {
        let text = String::from_utf8_lossy(delivery.message().payload()).into_owned();
        self.0.lock().unwrap().push((text, delivery.attempt()));
    }

    pub(crate) fn all(&self) -> Vec<(String, u32)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// How many different payloads there were.
    pub(crate) fn distinct(&self) -> usize {
        self.all().into_iter().map(|(text, _)| text).collect::<HashSet<_>>().len()
    }
}

/// A processor with short waits.
pub(crate) fn processor(attempts: u32, handler: impl MessageHandler) -> MessageProcessor {
    MessageProcessor::builder("NATS-Consumer", "nats", handler)
        .attempts_max(attempts)
        .backoff(Backoff::exponential(Duration::from_millis(10)).cap(Duration::from_millis(50)))
        .build()
        .unwrap()
}

/// Publishes orders with these numbers through the client library itself.
pub(crate) async fn publish(context: &Context, stream: &str, numbers: impl IntoIterator<Item = usize>) {
    let mut acks = Vec::new();
    for number in numbers {
        let message = order(stream, number);
        let publish = PublishMessage::build()
            .message_id(message.event_id())
            .header("event-type", "OrderCreated")
            .header("aggregate-id", message.aggregate_id())
            .payload(number.to_string().into());
        acks.push(context.send_publish(message.topic().to_owned(), publish).await.unwrap());
    }
    for ack in acks {
        ack.await.unwrap();
    }
}

/// What the server knows of a consumer: messages that it has not delivered, and messages without an acknowledgement.
pub(crate) async fn backlog(context: &Context, stream: &str, consumer: &str) -> (u64, usize) {
    let stream = context.get_stream_no_info(stream).await.unwrap();
    match stream.consumer_info(consumer).await {
        Ok(info) => (info.num_pending, info.num_ack_pending),
        Err(_) => (u64::MAX, 0),
    }
}

/// The letters of a stream, as the server has them.
pub(crate) async fn letters(context: &Context, stream: &str) -> Vec<StreamMessage> {
    let Ok(found) = context.get_stream(format!("{stream}-dlq")).await else { return Vec::new() };
    let state = &found.cached_info().state;
    let mut letters = Vec::new();
    for sequence in state.first_sequence..=state.last_sequence {
        letters.extend(found.get_raw_message(sequence).await.ok());
    }
    letters
}

/// A header of a letter.
pub(crate) fn header(letter: &StreamMessage, name: &str) -> String {
    letter.headers.get(name).map(|value| value.as_str().to_owned()).unwrap_or_default()
}
