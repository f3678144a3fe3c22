//! What a processor does with deliveries, and what comes of dead letters.

mod letters;
mod processing;
#[cfg(feature = "tracing")]
mod telemetry;

use std::sync::Arc;

use seawall_dist::Message;
use seawall_dist::messaging::{Delivery, Disposition};

/// A delivery of the event with this id.
fn delivery(id: &str, attempt: u32) -> Arc<Delivery> {
    let message = Message::new("OrderCreated", "order-17", "{}")
        .with_event_id(id)
        .with_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let delivery = Delivery::new(message, "orders", attempt);
    Arc::new(delivery.with_position("partition", 3).with_position("offset", 1207))
}

/// The error of the attempt that failed, with whether another one follows.
fn failure_of(disposition: &Disposition) -> (bool, String) {
    match disposition {
        Disposition::Retry { failure, .. } => (true, failure.error.clone()),
        Disposition::DeadLetter { failure: Some(failure), .. } => (false, failure.error.clone()),
        other => panic!("nothing failed: {other:?}"),
    }
}
