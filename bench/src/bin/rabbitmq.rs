//! Messages per second of our publisher and consumer beside the bare client library, on a RabbitMQ that runs already:
//! `cargo xtask bench rabbitmq amqp://guest:guest@127.0.0.1:5672/%2f`. See README.md.
//!
//! Both sides have the same quorum queue, persistent and mandatory messages, confirmations, batches, prefetch and number of
//! messages at the same time, and run in turns.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::Stream;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    QueuePurgeOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use seawall_amqp::consume::AmqpConsumer;
use seawall_amqp::publish::AmqpPublisher;
use seawall_amqp::topology::QueueTopology;
use seawall_amqp::{AmqpConnection, SYSTEM};
use seawall_dist::messaging::{Delivery, MessageProcessor};
use seawall_dist::{Message, Publisher};
use tokio::sync::Notify;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error>>;

const MESSAGES: usize = 20_000;
const BATCH: usize = 500;
const BODY: [u8; 256] = [b'x'; 256];
const PREFETCH: u16 = 64;
const AT_ONCE: usize = 16;
const ROUNDS: usize = 5;

struct Scene {
    url: String,
    connection: AmqpConnection,
    queues: QueueTopology,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let url = std::env::args()
        .nth(1)
        .ok_or("the address of a RabbitMQ is missing: amqp://guest:guest@127.0.0.1:5672/%2f")?;
    let connection = AmqpConnection::new(&url)?;
    let queues = QueueTopology::builder("bench", "order-paid").build()?;
    queues.declare(&connection).await?;
    let scene = Scene { url, connection, queues };
    scene.empty().await?;
    let (mut publish, mut consume) = ([vec![], vec![]], [vec![], vec![], vec![]]);
    for _ in 0..ROUNDS {
        publish[0].push(rate(scene.publish_ours().await?));
        consume[0].push(rate(scene.consume_ours().await?));
        publish[1].push(rate(scene.publish_bare().await?));
        consume[1].push(rate(scene.consume_bare(AT_ONCE).await?));
        scene.publish_bare().await?;
        consume[2].push(rate(scene.consume_bare(1).await?));
    }
    println!("messages per second, median of {ROUNDS} rounds of {MESSAGES} messages of {} bytes", BODY.len());
    let [ours, bare] = publish.map(median);
    println!(
        "publish, batches of {BATCH}:      ours {ours:7.0}   lapin {bare:7.0}   ratio {:.2}",
        ours / bare
    );
    let [ours, bare, alone] = consume.map(median);
    println!(
        "consume, {AT_ONCE} at once:           ours {ours:7.0}   lapin {bare:7.0}   ratio {:.2}",
        ours / bare
    );
    println!("consume, lapin one by one:    lapin {alone:7.0}   ratio {:.2}", ours / alone);
    Ok(())
}

fn rate(took: Duration) -> f64 {
    MESSAGES as f64 / took.as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

impl Scene {
    async fn channel(&self) -> Outcome<(Connection, Channel)> {
        let connection = Connection::connect(&self.url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        Ok((connection, channel))
    }

    async fn empty(&self) -> Outcome<()> {
        let (_connection, channel) = self.channel().await?;
        channel.queue_purge(self.queues.queue().into(), QueuePurgeOptions::default()).await?;
        Ok(())
    }

    async fn publish_ours(&self) -> Outcome<Duration> {
        let publisher = AmqpPublisher::builder(self.connection.clone()).build()?;
        let batch = |start: usize| -> Vec<Message> {
            let message =
                |id: usize| Message::new("OrderPaid", "order-17", BODY).with_event_id(id.to_string());
            (start..start + BATCH).map(|id| message(id).with_topic(self.queues.queue())).collect()
        };
        let batches: Vec<Vec<Message>> = (0..MESSAGES).step_by(BATCH).map(batch).collect();
        let began = Instant::now();
        for batch in &batches {
            for result in publisher.publish(batch).await {
                result?;
            }
        }
        Ok(began.elapsed())
    }

    async fn publish_bare(&self) -> Outcome<Duration> {
        let (_connection, channel) = self.channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let began = Instant::now();
        for start in (0..MESSAGES).step_by(BATCH) {
            let mut confirms = Vec::with_capacity(BATCH);
            for id in start..start + BATCH {
                let properties = BasicProperties::default()
                    .with_delivery_mode(2)
                    .with_message_id(id.to_string().into())
                    .with_type("OrderPaid".into());
                let queue = self.queues.queue().into();
                confirms.push(channel.basic_publish("".into(), queue, options, &BODY, properties).await?);
            }
            for confirm in confirms {
                confirm.await?;
            }
        }
        Ok(began.elapsed())
    }

    async fn consume_ours(&self) -> Outcome<Duration> {
        let (count, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let handler = {
            let (count, done) = (count.clone(), done.clone());
            move |_: Arc<Delivery>| {
                if count.fetch_add(1, Ordering::Relaxed) + 1 == MESSAGES {
                    done.notify_one();
                }
                async { Ok::<_, std::io::Error>(()) }
            }
        };
        let processor = MessageProcessor::builder("RabbitMQ-Consumer", SYSTEM, handler).build()?;
        let consumer = AmqpConsumer::builder(self.connection.clone(), self.queues.clone(), processor);
        let consumer = consumer.concurrency(AT_ONCE).prefetch(PREFETCH).build()?;
        let began = Instant::now();
        consumer.run_until(done.notified()).await?;
        Ok(began.elapsed())
    }

    async fn consume_bare(&self, at_once: usize) -> Outcome<Duration> {
        let (_connection, channel) = self.channel().await?;
        channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
        let began = Instant::now();
        let (options, queue) = (BasicConsumeOptions::default(), self.queues.queue().into());
        let mut consumer = channel.basic_consume(queue, "".into(), options, FieldTable::default()).await?;
        let mut workers = JoinSet::new();
        for _ in 0..MESSAGES {
            let next = poll_fn(|context| Pin::new(&mut consumer).poll_next(context)).await;
            let delivery = next.ok_or("the server cancelled the consumer")??;
            if at_once == 1 {
                delivery.ack(BasicAckOptions::default()).await?;
                continue;
            }
            while workers.len() >= at_once {
                workers.join_next().await;
            }
            workers.spawn(async move { delivery.ack(BasicAckOptions::default()).await.map(drop) });
        }
        while workers.join_next().await.is_some() {}
        channel.close(200, "done".into()).await?;
        Ok(began.elapsed())
    }
}
