//! What several tests need.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use seawall::{Guard, GuardBuilder};
use seawall_amqp::AmqpConnection;
use seawall_amqp::publish::AmqpPublisher;
use seawall_amqp::topology::{QueueTopology, QueueTopologyBuilder};
use seawall_dist::Message;
use seawall_testkit::servers::RabbitMq;
pub(crate) use seawall_testkit::until;

/// How long a test waits for something that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the shared server.
pub(crate) fn shared() -> AmqpConnection {
    AmqpConnection::new(&RabbitMq::shared().url()).unwrap()
}

/// A name that no other test has.
pub(crate) fn unique(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Queues of the test's own, with short waits between attempts.
pub(crate) fn queues(name: &str) -> QueueTopologyBuilder {
    let delays = [50, 100, 200].map(Duration::from_millis);
    QueueTopology::builder("test", &unique(name)).retry_delays(delays)
}

/// Declares queues and returns them.
pub(crate) async fn declared(connection: &AmqpConnection, builder: QueueTopologyBuilder) -> QueueTopology {
    let queues = builder.build().unwrap();
    queues.declare(connection).await.unwrap();
    queues
}

/// A guard that makes one attempt.
pub(crate) fn one_attempt() -> GuardBuilder {
    Guard::builder("test").no_retry().attempt_timeout(PATIENCE)
}

/// A publisher to queues by their name, which makes one attempt.
pub(crate) fn publisher(connection: &AmqpConnection) -> AmqpPublisher {
    AmqpPublisher::builder(connection.clone()).guard(one_attempt()).build().unwrap()
}

/// A message for a queue.
#[expect(clippy::needless_pass_by_value, reason = "callers pass numbers and texts")]
pub(crate) fn message(queue: &str, id: impl ToString) -> Message {
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    Message::new("OrderCreated", "order-17", id.to_string())
        .with_event_id(id.to_string())
        .with_topic(queue)
        .with_header("traceparent", traceparent)
        .with_header("content-type", "text/plain")
}

/// How many messages the server has in a queue, those that wait for a consumer.
pub(crate) async fn length(connection: &AmqpConnection, queue: &str) -> u32 {
    let channel = connection.channel().await.unwrap();
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), options, FieldTable::default()).await.unwrap().message_count()
}

/// Takes everything out of a queue.
pub(crate) async fn drain(connection: &AmqpConnection, queue: &str) -> Vec<lapin::message::Delivery> {
    let channel = connection.channel().await.unwrap();
    let mut messages = Vec::new();
    while let Some(got) = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.unwrap() {
        messages.push(got.delivery);
    }
    messages
}
