//! What is told of the store: commits as numbers, and a line when there is no room, and when there is again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use metrics::{Counter, Histogram, counter, gauge, histogram};
use seawall::telemetry::{Millis as Took, Sampler};
use seawall::{Clock, Tick};
use seawall_hub_core::metric_names;
use seawall_hub_core::port::store::{StoreError, StoreHealth};
use tracing::{error, info};

use crate::queue::LANES;

/// Counts and logs the commits, on the thread that makes them.
pub(crate) struct CommitTelemetry {
    clock: Clock,
    good: Counter,
    failed: Counter,
    units: Histogram,
    duration: Histogram,
}

impl CommitTelemetry {
    pub(crate) fn new(clock: Clock) -> Self {
        CommitTelemetry {
            clock,
            good: counter!(metric_names::COMMITS, "outcome" => "success"),
            failed: counter!(metric_names::COMMITS, "outcome" => "failed"),
            units: histogram!(metric_names::COMMIT_UNITS),
            duration: histogram!(metric_names::COMMIT_DURATION),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.precise()
    }

    /// Records a commit of a number of units, or its failure.
    pub(crate) fn ended(&self, units: usize, began: Tick, well: bool) {
        if !well {
            self.failed.increment(1);
            return;
        }
        self.good.increment(1);
        self.units.record(units as f64);
        self.duration.record(self.now().since(began));
    }
}

/// Logs whether there is room on the disk, and counts what failed.
pub(crate) struct AnswerTelemetry {
    clock: Clock,
    full: AtomicBool,
    no_room: AtomicU64,
    failed: AtomicU64,
    /// The samplers of log lines. Small units may find room while larger ones do not.
    lines: [Sampler; 3],
}

impl AnswerTelemetry {
    pub(crate) fn new(clock: Clock) -> Self {
        AnswerTelemetry {
            clock,
            full: AtomicBool::new(false),
            no_room: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            lines: std::array::from_fn(|_| Sampler::new(1)),
        }
    }

    /// Records the result of a unit.
    pub(crate) fn answered<T>(&self, answer: &Result<T, StoreError>) {
        if matches!(answer, Err(StoreError::Full)) {
            self.no_room.fetch_add(1, Ordering::Relaxed);
        }
        match answer {
            Ok(_) if self.full.load(Ordering::Relaxed) => {
                if let Some(suppressed) = self.pass(0) {
                    self.full.store(false, Ordering::Relaxed);
                    let note = "there is room on the disk again";
                    info!(target: "seawall", note, suppressed, "[Store][Commit] Success.");
                }
            }
            // Told when it begins. If that line was one too many, the next one that finds no room tells it.
            Err(error @ StoreError::Full) if !self.full.load(Ordering::Relaxed) => {
                if let Some(suppressed) = self.pass(1) {
                    self.full.store(true, Ordering::Relaxed);
                    error!(target: "seawall", cause = %error, action = "ManualReview", suppressed, "[Store][Commit] Failed!");
                }
            }
            Err(StoreError::Damaged(_)) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
            Err(StoreError::Failed(cause)) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                if let Some(suppressed) = self.pass(2) {
                    error!(target: "seawall", cause, action = "ManualReview", suppressed, "[Store][Commit] Failed!");
                }
            }
            _ => {}
        }
    }

    /// Records that part of the stored data can't be read.
    pub(crate) fn damaged(&self, error: &StoreError) {
        error!(target: "seawall", cause = %error, action = "ManualReview", "[Store][Read] Failed!");
    }

    /// Returns the health of the store; `refused` units found their lane full.
    pub(crate) fn health(&self, refused: u64, free_bytes: Option<u64>) -> StoreHealth {
        let (no_room, failed) = (self.no_room.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        StoreHealth { full: self.full.load(Ordering::Relaxed), no_room, refused, failed, free_bytes }
    }

    fn pass(&self, kind: usize) -> Option<Option<u64>> {
        self.lines[kind].pass(self.clock.now())
    }

    /// Records how much waits in each lane.
    pub(crate) fn record_queue(&self, waiting: [usize; LANES]) {
        for (lane, waiting) in ["ingest", "outcomes", "admin", "retention"].into_iter().zip(waiting) {
            gauge!(metric_names::STORE_QUEUE, "lane" => lane).set(waiting as f64);
        }
    }

    pub(crate) fn opened(&self, epoch: u64, began: Tick) {
        let duration = Took(self.clock.precise().since(began));
        info!(target: "seawall", epoch, %duration, "[Store][Open] Success.");
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.precise()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Remembers the levels and heads of all lines.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn event(&self, event: &Event<'_>) {
            struct Head(String);
            impl Visit for Head {
                fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                    if field.name() == "message" {
                        self.0 = format!("{value:?}");
                    }
                }
            }
            let mut head = Head(String::new());
            event.record(&mut head);
            self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), head.0));
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// OBS-1: that there is no room is told once, however many ask, and that there is again is told once too.
    #[test]
    fn obs_1_a_full_disk_is_told_once_and_its_end_too() {
        let (lines, disk) = (Lines::default(), AnswerTelemetry::new(Clock::system()));
        tracing::subscriber::with_default(lines.clone(), || {
            for answer in
                [Ok(()), Ok(()), Err(StoreError::Full), Err(StoreError::Full), Err(StoreError::Busy)]
            {
                disk.answered(&answer);
            }
            disk.answered(&Ok(()));
            disk.answered(&Ok(()));
        });
        let told = lines.0.lock().unwrap().clone();
        assert_eq!(told, ["ERROR [Store][Commit] Failed!", "INFO [Store][Commit] Success."]);
    }
}
