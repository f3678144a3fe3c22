//! Our publisher and consumer of Kafka beside the bare client library, with the same acknowledgements, batches and commits.
//!
//! `cargo xtask bench kafka [RECORDS]`. It starts a Kafka of its own from the jars that the tests of `seawall-kafka` fetch, or
//! takes the cluster that `KAFKA=host:port` names.

mod bare;
mod ours;
mod server;

use std::error::Error;
use std::time::Instant;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;

/// How often each side is measured, in turns. The median counts.
const ROUNDS: usize = 5;
/// The number of records of a measurement, unless the caller says so. The client library fetches 100 000 in advance: a
/// measurement that has no more shows how fast its queue is emptied, and not what a server and a consumer sustain.
const RECORDS: usize = 400_000;
/// The number of messages of one call to publish.
const BATCH: usize = 1_000;
/// The size of a payload.
const PAYLOAD_BYTES: usize = 200;
/// The number of keys, and of partitions.
const KEYS: usize = 1_000;
const PARTITIONS: i32 = 3;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let records = std::env::args().nth(1).map_or(Ok(RECORDS), |text| text.parse())?;
    let server = server::Server::find_or_start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&server.address, records))
}

async fn measure(servers: &str, records: usize) -> Result<(), Failure> {
    let mut rates: [Vec<f64>; 5] = Default::default();
    for round in 0..=ROUNDS {
        let [ours_topic, bare_topic] =
            ["ours", "bare"].map(|name| format!("bench-{name}-{}-{round}", std::process::id()));
        for topic in [&ours_topic, &bare_topic] {
            create(servers, topic).await?;
        }
        let (mut published, mut bare_published) = (0.0, 0.0);
        // Who goes first changes, because the server is busy with new topics then.
        for turn in 0..2 {
            if (turn + round) % 2 == 0 {
                let publisher = ours::publisher(servers, &ours_topic)?;
                ours::publish(&publisher, BATCH).await?;
                let begin = Instant::now();
                ours::publish(&publisher, records).await?;
                published = records as f64 / begin.elapsed().as_secs_f64();
            } else {
                let producer = bare::producer(servers)?;
                bare::publish(&producer, &bare_topic, BATCH).await?;
                let begin = Instant::now();
                bare::publish(&producer, &bare_topic, records).await?;
                bare_published = records as f64 / begin.elapsed().as_secs_f64();
            }
        }
        let consumed = ours::consume(servers, &ours_topic, records + BATCH).await?;
        let bare_consumed =
            bare::consume(servers, &bare_topic, records + BATCH, Some(seawall_kafka::consumer::WINDOW))
                .await?;
        let unbounded = bare::consume(servers, &bare_topic, records + BATCH, None).await?;
        // The first round warms up the server.
        if round > 0 {
            eprintln!(
                "round {round}: publish {published:.0} {bare_published:.0}, consume {consumed:.0} {bare_consumed:.0} {unbounded:.0}"
            );
            for (rates, rate) in
                rates.iter_mut().zip([published, bare_published, consumed, bare_consumed, unbounded])
            {
                rates.push(rate);
            }
        }
    }
    let [published, bare_published, consumed, bare_consumed, unbounded] = rates.map(median);
    println!(
        "{records} records of {PAYLOAD_BYTES} bytes, {PARTITIONS} partitions, median of {ROUNDS} rounds, per second"
    );
    println!(
        "publish  ours {published:>9.0}  bare {bare_published:>9.0}  ratio {:.2}",
        published / bare_published
    );
    println!(
        "consume  ours {consumed:>9.0}  bare {bare_consumed:>9.0}  ratio {:.2} (at least 0.80), what a crash repeats bounded alike",
        consumed / bare_consumed
    );
    println!(
        "consume  ours {consumed:>9.0}  bare {unbounded:>9.0}  ratio {:.2}, bare without that bound",
        consumed / unbounded
    );
    Ok(())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

async fn create(servers: &str, topic: &str) -> Result<(), Failure> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", servers).create()?;
    let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1));
    for result in admin.create_topics([&new], &AdminOptions::new()).await? {
        result.map_err(|(topic, code)| format!("{topic}: {code}"))?;
    }
    Ok(())
}
