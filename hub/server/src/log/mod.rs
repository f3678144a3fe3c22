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
        let level = Arc::new(RwLock::new(level));
        let lines = LineSubscriber { queue: queue.clone(), format, level: level.clone(), clock };
        let _ = tracing::subscriber::set_global_default(lines);
        Ok(Log { queue, level })
    }

    /// From now on what is at least this urgent is written.
    pub fn set_level(&self, level: Level) {
        *self.level.write() = level;
        // Those who write have been told before whether anybody listens.
        tracing::callsite::rebuild_interest_cache();
    }

    /// Waits until everything so far is written, but no longer than this: who reads may have gone.
    pub fn flush(&self, most: Duration) {
        self.queue.flush(most);
    }
}

/// The warnings and errors of the log so far, but for those about alerts: what they tell has been counted where it happened.
static WARNINGS: AtomicU64 = AtomicU64::new(0);
/// The errors among them.
static ERRORS: AtomicU64 = AtomicU64::new(0);
/// What the last of these says.
static LAST_ERROR: Lock<Option<String>> = Lock::new(None);

/// What the log of the process has had so far.
pub(crate) fn seen() -> LogCounts {
    LogCounts {
        warnings: WARNINGS.load(Ordering::Relaxed),
        errors: ERRORS.load(Ordering::Relaxed),
        last_error: LAST_ERROR.lock().clone(),
    }
}

fn count(event: &Event<'_>) {
    let metadata = event.metadata();
    let level = match *metadata.level() {
        Level::ERROR => "error",
        Level::WARN => "warn",
        _ => return,
    };
    if metadata.target() != "seawall_alerts" {
        WARNINGS.fetch_add(1, Ordering::Relaxed);
        if *metadata.level() == Level::ERROR {
            // The fields are not for those who are told: they may name what only the log may.
            *LAST_ERROR.lock() = Some(line::message(event));
            ERRORS.fetch_add(1, Ordering::Relaxed);
        }
    }
    metrics::counter!(metric_names::LOG_LINES, "level" => level).increment(1);
}

struct LineSubscriber {
    queue: Arc<LineQueue>,
    format: Format,
    /// Read once for each place that writes, and again when it changes.
    level: Arc<RwLock<Level>>,
    clock: Clock,
}

impl LineSubscriber {
    fn level(&self) -> Level {
        *self.level.read()
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
        count(event);
        self.queue.put(line::write(self.format, &self.clock, event));
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
