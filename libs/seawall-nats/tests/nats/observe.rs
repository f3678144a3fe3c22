use std::sync::Arc;
use std::time::Duration;

use seawall_dist::deadletter::{DeadLetters, MemoryDeadLetters};
use seawall_dist::messaging::{DeadLetterIntake, Delivery, HandlerError};
use seawall_dist::{Message, Publisher};
use seawall_nats::{NatsConnection, NatsConsumer, NatsDeadLetterReader, NatsPublisher};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::Nats;

use crate::support::{Running, backlog, bare, connect, order, processor, stream, unique, until};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "traceId=4bf92f3577b34da6a3ce929d0e0e4736";

/// A line without the quotes around its values.
fn plain(line: &str) -> String {
    line.replace('"', "")
}

/// OBS-1, ADP-6: the lines of a publisher, a consumer and the dead letters, with trace, event and position from the message.
#[tokio::test]
async fn obs_1_lines_tell_what_became_of_each_message() {
    let lines = Lines::collect();
    let (context, name) = (bare(Nats::shared()).await, unique("LINES"));
    stream(&context, &name).await;
    let publisher = NatsPublisher::new(connect(Nats::shared())).unwrap();
    let messages: Vec<Message> =
        (1..=3).map(|number| order(&name, number).with_header("traceparent", TRACE)).collect();
    assert!(publisher.publish(&messages).await.iter().all(Result::is_ok));
    let sent = plain(&lines.find("INFO [NATS-Publisher][OrderCreated] Success."));
    for part in [TRACE_ID, "aggregateId=order-1", &format!("topic={name}.created"), "offset=1", "duration="] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }
    let handler = |delivery: Arc<Delivery>| async move {
        match (delivery.message().payload(), delivery.attempt()) {
            (b"1", _) => Ok(()),
            (b"2", 1) => Err(HandlerError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset))),
            (b"2", _) => Ok(()),
            _ => Err(HandlerError::invalid("order number is missing")),
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let running = Running::consumer(&consumer.build().unwrap());
    let intake =
        DeadLetterIntake::new("nats", "NATS-DLQ", DeadLetters::new(Arc::new(MemoryDeadLetters::new())));
    let reading =
        Running::reader(&NatsDeadLetterReader::new(connect(Nats::shared()), &name, intake).unwrap());
    let taken = "ERROR [NATS-DLQ][OrderCreated] Sent to DLQ!";
    until("all is done with", || async {
        backlog(&context, &name, "billing").await == (0, 0) && !lines.of(taken).is_empty()
    })
    .await;
    running.stop().await.unwrap();
    reading.stop().await.unwrap();
    for (beginning, parts) in [
        ("INFO [NATS-Consumer][Subscribe] Success.", vec!["consumer=billing"]),
        ("INFO [NATS-Consumer][OrderCreated] Received.", vec![TRACE_ID, "sequence=1", "attempt=1"]),
        (
            "INFO [NATS-Consumer][OrderCreated] Processed success.",
            vec![TRACE_ID, "aggregateId=order-1", "duration="],
        ),
        ("WARN [NATS-Consumer][OrderCreated] I/O error, will retry.", vec!["sequence=2", "action=Retry"]),
        (
            "ERROR [NATS-Consumer][OrderCreated] Validation failed, sending to dead letters.",
            vec!["sequence=3", "cause=order number is missing"],
        ),
        ("ERROR [NATS-Consumer][DeadLetter] Stored.", vec!["sequence=3", "action=ManualReview"]),
        (taken, vec![TRACE_ID, "aggregateId=order-3", "order number is missing", "action=ManualReview"]),
        ("INFO [NATS-Consumer][Stop] Success.", vec!["consumer=billing"]),
    ] {
        let line = plain(&lines.find(beginning));
        for part in parts {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
}

/// OBS-1: lines about a server that is away, or refuses credentials, say so once per attempt and never show a password.
#[tokio::test]
async fn obs_1_lines_about_a_server_that_is_away_have_no_password() {
    let lines = Lines::collect();
    let nats = Nats::builder().user("orders", "s3cr3t").start().unwrap();
    let wrong = NatsConnection::new(&nats.url_as("orders", "wr0ng")).unwrap();
    assert!(wrong.jetstream().await.is_err());
    until("the line", || async {
        !lines.of("ERROR [NATS-Connection][Connect] Credentials refused!").is_empty()
    })
    .await;
    let connection =
        NatsConnection::builder(&nats.url()).ping_interval(Duration::from_millis(200)).build().unwrap();
    connection.jetstream().await.unwrap();
    nats.control().kill().unwrap();
    until("the line", || async { !lines.of("WARN [NATS-Connection][Connect] Connection lost").is_empty() })
        .await;
    let publisher = NatsPublisher::builder(connection).subject("orders.created").build().unwrap();
    let failed = publisher.publish(&[Message::new("OrderCreated", "order-1", "{}")]).await.remove(0);
    assert!(failed.is_err());
    let line = plain(&lines.find("WARN [NATS-Publisher][OrderCreated] Publish failed, will retry."));
    assert!(line.contains("aggregateId=order-1"), "{line}");
    let all = lines.take().join("\n");
    assert!(!all.contains("s3cr3t") && !all.contains("wr0ng"), "{all}");
}
