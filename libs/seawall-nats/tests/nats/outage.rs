use std::sync::Arc;
use std::time::Duration;

use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_nats::{NatsConnection, NatsConsumer};
use seawall_testkit::servers::Nats;

use crate::support::{
    HandledMessages, Running, backlog, bare, letters, processor, publish, stream, unique, until,
};

fn slow(seen: &HandledMessages) -> impl seawall_dist::messaging::MessageHandler + use<> {
    let seen = seen.clone();
    move |delivery: Arc<Delivery>| {
        let seen = seen.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            seen.add(&delivery);
            Ok::<_, HandlerError>(())
        }
    }
}

fn consumer(nats: &Nats, name: &str, seen: &HandledMessages) -> NatsConsumer {
    let connection = NatsConnection::builder(&nats.url())
        .request_timeout(Duration::from_secs(1))
        .ping_interval(Duration::from_millis(500))
        .build()
        .unwrap();
    NatsConsumer::builder(connection, name, "billing", processor(5, slow(seen)))
        .ack_wait(Duration::from_secs(2))
        .concurrency(4)
        .prefetch(20)
        .build()
        .unwrap()
}

/// ADP-6: the server dies in the middle and comes back: all messages are processed. Those that are doubled were delivered before
/// its death: NATS writes acknowledgements to disk some time after it has them, and forgets the last ones when it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn adp_6_a_server_that_dies_in_the_middle_loses_nothing() {
    let nats = Nats::start().unwrap();
    let (name, seen) = (unique("KILLED"), HandledMessages::default());
    let context = bare(&nats).await;
    stream(&context, &name).await;
    publish(&context, &name, 1..=400).await;
    let running = Running::consumer(&consumer(&nats, &name, &seen));
    for stage in [100, 200] {
        until("a part is processed", || async { seen.distinct() >= stage }).await;
        nats.control().kill().unwrap();
        nats.control().start().unwrap();
    }
    until("all are processed", || async { seen.distinct() == 400 }).await;
    let context = bare(&nats).await;
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let mut deliveries = std::collections::HashMap::<String, u32>::new();
    seen.all().into_iter().for_each(|(text, _)| *deliveries.entry(text).or_default() += 1);
    let most = deliveries.values().max().copied().unwrap_or_default();
    assert!(most <= 3, "a message was processed {most} times, and the server died twice");
    assert!(letters(&context, &name).await.is_empty());
}

/// ADP-6: a server that is stopped in an orderly way, away for a while and back is the same.
#[tokio::test(flavor = "multi_thread")]
async fn adp_6_a_consumer_waits_for_a_server_that_is_away() {
    let nats = Nats::start().unwrap();
    let (name, seen) = (unique("AWAY"), HandledMessages::default());
    stream(&bare(&nats).await, &name).await;
    publish(&bare(&nats).await, &name, 1..=100).await;
    nats.control().stop().unwrap();
    let running = Running::consumer(&consumer(&nats, &name, &seen));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(seen.len(), 0);
    nats.control().start().unwrap();
    until("half are processed", || async { seen.distinct() >= 50 }).await;
    nats.control().stop().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    nats.control().start().unwrap();
    until("all are processed", || async { seen.distinct() == 100 }).await;
    let context = bare(&nats).await;
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert!(letters(&context, &name).await.is_empty());
}

/// ADP-6: a server that is paused for longer than it waits for acknowledgements: nothing is lost, what was in hand may come
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn adp_6_a_paused_server_loses_nothing() {
    let nats = Nats::start().unwrap();
    let (name, seen) = (unique("PAUSED"), HandledMessages::default());
    let context = bare(&nats).await;
    stream(&context, &name).await;
    publish(&context, &name, 1..=300).await;
    let running = Running::consumer(&consumer(&nats, &name, &seen));
    until("a part is processed", || async { seen.distinct() >= 100 }).await;
    nats.control().pause().unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    nats.control().resume().unwrap();
    until("all are processed", || async { seen.distinct() == 300 }).await;
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let doubled = seen.len() - seen.distinct();
    assert!(doubled <= 2 * 20, "{doubled} messages were doubled");
    assert!(letters(&context, &name).await.is_empty());
}
