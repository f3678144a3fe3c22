//! What the relay writes to the log.

use std::sync::Arc;

use seawall::secs;
use seawall_dist::outbox::{OutboxStore, Relay};

use super::faulty::Faulty;
use super::relay::{Broker, run_for, store};

/// Keeps the level and the text of every event.
#[derive(Clone, Default)]
pub(super) struct Lines(pub(super) Arc<std::sync::Mutex<Vec<String>>>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), text.0));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// CRD-3, OBS-1: a row that is set aside is told of, although the answer of the store that recorded it was lost.
#[tokio::test(start_paused = true)]
async fn crd_3_a_row_that_is_set_aside_is_told_of_although_an_answer_was_lost() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (faulty, broker) = (Arc::new(Faulty::default()), Arc::new(Broker::default()));
    store(&faulty.outbox, &["a1 bad", "b1"]).await;
    faulty.lose("record", 1);
    let relay = Relay::builder("tests", faulty.clone(), broker).attempts_max(1).build().unwrap();
    run_for(&relay, secs(10)).await;
    assert_eq!(faulty.outbox.stats().await.unwrap().dead, 1);
    let lines = lines.0.lock().unwrap();
    let told = lines.iter().filter(|line| line.contains("Set aside")).count();
    assert_eq!(told, 1, "{lines:?}");
}
