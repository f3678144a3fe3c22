//! The log: `[Module][Operation] Status. key=value …` in text, and the same fields in JSON, on stderr.
//!
//! # Why not a subscriber from a library?
//! Both forms come from one list of fields here, a value that holds a line break can't begin a line of its own, and a writer
//! that nobody reads from holds up nobody: a line goes into a bounded queue, and a thread of its own writes it. What finds
//! the queue full is dropped and counted, and a line says how many it was.

mod line;
mod queue;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seawall::Clock;
use seawall_hub_core::domain::alert::LogCounts;
use seawall_hub_core::metric_names;
use seawall_hub_core::sync::{Lock, RwLock};
use tracing::metadata::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use self::queue::LineQueue;

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Plain text for people.
    #[default]
    Text,
    /// For machines: one object a line.
    Json,
}

/// The log of a process. A handle: clones share everything.
#[derive(Clone, Debug)]
pub struct Log {
    queue: Arc<LineQueue>,
    level: Arc<RwLock<Level>>,
    totals: Arc<LineTotals>,
}

/// The maximum number of lines that wait to be written.
pub const LINES_MAX: usize = 4_096;

impl Log {
    /// Writes what is at least this urgent to `out`, from now on and for the whole process. The first one counts: whoever
    /// comes later gets a log that nothing goes to.
    pub fn install(
        format: Format,
        level: Level,
        clock: Clock,
        out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(LineQueue::new(LINES_MAX));
        queue::start(queue.clone(), format, clock.clone(), out)?;
        let log = Log { queue, level: Arc::new(RwLock::new(level)), totals: Arc::default() };
        let lines = LineSubscriber { log: log.clone(), format, clock };
        let _ = tracing::subscriber::set_global_default(lines);
        Ok(log)
    }

    /// From now on what is at least this urgent is written.
    pub fn set_level(&self, level: Level) {
        *self.level.write() = level;
        // Those who write have been told before whether anybody listens.
        tracing::callsite::rebuild_interest_cache();
    }

    /// The warnings and errors so far.
    pub(crate) fn counts(&self) -> LogCounts {
        LogCounts {
            warnings: self.totals.warnings.load(Ordering::Relaxed),
            errors: self.totals.errors.load(Ordering::Relaxed),
            last_error: self.totals.last_error.lock().clone(),
        }
    }

    /// Waits until everything so far is written, but no longer than this: who reads may have gone.
    pub fn flush(&self, most: Duration) {
        self.queue.flush(most);
    }
}

/// The numbers of warnings and errors, except those about alerts: what an alert reports was counted where it happened.
#[derive(Debug, Default)]
struct LineTotals {
    warnings: AtomicU64,
    /// The errors among the warnings.
    errors: AtomicU64,
    /// The message of the last error.
    last_error: Lock<Option<String>>,
}

impl LineTotals {
    fn count(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let level = match *metadata.level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            _ => return,
        };
        if metadata.target() != "seawall_alerts" {
            self.warnings.fetch_add(1, Ordering::Relaxed);
            if *metadata.level() == Level::ERROR {
                // Notifications do not get the fields, which may name what only the log may.
                *self.last_error.lock() = Some(line::message(event));
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
        metrics::counter!(metric_names::LOG_LINES, "level" => level).increment(1);
    }
}

struct LineSubscriber {
    log: Log,
    format: Format,
    clock: Clock,
}

impl LineSubscriber {
    /// The level; `tracing` asks once for each place that writes, and again when it changes.
    fn level(&self) -> Level {
        *self.log.level.read()
    }
}

impl Subscriber for LineSubscriber {
    /// What libraries have to say is heard from warnings on.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let own = metadata.target() == "seawall" || metadata.target().starts_with("seawall_");
        *metadata.level() <= self.level() && (own || *metadata.level() <= Level::WARN)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level()))
    }

    fn event(&self, event: &Event<'_>) {
        self.log.totals.count(event);
        self.log.queue.put(line::write(self.format, &self.clock, event));
    }

    // Spans have no place in a line: what it is about stands in its fields.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests;
