//! ADP-5: consumers that are killed, and records that kill them.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall_dist::Message;
use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_kafka::{KafkaCluster, KafkaConsumer};
use seawall_testkit::servers::{Kafka, WorkerProcess, worker_settings};

use super::consumer::publish;
use super::support::{count_of, messages, records_of, topic, unique, until};

/// The window of the workers: so many records of a partition a kill repeats at most.
const WINDOW: usize = 200;

/// A process that consumes, and prints the payload of every record that it has processed. A record `kills` ends it.
#[test]
fn consumer_worker() {
    let Some(settings) = worker_settings() else { return };
    let handler = |delivery: Arc<Delivery>| async move {
        let payload = String::from_utf8_lossy(delivery.message().payload()).into_owned();
        if payload == "kills" {
            std::process::abort();
        }
        println!("done {payload}");
        Ok::<(), HandlerError>(())
    };
    let cluster = KafkaCluster::new(&settings["SERVERS"]).unwrap();
    let builder = KafkaConsumer::builder(&cluster, &settings["GROUP"], &settings["TOPIC"], handler);
    let consumer = builder.window(WINDOW).session_timeout(Duration::from_secs(2)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(consumer.run_until(std::future::pending())).unwrap();
}

/// How often each payload was processed by all workers.
type Counts = Arc<Mutex<HashMap<String, usize>>>;

fn start_worker(topic: &str, group: &str, counts: &Counts) -> WorkerProcess {
    let servers = Kafka::shared().bootstrap_servers();
    let settings = [("SERVERS", servers.as_str()), ("TOPIC", topic), ("GROUP", group)];
    let mut worker = WorkerProcess::spawn("crash::consumer_worker", &settings).unwrap();
    let (output, counts) = (worker.take_output().unwrap(), counts.clone());
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if let Some(payload) = line.rsplit_once("done ").map(|(_, payload)| payload.to_owned()) {
                *counts.lock().unwrap().entry(payload).or_default() += 1;
            }
        }
    });
    worker
}

/// ADP-5: consumers are killed in the middle. Every record is processed, and repeated only within the window of a kill.
#[expect(clippy::print_stdout, reason = "the figures of the long form belong into a report")]
async fn survive_kills(count: usize, kills: usize, partitions: i32) {
    let (kafka, topic, group) = (Kafka::shared(), topic("kills", partitions).await, unique("group"));
    for chunk in messages(&topic, count, 500).chunks(5_000) {
        publish(kafka, chunk).await;
    }
    let counts = Counts::default();
    let done = || counts.lock().unwrap().len();
    let mut worker = start_worker(&topic, &group, &counts);
    for kill in 1..=kills {
        let share = count * kill / (kills + 1);
        until("a share is processed", async || done() >= share).await;
        worker.kill().unwrap();
        worker = start_worker(&topic, &group, &counts);
    }
    until("all records are processed", async || done() == count).await;
    worker.kill().unwrap();
    let repeated: usize = counts.lock().unwrap().values().map(|times| times - 1).sum();
    println!("{count} records, {kills} kills, {repeated} repeated");
    assert!(repeated <= kills * WINDOW * partitions as usize, "{repeated} records were repeated");
    assert_eq!(count_of(kafka, &format!("{topic}-dlt")), 0, "kills from outside gave up records");
}

/// ADP-5: see [`survive_kills`]. With `SEAWALL_LONG=1` it is 100 000 records and five kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_killed_consumers_lose_nothing_and_repeat_little() {
    let (count, kills) = if std::env::var_os("SEAWALL_LONG").is_some() { (100_000, 5) } else { (5_000, 2) };
    survive_kills(count, kills, 3).await;
}

/// ADP-5: a record that kills its process is given up after three deaths, and all others are processed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_record_that_kills_the_process_is_given_up_without_another_attempt() {
    let (kafka, topic, group) = (Kafka::shared(), topic("poison", 2).await, unique("group"));
    let mut sent = messages(&topic, 300, 30);
    sent.insert(100, Message::new("OrderPaid", "order-5", "kills").with_topic(&topic));
    publish(kafka, &sent).await;
    let (counts, dead_topic) = (Counts::default(), format!("{topic}-dlt"));
    let mut deaths = 0;
    let mut worker = start_worker(&topic, &group, &counts);
    until("all others are processed, and the poison is given up", async || {
        if !worker.is_running() {
            deaths += 1;
            worker = start_worker(&topic, &group, &counts);
        }
        counts.lock().unwrap().len() == 300 && count_of(kafka, &dead_topic) >= 1
    })
    .await;
    worker.kill().unwrap();
    assert_eq!(deaths, 3, "the poison was attempted another number of times");
    let dead = records_of(kafka, &dead_topic);
    assert_eq!(dead[0].payload, "kills");
    assert_eq!(dead[0].header("seawall-reason"), Some("crashes"));
    assert_eq!(dead[0].header("seawall-origin"), Some(topic.as_str()));
}
