//! How fast messages go into a stream of NATS and out of it, through our adapter and through the client library alone, with the
//! same headers, batches, acknowledgements and prefetch, in turns on one server. See README.md.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, stream};
use futures_util::StreamExt;
use seawall_dist::messaging::{Delivery, HandlerError, MessageProcessor};
use seawall_dist::{Message, Publisher};
use seawall_nats::{NatsConnection, NatsConsumer, NatsPublisher};
use tokio::sync::Notify;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 11;
const MESSAGES: u64 = 20_000;
const BATCH: usize = 500;
const PREFETCH: u32 = 256;
const PAYLOAD: [u8; 200] = [b'x'; 200];

#[tokio::main]
async fn main() -> Outcome<()> {
    let server = Server::start()?;
    let context = async_nats::jetstream::new(async_nats::connect(server.url()).await?);
    for name in ["OURS", "BARE"] {
        let subjects = vec![format!("{name}.>")];
        let config = stream::Config { name: name.into(), subjects, ..Default::default() };
        context.create_stream(config).await?;
    }
    let publisher = NatsPublisher::new(NatsConnection::new(&server.url())?)?;
    let mut rates = Rates::default();
    for round in 0..ROUNDS {
        rates.ours.push(publish_ours(&publisher, round).await?);
        rates.bare.push(publish_bare(&context, round).await?);
    }
    rates.print(&format!("publish {MESSAGES} messages in batches of {BATCH}, each acknowledged"));
    let mut rates = Rates::default();
    for round in 0..ROUNDS {
        rates.ours.push(consume_ours(&server, round).await?);
        rates.bare.push(consume_bare(&context, round).await?);
    }
    rates.print(&format!("consume {MESSAGES} messages with a prefetch of {PREFETCH}, each acknowledged"));
    Ok(())
}

fn message(round: usize, number: usize) -> Message {
    Message::new("OrderCreated", number.to_string(), PAYLOAD)
        .with_event_id(format!("{round}-{number}"))
        .with_topic("OURS.created")
}

async fn publish_ours(publisher: &NatsPublisher, round: usize) -> Outcome<f64> {
    let messages: Vec<Message> = (0..MESSAGES as usize).map(|number| message(round, number)).collect();
    let begun = Instant::now();
    for batch in messages.chunks(BATCH) {
        publisher.publish(batch).await.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(rate(begun))
}

async fn publish_bare(context: &Context, round: usize) -> Outcome<f64> {
    let messages: Vec<Message> = (0..MESSAGES as usize).map(|number| message(round, number)).collect();
    let begun = Instant::now();
    for batch in messages.chunks(BATCH) {
        let mut acks = Vec::with_capacity(BATCH);
        for message in batch {
            let publish = PublishMessage::build()
                .message_id(message.event_id())
                .header("event-type", message.event_type())
                .header("aggregate-id", message.aggregate_id())
                .payload(message.payload().to_vec().into());
            acks.push(context.send_publish("BARE.created", publish).await?);
        }
        for ack in acks {
            ack.await?;
        }
    }
    Ok(rate(begun))
}

async fn consume_ours(server: &Server, round: usize) -> Outcome<f64> {
    let (count, done) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let handler = {
        let (count, done) = (count.clone(), done.clone());
        move |_: Arc<Delivery>| {
            if count.fetch_add(1, Ordering::Relaxed) + 1 == MESSAGES {
                done.notify_one();
            }
            std::future::ready(Ok::<_, HandlerError>(()))
        }
    };
    let processor = MessageProcessor::builder("NATS-Consumer", "nats", handler).build()?;
    let connection = NatsConnection::new(&server.url())?;
    let consumer = NatsConsumer::builder(connection, "OURS", format!("round-{round}"), processor)
        .prefetch(PREFETCH)
        .build()?;
    consumer.declare().await?;
    let begun = Instant::now();
    let took = Arc::new(AtomicU64::new(0));
    let finished = {
        let took = took.clone();
        async move {
            done.notified().await;
            took.store(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    };
    // As in a service: in a task of the runtime, and not on the thread of `main`.
    tokio::spawn(async move { consumer.run_until(finished).await }).await??;
    Ok(MESSAGES as f64 / Duration::from_nanos(took.load(Ordering::Relaxed)).as_secs_f64())
}

async fn consume_bare(context: &Context, round: usize) -> Outcome<f64> {
    let config = pull::Config {
        durable_name: Some(format!("round-{round}")),
        ack_policy: AckPolicy::Explicit,
        max_deliver: 5,
        max_ack_pending: 10_000,
        ..Default::default()
    };
    let stream = context.get_stream("BARE").await?;
    let consumer = stream.create_consumer(config).await?;
    let begun = Instant::now();
    let consuming = tokio::spawn(async move {
        let mut messages = consumer.stream().max_messages_per_batch(PREFETCH as usize).messages().await?;
        for _ in 0..MESSAGES {
            let message = messages.next().await.ok_or("the messages ended")??;
            message.ack().await?;
        }
        Outcome::Ok(rate(begun))
    });
    consuming.await?
}

fn rate(begun: Instant) -> f64 {
    MESSAGES as f64 / begun.elapsed().as_secs_f64()
}

/// Messages per second, round by round.
#[derive(Default)]
struct Rates {
    ours: Vec<f64>,
    bare: Vec<f64>,
}

impl Rates {
    fn print(self, title: &str) {
        let ratios = self.ours.iter().zip(&self.bare).map(|(ours, bare)| ours / bare).collect();
        println!("{title}, median of {ROUNDS} rounds, in turns");
        println!("  seawall-nats {:>10.0} messages/s", median(self.ours));
        println!("  async-nats   {:>10.0} messages/s", median(self.bare));
        println!("  ratio        {:>10.2} (at least 0.80)", median(ratios));
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// A NATS server in a temporary folder. It is killed and deleted when the value is dropped. The launcher of the testkit is not
/// used: it would move the clock of the engine.
struct Server {
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Server {
    fn start() -> std::io::Result<Server> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let folder = std::env::temp_dir().join(format!("seawall-bench-nats-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let process = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", &address.port().to_string(), "-js", "-sd"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Server { process, address, folder };
        for _ in 0..200 {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(std::io::Error::other("nats-server did not start"))
    }

    fn url(&self) -> String {
        format!("nats://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
