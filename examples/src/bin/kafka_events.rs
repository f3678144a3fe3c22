//! Kafka, as a service uses it: events are published, or stored in an outbox while Kafka is away; a consumer attempts each of them
//! three times, and what it gives up is a dead letter that can be replayed.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use seawall::task::Group;
use seawall::{Backoff, millis, secs};
use seawall_dist::Message;
use seawall_dist::deadletter::{DeadLetters, Filter, MemoryDeadLetters, ReplayRequest};
use seawall_dist::idempotency::{Idempotency, Inbox, MemoryIdempotency};
use seawall_dist::messaging::{Delivery, HandlerError, PublisherReplayer};
use seawall_dist::outbox::{FallbackPublisher, MemoryOutbox};
use seawall_kafka::consumer::{KafkaDeadLetterConsumer, default_processor};
use seawall_kafka::{KafkaCluster, KafkaConsumer, KafkaPublisher};
use seawall_testkit::servers::Kafka;
use tokio::sync::watch;

/// The use case that events of orders lead to. It counts, and fails as it is told.
#[derive(Clone, Default)]
struct Billing {
    invoices: Arc<AtomicU32>,
    attempts: Arc<AtomicU32>,
    is_broken: Arc<AtomicBool>,
}

impl Billing {
    async fn handle(self, delivery: Arc<Delivery>) -> Result<(), HandlerError> {
        let order = delivery.message().aggregate_id();
        if order.is_empty() {
            return Err(HandlerError::invalid("the order number is missing"));
        }
        self.attempts.fetch_add(1, Ordering::SeqCst);
        if self.is_broken.load(Ordering::SeqCst) {
            return Err("the database of invoices is away".into());
        }
        self.invoices.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let kafka = Kafka::start()?;
    create_topic(&kafka, "orders").await?;
    let cluster = KafkaCluster::new(&kafka.bootstrap_servers())?;
    let outbox = Arc::new(MemoryOutbox::new());
    let kafka_publisher =
        Arc::new(KafkaPublisher::builder(&cluster).topic("orders").time_limit(secs(5)).build()?);
    let publisher = FallbackPublisher::new("Kafka-Publisher", kafka_publisher.clone(), outbox);

    let billing = Billing::default();
    let (work, inbox) =
        (billing.clone(), Inbox::new("billing", Idempotency::new(Arc::new(MemoryIdempotency::new())))?);
    let processor = default_processor(move |delivery| work.clone().handle(delivery))
        .inbox(inbox)
        .backoff(Backoff::exponential(millis(100)).no_jitter())
        .build()?;
    let consumer =
        KafkaConsumer::with_processor(&cluster, "billing", "orders", processor).topic_replicas(1).build()?;
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let intake = KafkaDeadLetterConsumer::builder(&cluster, "letters", "orders", letters.clone()).build()?;

    let (stop, stopped) = watch::channel(false);
    let mut tasks = Group::new();
    let until = stop_of(&stopped);
    tasks.spawn("consumer", async move { consumer.run_until(until).await });
    let until = stop_of(&stopped);
    tasks.spawn("dead letters", async move { intake.run_until(until).await });

    // A repeated event is recognised by its id.
    let created = Message::new("OrderCreated", "order-1", "{}").with_event_id("e-1");
    for _ in 0..2 {
        println!("published by: {:?}", publisher.publish(&created).await?);
    }
    until_true(|| billing.invoices.load(Ordering::SeqCst) > 0).await;

    // Three attempts, and the dead letter topic.
    billing.is_broken.store(true, Ordering::SeqCst);
    publisher.publish(&Message::new("OrderCreated", "order-2", "{}").with_event_id("e-2")).await?;
    publisher.publish(&Message::new("OrderCreated", "", "{}").with_event_id("e-3")).await?;
    while letters.list(&Filter::default(), None, 10).await?.letters.len() < 2 {
        tokio::time::sleep(millis(20)).await;
    }
    for id in ["kafka:orders:e-2:billing", "kafka:orders:e-3:billing"] {
        let letter = letters.get(id).await?.ok_or("the letter is there")?;
        let (fault, attempts) = (&letter.record.fault, letter.record.attempts.len());
        println!(
            "{id}: {} after {attempts} attempts: {}",
            fault.reason,
            fault.message.as_deref().unwrap_or_default()
        );
    }

    // The database is back: the letter is sent again, to where it came from.
    billing.is_broken.store(false, Ordering::SeqCst);
    let replayer = PublisherReplayer::new(kafka_publisher);
    println!(
        "{:?}",
        letters.replay("kafka:orders:e-2:billing", &ReplayRequest::new("form-1"), &replayer).await?
    );
    until_true(|| billing.invoices.load(Ordering::SeqCst) > 1).await;
    println!(
        "invoices: {}, attempts: {}",
        billing.invoices.load(Ordering::SeqCst),
        billing.attempts.load(Ordering::SeqCst)
    );

    stop.send_replace(true);
    tasks.wait().await?;
    kafka.control().kill()?;
    println!(
        "Kafka is away, published by: {:?}",
        publisher.publish(&Message::new("OrderPaid", "order-1", "{}")).await?
    );
    Ok(())
}

/// Ends when the program is told to stop.
fn stop_of(stopped: &watch::Receiver<bool>) -> impl Future<Output = ()> + Send + use<> {
    let mut stopped = stopped.clone();
    async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }
}

async fn until_true(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(millis(20)).await;
    }
}

/// Topics are made by whoever runs the cluster.
async fn create_topic(kafka: &Kafka, topic: &str) -> Result<(), Box<dyn Error>> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", kafka.bootstrap_servers());
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let topic = NewTopic::new(topic, 2, TopicReplication::Fixed(1));
    for created in admin.create_topics([&topic], &AdminOptions::new()).await? {
        created.map_err(|(topic, code)| format!("{topic}: {code}"))?;
    }
    Ok(())
}
