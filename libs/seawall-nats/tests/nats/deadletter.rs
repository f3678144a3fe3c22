use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{AckKind, Context};
use seawall_dist::deadletter::{
    DeadLetters, Filter, MemoryDeadLetters, ReplayOutcome, ReplayRequest, Status,
};
use seawall_dist::messaging::{DeadLetterIntake, Delivery, HandlerError, PublisherReplayer};
use seawall_nats::{NatsAdvisoryCollector, NatsConsumer, NatsDeadLetterReader, NatsPublisher};
use seawall_testkit::servers::Nats;

use crate::support::{
    HandledMessages, Running, backlog, bare, connect, count, header, letters, order, processor, publish,
    stream, unique, until,
};

/// Fails on even numbers, in the way that the test chose.
fn poisoned(
    seen: &HandledMessages,
    fail: fn() -> HandlerError,
) -> impl Fn(Arc<Delivery>) -> std::future::Ready<Result<(), HandlerError>> + use<> {
    let seen = seen.clone();
    move |delivery| {
        seen.add(&delivery);
        let text = String::from_utf8_lossy(delivery.message().payload()).into_owned();
        let is_even = text.parse::<u32>().unwrap() % 2 == 0;
        std::future::ready(if is_even { Err(fail()) } else { Ok(()) })
    }
}

async fn advisories(context: &Context, stream: &str) -> u64 {
    count(context, &format!("{stream}-advisories")).await
}

/// ADP-6, CRD-7: a message whose attempts all failed is in the dead letters once, with its evidence, and is done with.
#[tokio::test]
async fn adp_6_a_message_that_always_fails_is_one_letter_with_its_evidence() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("POISON"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=6).await;
    let handler = poisoned(&seen, || HandlerError::from(std::io::Error::other("the printer is on fire")));
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let running = Running::consumer(&consumer.build().unwrap());
    until("all are done with", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    // Each termination is an advisory too, and must not become a second letter.
    until("three letters", || async { letters(&context, &name).await.len() == 3 }).await;
    until("no advisory waits", || async { advisories(&context, &name).await == 0 }).await;
    running.stop().await.unwrap();
    let letters = letters(&context, &name).await;
    assert_eq!(letters.len(), 3, "exactly one each");
    assert_eq!(seen.len(), 3 + 3 * 3);
    let letter = letters.iter().find(|letter| &*letter.payload == b"4").unwrap();
    let original = order(&name, 4);
    assert_eq!(letter.subject.as_str(), format!("dlq.{name}.billing"));
    let expected = [
        ("seawall-reason", "attempts"),
        ("seawall-attempt", "3"),
        ("seawall-cause", "the printer is on fire"),
        ("seawall-origin", &format!("{name}.created")),
        ("seawall-origin-position", &format!("stream={name} consumer=billing sequence=4")),
        ("event-id", original.event_id()),
        ("event-type", "OrderCreated"),
        ("aggregate-id", "order-4"),
    ];
    for (key, value) in expected {
        assert_eq!(header(letter, key), value, "{key}: {:?}", letter.headers);
    }
    for attempt in 1..=3 {
        let failure = header(letter, &format!("seawall-failure-{attempt}"));
        assert!(failure.ends_with("the printer is on fire"), "{attempt}: {failure}");
    }
}

/// ADP-6: an invalid message is given up at the first attempt, a panic at the last.
#[tokio::test]
async fn adp_6_invalid_messages_and_panics_are_given_up() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("INVALID"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, [1, 2]).await;
    let handler = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            async move {
                assert!(delivery.message().payload() != b"1", "number one");
                Err::<(), _>(HandlerError::invalid("no such customer"))
            }
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(2, handler));
    let running = Running::consumer(&consumer.build().unwrap());
    until("two letters", || async { letters(&context, &name).await.len() == 2 }).await;
    until("both are done with", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let letters = letters(&context, &name).await;
    let of = |payload: &[u8]| letters.iter().find(|letter| &*letter.payload == payload).unwrap();
    assert_eq!(
        (header(of(b"2"), "seawall-reason"), header(of(b"2"), "seawall-attempt")),
        ("invalid".into(), "1".into())
    );
    assert_eq!(header(of(b"1"), "seawall-reason"), "attempts");
    assert!(header(of(b"1"), "seawall-cause").contains("number one"), "{:?}", of(b"1").headers);
}

/// ADP-6, CRD-7: while the dead letters are full the message stays, and is given up when there is room.
#[tokio::test]
async fn adp_6_a_message_stays_while_its_letter_can_not_be_stored() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("FULL"), HandledMessages::default());
    stream(&context, &name).await;
    let full = Config {
        name: format!("{name}-dlq"),
        subjects: vec![format!("dlq.{name}.*")],
        discard: DiscardPolicy::New,
        max_messages: 1,
        duplicate_window: Duration::from_secs(600),
        ..Config::default()
    };
    let dlq = context.create_stream(full.clone()).await.unwrap();
    publish(&context, &name, [2, 4]).await;
    let handler = poisoned(&seen, || HandlerError::invalid("no"));
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let consumer = consumer.ack_wait(Duration::from_millis(500)).concurrency(1).build().unwrap();
    let running = Running::consumer(&consumer);
    until("one letter", || async { letters(&context, &name).await.len() == 1 && seen.len() == 2 }).await;
    // Longer than the server waits for an acknowledgement: the message stays in hand all the time.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(backlog(&context, &name, "billing").await, (0, 1), "the second message is not acknowledged");
    assert_eq!(consumer.messages_in_hand(), 1);
    context.update_stream(Config { max_messages: 10, ..full }).await.unwrap();
    until("the second letter", || async { letters(&context, &name).await.len() == 2 }).await;
    until("nothing is left", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!(seen.all(), [("2".to_owned(), 1), ("4".to_owned(), 1)]);
    drop(dlq);
}

/// ADP-6: evidence that does not fit beside a large payload is cut, and the letter is stored.
#[tokio::test]
async fn adp_6_a_letter_of_a_message_of_the_largest_size_is_stored() {
    let (context, name) = (bare(Nats::shared()).await, unique("LARGE"));
    stream(&context, &name).await;
    let payload = vec![b'x'; (1 << 20) - 500];
    context.publish(format!("{name}.created"), payload.clone().into()).await.unwrap().await.unwrap();
    let handler = |_: Arc<Delivery>| async { Err::<(), _>("a long story ".repeat(80)) };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let running = Running::consumer(&consumer.build().unwrap());
    until("it is done with", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let letters = letters(&context, &name).await;
    assert_eq!((letters.len(), letters[0].payload.len()), (1, payload.len()));
    assert_eq!(header(&letters[0], "seawall-reason"), "attempts");
    assert_eq!(header(&letters[0], "seawall-failure-1"), "");
}

/// A consumer of the client library itself, on a stream whose dead letter place was declared.
async fn foreign_consumer(context: &Context, name: &str, retention: RetentionPolicy) -> PullConsumer {
    let config =
        Config { name: name.to_owned(), subjects: vec![format!("{name}.>")], retention, ..Config::default() };
    let found = context.create_stream(config).await.unwrap();
    let collector = NatsAdvisoryCollector::new(connect(Nats::shared()), name).unwrap();
    let running = Running::collector(&collector);
    until("it is declared", || async {
        backlog(context, &format!("{name}-advisories"), "seawall-collector").await == (0, 0)
    })
    .await;
    running.stop().await.unwrap();
    let config = pull::Config {
        durable_name: Some("foreign".into()),
        max_deliver: 2,
        ack_wait: Duration::from_millis(200),
        ..Default::default()
    };
    found.create_consumer(config).await.unwrap()
}

async fn fetch(consumer: &PullConsumer) -> Option<async_nats::jetstream::Message> {
    let batch = consumer.batch().max_messages(1).expires(Duration::from_millis(300));
    let mut batch = batch.messages().await.unwrap();
    let next = std::future::poll_fn(|cx| futures_core::Stream::poll_next(std::pin::Pin::new(&mut batch), cx));
    next.await.map(Result::unwrap)
}

/// ADP-6: what JetStream gave up while nobody listened is a letter when the collector runs, once, with the reason.
#[tokio::test]
async fn adp_6_advisories_become_letters_also_if_nobody_listened() {
    let (context, name) = (bare(Nats::shared()).await, unique("ADVISORY"));
    let consumer = foreign_consumer(&context, &name, RetentionPolicy::WorkQueue).await;
    publish(&context, &name, [1]).await;
    // Two deliveries without an acknowledgement; the third request finds that there is none left.
    let deliveries = AtomicU32::new(0);
    until("the server gives up", || async {
        deliveries.fetch_add(u32::from(fetch(&consumer).await.is_some()), Ordering::Relaxed);
        advisories(&context, &name).await == 1
    })
    .await;
    assert_eq!(deliveries.into_inner(), 2);
    publish(&context, &name, [2]).await;
    let message = fetch(&consumer).await.unwrap();
    message.ack_with(AckKind::Term).await.unwrap();
    until("two advisories", || async { advisories(&context, &name).await == 2 }).await;
    assert!(letters(&context, &name).await.is_empty(), "nobody listens");
    let collector = NatsAdvisoryCollector::new(connect(Nats::shared()), &name).unwrap();
    let running = Running::collector(&collector);
    until("no advisory waits", || async { advisories(&context, &name).await == 0 }).await;
    running.stop().await.unwrap();
    let letters = letters(&context, &name).await;
    assert_eq!(letters.len(), 2);
    let (died, ended) = (&letters[0], &letters[1]);
    assert_eq!(
        (header(died, "seawall-reason"), header(died, "seawall-attempt")),
        ("crashes".into(), "2".into())
    );
    assert_eq!((&*died.payload, died.subject.as_str()), (&b"1"[..], &*format!("dlq.{name}.foreign")));
    assert_eq!(header(died, "seawall-origin"), format!("{name}.created"));
    // A work queue removes a message that is terminated, so that its payload is gone before anybody can look.
    assert_eq!((header(ended, "seawall-reason"), ended.payload.len()), ("invalid".into(), 0));
    assert_eq!(
        header(ended, "seawall-origin-position"),
        format!("stream={name} consumer=foreign sequence=2")
    );
    assert_eq!(count(&context, &name).await, 0, "a work queue does not keep what nobody gets any more");
}

/// ADP-6, CRD-7: letters are read through the dead letter trait, raise an alert, and a replay is processed although the stream
/// still recognises the event id.
#[tokio::test]
async fn adp_6_letters_are_taken_over_and_replayed() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("REPLAY"), HandledMessages::default());
    stream(&context, &name).await;
    let publisher = NatsPublisher::new(connect(Nats::shared())).unwrap();
    let messages = [order(&name, 1).with_header("traceparent", TRACE), order(&name, 2)];
    assert!(seawall_dist::Publisher::publish(&publisher, &messages).await.iter().all(Result::is_ok));
    let is_mended = Arc::new(AtomicBool::new(false));
    let handler = {
        let (seen, is_mended) = (seen.clone(), is_mended.clone());
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let fails = delivery.message().payload() == b"1" && !is_mended.load(Ordering::Relaxed);
            async move { if fails { Err(HandlerError::invalid("no stock")) } else { Ok(()) } }
        }
    };
    let alerts = Arc::new(AtomicU32::new(0));
    let dead = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let intake = {
        let alerts = alerts.clone();
        DeadLetterIntake::new("nats", "NATS-DLQ", dead.clone()).alert(move |_| {
            alerts.fetch_add(1, Ordering::Relaxed);
        })
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let running = Running::consumer(&consumer.build().unwrap());
    let reading =
        Running::reader(&NatsDeadLetterReader::new(connect(Nats::shared()), &name, intake).unwrap());
    until("the letter is taken over", || async { alerts.load(Ordering::Relaxed) == 1 }).await;
    let page = dead.list(&Filter::default(), None, 10).await.unwrap();
    assert_eq!(page.letters.len(), 1);
    let record = &page.letters[0].record;
    assert_eq!((&*record.origin.kind, &*record.origin.place), ("nats", &*format!("{name}.created")));
    assert_eq!((&*record.origin.id, &*record.payload), (messages[0].event_id(), &b"1"[..]));
    assert_eq!((&*record.fault.reason, record.fault.message.as_deref()), ("invalid", Some("no stock")));
    assert_eq!((record.attempts.len(), record.trace.as_deref()), (1, Some(&TRACE[3..35])));
    // The reader has acknowledged the letter, which stays in its stream.
    until("it is acknowledged", || async {
        backlog(&context, &format!("{name}-dlq"), "seawall-intake").await == (0, 0)
    })
    .await;
    is_mended.store(true, Ordering::Relaxed);
    let replayer = PublisherReplayer::new(Arc::new(publisher));
    let outcome = dead.replay(&record.id, &ReplayRequest::new("click-1"), &replayer).await.unwrap();
    assert!(matches!(outcome, ReplayOutcome::Replayed { generation: 1, .. }), "{outcome:?}");
    until("the replay is processed", || async { seen.len() == 3 }).await;
    assert_eq!(count(&context, &name).await, 3, "the stream has the replay as a message of its own");
    let replayed = context.get_stream(&name).await.unwrap().get_raw_message(3).await.unwrap();
    assert_eq!(header(&replayed, "event-id"), messages[0].event_id());
    assert_eq!(header(&replayed, "seawall-reason"), "", "without its evidence");
    until("all is done with", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    reading.stop().await.unwrap();
    assert_eq!(dead.get(&record.id).await.unwrap().unwrap().status, Status::Replayed);
    assert_eq!(alerts.load(Ordering::Relaxed), 1);
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
