//! A writer that never blocks whoever logs.

use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The default bound of the queue, in lines: several seconds of a busy service.
pub const QUEUED_LINES_MAX: usize = 4_096;

/// The default bound of the queue, in bytes: a bound on lines alone is none where a line may be of any length.
pub const QUEUED_BYTES_MAX: usize = 8 << 20;

/// The room that the queue keeps for the next lines.
const KEPT_BYTES: usize = 64 << 10;

/// The time that the last lines have to get out when a [`LogWriter`] is dropped.
pub const FLUSH_TIME: Duration = Duration::from_secs(2);

/// A writer for log lines that never blocks: lines go into a bounded queue, and a thread of its own writes them.
///
/// A line that finds the queue full is dropped and [counted](LogWriter::dropped), and one line says how many were lost as
/// soon as there is room again. Keep the `LogWriter` for as long as the program logs: dropping it writes what is queued, for
/// at most [`FLUSH_TIME`].
///
/// ```
/// use seawall::telemetry::LogWriter;
/// let log = LogWriter::new(std::io::stderr())?;
/// let subscriber = tracing_subscriber::fmt().with_writer(log.make_writer()).finish();
/// # drop(subscriber);
/// // … the program runs …
/// drop(log);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LogWriter {
    queue: Arc<Queue>,
}

impl LogWriter {
    /// Starts the thread that writes to `out`, with the default bounds. An error means that there is no thread to be had.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Self> {
        LogWriter::builder().start(out)
    }

    /// Begins a writer with bounds of your own.
    pub fn builder() -> LogWriterBuilder {
        LogWriterBuilder { lines_max: QUEUED_LINES_MAX, bytes_max: QUEUED_BYTES_MAX, notice: text_notice }
    }

    /// The end at which lines come in, for `with_writer` of `tracing-subscriber`.
    pub fn make_writer(&self) -> impl Fn() -> LogHandle + Clone + Send + Sync + use<> {
        let queue = self.queue.clone();
        move || LogHandle { queue: queue.clone() }
    }

    /// The number of lines that were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.dropped.load(Ordering::Relaxed)
    }

    /// Waits until every line so far is written, for at most `limit`. Says whether it is.
    #[expect(
        clippy::must_use_candidate,
        reason = "whoever reads the log may have gone, and nothing can be done about it"
    )]
    pub fn flush(&self, limit: Duration) -> bool {
        self.queue.flush(limit)
    }

    /// Writes what is queued, for at most `limit`, and ends the thread. Says whether everything was written. Lines that
    /// come later are dropped and counted.
    #[expect(
        clippy::must_use_candidate,
        reason = "whoever reads the log may have gone, and nothing can be done about it"
    )]
    pub fn close(self, limit: Duration) -> bool {
        self.queue.close(limit)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue.close(FLUSH_TIME);
    }
}

/// A [`LogWriter`] in the making.
#[must_use = "a writer is made by `start`"]
#[derive(Clone, Debug)]
pub struct LogWriterBuilder {
    lines_max: usize,
    bytes_max: usize,
    notice: fn(u64) -> String,
}

impl LogWriterBuilder {
    /// The maximum number of lines that wait to be written; at least one.
    pub fn lines(mut self, lines: usize) -> Self {
        self.lines_max = lines.max(1);
        self
    }

    /// The maximum number of bytes that wait to be written; at least one.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes.max(1);
        self
    }

    /// The line about lost lines is an object of JSON, as the other lines are.
    pub fn json(self) -> Self {
        self.notice(json_notice)
    }

    /// The line about lost lines in a form of your own: `notice` is given their number, and ends its line itself.
    pub fn notice(mut self, notice: fn(u64) -> String) -> Self {
        self.notice = notice;
        self
    }

    /// Starts the thread that writes to `out`. An error means that there is no thread to be had.
    pub fn start(self, out: impl Write + Send + 'static) -> io::Result<LogWriter> {
        let queue = Arc::new(Queue {
            lines_max: self.lines_max,
            bytes_max: self.bytes_max,
            state: Mutex::default(),
            filled: Condvar::new(),
            empty: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let (of_thread, notice) = (queue.clone(), self.notice);
        thread::Builder::new()
            .name("seawall log".into())
            .spawn(move || of_thread.write_all_to(out, notice))?;
        Ok(LogWriter { queue })
    }
}

fn text_notice(dropped: u64) -> String {
    format!(
        " WARN seawall: [Log][Write] Failed! dropped={dropped} cause=\"the log was written too slowly\"\n"
    )
}

fn json_notice(dropped: u64) -> String {
    format!(
        "{{\"level\":\"WARN\",\"fields\":{{\"message\":\"[Log][Write] Failed!\",\"dropped\":{dropped},\
         \"cause\":\"the log was written too slowly\"}},\"target\":\"seawall\"}}\n"
    )
}

/// Where lines come in: each `write` is one line. Made by [`LogWriter::make_writer`].
#[derive(Clone, Debug)]
pub struct LogHandle {
    queue: Arc<Queue>,
}

impl Write for LogHandle {
    /// Never blocks and never fails: a line that finds no room is dropped and counted.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.put(line);
        Ok(line.len())
    }

    /// Nobody waits for the thread that writes; see [`LogWriter::flush`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines that wait to be written.
struct Queue {
    lines_max: usize,
    bytes_max: usize,
    state: Mutex<State>,
    /// Rung when there is something to write, or nothing more will come.
    filled: Condvar,
    /// Rung when everything is written.
    empty: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The lines, one after the other.
    bytes: Vec<u8>,
    lines: usize,
    /// True while the thread writes what it took.
    writing: bool,
    /// Dropped since the last notice.
    lost: u64,
    closed: bool,
}

impl State {
    fn is_busy(&mut self) -> bool {
        self.writing || !self.bytes.is_empty() || self.lost > 0
    }
}

impl Queue {
    fn put(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.closed || state.lines >= self.lines_max || line.len() > self.bytes_max - state.bytes.len() {
            // After the end there is nobody to write a notice.
            state.lost += u64::from(!state.closed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            state.bytes.extend_from_slice(line);
            state.lines += 1;
        }
        let wake = !state.writing;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    /// What waits, and the number of lines that were lost since the last time; nothing, when nothing more will come.
    fn take(&self, written: Vec<u8>) -> Option<(Vec<u8>, u64)> {
        let mut state = self.lock();
        state.writing = false;
        while state.bytes.is_empty() && state.lost == 0 {
            self.empty.notify_all();
            if state.closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.writing = true;
        state.lines = 0;
        Some((std::mem::replace(&mut state.bytes, written), std::mem::take(&mut state.lost)))
    }

    fn write_all_to(&self, mut out: impl Write, notice: fn(u64) -> String) {
        let mut text = Vec::new();
        while let Some((taken, lost)) = self.take(text) {
            text = taken;
            if lost > 0 {
                text.extend_from_slice(notice(lost).as_bytes());
            }
            // Whoever reads may have gone; the next one may be there again. A writer that panics loses these lines and no more.
            let _ = catch_unwind(AssertUnwindSafe(|| out.write_all(&text).and_then(|()| out.flush())));
            text.clear();
            // A burst must not hold its memory for ever.
            text.shrink_to(KEPT_BYTES);
        }
    }

    fn flush(&self, limit: Duration) -> bool {
        let waited = self.empty.wait_timeout_while(self.lock(), limit, State::is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn close(&self, limit: Duration) -> bool {
        let mut state = self.lock();
        if state.closed {
            return true;
        }
        state.closed = true;
        drop(state);
        self.filled.notify_one();
        self.flush(limit)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}
