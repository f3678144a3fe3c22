use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall_amqp::AmqpConnection;
use seawall_amqp::consume::{AmqpConsumer, AmqpDeadLetterReader};
use seawall_amqp::topology::QueueTopology;
use seawall_dist::Publisher;
use seawall_dist::deadletter::{DeadLetters, MemoryDeadLetters};
use seawall_dist::messaging::{DeadLetterIntake, Delivery};
use seawall_testkit::servers::{RabbitMq, WorkerProcess, worker_settings};

use crate::consume::{processor, publish};
use crate::support::{declared, length, message, publisher, shared, unique, until};

/// A consumer in a process of its own: it prints each message that it has handled, and dies of one that is called `poison`.
#[test]
fn consumer_worker() {
    let Some(settings) = worker_settings() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = AmqpConnection::new(&settings["URL"]).unwrap();
        let queues = QueueTopology::builder("test", &settings["EVENT"]).build().unwrap();
        let handler = |delivery: Arc<Delivery>| async move {
            let id = delivery.message().event_id();
            println!("began {id}");
            if id == "poison" {
                std::process::abort();
            }
            println!("done {id}");
            Ok::<_, anyhow::Error>(())
        };
        let processor = processor(handler).build().unwrap();
        let consumer = AmqpConsumer::builder(connection, queues, processor)
            .concurrency(settings["CONCURRENCY"].parse().unwrap())
            .prefetch(settings["PREFETCH"].parse().unwrap())
            .build()
            .unwrap();
        consumer.run_until(std::future::pending()).await.unwrap();
    });
}

/// How often each message was handled by any worker.
#[derive(Clone, Default)]
struct Handled(Arc<Mutex<HashMap<String, u32>>>);

impl Handled {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn total(&self) -> u32 {
        self.0.lock().unwrap().values().sum()
    }

    /// Starts a worker, and reads what it prints on a thread that ends with it.
    fn worker(&self, event: &str, concurrency: u32, prefetch: u32) -> WorkerProcess {
        let url = RabbitMq::shared().url();
        let (concurrency, prefetch) = (concurrency.to_string(), prefetch.to_string());
        let settings = [
            ("URL", url.as_str()),
            ("EVENT", event),
            ("CONCURRENCY", concurrency.as_str()),
            ("PREFETCH", prefetch.as_str()),
        ];
        let mut worker = WorkerProcess::spawn("crash::consumer_worker", &settings).unwrap();
        let (output, handled) = (worker.take_output().unwrap(), self.clone());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, id)) = line.split_once("done ") {
                    *handled.0.lock().unwrap().entry(id.to_owned()).or_default() += 1;
                }
            }
        });
        worker
    }
}

/// ADP-4: consumers are killed in the middle of their work. Every message is processed, and more than once only where a crash was.
///
/// `SEAWALL_LONG=1` has 100 000 messages and five kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_4_consumers_that_are_killed_lose_nothing() {
    let is_long = std::env::var_os("SEAWALL_LONG").is_some();
    let (messages, kills) = if is_long { (100_000, 5) } else { (5_000, 2) };
    let (concurrency, prefetch) = (16, 64);
    let (connection, event) = (shared(), unique("killed"));
    let queues = declared(&connection, QueueTopology::builder("test", &event)).await;
    for start in (0..messages).step_by(5_000) {
        publish(&connection, &queues, start..(start + 5_000).min(messages)).await;
    }
    let handled = Handled::default();
    for kill in 1..=kills {
        let mut worker = handled.worker(&event, concurrency, prefetch);
        let enough = (messages * kill / (kills + 1)) as usize;
        until("progress", async || handled.len() >= enough).await;
        worker.kill().unwrap();
    }
    let mut last = handled.worker(&event, concurrency, prefetch);
    until("all messages", async || handled.len() == messages as usize).await;
    until("an empty queue", async || length(&connection, queues.queue()).await == 0).await;
    last.kill().unwrap();
    let twice = handled.total() - messages;
    assert!(twice <= prefetch * kills, "{twice} more than once");
    assert_eq!(length(&connection, queues.dead_letter_queue()).await, 0);
    println!("{messages} messages, {kills} kills, {twice} more than once");
}

/// ADP-4, TRAPS: a message that kills the process is given up after five deliveries, although nobody recorded an error. Those that
/// were beside it, at work or waiting, are processed: a crash is not held against them for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_4_a_message_that_kills_the_process_is_given_up() {
    let (connection, event) = (shared(), unique("deadly"));
    let queues = declared(&connection, QueueTopology::builder("test", &event)).await;
    let ids = (0..40).map(|id| if id == 5 { "poison".to_owned() } else { id.to_string() });
    let batch: Vec<_> = ids.map(|id| message(queues.queue(), id)).collect();
    assert!(publisher(&connection).publish(&batch).await.iter().all(Result::is_ok));
    let handled = Handled::default();
    let dead = async || length(&connection, queues.dead_letter_queue()).await;
    let mut crashes = 0;
    while dead().await == 0 {
        assert!(crashes < 10, "it is never given up");
        let mut worker = handled.worker(&event, 16, 64);
        until("an end", async || !worker.is_running()).await;
        crashes += 1;
        // The server takes back what the worker had when it sees that the connection is gone.
        until("its return", async || length(&connection, queues.queue()).await > 0 || dead().await > 0).await;
    }
    assert_eq!(crashes, 5);
    let mut worker = handled.worker(&event, 16, 64);
    until("all others", async || handled.len() == 39).await;
    worker.kill().unwrap();
    assert_eq!(dead().await, 1, "only the one that kills is given up");

    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let intake = DeadLetterIntake::new("amqp", "RabbitMQ-DLQ", letters.clone());
    let reader = AmqpDeadLetterReader::new(connection.clone(), queues.clone(), intake);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let found = async {
        until("the letter", async || letters.search("", 10).await.unwrap().letters.len() == 1).await;
        drop(stop);
    };
    let limit = Duration::from_secs(60);
    let reading = tokio::time::timeout(limit, reader.run_until(async { drop(stopped.await) }));
    let (ended, ()) = tokio::join!(reading, found);
    ended.unwrap().unwrap();
    let letter = letters.get(&format!("amqp:{}:poison", queues.queue())).await.unwrap().unwrap();
    assert_eq!(letter.record.fault.reason, "crashes");
    let message = letter.record.fault.message.unwrap();
    assert!(message.contains("delivery_limit"), "{message}");
}
