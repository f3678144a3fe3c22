//! The log lines of a test, as a reader of the log sees them.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

thread_local! {
    /// The lines of this thread since the last look; `None` where nobody looks.
    static TEXT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Collects the lines of the current thread until it is dropped.
///
/// There is one subscriber for all threads: subscribers that come and go while other threads meet a line for the first time
/// lose lines.
pub(super) struct Lines(());

impl Lines {
    pub(super) fn collect() -> Self {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::DEBUG)
                .without_time()
                .with_ansi(false)
                .with_writer(|| Writer)
                .init();
        });
        TEXT.set(Some(Vec::new()));
        Lines(())
    }

    /// Takes the lines of the library since the last look: `WARN [Cache-Adapter][Get] …`.
    #[expect(clippy::unused_self, reason = "there are lines only while they are collected")]
    pub(super) fn take(&self) -> Vec<String> {
        let text = TEXT.replace(Some(Vec::new())).expect("lines are collected");
        let text = String::from_utf8(text).unwrap();
        let of_library =
            |line: &str| line.contains(" seawall: ").then(|| line.trim().replacen("seawall: ", "", 1));
        text.lines().filter_map(of_library).collect()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        TEXT.set(None);
    }
}

struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        TEXT.with_borrow_mut(|text| text.as_mut().map(|text| text.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
