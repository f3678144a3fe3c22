//! The relay, on an outbox in memory and in paused time.

use std::collections::{HashMap, HashSet};
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use seawall::{Backoff, Clock, Fault, millis, secs};
use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, MemoryOutbox, OutboxRow, OutboxStore, Relay, RelayBuilder, Retention,
    RowOutcome, Stats,
};
use seawall_dist::{Message, PublishError, PublishFuture, Publisher, StoreFuture};
use tokio::time::{sleep, timeout};

/// A broker that does what the payload says, and remembers what it took.
#[derive(Default)]
pub(super) struct Broker {
    taken: Mutex<Vec<String>>,
    calls: Mutex<HashMap<String, u32>>,
    in_order: bool,
}

impl Broker {
    pub(super) fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }

    pub(super) fn calls(&self, name: &str) -> u32 {
        self.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// `down`: away for the first three attempts. `mixed`: away twelve times, then refused once. `bad`: refused for good. `slow`: takes 8 s. `hang`: never ends. `panic`.
    async fn take(&self, message: &Message) -> Result<(), PublishError> {
        let name = String::from_utf8_lossy(message.payload()).into_owned();
        let calls = {
            let mut calls = self.calls.lock().unwrap();
            let calls = calls.entry(name.clone()).or_default();
            *calls += 1;
            *calls
        };
        match name.split_once(' ').map_or("", |(_, order)| order) {
            "down" if calls <= 3 => return Err(PublishError::new(Fault::unreachable(), "no broker")),
            "mixed" if calls <= 12 => return Err(PublishError::new(Fault::unreachable(), "no broker")),
            "mixed" if calls == 13 => return Err(PublishError::new(Fault::system(), "who knows")),
            "bad" => return Err(PublishError::new(Fault::business(), "too large")),
            "slow" => sleep(secs(8)).await,
            "hang" => pending().await,
            "panic" => panic!("a bug in the publisher"),
            _ => {}
        }
        self.taken.lock().unwrap().push(name);
        Ok(())
    }
}

impl Publisher for Broker {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(async move {
            let mut results = Vec::new();
            let mut failed = HashSet::new();
            for message in messages {
                if failed.contains(message.aggregate_id()) {
                    results.push(Err(PublishError::new(Fault::rejected(), "after a failure")));
                    continue;
                }
                let result = self.take(message).await;
                if result.is_err() {
                    failed.insert(message.aggregate_id());
                }
                results.push(result);
            }
            results
        })
    }

    fn keeps_order(&self) -> bool {
        self.in_order
    }
}

pub(super) async fn store(outbox: &MemoryOutbox, names: &[&str]) {
    let message = |name: &&str| Message::new("Tested", &name[..1], *name);
    let messages: Vec<Message> = names.iter().map(message).collect();
    outbox.store(&messages).await.unwrap();
}

fn relay(outbox: &MemoryOutbox, broker: &Arc<Broker>) -> RelayBuilder {
    Relay::builder("tests", Arc::new(outbox.clone()), broker.clone())
        .backoff(Backoff::constant(secs(1)).no_jitter())
        .attempts_max(3)
}

/// Runs a relay for a while.
pub(super) async fn run_for(relay: &Relay, duration: Duration) {
    let ended = timeout(duration + secs(600), relay.run(sleep(duration))).await;
    assert!(ended.is_ok(), "the relay does not end");
}

/// CRD-3: rows are published in order per aggregate, also behind one that fails at first; the others do not wait.
#[tokio::test(start_paused = true)]
async fn crd_3_a_row_that_fails_is_retried_and_holds_up_its_aggregate_only() {
    for in_order in [false, true] {
        let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker { in_order, ..Broker::default() }));
        store(&outbox, &["a1 down", "a2", "b1", "a3", "b2"]).await;
        let relay = relay(&outbox, &broker).build().unwrap();
        run_for(&relay, millis(500)).await;
        assert_eq!(broker.taken(), ["b1", "b2"]);
        run_for(&relay, secs(10)).await;
        assert_eq!(broker.taken(), ["b1", "b2", "a1 down", "a2", "a3"]);
        assert_eq!((broker.calls("a1 down"), broker.calls("a2")), (4, 1));
        assert_eq!(outbox.stats().await.unwrap().depth, 0);
    }
}

/// CRD-3: a poison row is set aside after N attempts, listed, and its aggregate goes on; released, it is attempted again.
#[tokio::test(start_paused = true)]
async fn crd_3_a_poison_row_is_set_aside_and_can_be_released() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    store(&outbox, &["a1 bad", "a2"]).await;
    let relay = relay(&outbox, &broker).build().unwrap();
    run_for(&relay, secs(10)).await;
    assert_eq!((broker.calls("a1 bad"), broker.taken()), (3, vec!["a2".to_owned()]));
    let dead = outbox.list_dead(0, 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].last_error.as_deref()), (1, Some("too large")));
    outbox.release(&[dead[0].id]).await.unwrap();
    run_for(&relay, secs(10)).await;
    assert_eq!((broker.calls("a1 bad"), outbox.stats().await.unwrap().dead), (6, 1));
}

/// CRD-3: failures of an outage are not counted as failures of the row: one unclassified error after a long outage does not
/// set the backlog aside.
#[tokio::test(start_paused = true)]
async fn crd_3_failures_of_an_outage_do_not_count_against_a_row() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    store(&outbox, &["a1 mixed", "a2"]).await;
    run_for(&relay(&outbox, &broker).build().unwrap(), secs(30)).await;
    assert_eq!(outbox.stats().await.unwrap().dead, 0, "an outage made poison of a row");
    assert_eq!((broker.calls("a1 mixed"), broker.taken()), (14, vec!["a1 mixed".into(), "a2".into()]));
}

/// CRD-3. Trap "poison that kills the process": a row that panics is set aside, and rows beside it are not.
#[tokio::test(start_paused = true)]
async fn crd_3_a_row_that_panics_is_found_and_set_aside_alone() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    let innocent: Vec<String> = (0..40).map(|number| format!("{}", char::from(b'A' + number))).collect();
    let mut names: Vec<&str> = innocent.iter().map(String::as_str).collect();
    names.insert(20, "z panic");
    store(&outbox, &names).await;
    let relay = relay(&outbox, &broker).attempts_max(8).batch_lanes(16).build().unwrap();
    run_for(&relay, secs(120)).await;
    let taken: HashSet<String> = broker.taken().into_iter().collect();
    assert_eq!(taken, innocent.iter().cloned().collect::<HashSet<_>>());
    let dead = outbox.list_dead(0, 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].message.aggregate_id()), (1, "z"));
}

/// CRD-3. Trap "no heartbeat": a publisher that takes longer than the lease keeps it, so that nobody else publishes the row.
#[tokio::test(start_paused = true)]
async fn crd_3_a_slow_publisher_keeps_its_lease() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    store(&outbox, &["a1 slow"]).await;
    let (first, second) =
        (relay(&outbox, &broker).build().unwrap(), relay(&outbox, &broker).build().unwrap());
    tokio::join!(run_for(&first, secs(20)), run_for(&second, secs(20)));
    assert_eq!((broker.calls("a1 slow"), broker.taken().len()), (1, 1));
}

/// CRD-3: a publisher that hangs is stopped by its time limit, and holds up its own topic only.
#[tokio::test(start_paused = true)]
async fn crd_3_a_topic_that_hangs_delays_others_by_less_than_a_second() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    let hanging: Vec<Message> = (0..1_000)
        .map(|number| Message::new("Tested", format!("{number}"), "x hang").with_topic("dead"))
        .collect();
    outbox.store(&hanging).await.unwrap();
    let relay = relay(&outbox, &broker).build().unwrap();
    let other = async {
        for number in 0..20 {
            sleep(millis(1_700)).await;
            outbox
                .store(&[Message::new("Tested", "a", format!("{number}")).with_topic("alive")])
                .await
                .unwrap();
            sleep(millis(900)).await;
            assert_eq!(broker.taken().len(), number + 1, "a topic that hangs delays another one");
        }
    };
    tokio::select! {
        () = relay.run(pending()) => unreachable!("nobody ends it"),
        () = other => {}
    }
}

/// CRD-3: the end is orderly: what was claimed is published and recorded, and nothing more is claimed.
#[tokio::test(start_paused = true)]
async fn crd_3_an_end_waits_for_the_batches_under_way() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    store(&outbox, &["a1 slow"]).await;
    run_for(&relay(&outbox, &broker).build().unwrap(), millis(100)).await;
    assert_eq!((broker.taken().len(), outbox.stats().await.unwrap().depth), (1, 0));
}

/// CRD-3: without a hint a row waits for the next poll only; `wake` makes it wait for nothing.
#[tokio::test(start_paused = true)]
async fn crd_3_a_poll_finds_a_row_within_a_quarter_of_a_second() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    let relay = relay(&outbox, &broker).build().unwrap();
    let work = async {
        for number in 0..20 {
            sleep(secs(3)).await;
            store(&outbox, &["a"]).await;
            if number % 2 == 0 {
                relay.wake();
                sleep(millis(1)).await;
            } else {
                sleep(millis(200)).await;
            }
            assert_eq!(broker.taken().len(), number + 1);
        }
    };
    tokio::select! {
        () = relay.run(pending()) => unreachable!("nobody ends it"),
        () = work => {}
    }
}

/// CRD-3: what was published is kept as long as agreed, and then deleted.
#[tokio::test(start_paused = true)]
async fn crd_3_published_rows_are_cleaned_up() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    store(&outbox, &["a", "b", "c"]).await;
    let relay = relay(&outbox, &broker).retention(Retention::Keep(secs(60))).build().unwrap();
    run_for(&relay, secs(30)).await;
    assert_eq!(outbox.clean_up(Duration::ZERO, 1).await.unwrap(), 1, "rows are not kept");
    run_for(&relay, secs(60)).await;
    assert_eq!(outbox.clean_up(Duration::ZERO, 10).await.unwrap(), 0, "rows are not cleaned up");
}

/// PRM-4: a relay that is dropped at any poll leaves nothing that the next one can't publish.
#[tokio::test(start_paused = true)]
async fn prm_4_a_relay_dropped_at_every_poll_loses_nothing() {
    let mut ended = false;
    for polls in 0.. {
        let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
        store(&outbox, &["a1 down", "a2", "b1"]).await;
        let relay = relay(&outbox, &broker).build().unwrap();
        {
            let mut run = pin!(relay.run(sleep(millis(1_500))));
            for _ in 0..polls {
                let mut context = Context::from_waker(Waker::noop());
                ended = run.as_mut().poll(&mut context).is_ready();
                if ended {
                    break;
                }
                // Lets the batches go on, and moves the time to the next timer.
                sleep(millis(13)).await;
            }
        }
        assert!(timeout(secs(60), run_for(&relay, secs(10))).await.is_ok());
        let mut first = HashSet::new();
        let taken: Vec<String> =
            broker.taken().into_iter().filter(|name| first.insert(name.clone())).collect();
        assert_eq!(taken.len(), 3, "rows are lost after a drop at poll {polls}");
        let of_a: Vec<&String> = taken.iter().filter(|name| name.starts_with('a')).collect();
        assert_eq!(of_a, ["a1 down", "a2"]);
        assert_eq!(outbox.stats().await.unwrap().depth, 0, "rows are left after a drop at poll {polls}");
        if ended {
            break;
        }
    }
    assert!(ended);
}

/// Settings that can't work are refused with their names.
#[test]
fn crd_3_settings_that_can_not_work_are_refused() {
    let (outbox, broker) = (MemoryOutbox::new(), Arc::new(Broker::default()));
    let refused =
        |builder: RelayBuilder| builder.build().map(drop).unwrap_err().problems()[0].path().to_owned();
    assert_eq!(refused(relay(&outbox, &broker).batch_rows(0)), "batch_rows");
    assert_eq!(refused(relay(&outbox, &broker).batch_lanes(0)), "batch_lanes");
    assert_eq!(refused(relay(&outbox, &broker).batches_max(0)), "batches_max");
    assert_eq!(refused(relay(&outbox, &broker).lease(millis(1))), "lease");
    assert_eq!(refused(relay(&outbox, &broker).poll(secs(2), secs(1))), "poll");
    assert_eq!(refused(relay(&outbox, &broker).publish_timeout(Duration::ZERO)), "publish_timeout");
    assert_eq!(refused(relay(&outbox, &broker).attempts_max(0)), "attempts_max");
    let error = relay(&outbox, &broker).lease(millis(1)).build().map(drop).unwrap_err();
    assert_eq!(error.to_string(), "the outbox relay can't work\n  lease: a lease lasts at least 100 ms");
}

/// A store whose renewals do not answer.
struct Unreachable(MemoryOutbox);

impl OutboxStore for Unreachable {
    fn store<'a>(&'a self, messages: &'a [Message]) -> StoreFuture<'a, ()> {
        self.0.store(messages)
    }

    fn claim<'a>(&'a self, request: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>> {
        self.0.claim(request)
    }

    fn renew<'a>(&'a self, _: &'a BatchLease, _: Duration) -> StoreFuture<'a, bool> {
        Box::pin(pending())
    }

    fn record<'a>(
        &'a self,
        lease: &'a BatchLease,
        outcomes: &'a [RowOutcome],
        keep: Retention,
    ) -> StoreFuture<'a, Vec<i64>> {
        self.0.record(lease, outcomes, keep)
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        self.0.stats()
    }

    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        self.0.list_dead(after, limit)
    }

    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        self.0.release(ids)
    }

    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        self.0.discard(ids)
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.0.clean_up(age, limit)
    }
}

/// Takes 8 s, and tells how long it was left to work.
#[derive(Default)]
struct Stopped(Arc<Mutex<Vec<Duration>>>);

impl Publisher for Stopped {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        struct Watch(seawall::Tick, Arc<Mutex<Vec<Duration>>>);
        impl Drop for Watch {
            fn drop(&mut self) {
                self.1.lock().unwrap().push(Clock::tokio().now().since(self.0));
            }
        }
        Box::pin(async {
            let _watch = Watch(Clock::tokio().now(), self.0.clone());
            sleep(secs(8)).await;
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

/// CRD-3: with the store unreachable, the publisher is stopped before the lease ends.
#[tokio::test(start_paused = true)]
async fn crd_3_a_lease_that_can_not_be_renewed_stops_the_publisher_before_it_ends() {
    let (outbox, times) = (MemoryOutbox::new(), Arc::new(Mutex::default()));
    store(&outbox, &["a1"]).await;
    let relay = Relay::builder("tests", Arc::new(Unreachable(outbox)), Arc::new(Stopped(Arc::clone(&times))));
    run_for(&relay.lease(secs(3)).build().unwrap(), secs(20)).await;
    let times = times.lock().unwrap();
    assert!(times.len() >= 2, "the row was not claimed again");
    assert!(times.iter().all(|time| *time > secs(2) && *time < secs(3)), "{times:?}");
}
