//! An order and its event in one transaction; a relay that publishes the event; and a publisher that stores what a broker that
//! is down can't take. Against a real PostgreSQL.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use seawall::task::{Group, Phase, Shutdown};
use seawall_dist::outbox::{FallbackPublisher, OutboxStore, Relay};
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};
use seawall_sql::postgres::{migrate, outbox::PostgresOutbox};
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;

/// Stands for Kafka.
#[derive(Default)]
struct Broker {
    is_down: AtomicBool,
    taken: Mutex<Vec<String>>,
}

impl Publisher for Broker {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        let publish = |message: &Message| {
            if self.is_down.load(Ordering::Relaxed) {
                let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
                return Err(PublishError::of(&refused));
            }
            let line = format!("{} {}", message.event_type(), message.aggregate_id());
            self.taken.lock().expect("nobody panicked").push(line);
            Ok(())
        };
        Box::pin(async move { messages.iter().map(publish).collect() })
    }
}

/// Stores an order and the event that tells of it. Both are there, or neither.
async fn create(pool: &PgPool, outbox: &PostgresOutbox, order: &str, commit: bool) -> anyhow::Result<()> {
    let mut transaction = seawall_sql::transaction::begin(pool).await?;
    sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(order).execute(&mut *transaction).await?;
    let event = Message::new("OrderCreated", order, format!(r#"{{"order":"{order}"}}"#)).with_topic("orders");
    outbox.enqueue(&mut transaction, &event).await?;
    if commit {
        transaction.commit().await?
    } else {
        transaction.rollback().await?
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Postgres::start()?;
    let pool = PgPool::connect(server.database()?.url()).await?;
    migrate(&pool).await?;
    sqlx::query("CREATE TABLE orders (id TEXT PRIMARY KEY)").execute(&pool).await?;
    let (outbox, broker) = (PostgresOutbox::new(pool.clone()), Arc::new(Broker::default()));

    create(&pool, &outbox, "order-1", true).await?;
    create(&pool, &outbox, "order-2", false).await?;
    create(&pool, &outbox, "order-3", true).await?;
    println!("waiting: {}", outbox.stats().await?.depth);

    // The broker is down: the event is stored, and the caller goes on.
    broker.is_down.store(true, Ordering::Relaxed);
    let publisher = FallbackPublisher::new("Kafka-Publisher", broker.clone(), Arc::new(outbox.clone()));
    let by = publisher.publish(&Message::new("OrderViewed", "order-1", "{}").with_topic("orders")).await?;
    println!("published by: {by:?}");
    broker.is_down.store(false, Ordering::Relaxed);

    let mut shutdown = Shutdown::new();
    let token = shutdown.token(Phase::Pollers, "outbox relay");
    let relay = Relay::builder("orders", Arc::new(outbox.clone()), broker.clone()).build()?;
    let mut group = Group::new();
    group.spawn("outbox relay", async move {
        relay.run(token.stopping()).await;
        Ok::<_, io::Error>(())
    });
    while outbox.stats().await?.depth > 0 {
        tokio::time::sleep(seawall::millis(10)).await;
    }
    println!("ended in order: {}", shutdown.run().await.is_clean());
    group.wait().await?;

    let mut taken = broker.taken.lock().expect("nobody panicked").clone();
    taken.sort();
    println!("the broker has: {}", taken.join(", "));
    Ok(())
}
