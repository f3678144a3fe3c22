//! Lines on their way to whoever reads them.

use std::io::Write;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use metrics::counter;
use seawall::Clock;
use seawall_hub_core::metric_names;
use seawall_hub_core::service::wall_time;
use seawall_hub_core::sync::Lock;
use serde_json::Value;

use super::Format;
use super::line::{LineFields, compose};

/// Lines that wait to be written.
#[derive(Debug)]
pub(super) struct LineQueue {
    state: Lock<LineQueueState>,
    most: usize,
    /// Rung when there is something to write.
    filled: Condvar,
    /// Rung when everything is written.
    empty: Condvar,
}

#[derive(Debug, Default)]
struct LineQueueState {
    lines: Vec<String>,
    /// Some are being written.
    writing: bool,
    dropped: u64,
}

impl LineQueue {
    pub(super) fn new(most: usize) -> Self {
        LineQueue { state: Lock::default(), most, filled: Condvar::new(), empty: Condvar::new() }
    }

    /// Never waits for whoever reads. A line for which there is no room is dropped and counted.
    pub(super) fn put(&self, line: String) {
        let mut state = self.lock();
        if state.lines.len() >= self.most {
            state.dropped += 1;
            drop(state);
            counter!(metric_names::LOG_DROPPED).increment(1);
            return;
        }
        state.lines.push(line);
        let wake = !state.writing && state.lines.len() == 1;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    /// All that waits, and how many were dropped since the last time.
    fn take(&self) -> (Vec<String>, u64) {
        let mut state = self.lock();
        state.writing = false;
        while state.lines.is_empty() {
            self.empty.notify_all();
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.writing = true;
        (std::mem::take(&mut state.lines), std::mem::take(&mut state.dropped))
    }

    pub(super) fn flush(&self, most: Duration) {
        let busy = |state: &mut LineQueueState| state.writing || !state.lines.is_empty();
        drop(self.empty.wait_timeout_while(self.lock(), most, busy).unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, LineQueueState> {
        self.state.lock()
    }
}

/// The thread that writes. It ends with the process.
pub(super) fn start(
    queue: Arc<LineQueue>,
    format: Format,
    clock: Clock,
    mut out: impl Write + Send + 'static,
) -> std::io::Result<()> {
    let write = move || {
        loop {
            let (lines, dropped) = queue.take();
            let mut text = lines.concat();
            if dropped > 0 {
                text.push_str(&lost(format, &clock, dropped));
            }
            // Whoever read it may have gone; the next one may be there again.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    };
    thread::Builder::new().name("seawall log".into()).spawn(write).map(drop)
}

fn lost(format: Format, clock: &Clock, dropped: u64) -> String {
    let cause = "the reader of the log was too slow";
    let values = vec![("dropped", Value::from(dropped)), ("cause", Value::from(cause))];
    let fields = LineFields { message: "[Log][Write] Failed!".into(), values };
    compose(format, &wall_time(clock).to_string(), "WARN", "seawall", fields)
}
