//! The adapter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_dist::{Message, Publisher};
use seawall_kafka::{KafkaCluster, KafkaConsumer, KafkaPublisher};
use tokio::sync::Notify;

use super::{BATCH, Failure, KEYS, PAYLOAD_BYTES};

pub(crate) fn publisher(servers: &str, topic: &str) -> Result<KafkaPublisher, Failure> {
    Ok(KafkaPublisher::builder(&KafkaCluster::new(servers)?).topic(topic).build()?)
}

pub(crate) async fn publish(publisher: &KafkaPublisher, records: usize) -> Result<(), Failure> {
    for begin in (0..records).step_by(BATCH) {
        let message =
            |number: usize| Message::new("Bench", (number % KEYS).to_string(), vec![b'x'; PAYLOAD_BYTES]);
        let batch: Vec<Message> = (begin..begin + BATCH).map(message).collect();
        for result in publisher.publish(&batch).await {
            result?;
        }
    }
    Ok(())
}

/// Records per second, from the first record to the last.
pub(crate) async fn consume(servers: &str, topic: &str, records: usize) -> Result<f64, Failure> {
    let (count, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let began = Arc::new(std::sync::OnceLock::new());
    let (seen, end, first) = (count.clone(), done.clone(), began.clone());
    let handler = move |_: Arc<Delivery>| {
        first.get_or_init(Instant::now);
        if seen.fetch_add(1, Ordering::Relaxed) + 1 == records {
            end.notify_one();
        }
        async { Ok::<(), HandlerError>(()) }
    };
    let consumer =
        KafkaConsumer::builder(&KafkaCluster::new(servers)?, format!("{topic}-group"), topic, handler)
            .build()?;
    let took = std::sync::OnceLock::new();
    let shutdown = async {
        done.notified().await;
        took.set(began.get().map_or(0.0, |begin| begin.elapsed().as_secs_f64())).ok();
    };
    consumer.run_until(shutdown).await?;
    Ok(records as f64 / took.get().copied().ok_or("the consumer ended early")?)
}
