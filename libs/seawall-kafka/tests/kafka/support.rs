//! What the tests share: topics of their own, what a server really holds, and waits with a limit.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use seawall_dist::{Message, Publisher};
use seawall_kafka::KafkaCluster;
use seawall_testkit::servers::Kafka;
pub(crate) use seawall_testkit::until;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A name that no other test has.
pub(crate) fn unique(name: &str) -> String {
    format!("{name}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn cluster_of(kafka: &Kafka) -> KafkaCluster {
    KafkaCluster::new(&kafka.bootstrap_servers()).unwrap()
}

/// Creates a topic and waits until clients see it.
pub(crate) async fn create_topic(kafka: &Kafka, topic: &str, partitions: i32) {
    let admin: AdminClient<DefaultClientContext> = bare(kafka).create().unwrap();
    let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(30)));
    for result in admin.create_topics([&new], &options).await.unwrap() {
        result.unwrap();
    }
    until("the topic is there", async || partitions_of(kafka, topic).len() == partitions as usize).await;
}

/// A topic of the test's own on the shared server.
pub(crate) async fn topic(name: &str, partitions: i32) -> String {
    let topic = unique(name);
    create_topic(Kafka::shared(), &topic, partitions).await;
    topic
}

/// A client of the bare library, without anything of ours.
pub(crate) fn bare(kafka: &Kafka) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", kafka.bootstrap_servers());
    config
}

/// The first and the last offset of each partition, as the server has them. Empty for a topic that does not exist.
pub(crate) fn partitions_of(kafka: &Kafka, topic: &str) -> Vec<(i64, i64)> {
    let mut config = bare(kafka);
    config.set("allow.auto.create.topics", "false");
    let consumer: BaseConsumer = config.create().unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10)).unwrap();
    let found = &metadata.topics()[0];
    if found.error().is_some() {
        return Vec::new();
    }
    let offsets = |partition: &rdkafka::metadata::MetadataPartition| {
        consumer.fetch_watermarks(topic, partition.id(), Duration::from_secs(10)).unwrap_or((0, 0))
    };
    found.partitions().iter().map(offsets).collect()
}

/// The number of records that the server has of a topic.
pub(crate) fn count_of(kafka: &Kafka, topic: &str) -> i64 {
    partitions_of(kafka, topic).iter().map(|(first, last)| last - first).sum()
}

/// A record as the server has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredRecord {
    pub(crate) partition: i32,
    pub(crate) key: String,
    pub(crate) payload: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl StoredRecord {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads all records of a topic with the bare library.
pub(crate) fn records_of(kafka: &Kafka, topic: &str) -> Vec<StoredRecord> {
    let partitions = partitions_of(kafka, topic);
    let expected: i64 = partitions.iter().map(|(first, last)| last - first).sum();
    let mut config = bare(kafka);
    config.set("group.id", unique("reader")).set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..partitions.len() {
        assignment.add_partition_offset(topic, partition as i32, Offset::Beginning).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let read = |_| {
        let record = consumer.poll(PATIENCE).expect("the records that the server counts").unwrap();
        let headers = record.headers().into_iter().flat_map(Headers::iter);
        StoredRecord {
            partition: record.partition(),
            key: text(record.key()),
            payload: text(record.payload()),
            headers: headers.map(|header| (header.key.to_owned(), text(header.value))).collect(),
        }
    };
    (0..expected).map(read).collect()
}

/// Publishes until the server has acknowledged every message, however often it has to be asked.
pub(crate) async fn publish_all(publisher: &dyn Publisher, messages: &[Message]) {
    let publish = async {
        let mut rest = messages.to_vec();
        while !rest.is_empty() {
            let results = publisher.publish(&rest).await;
            rest = rest
                .into_iter()
                .zip(results)
                .filter(|(_, result)| result.is_err())
                .map(|(rest, _)| rest)
                .collect();
        }
    };
    tokio::time::timeout(PATIENCE, publish).await.expect("the server never took the messages");
}

/// Messages of a topic, spread over some aggregates.
pub(crate) fn messages(topic: &str, count: usize, aggregates: usize) -> Vec<Message> {
    let message = |number: usize| {
        Message::new("OrderPaid", format!("order-{}", number % aggregates), number.to_string())
            .with_topic(topic)
    };
    (0..count).map(message).collect()
}
