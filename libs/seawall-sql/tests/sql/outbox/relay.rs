//! A relay on PostgreSQL.

use std::future::{Future, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall_dist::outbox::{OutboxStore, Relay, RelayBuilder};
use seawall_dist::{Message, PublishFuture, Publisher};
use seawall_sql::postgres::{self, outbox::PostgresOutbox};
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;
use tokio::time::{sleep, timeout};

/// Takes everything.
#[derive(Default)]
struct Broker(Mutex<Vec<String>>);

impl Broker {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    async fn has(&self, count: usize) {
        while self.count() < count {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Publisher for Broker {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        self.0.lock().unwrap().extend(messages.iter().map(|message| message.event_id().to_owned()));
        Box::pin(async { messages.iter().map(|_| Ok(())).collect() })
    }
}

fn relay(outbox: &PostgresOutbox, broker: &Arc<Broker>) -> RelayBuilder {
    Relay::builder("tests", Arc::new(outbox.clone()), broker.clone())
}

async fn enqueue(pool: &PgPool, outbox: &PostgresOutbox, key: &str) {
    let mut transaction = pool.begin().await.unwrap();
    outbox.enqueue(&mut transaction, &Message::new("Tested", key, "{}")).await.unwrap();
    transaction.commit().await.unwrap();
}

/// CRD-3: a relay that listens wakes by NOTIFY, long before its next poll; one that does not listen waits for the poll.
#[tokio::test]
async fn crd_3_a_notify_wakes_a_relay_long_before_its_next_poll() {
    let pool = super::pool().await;
    let (outbox, broker) = (PostgresOutbox::new(pool.clone()).with_notify(), Arc::new(Broker::default()));
    let never = Duration::from_secs(600);
    let relay = relay(&outbox, &broker).poll(never, never).build().unwrap();
    let work = async {
        // A hint that comes before the relay listens is lost, as it is in life.
        let is_listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()";
        while sqlx::query_scalar::<_, i64>(is_listening).fetch_one(&pool).await.unwrap() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        for number in 1..=10 {
            enqueue(&pool, &outbox, "a").await;
            broker.has(number).await;
        }
        // The hint outside of the transaction does the same.
        enqueue(&pool, &PostgresOutbox::new(pool.clone()), "a").await;
        outbox.hint_now().await.unwrap();
        broker.has(11).await;
    };
    tokio::select! {
        () = relay.run(pending()) => unreachable!("nobody ends it"),
        done = timeout(Duration::from_secs(30), work) => done.expect("a hint wakes the relay"),
    }
}

/// CRD-3: a database that is stopped, killed and started again loses nothing, and the relay goes on by itself.
#[tokio::test]
async fn crd_3_a_relay_outlives_restarts_of_its_database() {
    let server = Postgres::start().unwrap();
    let pool = PgPool::connect(server.database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    let (outbox, broker) = (PostgresOutbox::new(pool.clone()).with_notify(), Arc::new(Broker::default()));
    let relay = relay(&outbox, &broker).build().unwrap();
    let work = async {
        for number in 1..=3 {
            enqueue(&pool, &outbox, "a").await;
            broker.has(number).await;
            let control = server.control();
            if number == 1 {
                control.stop().unwrap();
            } else {
                control.kill().unwrap();
            }
            sleep(Duration::from_millis(300)).await;
            control.start().unwrap();
            while outbox.stats().await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        }
        // What was published before a kill may not have been recorded, and then comes twice.
        while outbox.stats().await.unwrap().depth > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = relay.run(pending()) => unreachable!("nobody ends it"),
        done = timeout(Duration::from_secs(90), work) => done.expect("the relay goes on after a restart"),
    }
    let ids: std::collections::HashSet<String> = broker.0.lock().unwrap().iter().cloned().collect();
    assert_eq!(ids.len(), 3);
}

/// PRM-4: statements dropped at any poll leave rows that the next relay publishes, and no half of a transaction.
#[tokio::test]
async fn prm_4_claims_and_records_dropped_at_every_poll_lose_nothing() {
    let pool = super::pool().await;
    let (outbox, broker) = (PostgresOutbox::new(pool.clone()), Arc::new(Broker::default()));
    let messages: Vec<Message> =
        (0..40).map(|number| Message::new("Tested", format!("{number}"), "{}")).collect();
    outbox.store(&messages).await.unwrap();
    let relay = relay(&outbox, &broker).lease(Duration::from_millis(200)).batch_rows(3).build().unwrap();
    for polls in 0..60_u32 {
        let mut run = Box::pin(relay.run(pending()));
        for _ in 0..polls {
            // Each poll makes what progress there is; the relay is dropped in the middle of a statement.
            let step = std::future::poll_fn(|context| std::task::Poll::Ready(run.as_mut().poll(context)));
            assert!(step.await.is_pending());
            tokio::task::yield_now().await;
            sleep(Duration::from_micros(300)).await;
        }
        drop(run);
    }
    let rest = async {
        while outbox.stats().await.unwrap().depth > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = relay.run(pending()) => unreachable!("nobody ends it"),
        done = timeout(Duration::from_secs(60), rest) => done.expect("all rows are published"),
    }
    let ids: std::collections::HashSet<String> = broker.0.lock().unwrap().iter().cloned().collect();
    assert_eq!(ids.len(), messages.len());
    assert_eq!(outbox.stats().await.unwrap().dead, 0);
}
