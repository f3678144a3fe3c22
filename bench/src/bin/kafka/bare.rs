//! The client library alone: what a careful program does with it by hand.

use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use super::{BATCH, Failure, KEYS, PAYLOAD_BYTES};

pub(crate) fn producer(servers: &str) -> Result<FutureProducer, Failure> {
    Ok(ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "1")
        .set("partitioner", "murmur2_random")
        .create()?)
}

pub(crate) async fn publish(producer: &FutureProducer, topic: &str, records: usize) -> Result<(), Failure> {
    for begin in (0..records).step_by(BATCH) {
        let mut sent = Vec::with_capacity(BATCH);
        for number in begin..begin + BATCH {
            let (key, id) = ((number % KEYS).to_string(), format!("{:036}", number));
            let headers = OwnedHeaders::new()
                .insert(Header { key: "event-id", value: Some(&id) })
                .insert(Header { key: "event-type", value: Some("Bench") });
            let payload = vec![b'x'; PAYLOAD_BYTES];
            let record = FutureRecord::to(topic).key(&key).payload(&payload).headers(headers);
            sent.push(producer.send_result(record).map_err(|(error, _)| error)?);
        }
        for delivery in sent {
            delivery.await?.map_err(|(error, _)| error)?;
        }
    }
    Ok(())
}

/// Records per second, from the first record to the last. Each is copied out of the client, as a handler that runs elsewhere
/// needs it. Offsets are committed every 100 ms, and before more than `window` records wait for a commit: what a crash may
/// repeat is bounded as it is with ours. Without a window there is no such bound.
pub(crate) async fn consume(
    servers: &str,
    topic: &str,
    records: usize,
    window: Option<usize>,
) -> Result<f64, Failure> {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("group.id", format!("{topic}-{window:?}-group"))
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("auto.offset.reset", "earliest")
        .create()?;
    consumer.subscribe(&[topic])?;
    let (mut begin, mut last_commit, mut bytes, mut open) = (None, Instant::now(), 0, 0);
    for _ in 0..records {
        let record = consumer.recv().await?.detach();
        let begin = begin.get_or_insert_with(Instant::now);
        bytes += record.payload().map_or(0, <[u8]>::len);
        consumer.store_offset(record.topic(), record.partition(), record.offset())?;
        open += 1;
        let is_full = window.is_some_and(|window| open >= window);
        if is_full || (last_commit.elapsed() > Duration::from_millis(100) && *begin < last_commit) {
            consumer.commit_consumer_state(if is_full { CommitMode::Sync } else { CommitMode::Async })?;
            (last_commit, open) = (Instant::now(), 0);
        }
    }
    consumer.commit_consumer_state(CommitMode::Sync)?;
    assert_eq!(bytes, records * PAYLOAD_BYTES);
    Ok(records as f64 / begin.ok_or("nothing came")?.elapsed().as_secs_f64())
}
