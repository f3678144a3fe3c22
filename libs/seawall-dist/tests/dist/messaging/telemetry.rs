use std::io;
use std::sync::Arc;

use seawall_dist::messaging::{Delivery, HandlerError, MessageProcessor};
use seawall_testkit::observe::Lines;

use super::delivery;

/// OBS-1: the lines of a consumer have component, event type, trace and position, and errors come in their order.
#[tokio::test]
async fn obs_1_lines_of_a_consumer_have_trace_event_and_position() {
    let lines = Lines::collect();
    let handler = |delivery: Arc<Delivery>| async move {
        match delivery.message().event_id() {
            "io" => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
            "invalid" => Err(HandlerError::invalid("the order number is missing")),
            "odd" => Err("nobody knows".into()),
            _ => Ok(()),
        }
    };
    let processor = MessageProcessor::builder("Kafka-Consumer", "kafka", handler).build().unwrap();
    for id in ["fine", "io", "invalid", "odd"] {
        processor.process(delivery(id, 1)).await;
    }
    let expected = [
        ("[Kafka-Consumer][OrderCreated] Received.", "INFO"),
        ("[Kafka-Consumer][OrderCreated] Processed success.", "INFO"),
        ("[Kafka-Consumer][OrderCreated] I/O error, will retry.", "WARN"),
        ("[Kafka-Consumer][OrderCreated] Validation failed, sending to dead letters.", "ERROR"),
        ("[Kafka-Consumer][OrderCreated] Processing failed!", "ERROR"),
    ];
    let all = lines.take();
    for (text, level) in expected {
        let line =
            all.iter().find(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {all:#?}"));
        for part in [level, "partition=3", "offset=1207", "traceId=0af7651916cd43dd8448eb211c80319c"] {
            assert!(line.replace('"', "").contains(part), "{part} is missing in {line}");
        }
    }
}

/// OBS-2: a message is counted by what came of it.
#[cfg(feature = "metrics")]
#[test]
fn obs_2_messages_are_counted_by_what_came_of_them() {
    let numbers = crate::observe::numbers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&numbers, || {
        runtime.block_on(async {
            let handler = |delivery: Arc<Delivery>| async move {
                if delivery.attempt() == 1 { Err(io::Error::other("no")) } else { Ok(()) }
            };
            let processor = MessageProcessor::builder("Kafka-Consumer", "kafka", handler).build().unwrap();
            for attempt in [1, 2, 9] {
                processor.process(delivery("e", attempt)).await;
            }
        });
    });
    let lines = numbers.lines();
    for outcome in ["processed", "failed", "dead_crashes"] {
        let found = lines
            .iter()
            .any(|line| line.starts_with("messaging.client.consumed.messages") && line.contains(outcome));
        assert!(found, "{outcome}: {lines:#?}");
    }
}
