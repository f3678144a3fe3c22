//! What groups and shutdowns log. In a process of its own: the panic hook belongs to the whole process, and who reads the log
//! of one thread misses lines while other threads have no reader.

#![cfg(all(feature = "task", feature = "tracing", feature = "test-util"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use seawall::secs;
use seawall::task::{Group, keep_backtraces};
use seawall::task::{Phase, Shutdown};
use tokio::task::yield_now;
use tracing::subscriber::DefaultGuard;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    /// A paper on which this thread's log is written, while the guard lives.
    fn new() -> (Self, DefaultGuard) {
        let paper = Paper::default();
        let writer = paper.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        (paper, tracing::subscriber::set_default(log))
    }

    fn read(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

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
    let (paper, _log) = Paper::new();
    keep_backtraces();
    let mut group = Group::<(), ()>::new();
    group.spawn("relay", async { panic!("out of order") });
    yield_now().await;
    let text = paper.read();
    for part in ["ERROR", "[group][relay] Panicked!", "cause=\"out of order\"", "logs.rs:", "backtrace="] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(text.contains("tsk_5_a_panic_is_logged"), "the backtrace leads here: {text}");
    assert!(group.wait().await.is_err());
}

/// TSK-6: each phase and each part has its line; what did not finish is a warning.
#[tokio::test(start_paused = true)]
async fn tsk_6_a_shutdown_is_logged_phase_by_phase() {
    let (paper, _log) = Paper::new();
    let mut shutdown = Shutdown::new().limit(Phase::Brokers, secs(1));
    shutdown.on(Phase::Accepting, "http", || async {});
    shutdown.on(Phase::Brokers, "rabbitmq", std::future::pending::<()>);
    shutdown.run().await;
    let text = paper.read();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "INFO seawall: [shutdown][readiness] Not ready.",
            "INFO seawall: [shutdown][accepting] Start.",
            "INFO seawall: [shutdown][http] Success. phase=accepting duration=0ns",
            "INFO seawall: [shutdown][in flight] Start.",
            "INFO seawall: [shutdown][pollers] Start.",
            "INFO seawall: [shutdown][monitors] Start.",
            "INFO seawall: [shutdown][brokers] Start.",
            "WARN seawall: [shutdown][rabbitmq] Failed! phase=brokers duration=1s cause=out of time",
            "INFO seawall: [shutdown][databases] Start.",
        ]
    );
}
