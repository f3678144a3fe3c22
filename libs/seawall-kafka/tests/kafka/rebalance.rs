//! ADP-5: consumers that come and go.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_kafka::KafkaConsumer;
use seawall_kafka::consumer::RecordOrder;
use seawall_testkit::servers::Kafka;

use super::consumer::{HandledRecords, Running, publish};
use super::support::{cluster_of, messages, topic, unique, until};

/// A consumer that takes a few milliseconds for each record.
fn slow_consumer(group: &str, topic: &str, seen: &HandledRecords, order: RecordOrder) -> KafkaConsumer {
    let seen = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        let seen = seen.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            seen.add(&delivery);
            Ok::<(), HandlerError>(())
        }
    };
    let builder = KafkaConsumer::builder(&cluster_of(Kafka::shared()), group, topic, handler);
    builder.concurrency(8).window(100).order(order).session_timeout(Duration::from_secs(6)).build().unwrap()
}

/// ADP-5: two consumers join and leave in the middle; no record is lost or skipped, and orderly changes repeat none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_rebalance_in_the_middle_neither_loses_nor_repeats() {
    let (kafka, topic, group, count) = (Kafka::shared(), topic("rebalance", 6).await, unique("group"), 3_000);
    publish(kafka, &messages(&topic, count, 60)).await;
    let (first_seen, second_seen) = (HandledRecords::default(), HandledRecords::default());
    let total = || first_seen.len() + second_seen.len();
    let first = Running::start(slow_consumer(&group, &topic, &first_seen, RecordOrder::Key));
    until("the first works", async || first_seen.len() > 200).await;
    let second = Running::start(slow_consumer(&group, &topic, &second_seen, RecordOrder::Key));
    until("the second works too", async || second_seen.len() > 200).await;
    first.stop().await;
    let before = second_seen.len();
    until("the second goes on alone", async || second_seen.len() > before + 100).await;
    let third = Running::start(slow_consumer(&group, &topic, &first_seen, RecordOrder::Partition));
    until("all records are processed", async || {
        let mut counts = first_seen.counts();
        counts.extend(second_seen.counts());
        counts.len() == count
    })
    .await;
    third.stop().await;
    second.stop().await;
    assert!(!first_seen.all().is_empty() && !second_seen.all().is_empty());
    assert_eq!(total(), count, "an orderly change of owners repeated records");
}

/// ADP-5: a handler that takes longer than a revoked partition waits is ended, and its record goes to the next owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_record_that_outlasts_the_revocation_goes_to_the_next_owner() {
    let (kafka, topic, group) = (Kafka::shared(), topic("revoked", 2).await, unique("group"));
    publish(kafka, &messages(&topic, 40, 40)).await;
    let consumer = |seen: &HandledRecords, time: Duration| {
        let seen = seen.clone();
        let handler = move |delivery: Arc<Delivery>| {
            let seen = seen.clone();
            async move {
                seen.add(&delivery);
                tokio::time::sleep(time).await;
                Ok::<(), HandlerError>(())
            }
        };
        let builder = KafkaConsumer::builder(&cluster_of(kafka), &group, &topic, handler);
        let builder = builder
            .concurrency(2)
            .revoke_wait(Duration::from_millis(200))
            .stop_wait(Duration::from_millis(200));
        Running::start(builder.build().unwrap())
    };
    let (stuck_seen, seen) = (HandledRecords::default(), HandledRecords::default());
    let stuck = consumer(&stuck_seen, Duration::from_secs(25));
    until("two records are stuck", async || stuck_seen.len() == 2).await;
    let quick = consumer(&seen, Duration::ZERO);
    until("the other works", async || seen.len() >= 10).await;
    stuck.stop().await;
    until("all records are processed by the other", async || seen.counts().len() == 40).await;
    quick.stop().await;
}
