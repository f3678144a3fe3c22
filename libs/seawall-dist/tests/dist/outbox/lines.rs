//! What the relay writes to the log.

use std::sync::Arc;

use seawall::secs;
use seawall_dist::outbox::{OutboxStore, Relay};
use seawall_testkit::observe::Lines;

use super::faulty::Faulty;
use super::relay::{Broker, run_for, store};

/// CRD-3, OBS-1: a row that is set aside is told of, although the answer of the store that recorded it was lost.
#[tokio::test(start_paused = true)]
async fn crd_3_a_row_that_is_set_aside_is_told_of_although_an_answer_was_lost() {
    let lines = Lines::collect();
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    store(&faulty.outbox, &["a1 bad", "b1"]).await;
    faulty.lose("record", 1);
    let relay = Relay::builder("tests", faulty.clone(), broker).attempts_max(1).build().unwrap();
    run_for(&relay, secs(10)).await;
    assert_eq!(faulty.outbox.stats().await.unwrap().dead, 1);
    let lines = lines.take();
    let told = lines.iter().filter(|line| line.contains("Set aside")).count();
    assert_eq!(told, 1, "{lines:?}");
}
