//! ADP-5: how records share the workers of a consumer, and a topic its groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use seawall::Backoff;
use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_kafka::KafkaConsumer;
use seawall_kafka::consumer::default_processor;
use seawall_testkit::servers::Kafka;

use super::consumer::{HandledRecords, Running, publish};
use super::support::{cluster_of, count_of, messages, records_of, topic, unique, until};

/// ADP-5: a record that one group retries is none of the other group's business, and a letter says whose it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_group_does_not_get_what_another_group_retries() {
    let (kafka, topic) = (Kafka::shared(), topic("groups", 1).await);
    publish(kafka, &messages(&topic, 5, 5)).await;
    let start = |group: &str, fails: bool| {
        let seen = HandledRecords::default();
        let by = seen.clone();
        let handler = move |delivery: Arc<Delivery>| {
            by.add(&delivery);
            let result = if fails { Err("no") } else { Ok(()) };
            async move { result.map_err(HandlerError::from) }
        };
        let processor =
            default_processor(handler).backoff(Backoff::constant(Duration::from_millis(50))).build().unwrap();
        let consumer = KafkaConsumer::with_processor(&cluster_of(kafka), group, &topic, processor);
        (seen, Running::start(consumer.build().unwrap()))
    };
    let (failing, working) = (unique("failing"), unique("working"));
    let (failed, first) = start(&failing, true);
    let (worked, second) = start(&working, false);
    let letters = format!("{topic}-dlt");
    until("all are given up", async || count_of(kafka, &letters) >= 5).await;
    until("all are processed", async || worked.len() >= 5).await;
    // What the other group would take by mistake lies in the retry topics, before this record of its own.
    publish(kafka, &messages(&topic, 1, 1)).await;
    until("the last one is given up", async || count_of(kafka, &letters) >= 6).await;
    until("the last one is processed", async || worked.len() >= 6).await;
    first.stop().await;
    second.stop().await;
    assert_eq!((failed.len(), worked.len()), (18, 6), "three attempts by one group, one by the other");
    assert!(worked.all().iter().all(|(_, attempt, place)| *attempt == 1 && *place == topic));
    let records = records_of(kafka, &letters);
    assert!(records.iter().all(|record| record.header("seawall-consumer") == Some(failing.as_str())));
}

/// ADP-5: as many records run at once as were asked for, and never more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_as_many_records_run_at_once_as_were_asked_for() {
    const CONCURRENCY: usize = 7;
    let (kafka, topic, seen) = (Kafka::shared(), topic("at-once", 2).await, HandledRecords::default());
    publish(kafka, &messages(&topic, 200, 200)).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (by, now, highest) = (seen.clone(), running, most.clone());
    let handler = move |delivery: Arc<Delivery>| {
        let (seen, now, highest) = (by.clone(), now.clone(), highest.clone());
        async move {
            highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            seen.add(&delivery);
            Ok::<(), HandlerError>(())
        }
    };
    let consumer = KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler);
    let consumer = Running::start(consumer.concurrency(CONCURRENCY).build().unwrap());
    until("all records are processed", async || seen.len() >= 200).await;
    consumer.stop().await;
    assert_eq!(most.load(Ordering::SeqCst), CONCURRENCY);
}

/// ADP-5: a handler that keeps its thread does not hold up the records that other threads can process.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn adp_5_a_handler_that_keeps_its_thread_does_not_hold_up_the_others() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("threads", 1).await, HandledRecords::default());
    publish(kafka, &messages(&topic, 50, 50)).await;
    let (release, blocked) = std::sync::mpsc::sync_channel::<()>(1);
    let (blocked, by) = (Arc::new(std::sync::Mutex::new(blocked)), seen.clone());
    let handler = move |delivery: Arc<Delivery>| {
        let (seen, blocked) = (by.clone(), blocked.clone());
        async move {
            if delivery.message().payload() == b"0" {
                let _ = blocked.lock().unwrap().recv_timeout(Duration::from_secs(60));
            }
            seen.add(&delivery);
            Ok::<(), HandlerError>(())
        }
    };
    let consumer = KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler);
    let consumer = Running::start(consumer.build().unwrap());
    until("all others are processed", async || seen.len() >= 49).await;
    assert!(!seen.counts().contains_key("0"));
    release.send(()).unwrap();
    until("the last one is processed", async || seen.len() >= 50).await;
    consumer.stop().await;
}
