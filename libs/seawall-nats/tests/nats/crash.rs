//! Consumers that are processes of their own, and die.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::Context;
use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_nats::{NatsConnection, NatsConsumer};
use seawall_testkit::servers::{Nats, WorkerProcess, worker_settings};

use crate::support::{backlog, bare, count, header, letters, processor, publish, stream, unique, until};

/// How many messages a worker has in hand at most.
const PREFETCH: u32 = 64;

/// A worker: writes the number of each message into a file, then acknowledges it. Dies on the message `poison`.
#[test]
fn consumer_worker() {
    let Some(settings) = worker_settings() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let file = OpenOptions::new().create(true).append(true).open(&settings["FILE"]).unwrap();
        let (file, poison) = (Arc::new(Mutex::new(file)), settings["POISON"].clone());
        let handler = move |delivery: Arc<Delivery>| {
            let text = String::from_utf8_lossy(delivery.message().payload()).into_owned();
            if text == poison {
                std::process::abort();
            }
            let mut file: std::sync::MutexGuard<'_, File> = file.lock().unwrap();
            let written = file.write_all(format!("{text}\n").as_bytes());
            std::future::ready(written.map_err(HandlerError::from))
        };
        let attempts = settings["ATTEMPTS"].parse().unwrap();
        let connection = NatsConnection::new(&settings["NATS"]).unwrap();
        let consumer =
            NatsConsumer::builder(connection, &settings["STREAM"], "billing", processor(attempts, handler))
                .ack_wait(Duration::from_millis(settings["ACK_WAIT"].parse().unwrap()))
                .concurrency(settings["CONCURRENCY"].parse().unwrap())
                .prefetch(settings["PREFETCH"].parse().unwrap())
                .build()
                .unwrap();
        println!("ready");
        consumer.run_until(std::future::pending()).await.unwrap();
    });
}

struct Workplace<'a> {
    nats: &'a Nats,
    stream: String,
    file: PathBuf,
    poison: &'a str,
    attempts: u32,
    ack_wait: u32,
    prefetch: u32,
}

impl Workplace<'_> {
    fn worker(&self) -> WorkerProcess {
        let (attempts, wait, prefetch) =
            (self.attempts.to_string(), self.ack_wait.to_string(), self.prefetch.to_string());
        let concurrency = self.prefetch.min(8).to_string();
        WorkerProcess::spawn(
            "crash::consumer_worker",
            &[
                ("NATS", &self.nats.url()),
                ("STREAM", &self.stream),
                ("FILE", self.file.to_str().unwrap()),
                ("POISON", self.poison),
                ("ATTEMPTS", &attempts),
                ("ACK_WAIT", &wait),
                ("PREFETCH", &prefetch),
                ("CONCURRENCY", &concurrency),
            ],
        )
        .unwrap()
    }
}

/// How often each message was processed.
fn processed(file: &Path) -> HashMap<String, usize> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut counts = HashMap::new();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

async fn is_done(context: &Context, stream: &str) -> bool {
    backlog(context, stream, "billing").await == (0, 0)
}

/// ADP-6: a message that kills its process is delivered as often as it may be, then it is in the dead letters with the reason,
/// and all others are processed, also those that were in hand beside it.
#[tokio::test(flavor = "multi_thread")]
async fn adp_6_a_message_that_kills_its_process_ends_in_the_dead_letters() {
    let (context, name) = (bare(Nats::shared()).await, unique("KILLER"));
    stream(&context, &name).await;
    publish(&context, &name, 1..=20).await;
    let file = std::env::temp_dir().join(format!("seawall-nats-{}-{name}", std::process::id()));
    let place = Workplace {
        nats: Nats::shared(),
        stream: name.clone(),
        file: file.clone(),
        poison: "7",
        attempts: 5,
        ack_wait: 1_000,
        prefetch: 16,
    };
    let (mut worker, mut deaths) = (place.worker(), 0);
    until("the letter is stored", || {
        if !worker.is_running() {
            (worker, deaths) = (place.worker(), deaths + 1);
        }
        async { letters(&context, &name).await.len() == 1 && is_done(&context, &name).await }
    })
    .await;
    worker.kill().unwrap();
    assert_eq!(deaths, 5, "as often as it may be delivered");
    let counts = processed(&file);
    std::fs::remove_file(&file).unwrap();
    assert_eq!((counts.len(), counts.contains_key("7")), (19, false), "{counts:?}");
    let letters = letters(&context, &name).await;
    assert_eq!((letters.len(), &*letters[0].payload), (1, &b"7"[..]));
    assert_eq!(
        (header(&letters[0], "seawall-reason"), header(&letters[0], "seawall-attempt")),
        ("crashes".into(), "5".into())
    );
    assert!(header(&letters[0], "seawall-cause").contains("5 times"), "{:?}", letters[0].headers);
    assert_eq!(count(&context, &format!("{name}-advisories")).await, 0);
}

/// ADP-6: consumers are killed while they work. All messages are processed, and only those in hand at a death come twice. The
/// short form runs by default, and 100 000 messages with five deaths with `SEAWALL_LONG=1`.
#[tokio::test(flavor = "multi_thread")]
async fn adp_6_killed_consumers_lose_nothing() {
    let is_long = std::env::var_os("SEAWALL_LONG").is_some();
    let (messages, kills) = if is_long { (100_000, 5) } else { (5_000, 2) };
    let (context, name) = (bare(Nats::shared()).await, unique("KILLS"));
    stream(&context, &name).await;
    for begin in (1..=messages).step_by(1_000) {
        publish(&context, &name, begin..begin + 1_000).await;
    }
    let file = std::env::temp_dir().join(format!("seawall-nats-{}-{name}", std::process::id()));
    let place = Workplace {
        nats: Nats::shared(),
        stream: name.clone(),
        file: file.clone(),
        poison: "none",
        attempts: 20,
        ack_wait: 1_000,
        prefetch: PREFETCH,
    };
    let mut worker = place.worker();
    for kill in 1..=kills {
        let stage = messages * kill / (kills + 1);
        until("a part is processed", || async { processed(&file).len() >= stage }).await;
        worker.kill().unwrap();
        worker = place.worker();
    }
    until("all are processed", || async {
        processed(&file).len() == messages && is_done(&context, &name).await
    })
    .await;
    worker.kill().unwrap();
    let counts = processed(&file);
    std::fs::remove_file(&file).unwrap();
    let doubled: usize = counts.values().map(|count| count - 1).sum();
    println!("{messages} messages, {kills} kills, {doubled} processed twice");
    assert_eq!(counts.len(), messages);
    assert!(doubled <= kills * PREFETCH as usize, "{doubled} messages came twice");
    assert!(letters(&context, &name).await.is_empty());
    assert_eq!(count(&context, &name).await, messages as u64, "the server has as many");
}
