use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use seawall::Fault;
use seawall_dist::idempotency::{Idempotency, Inbox, MemoryIdempotency};
use seawall_dist::messaging::{Delivery, HandlerError, MessageProcessor};
use seawall_nats::{NatsConnection, NatsConsumer};
use seawall_testkit::servers::Nats;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::support::{
    HandledMessages, Running, backlog, bare, connect, letters, processor, publish, stream, unique, until,
};

fn remembering(
    seen: &HandledMessages,
) -> impl Fn(Arc<Delivery>) -> std::future::Ready<Result<(), HandlerError>> + use<> {
    let seen = seen.clone();
    move |delivery| {
        seen.add(&delivery);
        std::future::ready(Ok(()))
    }
}

/// ADP-6: each message is processed once and acknowledged, and the server's own count agrees.
#[tokio::test(flavor = "multi_thread")]
async fn adp_6_messages_are_processed_once_and_acknowledged() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("HAPPY"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=1_000).await;
    for confirmed in [false, true] {
        let consumer_name = unique("billing");
        let processor = processor(3, remembering(&seen));
        let mut builder = NatsConsumer::builder(connect(Nats::shared()), &name, &consumer_name, processor);
        if confirmed {
            builder = builder.confirm_acks();
        }
        let before = seen.len();
        let running = Running::consumer(&builder.build().unwrap());
        until("all are processed", || async { seen.len() == before + 1_000 }).await;
        until("all are acknowledged", || async { backlog(&context, &name, &consumer_name).await == (0, 0) })
            .await;
        running.stop().await.unwrap();
        assert_eq!((seen.len(), seen.distinct()), (before + 1_000, 1_000));
    }
    assert!(seen.all().iter().all(|(_, attempt)| *attempt == 1));
}

/// ADP-6: a failed attempt is made again with the next number after its delay, and the message is acknowledged in the end.
#[tokio::test]
async fn adp_6_a_failed_message_is_delivered_again_until_it_succeeds() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("AGAIN"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=3).await;
    let handler = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let fails = delivery.message().payload() == b"2" && delivery.attempt() < 3;
            async move { if fails { Err(anyhow::anyhow!("the database is away")) } else { Ok(()) } }
        }
    };
    // The server would deliver by itself after 30 s only: what comes earlier comes by the delay.
    let consumer =
        NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(5, handler)).build();
    let running = Running::consumer(&consumer.unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let mut attempts: Vec<(String, u32)> = seen.all();
    attempts.sort();
    let expected = [("1", 1), ("2", 1), ("2", 2), ("2", 3), ("3", 1)];
    assert_eq!(attempts, expected.map(|(text, attempt)| (text.to_owned(), attempt)));
    assert!(letters(&context, &name).await.is_empty());
}

/// ADP-6: a handler that takes much longer than the server waits is not doubled, also while it waits for its turn.
#[tokio::test]
async fn adp_6_the_server_knows_that_a_slow_handler_works() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("SLOW"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=4).await;
    let handler = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            async {
                tokio::time::sleep(Duration::from_millis(900)).await;
                Ok::<_, HandlerError>(())
            }
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler))
        .ack_wait(Duration::from_millis(400))
        .concurrency(1)
        .build()
        .unwrap();
    let running = Running::consumer(&consumer);
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!(seen.all(), ["1", "2", "3", "4"].map(|text| (text.to_owned(), 1)));
}

/// ADP-6, CRD-4: a message that an open circuit refused waits here, and no attempt is counted.
#[tokio::test]
async fn adp_6_a_released_message_loses_no_attempt() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("RELEASED"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, [7]).await;
    let handler = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let refused = seen.len() < 6;
            async move { if refused { Err(HandlerError::with_fault(Fault::rejected(), "open")) } else { Ok(()) } }
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(2, handler))
        .build()
        .unwrap();
    let running = Running::consumer(&consumer);
    until("it is acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!(seen.all(), vec![("7".to_owned(), 1); 6]);
}

/// CRD-4: an inbox recognises what was processed, also when the server delivers it again.
#[tokio::test]
async fn crd_4_an_inbox_recognises_what_was_processed() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("INBOX"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=20).await;
    let inbox = Inbox::new("billing", Idempotency::new(Arc::new(MemoryIdempotency::new()))).unwrap();
    for consumer in ["first", "second"] {
        let processor = MessageProcessor::builder("NATS-Consumer", "nats", remembering(&seen))
            .inbox(inbox.clone())
            .build()
            .unwrap();
        let running = Running::consumer(
            &NatsConsumer::builder(connect(Nats::shared()), &name, consumer, processor).build().unwrap(),
        );
        until("all are acknowledged", || async { backlog(&context, &name, consumer).await == (0, 0) }).await;
        running.stop().await.unwrap();
    }
    assert_eq!((seen.len(), seen.distinct()), (20, 20));
}

/// ADP-6: a stop lets running handlers end, gives back what waits, and another process has it at once.
#[tokio::test]
async fn adp_6_a_stop_finishes_what_runs_and_gives_back_the_rest() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("STOP"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=10).await;
    let gate = Arc::new(Semaphore::new(0));
    let handler = {
        let (seen, gate) = (seen.clone(), gate.clone());
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let gate = gate.clone();
            async move { gate.acquire().await.map(SemaphorePermit::forget).map_err(HandlerError::from) }
        }
    };
    let build = |handlers| {
        let processor = processor(3, handler.clone());
        let builder = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor);
        builder.concurrency(handlers).prefetch(10).build().unwrap()
    };
    let first = build(2);
    let running = Running::consumer(&first);
    until("all are in hand", || async { first.messages_in_hand() == 10 && seen.len() == 2 }).await;
    let stopping = tokio::join!(running.stop(), async {
        // The handlers end only after the stop has begun.
        until("the rest is given back", || async { first.messages_in_hand() == 2 }).await;
        gate.add_permits(100);
    });
    stopping.0.unwrap();
    assert_eq!(seen.len(), 2, "no handler began after the stop");
    let running = Running::consumer(&build(2));
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!((seen.len(), seen.distinct()), (10, 10));
}

/// ADP-6: with `in_order` a message that fails is attempted again before its successor.
#[tokio::test]
async fn adp_6_messages_come_in_order_where_that_is_asked_for() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("ORDER"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=20).await;
    let handler = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let fails = delivery.attempt() == 1 && delivery.message().payload().len() == 1;
            async move { if fails { Err("first attempts fail") } else { Ok(()) } }
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let running = Running::consumer(&consumer.in_order().build().unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let expected: Vec<(String, u32)> = (1..=20)
        .flat_map(|number: u32| {
            let attempts = if number < 10 { 2 } else { 1 };
            (1..=attempts).map(move |attempt| (number.to_string(), attempt))
        })
        .collect();
    assert_eq!(seen.all(), expected);
}

/// ADP-6: a consumer that is there is updated where that is safe, and a clear error where it is not.
#[tokio::test]
async fn adp_6_a_consumer_with_other_settings_is_updated_or_refused() {
    let (context, name) = (bare(Nats::shared()).await, unique("SETTINGS"));
    let found = stream(&context, &name).await;
    let builder = |consumer: &str| {
        let processor = processor(4, |_: Arc<Delivery>| async { Ok::<_, HandlerError>(()) });
        NatsConsumer::builder(connect(Nats::shared()), &name, consumer, processor)
    };
    builder("a").build().unwrap().declare().await.unwrap();
    builder("a")
        .ack_wait(Duration::from_secs(7))
        .ack_pending_max(99)
        .build()
        .unwrap()
        .declare()
        .await
        .unwrap();
    let config = found.consumer_info("a").await.unwrap().config;
    assert_eq!(
        (config.ack_wait, config.max_ack_pending, config.max_deliver),
        (Duration::from_secs(7), 99, 4)
    );
    let waits = [Duration::from_secs(1), Duration::from_secs(5)];
    builder("a").redelivery_waits(waits).build().unwrap().declare().await.unwrap();
    assert_eq!(found.consumer_info("a").await.unwrap().config.backoff, waits);
    let subject = format!("{name}.other");
    let error = builder("a").filter_subject(&subject).build().unwrap().declare().await.unwrap_err();
    assert!(error.to_string().contains(&subject) && !error.fault().is_transient(), "{error}");
    let unacknowledged =
        pull::Config { durable_name: Some("b".into()), ack_policy: AckPolicy::None, ..Default::default() };
    found.create_consumer(unacknowledged).await.unwrap();
    let error = builder("b").build().unwrap().run_until(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("ack_policy None"), "{error}");
}

/// ADP-6: what no further attempt helps ends the consumer with an error at once.
#[tokio::test]
async fn adp_6_a_missing_stream_and_wrong_credentials_end_the_consumer() {
    let processor = || processor(4, |_: Arc<Delivery>| async { Ok::<_, HandlerError>(()) });
    let absent = NatsConsumer::builder(connect(Nats::shared()), unique("ABSENT"), "a", processor());
    let error = absent.build().unwrap().run_until(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("ABSENT") && !error.fault().is_transient(), "{error}");
    let created = NatsConsumer::builder(connect(Nats::shared()), unique("CREATED"), "a", processor());
    created.create_stream([unique("created.subject")]).build().unwrap().declare().await.unwrap();
    let nats = Nats::builder().user("orders", "s3cr3t").start().unwrap();
    let wrong = NatsConnection::new(&nats.url_as("orders", "wr0ng")).unwrap();
    let refused = NatsConsumer::builder(wrong, "ORDERS", "a", processor()).build().unwrap();
    let error = refused.run_until(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("authorization violation"), "{error}");
}

/// ADP-6: a consumer that an operator deleted is not declared anew in silence, which would process all messages again.
#[tokio::test]
async fn adp_6_a_deleted_consumer_ends_with_an_error() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("DELETED"), HandledMessages::default());
    let found = stream(&context, &name).await;
    publish(&context, &name, 1..=3).await;
    let consumer =
        NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, remembering(&seen)));
    let mut running = Running::consumer(&consumer.build().unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    found.delete_consumer("billing").await.unwrap();
    let error = running.end().await.unwrap_err();
    assert!(error.to_string().contains("deleted"), "{error}");
    assert_eq!(seen.len(), 3);
}

/// PRM-4: a consumer that is dropped while it works leaves its messages to their next delivery.
#[tokio::test]
async fn prm_4_a_dropped_consumer_leaves_its_messages_to_others() {
    let (context, name) = (bare(Nats::shared()).await, unique("DROPPED"));
    stream(&context, &name).await;
    publish(&context, &name, 1..=5).await;
    let (begun, seen) = (Arc::new(AtomicU32::new(0)), HandledMessages::default());
    let stuck = {
        let begun = begun.clone();
        move |_: Arc<Delivery>| {
            begun.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<(), HandlerError>>()
        }
    };
    let wait = Duration::from_millis(400);
    let first = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(9, stuck));
    let first = first.ack_wait(wait).build().unwrap();
    {
        let run = std::pin::pin!(first.run_until(std::future::pending()));
        let dropped =
            async { until("all have begun", || async { begun.load(Ordering::Relaxed) == 5 }).await };
        tokio::select! {
            _ = run => panic!("it runs for ever"),
            () = dropped => {}
        }
    }
    until("nothing is held", || async { first.messages_in_hand() == 0 }).await;
    let second =
        NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(9, remembering(&seen)));
    let running = Running::consumer(&second.ack_wait(wait).build().unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!(seen.distinct(), 5);
}

/// ADP-6: invalid settings are named all at once.
#[tokio::test]
async fn adp_6_invalid_settings_are_refused_all_at_once() {
    let processor = processor(1, |_: Arc<Delivery>| async { Ok::<_, HandlerError>(()) });
    let connection = NatsConnection::new("nats://127.0.0.1:1").unwrap();
    let error = NatsConsumer::builder(connection, "a.b", "", processor)
        .concurrency(9)
        .prefetch(2)
        .ack_pending_max(1)
        .ack_wait(Duration::from_millis(1))
        .redelivery_waits([Duration::from_secs(1), Duration::from_millis(2)])
        .build()
        .unwrap_err()
        .to_string();
    for setting in ["stream", "name", "prefetch", "ack_pending_max", "ack_wait", "redelivery_waits"] {
        assert!(error.contains(setting), "{setting} is missing: {error}");
    }
}
