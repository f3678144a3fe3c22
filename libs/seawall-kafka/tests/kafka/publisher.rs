//! ADP-5: the publisher.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use seawall::{Breaker, Guard, Retry};
use seawall_dist::outbox::{FallbackError, FallbackPublisher, MemoryOutbox, OutboxStore, PublishedBy};
use seawall_dist::{Message, Publisher};
use seawall_kafka::{KafkaCluster, KafkaPublisher};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::Kafka;

use super::support::{
    PATIENCE, cluster_of, count_of, create_topic, messages, partitions_of, publish_all, records_of, topic,
    unique,
};

/// A publisher with one attempt, so that its failures are seen as they are.
fn single_attempt(kafka: &Kafka, limit: Duration) -> KafkaPublisher {
    let builder = KafkaPublisher::builder(&cluster_of(kafka)).time_limit(limit);
    builder.guard(Guard::builder("kafka-test").no_retry()).build().unwrap()
}

/// ADP-5: every acknowledged message is in the topic once, under the key of its aggregate, in the order of the aggregate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_batch_is_acknowledged_and_the_server_has_each_message_once() {
    let (kafka, topic) = (Kafka::shared(), topic("batch", 3).await);
    let publisher = KafkaPublisher::builder(&cluster_of(kafka)).build().unwrap();
    let sent = messages(&topic, 2_000, 50);
    let results = publisher.publish(&sent).await;
    assert_eq!(results.len(), 2_000);
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    let stored = records_of(kafka, &topic);
    assert_eq!(stored.len(), 2_000);
    let payloads: BTreeSet<&str> = stored.iter().map(|record| record.payload.as_str()).collect();
    assert_eq!(payloads.len(), 2_000, "a message is there twice");
    let mut places: HashMap<&str, i32> = HashMap::new();
    let mut last: HashMap<&str, usize> = HashMap::new();
    for record in &stored {
        let place = *places.entry(&record.key).or_insert(record.partition);
        assert_eq!(place, record.partition, "an aggregate is in two partitions");
        let number: usize = record.payload.parse().unwrap();
        assert!(last.insert(&record.key, number).is_none_or(|before| before < number), "out of order");
    }
    assert_eq!(places.values().collect::<BTreeSet<_>>().len(), 3, "a partition is empty");
    let first = stored.iter().find(|record| record.payload == "0").unwrap();
    assert_eq!(first.header("event-id"), Some(sent[0].event_id()));
    assert_eq!(first.header("event-type"), Some("OrderPaid"));
}

/// ADP-5: a topic that does not exist is an error that no retry helps, and nobody creates it.
#[tokio::test]
async fn adp_5_a_topic_that_does_not_exist_is_an_error_and_is_not_created() {
    let (kafka, topic) = (Kafka::shared(), unique("absent"));
    let publisher = KafkaPublisher::builder(&cluster_of(kafka)).build().unwrap();
    let results = publisher.publish(&[Message::new("A", "1", "x").with_topic(&topic)]).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(!error.fault().is_transient(), "{error:?}");
    assert_eq!(partitions_of(kafka, &topic), [], "somebody created the topic");
    let none = publisher.publish(&[Message::new("A", "1", "x")]).await;
    assert!(none[0].as_ref().unwrap_err().to_string().contains("no topic"), "{none:?}");
}

/// ADP-5: a message that is too large is refused before it is sent, and others of the call are not.
#[tokio::test]
async fn adp_5_an_oversize_message_is_refused_and_its_neighbours_are_published() {
    let (kafka, topic) = (Kafka::shared(), topic("oversize", 1).await);
    let builder = KafkaPublisher::builder(&cluster_of(kafka)).topic(&topic);
    let publisher = builder.message_bytes_max(10_000).build().unwrap();
    let large = Message::new("A", "1", vec![b'x'; 20_000]);
    let results = publisher.publish(&[Message::new("A", "2", "a"), large, Message::new("A", "3", "b")]).await;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    let error = results[1].as_ref().unwrap_err();
    assert!(!error.fault().is_transient() && error.to_string().contains("limit is 10000"), "{error}");
    assert_eq!(count_of(kafka, &topic), 2);
    // The client lets it pass, and the server refuses it.
    let wide = KafkaPublisher::builder(&cluster_of(kafka)).topic(&topic).message_bytes_max(5_000_000);
    let refused = wide.build().unwrap().publish(&[Message::new("A", "1", vec![b'x'; 2_000_000])]).await;
    assert!(!refused[0].as_ref().unwrap_err().fault().is_transient(), "{refused:?}");
    assert_eq!(count_of(kafka, &topic), 2);
}

/// ADP-5: wrong credentials are a refusal that no retry helps, and the password is in no text. The right ones work.
#[tokio::test]
async fn adp_5_wrong_credentials_are_refused_without_showing_them() {
    let (kafka, topic) = (Kafka::shared(), topic("credentials", 1).await);
    let lines = Lines::collect();
    let publish = async |user: &str, password: &str| {
        let builder = KafkaCluster::builder(kafka.authenticated_servers()).sasl_plain(user, password);
        let cluster = builder.build().unwrap();
        let builder = KafkaPublisher::builder(&cluster).time_limit(Duration::from_secs(3));
        let publisher = builder.guard(Guard::builder("kafka-test").no_retry()).build().unwrap();
        let texts = format!("{cluster:?} {publisher:?}");
        (publisher.publish(&[Message::new("A", "1", "x").with_topic(&topic)]).await.remove(0), texts)
    };
    let (user, password) = kafka.credentials();
    let (mut result, _) = publish(user, password).await;
    for _ in 0..5 {
        // A busy machine may miss the time limit.
        if result.as_ref().is_err_and(|error| error.fault().is_transient()) {
            (result, _) = publish(user, password).await;
        }
    }
    assert!(result.is_ok(), "{result:?}");
    let before = count_of(kafka, &topic);
    let (result, texts) = publish(user, "open-sesame").await;
    let error = result.unwrap_err();
    assert!(!error.fault().is_transient(), "{error:?}");
    assert!(error.to_string().contains("refuses this client"), "{error}");
    let said = format!("{error} {error:?} {texts} {:?}", lines.take());
    assert!(!said.contains("open-sesame"), "{said}");
    assert_eq!(count_of(kafka, &topic), before);
}

/// ADP-5: while the server is down, messages go to the outbox; when it is back, the same publisher publishes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_with_the_server_down_messages_go_to_the_outbox_and_later_to_kafka() {
    let (kafka, topic) = (Kafka::start().unwrap(), unique("fallback"));
    create_topic(&kafka, &topic, 1).await;
    let breaker = Breaker::consecutive_failures(2).cooldown(Duration::from_secs(1));
    let guard = Guard::builder("kafkaPublisher").no_retry().breaker(breaker);
    let builder = KafkaPublisher::builder(&cluster_of(&kafka)).time_limit(Duration::from_secs(4));
    let publisher = Arc::new(builder.guard(guard).build().unwrap());
    let outbox = Arc::new(MemoryOutbox::new());
    let fallback = FallbackPublisher::new("Kafka-Publisher", publisher.clone(), outbox.clone());
    let fallback = fallback.timeout(Duration::from_secs(20));
    let message = |number: u32| Message::new("OrderPaid", "order-1", number.to_string()).with_topic(&topic);

    publish_all(&*publisher, &[message(0)]).await;
    assert_eq!(fallback.publish(&message(0)).await.unwrap(), PublishedBy::Broker);
    kafka.control().stop().unwrap();
    for number in 1..=4 {
        let by = fallback.publish(&message(number)).await.unwrap();
        assert_eq!(by, PublishedBy::Outbox, "message {number}");
    }
    assert!(publisher.guard().breaker().unwrap().counts().refused > 0, "the circuit did not open");
    let too_large = Message::new("OrderPaid", "order-1", vec![0; 2_000_000]).with_topic(&topic);
    assert!(matches!(fallback.publish(&too_large).await, Err(FallbackError::Refused(_))));
    kafka.control().start().unwrap();
    let published = async {
        while fallback.publish(&message(9)).await.unwrap() != PublishedBy::Broker {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, published).await.expect("the publisher never came back");
    let payloads: Vec<String> = records_of(&kafka, &topic).into_iter().map(|record| record.payload).collect();
    assert_eq!(payloads.first().map(String::as_str), Some("0"));
    assert!(payloads.iter().all(|payload| payload == "0" || payload == "9"), "{payloads:?}");
    assert!(outbox.stats().await.unwrap().depth >= 4);
}

/// ADP-5: a server that is paused costs the time limit and no more, and what is sent after it resumes arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_paused_server_is_a_timeout_and_the_publisher_recovers() {
    let (kafka, topic) = (Kafka::start().unwrap(), unique("paused"));
    create_topic(&kafka, &topic, 1).await;
    let publisher = single_attempt(&kafka, Duration::from_secs(3));
    let message = |text: &str| Message::new("A", "1", text).with_topic(&topic);
    publish_all(&publisher, &[message("before")]).await;
    kafka.control().pause().unwrap();
    let result = publisher.publish(&[message("during")]).await.remove(0);
    let fault = result.unwrap_err().fault();
    assert!(fault.is_transient(), "{fault:?}");
    kafka.control().resume().unwrap();
    publish_all(&publisher, &[message("again")]).await;
    let payloads: Vec<String> = records_of(&kafka, &topic).into_iter().map(|record| record.payload).collect();
    for text in ["before", "again"] {
        assert!(payloads.iter().any(|payload| payload == text), "{text} is not in {payloads:?}");
    }
}

/// ADP-5: a queue that is full makes a call wait, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_5_a_full_queue_makes_the_call_wait() {
    let (kafka, topic) = (Kafka::shared(), topic("queue", 2).await);
    let cluster =
        KafkaCluster::builder(kafka.bootstrap_servers()).setting("queue.buffering.max.messages", "50");
    let builder = KafkaPublisher::builder(&cluster.build().unwrap());
    let publisher =
        builder.guard(Guard::builder("kafka-test").retry(Retry::max_attempts(3))).build().unwrap();
    let results = publisher.publish(&messages(&topic, 1_000, 10)).await;
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    assert_eq!(count_of(kafka, &topic), 1_000);
}

/// PRM-4: a call that is dropped at any await leaks no permit of the guard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_4_a_dropped_call_leaks_nothing() {
    let (kafka, topic) = (Kafka::shared(), topic("dropped", 1).await);
    let publisher = KafkaPublisher::builder(&cluster_of(kafka)).topic(&topic).build().unwrap();
    let sent = messages(&topic, 3, 3);
    for polls in 0..6 {
        let mut call = publisher.publish(&sent);
        let mut ended = false;
        for _ in 0..polls {
            ended = ended || tokio::time::timeout(Duration::from_micros(300), &mut call).await.is_ok();
            if ended {
                break;
            }
        }
        drop(call);
        assert_eq!(publisher.guard().bulkhead().unwrap().inside(), 0, "after {polls} polls");
    }
    assert!(publisher.publish(&sent).await.iter().all(Result::is_ok));
}

/// ADP-5, OBS-1: the lines of a publication.
#[tokio::test]
async fn adp_5_lines_name_the_event_its_place_and_its_trace() {
    let (kafka, topic) = (Kafka::shared(), topic("lines", 1).await);
    let lines = Lines::collect();
    let publisher = KafkaPublisher::builder(&cluster_of(kafka)).build().unwrap();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let message = Message::new("OrderCreated", "order-7", "x").with_topic(&topic);
    assert!(publisher.publish(&[message.with_header("traceparent", trace)]).await[0].is_ok());
    let line = lines.find("INFO [Kafka-Publisher][OrderCreated] Success.");
    let trace = "traceId=\"4bf92f3577b34da6a3ce929d0e0e4736\"";
    for part in ["aggregateId=\"order-7\"", "partition=0", "offset=0", trace, "duration="] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}
