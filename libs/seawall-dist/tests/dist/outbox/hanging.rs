//! The relay on a store whose statements hang, and its orderly stop.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Clock, millis, secs};
use seawall_dist::Message;
use seawall_dist::outbox::{OutboxStore, Relay, RelayBuilder, Retention};
use tokio::time::{sleep, timeout};

use super::faulty::Faulty;
use super::relay::{Broker, run_for, store};

fn relay(store: &Arc<Faulty>, broker: &Arc<Broker>) -> RelayBuilder {
    Relay::builder("tests", store.clone(), broker.clone())
        .backoff(Backoff::constant(secs(1)).no_jitter())
        .attempts_max(3)
}

/// CRD-3: one renewal that is never answered does not cost the lease of a batch.
#[tokio::test(start_paused = true)]
async fn crd_3_one_renewal_that_hangs_does_not_cost_the_lease() {
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    store(&faulty.outbox, &["a1 slow"]).await;
    faulty.hang("renew", 1);
    run_for(&relay(&faulty, &broker).build().unwrap(), secs(20)).await;
    assert_eq!((broker.calls("a1 slow"), broker.taken().len()), (1, 1));
    assert!(faulty.calls("renew") > 1);
}

/// CRD-3: an orderly stop ends although a statement of the store does not.
#[tokio::test(start_paused = true)]
async fn crd_3_a_stop_does_not_wait_for_a_store_that_hangs() {
    for statement in ["claim", "renew", "record", "stats", "clean_up"] {
        let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
        store(&faulty.outbox, &["a1", "b1 slow"]).await;
        faulty.hang(statement, u32::MAX);
        let relay = relay(&faulty, &broker).retention(Retention::Keep(Duration::ZERO)).build().unwrap();
        let began = Clock::tokio().now();
        let ended = timeout(secs(60), relay.run(sleep(millis(100)))).await;
        assert!(ended.is_ok(), "the relay waits for `{statement}`");
        assert!(faulty.calls(statement) > 0, "`{statement}` was not called");
        assert!(
            Clock::tokio().now().since(began) < secs(25),
            "the stop takes {:?} with `{statement}`",
            Clock::tokio().now().since(began)
        );
    }
}

/// CRD-3: a claim that hangs is given up, and another one is made.
#[tokio::test(start_paused = true)]
async fn crd_3_a_claim_that_hangs_is_given_up() {
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    store(&faulty.outbox, &["a1"]).await;
    faulty.hang("claim", 1);
    run_for(&relay(&faulty, &broker).build().unwrap(), secs(10)).await;
    assert_eq!(broker.taken(), ["a1"]);
}

/// CRD-3: a record that hangs is given up, and made again while the lease lasts.
#[tokio::test(start_paused = true)]
async fn crd_3_a_record_that_hangs_is_made_again() {
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    store(&faulty.outbox, &["a1"]).await;
    faulty.hang("record", 1);
    run_for(&relay(&faulty, &broker).build().unwrap(), secs(20)).await;
    assert_eq!((broker.taken(), faulty.calls("record")), (vec!["a1".to_owned()], 2), "published twice");
}

/// CRD-3: upkeep that hangs takes no place of a batch, and does not pile up.
#[tokio::test(start_paused = true)]
async fn crd_3_upkeep_takes_no_place_of_a_batch() {
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    faulty.hang("stats", u32::MAX);
    let relay = relay(&faulty, &broker).batches_max(1).upkeep_interval(millis(100)).build().unwrap();
    let work = async {
        for number in 1..=5 {
            sleep(secs(1)).await;
            store(&faulty.outbox, &["a"]).await;
            sleep(secs(1)).await;
            assert_eq!(broker.taken().len(), number, "upkeep has the place of a batch");
        }
    };
    relay.run(work).await;
    assert!(faulty.calls("stats") <= 4, "upkeep piled up: {}", faulty.calls("stats"));
}

/// CRD-3: a large backlog of published rows is cleaned up, one bounded statement at a time.
#[tokio::test(start_paused = true)]
async fn crd_3_a_backlog_of_published_rows_is_cleaned_up() {
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    let messages: Vec<Message> =
        (0..5_500).map(|number| Message::new("Tested", number.to_string(), "a")).collect();
    faulty.outbox.store(&messages).await.unwrap();
    let relay = relay(&faulty, &broker).retention(Retention::Keep(secs(5))).build().unwrap();
    run_for(&relay, secs(20)).await;
    assert!(faulty.calls("clean_up") >= 6, "{}", faulty.calls("clean_up"));
    assert_eq!(faulty.outbox.clean_up(Duration::ZERO, 10).await.unwrap(), 0, "rows are not cleaned up");
}

/// CRD-3: a stop ends between two calls of the publisher. What was published is recorded, and the rest is free at once.
#[tokio::test(start_paused = true)]
async fn crd_3_a_stop_ends_between_two_calls_of_the_publisher() {
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    store(&faulty.outbox, &["a1 slow", "a2 slow", "a3 slow", "a4 slow", "a5 slow"]).await;
    let began = Clock::tokio().now();
    run_for(&relay(&faulty, &broker).build().unwrap(), secs(1)).await;
    assert_eq!((broker.taken().len(), faulty.outbox.stats().await.unwrap().depth), (1, 4));
    assert!(
        Clock::tokio().now().since(began) < secs(9),
        "the stop took {:?}",
        Clock::tokio().now().since(began)
    );
    let next = relay(&faulty, &Arc::new(Broker::default())).build().unwrap();
    timeout(secs(60), next.run(sleep(secs(40)))).await.unwrap();
    assert_eq!(faulty.outbox.stats().await.unwrap().depth, 0);
}
