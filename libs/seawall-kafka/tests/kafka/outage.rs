//! ADP-5: the server goes away while a consumer works.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use seawall::Guard;
use seawall_dist::Message;
use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_kafka::{KafkaConsumer, KafkaPublisher};
use seawall_testkit::servers::Kafka;

use super::consumer::{HandledRecords, Running, publish};
use super::support::{cluster_of, count_of, create_topic, messages, publish_all, records_of, unique, until};

/// A consumer whose records with `bad` in them fail at their first attempt.
fn consumer_of(kafka: &Kafka, topic: &str, seen: &HandledRecords) -> KafkaConsumer {
    let seen = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        let seen = seen.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let number: usize = std::str::from_utf8(delivery.message().payload()).unwrap().parse().unwrap();
            if number.is_multiple_of(50) && delivery.attempt() == 1 {
                return Err(HandlerError::from("not at the first attempt"));
            }
            seen.add(&delivery);
            Ok(())
        }
    };
    let builder = KafkaConsumer::builder(&cluster_of(kafka), "group", topic, handler);
    builder.window(100).session_timeout(Duration::from_secs(6)).build().unwrap()
}

/// ADP-5: the server is killed, restarted and paused in the middle. Every acknowledged record is processed, with its retries,
/// and repeated only as often as the window allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_server_that_dies_and_pauses_in_the_middle_loses_nothing() {
    let (kafka, topic, seen) = (Kafka::start().unwrap(), unique("outage"), HandledRecords::default());
    create_topic(&kafka, &topic, 2).await;
    publish(&kafka, &messages(&topic, 1_500, 30)).await;
    let running = Running::start(consumer_of(&kafka, &topic, &seen));
    until("some records are processed", async || seen.len() > 200).await;
    kafka.control().kill().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    kafka.control().start().unwrap();
    let before = seen.len();
    until("it goes on after the restart", async || seen.len() > before + 100).await;
    kafka.control().pause().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    kafka.control().resume().unwrap();
    until("all records are processed", async || seen.counts().len() == 1_500).await;
    running.stop().await;
    let repeated = seen.len() - 1_500;
    // One kill and one pause, of two partitions, each with its window.
    assert!(repeated <= 2 * 2 * 100, "{repeated} records were repeated");
    // The server's own copy of the truth: 30 records went to the first retry topic, and none further.
    assert!(count_of(&kafka, &format!("{topic}-retry-1")) >= 30);
    assert_eq!(count_of(&kafka, &format!("{topic}-dlt")), 0);
}

/// ADP-5: a consumer that starts before the server waits for it, and one whose server never comes can be stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_consumer_waits_for_a_server_that_is_away() {
    let (kafka, topic, seen) = (Kafka::start().unwrap(), unique("early"), HandledRecords::default());
    create_topic(&kafka, &topic, 1).await;
    publish(&kafka, &[Message::new("A", "1", "7").with_topic(&topic)]).await;
    kafka.control().stop().unwrap();
    let impatient = Running::start(consumer_of(&kafka, &topic, &seen));
    tokio::time::sleep(Duration::from_millis(500)).await;
    impatient.stop().await;
    let running = Running::start(consumer_of(&kafka, &topic, &seen));
    tokio::time::sleep(Duration::from_millis(500)).await;
    kafka.control().start().unwrap();
    until("the record is processed", async || seen.len() == 1).await;
    running.stop().await;
}

/// ADP-5: a server is killed while messages are published. Every message is acknowledged in the end, and what was acknowledged
/// is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let (kafka, topic) = (Arc::new(Kafka::start().unwrap()), unique("acknowledged"));
    create_topic(&kafka, &topic, 2).await;
    let builder = KafkaPublisher::builder(&cluster_of(&kafka)).time_limit(Duration::from_secs(3));
    let publisher = builder.guard(Guard::builder("kafka-test").no_retry()).build().unwrap();
    let sent = messages(&topic, 2_000, 50);
    publish_all(&publisher, &sent[..500]).await;
    let killed = kafka.clone();
    let kill = tokio::task::spawn_blocking(move || {
        killed.control().kill().unwrap();
        killed.control().start().unwrap();
    });
    for batch in sent[500..].chunks(50) {
        publish_all(&publisher, batch).await;
    }
    kill.await.unwrap();
    let stored: HashSet<String> =
        records_of(&kafka, &topic).into_iter().map(|record| record.payload).collect();
    assert_eq!(stored.len(), 2_000, "acknowledged records are missing");
}
