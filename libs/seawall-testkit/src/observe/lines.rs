//! The log lines of a test.

#![expect(clippy::panic, reason = "a test fails with a sentence")]

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;

use seawall::telemetry::TraceIdLayer;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

thread_local! {
    /// The lines of this thread since the last look; `None` where nobody looks.
    static TEXT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Collects the log lines of the current thread until it is dropped, each as `LEVEL message key=value …`. Only the lines of
/// Seawall: those with the target `seawall`.
///
/// There is one subscriber for all threads of the test program: subscribers that come and go while other threads meet a line for
/// the first time lose lines. A test that calls this on a runtime with several threads sees the lines of one of them.
///
/// ```
/// use seawall_testkit::observe::Lines;
/// let lines = Lines::collect();
/// tracing::warn!(target: "seawall", key = 7, "[Cache][Get] Failed!");
/// assert_eq!(lines.find("WARN [Cache][Get]"), "WARN [Cache][Get] Failed! key=7");
/// ```
#[derive(Debug)]
pub struct Lines(());

impl Lines {
    /// Begins to collect.
    ///
    /// # Panics
    /// If the program has another subscriber for all threads.
    #[must_use]
    pub fn collect() -> Self {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            tracing_subscriber::registry().with(TraceIdLayer).with(LineLayer).with(LevelFilter::DEBUG).init();
        });
        TEXT.set(Some(Vec::new()));
        Lines(())
    }

    /// Takes the lines since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        TEXT.replace(Some(Vec::new())).unwrap_or_default()
    }

    /// The lines so far that begin like this.
    #[must_use]
    pub fn of(&self, beginning: &str) -> Vec<String> {
        let begins = |line: &&String| line.starts_with(beginning);
        TEXT.with_borrow(|lines| lines.iter().flatten().filter(begins).cloned().collect())
    }

    /// The first line so far that begins like this.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn find(&self, beginning: &str) -> String {
        self.of(beginning)
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("{beginning:?} is not among {:#?}", self.of("")))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        TEXT.set(None);
    }
}

struct LineLayer;

impl<S: Subscriber> Layer<S> for LineLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "seawall" {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let text = format!("{} {}{}", event.metadata().level(), line.message, line.fields);
        // A line that is written while another is kept is one of this module, of which there are none.
        TEXT.with_borrow_mut(|lines| lines.as_mut().map(|lines| lines.push(text)));
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            let _ = write!(self.fields, " {}={value:?}", field.name());
        }
    }
}
