use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use seawall::fault::{Class, Verdict};
use seawall_amqp::AmqpConnection;
use seawall_amqp::consume::AmqpConsumer;
use seawall_amqp::publish::AmqpPublisher;
use seawall_amqp::topology::QueueTopology;
use seawall_dist::messaging::Delivery;
use seawall_dist::outbox::{FallbackPublisher, MemoryOutbox, PublishedBy};
use seawall_dist::{Message, Publisher};
use seawall_testkit::servers::RabbitMq;
use tokio::task::JoinSet;

use crate::consume::{HandledMessages, Running, processor};
use crate::support::{declared, length, message, one_attempt, queues, until};

/// A server of the test's own, with a publisher that publishes all the time and a consumer.
struct Scene {
    server: RabbitMq,
    connection: AmqpConnection,
    queues: QueueTopology,
    seen: HandledMessages,
    confirmed: Arc<AtomicU32>,
    failed: Arc<AtomicU32>,
    is_over: Arc<AtomicBool>,
    publishing: JoinSet<()>,
    consuming: Running,
}

impl Scene {
    async fn start() -> Self {
        let server = tokio::task::spawn_blocking(|| RabbitMq::start().unwrap()).await.unwrap();
        let limit = Duration::from_millis(500);
        let connection = AmqpConnection::builder(&server.url()).response_timeout(limit).build().unwrap();
        let queues = declared(&connection, queues("outage")).await;
        let seen = HandledMessages::default();
        let noted = seen.clone();
        let handler = move |delivery: Arc<Delivery>| {
            noted.add(&delivery);
            async { Ok::<_, anyhow::Error>(()) }
        };
        let processor = processor(handler).build().unwrap();
        let consumer = AmqpConsumer::builder(connection.clone(), queues.clone(), processor).build().unwrap();
        let mut scene = Scene {
            server,
            seen,
            confirmed: Arc::default(),
            failed: Arc::default(),
            is_over: Arc::default(),
            publishing: JoinSet::new(),
            consuming: Running::start(consumer),
            connection,
            queues,
        };
        scene.publish_all_the_time();
        scene
    }

    /// Publishes numbered messages, each until it is confirmed, as a relay of an outbox does.
    fn publish_all_the_time(&mut self) {
        let publisher = AmqpPublisher::builder(self.connection.clone()).guard(one_attempt()).build().unwrap();
        let queue = self.queues.queue().to_owned();
        let (confirmed, failed, is_over) =
            (self.confirmed.clone(), self.failed.clone(), self.is_over.clone());
        self.publishing.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                let first = confirmed.load(Ordering::SeqCst);
                let mut batch: Vec<Message> = (first..first + 10).map(|id| message(&queue, id)).collect();
                while !batch.is_empty() {
                    let results = publisher.publish(&batch).await;
                    let failures = results.iter().filter(|result| result.is_err()).count();
                    failed.fetch_add(u32::try_from(failures).unwrap(), Ordering::SeqCst);
                    batch = batch
                        .into_iter()
                        .zip(results)
                        .filter_map(|(message, result)| result.is_err().then_some(message))
                        .collect();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                confirmed.fetch_add(10, Ordering::SeqCst);
            }
        });
    }

    async fn control(&self, change: fn(&RabbitMq)) {
        tokio::task::block_in_place(|| change(&self.server));
        tokio::task::yield_now().await;
    }

    async fn progress(&self, what: &str) {
        let (confirmed, seen) = (self.confirmed.load(Ordering::SeqCst), self.seen.len());
        until(what, async || self.confirmed.load(Ordering::SeqCst) > confirmed + 20).await;
        until(what, async || self.seen.len() > seen + 20).await;
    }

    async fn failure(&self, what: &str) {
        let failed = self.failed.load(Ordering::SeqCst);
        until(what, async || self.failed.load(Ordering::SeqCst) > failed).await;
    }
}

/// ADP-4: the server is stopped, killed, paused and short of memory in the middle, and comes back each time. Everything that was
/// confirmed is processed, and nothing is left over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_4_whatever_happens_to_the_server_nothing_confirmed_is_lost() {
    let mut scene = Scene::start().await;
    scene.progress("the beginning").await;

    scene.control(|server| server.control().stop().unwrap()).await;
    scene.failure("an error while the server is stopped").await;
    without_the_server(&scene).await;
    scene.control(|server| server.control().start().unwrap()).await;
    scene.progress("progress after a stop").await;

    scene.control(|server| server.control().pause().unwrap()).await;
    scene.failure("an error while the server is paused").await;
    scene.control(|server| server.control().resume().unwrap()).await;
    scene.progress("progress after a pause").await;

    short_of_memory(&scene).await;
    scene.progress("progress after the alarm").await;

    scene.control(|server| server.control().kill().unwrap()).await;
    scene.failure("an error after a crash").await;
    scene.control(|server| server.control().start().unwrap()).await;
    scene.progress("progress after a crash").await;

    scene.is_over.store(true, Ordering::SeqCst);
    scene.publishing.join_next().await.unwrap().unwrap();
    let confirmed = scene.confirmed.load(Ordering::SeqCst) as usize;
    until("everything", async || scene.seen.len() == confirmed).await;
    scene.consuming.stop().await;
    assert_eq!(length(&scene.connection, scene.queues.queue()).await, 0, "counts on both sides");
    assert_eq!(length(&scene.connection, scene.queues.dead_letter_queue()).await, 0);
    assert_eq!(scene.seen.len(), confirmed);
}

/// ADP-4: with the server stopped a message goes to the outbox.
async fn without_the_server(scene: &Scene) {
    let publisher = AmqpPublisher::builder(scene.connection.clone()).guard(one_attempt()).build().unwrap();
    let publish = publisher.publish(&[message("orders", "a")]).await.remove(0);
    assert_eq!(publish.unwrap_err().fault().class(), Class::Io);
    let fallback =
        FallbackPublisher::new("RabbitMQ-Publisher", Arc::new(publisher), Arc::new(MemoryOutbox::new()));
    assert_eq!(fallback.publish(&message("orders", "a")).await.unwrap(), PublishedBy::Outbox);
}

/// ADP-4: a server that is short of memory blocks publishers, which is an error that passes and says why, and consumers go on.
async fn short_of_memory(scene: &Scene) {
    let set = |share: &'static str| {
        tokio::task::block_in_place(|| {
            scene.server.tool(&["set_vm_memory_high_watermark", "absolute", share]).unwrap()
        })
    };
    let other = declared(&scene.connection, queues("blocked")).await;
    set("1MB");
    let publisher = AmqpPublisher::builder(scene.connection.clone()).guard(one_attempt()).build().unwrap();
    until("the block", async || {
        match publisher.publish(&[message(other.queue(), "blocked")]).await.remove(0) {
            Ok(()) => false,
            Err(error) => {
                assert!(error.fault().is_transient(), "{error}");
                error.to_string().contains("short of memory") && error.fault().verdict() == Verdict::Throttled
            }
        }
    })
    .await;
    until("consumers that acknowledge", async || length(&scene.connection, scene.queues.queue()).await == 0)
        .await;
    set("2GB");
}
