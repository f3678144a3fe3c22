//! ADP-5: the consumer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall_dist::deadletter::{DeadLetters, MemoryDeadLetters};
use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_dist::{Message, Publisher};
use seawall_kafka::{KafkaConsumer, KafkaConsumerError, KafkaDeadLetterConsumer, KafkaPublisher};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::Kafka;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::support::{PATIENCE, cluster_of, count_of, messages, records_of, topic, unique, until};

/// What handlers have seen: the payload, the attempt, the place.
#[derive(Clone, Default)]
pub(crate) struct HandledRecords(Arc<Mutex<Vec<(String, u32, String)>>>);

impl HandledRecords {
    pub(crate) fn add(&self, delivery: &Delivery) {
        let payload = String::from_utf8_lossy(delivery.message().payload()).into_owned();
        self.0.lock().unwrap().push((payload, delivery.attempt(), delivery.place().to_owned()));
    }

    pub(crate) fn all(&self) -> Vec<(String, u32, String)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// How often each payload was seen.
    pub(crate) fn counts(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for (payload, ..) in self.all() {
            *counts.entry(payload).or_default() += 1;
        }
        counts
    }
}

/// A consumer that runs until it is stopped.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), KafkaConsumerError>>,
}

impl Running {
    pub(crate) fn start(consumer: KafkaConsumer) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        #[expect(clippy::disallowed_methods, reason = "the test waits for it in `stop`")]
        let task = tokio::spawn(async move { consumer.run_until(async { drop(stopped.await) }).await });
        Running { stop, task }
    }

    pub(crate) async fn stop(self) {
        drop(self.stop);
        tokio::time::timeout(PATIENCE, self.task).await.expect("the consumer did not stop").unwrap().unwrap();
    }
}

pub(crate) async fn publish(kafka: &Kafka, messages: &[Message]) {
    let publisher = KafkaPublisher::builder(&cluster_of(kafka)).build().unwrap();
    for result in publisher.publish(messages).await {
        result.unwrap();
    }
}

/// ADP-5: all records are processed once, those of one key in order, and the group's offsets say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_records_are_processed_once_and_in_the_order_of_their_key() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("happy", 3).await, HandledRecords::default());
    publish(kafka, &messages(&topic, 1_000, 20)).await;
    let (group, by) = (unique("group"), seen.clone());
    let handler = move |delivery: Arc<Delivery>| {
        let seen = by.clone();
        async move {
            tokio::task::yield_now().await;
            seen.add(&delivery);
            Ok::<(), HandlerError>(())
        }
    };
    let consumer = KafkaConsumer::builder(&cluster_of(kafka), &group, &topic, handler).build().unwrap();
    let running = Running::start(consumer.clone());
    until("all records are processed", async || seen.len() >= 1_000).await;
    running.stop().await;
    assert!(seen.counts().values().all(|count| *count == 1));
    let mut last: HashMap<usize, usize> = HashMap::new();
    for (payload, attempt, place) in seen.all() {
        let number: usize = payload.parse().unwrap();
        assert_eq!((attempt, place), (1, topic.clone()));
        assert!(
            last.insert(number % 20, number).is_none_or(|before| before < number),
            "{number} out of order"
        );
    }
    // A second run of the group finds nothing to do but what is new.
    let running = Running::start(consumer);
    publish(kafka, &[Message::new("OrderPaid", "order-1", "1000").with_topic(&topic)]).await;
    until("the new record is processed", async || seen.len() > 1_000).await;
    running.stop().await;
    assert_eq!(seen.len(), 1_001, "records were processed again");
    assert_eq!(count_of(kafka, &format!("{topic}-retry-1")) + count_of(kafka, &format!("{topic}-dlt")), 0);
}

/// ADP-5: a failure goes to the retry topics and, after three attempts, to the dead letter topic with its evidence. Invalid
/// records go there at once. Others of the topic do not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_failures_are_retried_in_other_topics_and_then_given_up() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("retries", 1).await, HandledRecords::default());
    let texts = ["once", "fails", "ok-1", "invalid", "panics", "ok-2"];
    let sent: Vec<Message> =
        texts.iter().map(|text| Message::new("Paid", *text, *text).with_topic(&topic)).collect();
    publish(kafka, &sent).await;
    let by = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        by.add(&delivery);
        let text = String::from_utf8(delivery.message().payload().to_vec()).unwrap();
        async move {
            match text.as_str() {
                "fails" => Err(HandlerError::from("the database is away")),
                "once" if delivery.attempt() == 1 => Err(HandlerError::from("only once")),
                "invalid" => Err(HandlerError::invalid("no order number")),
                "panics" => panic!("a bug"),
                _ => Ok(()),
            }
        }
    };
    let consumer =
        KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler).build().unwrap();
    let dead_topic = consumer.topics().dead_letter_topic().to_owned();
    let running = Running::start(consumer);
    until("three are dead", async || count_of(kafka, &dead_topic) == 3).await;
    running.stop().await;
    let attempts = |text: &str| {
        let seen = seen.all().into_iter().filter(|(payload, ..)| payload == text);
        seen.map(|(_, attempt, place)| (attempt, place.replace(&topic, ""))).collect::<Vec<_>>()
    };
    let three = [(1, String::new()), (2, "-retry-1".to_owned()), (3, "-retry-2".to_owned())];
    assert_eq!(attempts("fails"), three);
    assert_eq!(attempts("panics"), three);
    assert_eq!(attempts("once"), three[..2]);
    assert_eq!(attempts("invalid"), three[..1]);
    let order: Vec<String> = seen.all().into_iter().map(|(payload, ..)| payload).collect();
    let position = |text: &str| order.iter().position(|payload| payload == text).unwrap();
    let second = order.iter().enumerate().filter(|(_, payload)| *payload == "once").nth(1).unwrap().0;
    assert!(position("ok-2") < second, "a record waited for the retry of another: {order:?}");
    let dead = records_of(kafka, &dead_topic);
    let find = |text: &str| dead.iter().find(|record| record.payload == text).unwrap();
    let fails = find("fails");
    assert_eq!(fails.header("seawall-attempt"), Some("3"));
    assert_eq!(fails.header("seawall-reason"), Some("attempts"));
    assert_eq!(fails.header("seawall-origin"), Some(topic.as_str()));
    assert_eq!(fails.header("seawall-origin-position"), Some("partition=0 offset=1"));
    assert!(fails.header("seawall-cause").unwrap().contains("the database is away"));
    assert_eq!((fails.key.as_str(), fails.header("event-id")), ("fails", Some(sent[1].event_id())));
    assert_eq!(fails.header("seawall-due"), None);
    assert_eq!(find("invalid").header("seawall-reason"), Some("invalid"));
    assert!(find("panics").header("seawall-cause").unwrap().contains("a bug"));
}

/// CRD-7, ADP-5: dead letters are taken into a store with their evidence, an alert is raised, and they can be replayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_7_dead_letters_are_taken_over_with_an_alert() {
    let (kafka, topic) = (Kafka::shared(), topic("intake", 1).await);
    let sent = Message::new("OrderPaid", "order-7", "broken").with_topic(&topic);
    publish(kafka, std::slice::from_ref(&sent)).await;
    let handler = |_: Arc<Delivery>| async { Err::<(), _>(HandlerError::invalid("no order number")) };
    let consumer =
        KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler).build().unwrap();
    let running = Running::start(consumer);
    until("one is dead", async || count_of(kafka, &format!("{topic}-dlt")) == 1).await;
    running.stop().await;

    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let alerts = Arc::new(Mutex::new(Vec::new()));
    let (by, stop) = (alerts.clone(), Arc::new(tokio::sync::Notify::new()));
    let intake = KafkaDeadLetterConsumer::builder(&cluster_of(kafka), unique("dlt"), &topic, letters.clone());
    let intake = intake.alert(move |record| by.lock().unwrap().push(record.clone())).build().unwrap();
    let (stopped, seen) = (stop.clone(), alerts.clone());
    tokio::time::timeout(PATIENCE, async {
        let watch = until("an alert", async move || !seen.lock().unwrap().is_empty());
        let run = intake.run_until(async move { stopped.notified().await });
        let (result, ()) = tokio::join!(run, async {
            watch.await;
            stop.notify_one();
        });
        result.unwrap();
    })
    .await
    .expect("the intake did not stop");
    let record = alerts.lock().unwrap()[0].clone();
    assert_eq!(record.origin.place, topic);
    assert_eq!(record.origin.id, sent.event_id());
    assert_eq!((record.fault.reason.as_str(), record.attempts.len()), ("invalid", 1));
    assert!(letters.get(&record.id).await.unwrap().is_some());
}

/// ADP-5: a topic that does not exist is an error at the start, and nobody creates it.
#[tokio::test]
async fn adp_5_a_consumer_of_a_topic_that_does_not_exist_says_so() {
    let (kafka, topic) = (Kafka::shared(), unique("nothing"));
    let handler = |_: Arc<Delivery>| async { Ok::<(), HandlerError>(()) };
    let consumer = KafkaConsumer::builder(&cluster_of(kafka), "g", &topic, handler).build().unwrap();
    let error = consumer.run_until(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("does not exist") && !error.fault().is_transient(), "{error:?}");
    assert_eq!(super::support::partitions_of(kafka, &topic), []);
}

/// ADP-5: a consumer with wrong credentials ends with a refusal.
#[tokio::test]
async fn adp_5_a_consumer_with_wrong_credentials_is_refused() {
    let (kafka, topic) = (Kafka::shared(), topic("refused", 1).await);
    let builder = seawall_kafka::KafkaCluster::builder(kafka.authenticated_servers());
    let cluster = builder.sasl_plain("seawall", "open-sesame").build().unwrap();
    let handler = |_: Arc<Delivery>| async { Ok::<(), HandlerError>(()) };
    let consumer =
        KafkaConsumer::builder(&cluster, "g", &topic, handler).without_declaring_topics().build().unwrap();
    let run = tokio::time::timeout(PATIENCE, consumer.run_until(std::future::pending()));
    let error = run.await.expect("it went on without being let in").unwrap_err();
    assert!(!error.fault().is_transient() && !format!("{error} {error:?}").contains("sesame"), "{error:?}");
}

/// ADP-5, OBS-1: the lines of a record, in the form of the house.
#[tokio::test]
async fn adp_5_lines_of_records_have_their_place_and_trace() {
    let (kafka, topic) = (Kafka::shared(), topic("consumer-lines", 1).await);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let message = |text: &str| {
        Message::new("OrderCreated", "order-7", text).with_topic(&topic).with_header("traceparent", trace)
    };
    publish(kafka, &[message("good"), message("bad")]).await;
    let lines = Lines::collect();
    let seen = HandledRecords::default();
    let by = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        by.add(&delivery);
        let is_bad = delivery.message().payload() == b"bad";
        async move { if is_bad { Err(HandlerError::invalid("no number")) } else { Ok(()) } }
    };
    let consumer =
        KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler).build().unwrap();
    let running = Running::start(consumer);
    until("one is dead", async || count_of(kafka, &format!("{topic}-dlt")) == 1).await;
    running.stop().await;
    for beginning in [
        "INFO [Kafka-Consumer][OrderCreated] Received.",
        "INFO [Kafka-Consumer][OrderCreated] Processed success.",
        "ERROR [Kafka-Consumer][OrderCreated] Validation failed, sending to dead letters.",
    ] {
        let line = lines.find(beginning);
        for part in ["partition=\"0\"", "offset=", "traceId=\"4bf92f3577b34da6a3ce929d0e0e4736\"", "order-7"]
        {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
}

/// ADP-5: a stop lets what runs end, and gives back the rest: nothing is lost, nothing is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_stop_in_the_middle_neither_loses_nor_repeats() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("stops", 2).await, HandledRecords::default());
    publish(kafka, &messages(&topic, 400, 40)).await;
    let by = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        let seen = by.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            seen.add(&delivery);
            Ok::<(), HandlerError>(())
        }
    };
    let consumer = KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler);
    let consumer = consumer.concurrency(4).window(50).build().unwrap();
    for _ in 0..3 {
        let (running, before) = (Running::start(consumer.clone()), seen.len());
        until("some records are processed", async || seen.len() >= before + 30).await;
        running.stop().await;
    }
    let running = Running::start(consumer);
    until("all records are processed", async || seen.counts().len() == 400).await;
    running.stop().await;
    assert_eq!(seen.len(), 400, "a stop repeated records");
}

/// PRM-4: a run whose future is dropped ends what it does, commits what is done, and leaves the rest to the next run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_4_a_dropped_run_loses_nothing() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("dropped-run", 2).await, HandledRecords::default());
    publish(kafka, &messages(&topic, 300, 30)).await;
    let by = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        let seen = by.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            seen.add(&delivery);
            Ok::<(), HandlerError>(())
        }
    };
    let builder = KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler);
    let consumer = builder.concurrency(4).window(20).build().unwrap();
    for _ in 0..3 {
        let before = seen.len();
        let dropped = consumer.run_until(std::future::pending());
        tokio::select! {
            result = dropped => panic!("the run ended by itself: {result:?}"),
            () = until("some records are processed", async || seen.len() >= before + 30) => {}
        }
    }
    let running = Running::start(consumer);
    until("all records are processed", async || seen.counts().len() == 300).await;
    running.stop().await;
    let repeated = seen.len() - 300;
    assert!(repeated <= 3 * 2 * 20, "{repeated} records were repeated");
}
