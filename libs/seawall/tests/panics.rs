//! What is logged about panics. In a process of its own: the panic hook belongs to the whole process, and who reads the log
//! of one thread misses lines while other threads have no reader.

#![cfg(all(feature = "task", feature = "tracing"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use seawall::task::Group;
use tokio::task::yield_now;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);
impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// TSK-5: a panic is logged with its message, its place and its backtrace, in the moment it happens.
#[tokio::test]
async fn tsk_5_a_panic_is_logged_with_its_backtrace() {
    let paper = Paper::default();
    let writer = paper.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _log = tracing::subscriber::set_default(log);
    seawall::task::keep_backtraces();
    let mut group = Group::<(), ()>::new();
    group.spawn("relay", async { panic!("out of order") });
    yield_now().await;
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    for part in ["ERROR", "[group][relay] Panicked!", "cause=\"out of order\"", "panics.rs:", "backtrace="] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(text.contains("tsk_5_a_panic_is_logged"), "the backtrace leads here: {text}");
    assert!(group.wait().await.is_err());
}
