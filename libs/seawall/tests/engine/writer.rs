//! The writer that never blocks whoever logs.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use seawall::telemetry::{Log, LogWriter};
use seawall::{Fault, Guard, millis, secs};

use crate::paper::Paper;

/// Writes to a paper as often as it is let; for ever once nobody can hold it up any more.
struct Gated {
    gate: Receiver<()>,
    began: SyncSender<()>,
    paper: Paper,
}

impl Gated {
    /// The writer, the hand that lets it write, and what tells that it is about to.
    fn new(paper: &Paper) -> (Self, SyncSender<()>, Receiver<()>) {
        let ((open, gate), (began, begins)) = (sync_channel(100), sync_channel(100));
        (Gated { gate, began, paper: paper.clone() }, open, begins)
    }
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.began.send(());
        let _ = self.gate.recv();
        self.paper.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// OBS-1: calls go on while nobody reads the log, and its end has a bound in time.
#[test]
fn obs_1_a_writer_that_hangs_holds_up_no_call() {
    let paper = Paper::default();
    let (out, _open, _begins) = Gated::new(&paper);
    let log = LogWriter::builder().lines(10).start(out).unwrap();
    let guard = Guard::builder("payments").log(Log::default().lines_per_second(1_000_000)).build().unwrap();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.make_writer()).finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..1_000 {
            guard.run(|_| Ok::<_, Fault>(())).unwrap();
        }
    });
    // Two lines each; ten wait, and up to ten were taken before.
    assert!((1_980..=1_990).contains(&log.dropped()), "{}", log.dropped());
    assert!(!log.flush(millis(1)));
    assert!(!log.close(millis(1)), "it still hangs");
}

/// OBS-1: what finds no room is dropped and counted, and one line says how many it was when there is room again.
#[test]
fn obs_1_a_burst_above_the_bound_is_dropped_and_counted() {
    let paper = Paper::default();
    let (out, open, begins) = Gated::new(&paper);
    let log = LogWriter::builder().lines(3).start(out).unwrap();
    let mut handle = log.make_writer()();
    handle.write_all(b"first\n").unwrap();
    begins.recv().unwrap();
    for number in 0..100 {
        handle.write_all(format!("{number}\n").as_bytes()).unwrap();
    }
    assert_eq!(log.dropped(), 97);
    drop(open);
    assert!(log.flush(secs(20)));
    handle.write_all(b"last\n").unwrap();
    assert!(log.close(secs(20)));
    assert_eq!(
        paper.read(),
        [
            "first",
            "0",
            "1",
            "2",
            "WARN seawall: [Log][Write] Failed! dropped=97 cause=\"the log was written too slowly\"",
            "last",
        ]
    );
    handle.write_all(b"too late\n").unwrap();
    assert_eq!(paper.read(), Vec::<String>::new());
}

/// OBS-1: a few long lines are no way around the bound.
#[test]
fn obs_1_the_queue_is_bounded_in_bytes() {
    let paper = Paper::default();
    let (out, open, begins) = Gated::new(&paper);
    let log = LogWriter::builder().bytes(10).json().start(out).unwrap();
    let mut handle = log.make_writer()();
    handle.write_all(b"first\n").unwrap();
    begins.recv().unwrap();
    for line in ["12345678901\n", "12345\n", "123\n", "1234\n"] {
        handle.write_all(line.as_bytes()).unwrap();
    }
    drop(open);
    drop(log);
    let notice = r#"{"level":"WARN","fields":{"message":"[Log][Write] Failed!","dropped":2,"cause":"the log was written too slowly"},"target":"seawall"}"#;
    assert_eq!(paper.read(), ["first", "12345", "123", notice]);
}

/// OBS-1: every line of every thread is there after an orderly end.
#[test]
fn obs_1_all_lines_are_written_at_an_orderly_end() {
    let paper = Paper::default();
    let log = LogWriter::builder().lines(100_000).start(paper.clone()).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let mut handle = log.make_writer()();
            scope.spawn(move || {
                for number in 0..1_000 {
                    handle.write_all(format!("{thread} {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    assert_eq!(log.dropped(), 0);
    drop(log);
    let lines = paper.read();
    assert_eq!(lines.len(), 4_000);
    for thread in 0..4 {
        let own = lines.iter().filter(|line| line.starts_with(&format!("{thread} ")));
        assert!(own.enumerate().all(|(n, line)| *line == format!("{thread} {n}")), "in order");
    }
}

/// Panics at its first line.
struct Panics(bool, Paper);

impl Write for Panics {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(std::mem::replace(&mut self.0, true), "no disk");
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// OBS-1: a writer that panics loses what it was given, and nothing that comes later.
#[test]
fn obs_1_a_writer_that_panics_is_asked_again() {
    let paper = Paper::default();
    let log = LogWriter::new(Panics(false, paper.clone())).unwrap();
    let mut handle = log.make_writer()();
    handle.write_all(b"lost\n").unwrap();
    assert!(log.flush(secs(20)));
    handle.write_all(b"written\n").unwrap();
    assert!(log.close(secs(20)));
    assert_eq!(paper.read(), ["written"]);
}
