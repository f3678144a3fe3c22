use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use seawall::fault::{Class, Ran};
use seawall_dist::outbox::{FallbackPublisher, MemoryOutbox, OutboxStore, PublishedBy};
use seawall_dist::{Message, Publisher};
use seawall_nats::publisher::default_guard;
use seawall_nats::{NatsConnection, NatsPublisher};
use seawall_testkit::servers::Nats;

use crate::support::{bare, connect, count, order, poll_at_most, stream, unique, until};

fn publisher(nats: &Nats) -> NatsPublisher {
    NatsPublisher::builder(connect(nats)).ack_timeout(Duration::from_secs(5)).build().unwrap()
}

/// ADP-6: a batch is stored once, in its order, with its headers, and the counts on both sides agree.
#[tokio::test]
async fn adp_6_a_batch_is_stored_when_its_results_are_ok() {
    let (context, name) = (bare(Nats::shared()).await, unique("BATCH"));
    let stored = stream(&context, &name).await;
    let messages: Vec<Message> = (1..=500).map(|number| order(&name, number)).collect();
    let publisher = publisher(Nats::shared());
    let results = publisher.publish(&messages).await;
    assert!(results.len() == 500 && results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(count(&context, &name).await, 500);
    let first = stored.get_raw_message(1).await.unwrap();
    assert_eq!((&*first.payload, first.subject.as_str()), (&b"1"[..], messages[0].topic()));
    assert_eq!(first.headers.get("Nats-Msg-Id").unwrap().as_str(), messages[0].event_id());
    assert_eq!(first.headers.get("event-type").unwrap().as_str(), "OrderCreated");
    // Published again they are recognised.
    assert!(publisher.publish(&messages).await.iter().all(Result::is_ok));
    assert_eq!(count(&context, &name).await, 500, "the server recognises event ids");
}

/// ADP-6: each message has its own result: one that no attempt helps does not fail its neighbours.
#[tokio::test]
async fn adp_6_one_refused_message_does_not_fail_its_batch() {
    let (context, name) = (bare(Nats::shared()).await, unique("MIXED"));
    stream(&context, &name).await;
    let large = vec![b'x'; 2 << 20];
    let messages = [
        order(&name, 1),
        Message::new("OrderCreated", "order-2", large).with_topic(format!("{name}.created")),
        Message::new("OrderCreated", "order-3", "").with_topic("nobody.has.this.subject"),
        Message::new("OrderCreated", "order-4", "").with_topic(format!("{name}.*")),
        Message::new("OrderCreated", "order-5", ""),
        order(&name, 6),
    ];
    let results = publisher(Nats::shared()).publish(&messages).await;
    let texts: Vec<String> = results
        .iter()
        .map(|result| result.as_ref().map_or_else(ToString::to_string, |()| "ok".into()))
        .collect();
    assert!(results[0].is_ok() && results[5].is_ok(), "{texts:?}");
    for (index, text) in [(1, "max payload"), (2, "no stream"), (3, "wildcard"), (4, "no subject")] {
        let fault = results[index].as_ref().unwrap_err().fault();
        assert!(!fault.is_transient() && fault.did_run() == Ran::No, "{texts:?}");
        assert!(texts[index].contains(text), "{texts:?}");
    }
    assert_eq!(count(&context, &name).await, 2);
}

/// ADP-6: the stream that a publisher expects is checked by the server.
#[tokio::test]
async fn adp_6_another_stream_than_the_expected_one_refuses() {
    let (context, name) = (bare(Nats::shared()).await, unique("OTHER"));
    stream(&context, &name).await;
    let publisher = NatsPublisher::builder(connect(Nats::shared())).stream("ORDERS").build().unwrap();
    let result = publisher.publish(&[order(&name, 1)]).await.remove(0);
    assert!(!result.unwrap_err().fault().is_transient());
    assert_eq!(count(&context, &name).await, 0);
}

/// ADP-6: a stream that is full is a failure that passes, and the message is not stored.
#[tokio::test]
async fn adp_6_a_full_stream_is_tried_again() {
    let (context, name) = (bare(Nats::shared()).await, unique("FULL"));
    let config = Config {
        name: name.clone(),
        subjects: vec![format!("{name}.>")],
        max_messages: 1,
        discard: DiscardPolicy::New,
        ..Config::default()
    };
    let stored = context.create_stream(config).await.unwrap();
    let publisher = publisher(Nats::shared());
    let results = publisher.publish(&[order(&name, 1), order(&name, 2)]).await;
    assert!(results[0].is_ok());
    let fault = results[1].as_ref().unwrap_err().fault();
    assert!(fault.is_transient(), "{results:?}");
    stored.delete_message(1).await.unwrap();
    assert!(publisher.publish(&[order(&name, 2)]).await[0].is_ok());
}

/// ADP-6: while the server is away messages go to the outbox, and all of them are in the stream in the end, once.
#[tokio::test]
async fn adp_6_the_outbox_takes_messages_while_the_server_is_away() {
    let nats = Nats::start().unwrap();
    let name = unique("AWAY");
    stream(&bare(&nats).await, &name).await;
    let outbox = Arc::new(MemoryOutbox::new());
    let bare_publisher: Arc<dyn Publisher> = Arc::new(publisher(&nats));
    let fallback = FallbackPublisher::new("NATS-Publisher", bare_publisher.clone(), outbox.clone());
    let mut by = Vec::new();
    for number in 1..=30 {
        match number {
            11 => nats.control().kill().unwrap(),
            21 => {
                nats.control().start().unwrap();
                until("the server is back", || async {
                    bare_publisher.publish(&[order(&name, 1)]).await[0].is_ok()
                })
                .await;
            }
            _ => {}
        }
        by.push(fallback.publish(&order(&name, number)).await.unwrap());
    }
    assert!(by[..10].iter().chain(&by[20..]).all(|by| *by == PublishedBy::Broker), "{by:?}");
    assert!(by[10..20].iter().all(|by| *by == PublishedBy::Outbox), "{by:?}");
    assert_eq!(outbox.stats().await.unwrap().depth, 10);
    assert_eq!(count(&bare(&nats).await, &name).await, 20, "the outbox has the rest");
}

/// ADP-6: a paused server is a timeout, and the message is stored once although it was sent more than once.
#[tokio::test]
async fn adp_6_a_message_to_a_paused_server_is_stored_once() {
    let nats = Nats::start().unwrap();
    let (context, name) = (bare(&nats).await, unique("PAUSED"));
    stream(&context, &name).await;
    let limit = Duration::from_millis(300);
    let publisher = NatsPublisher::builder(connect(&nats)).ack_timeout(limit).build().unwrap();
    assert!(publisher.publish(&[order(&name, 1)]).await[0].is_ok());
    nats.control().pause().unwrap();
    let error = publisher.publish(&[order(&name, 2)]).await.remove(0).unwrap_err();
    assert_eq!(error.fault().class(), Class::Timeout, "{error}");
    assert_eq!(error.fault().did_run(), Ran::Unknown, "it may be stored: {error}");
    nats.control().resume().unwrap();
    until("the server goes on", || async { publisher.publish(&[order(&name, 2)]).await[0].is_ok() }).await;
    assert_eq!(count(&context, &name).await, 2, "each attempt had the same id");
}

/// ADP-6: a circuit that is open spares a server that is away.
#[tokio::test]
async fn adp_6_the_circuit_opens_when_the_server_stays_away() {
    let connection = NatsConnection::new("nats://127.0.0.1:1").unwrap();
    let publisher = NatsPublisher::builder(connection).guard(default_guard("away")).build().unwrap();
    let message = Message::new("E", "a", "").with_topic("a.b");
    let mut last = None;
    for _ in 0..12 {
        last = publisher.publish(std::slice::from_ref(&message)).await.remove(0).err();
    }
    let fault = last.unwrap().fault();
    assert_eq!(fault.verdict(), seawall::fault::Verdict::Rejected, "{fault:?}");
}

/// PRM-4: a publication that is dropped anywhere leaks nothing: the next one has all permits.
#[tokio::test]
async fn prm_4_a_dropped_publication_leaks_no_permit() {
    let (context, name) = (bare(Nats::shared()).await, unique("DROPPED"));
    stream(&context, &name).await;
    let publisher = NatsPublisher::builder(connect(Nats::shared())).in_flight_max(4).build().unwrap();
    let messages: Vec<Message> = (1..=4).map(|number| order(&name, number)).collect();
    assert!(publisher.publish(&messages).await.iter().all(Result::is_ok));
    let mut polls = 0;
    while poll_at_most(publisher.publish(&messages), polls).await.is_none() {
        polls += 1;
    }
    assert!(polls > 1, "it was dropped somewhere");
    let results = publisher.publish(&messages).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(count(&context, &name).await, 4);
}
