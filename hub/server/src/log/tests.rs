use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::{Value, json};

use super::line::{LineFields, compose};
use super::*;

fn fields(values: &[(&'static str, Value)]) -> LineFields {
    LineFields { message: "[Deliver][Send] Failed!".into(), values: values.to_vec() }
}

/// OBS-1: one line, the keys in their order, and the same in JSON. Trap: a value with a line break forges a line.
#[test]
fn obs_1_a_value_can_not_forge_a_line_or_a_field() {
    let forged = "no\n2026-01-01T00:00:00Z INFO  [Hub][Stop] Success. level=\"x\u{1b}[31m\u{202e}\\";
    let values =
        [("cause", json!(forged)), ("attempt", json!(3)), ("service", json!("billing")), ("note", json!(""))];
    let text = compose(Format::Text, "T", "WARN", "seawall", fields(&values));
    assert_eq!(
        text,
        "T WARN  [Deliver][Send] Failed! cause=\"no\\n2026-01-01T00:00:00Z INFO  [Hub][Stop] Success. \
         level=\\\"x\\u{1b}[31m\\u{202e}\\\\\" attempt=3 service=billing note=\"\"\n"
    );
    let line = compose(Format::Json, "T", "WARN", "seawall", fields(&values));
    assert_eq!(line.matches('\n').count(), 1);
    let object: Value = serde_json::from_str(&line).unwrap();
    let expected = json!({
        "time": "T", "level": "WARN", "module": "Deliver", "operation": "Send", "status": "Failed!", "cause": forged,
        "attempt": 3, "service": "billing", "note": "",
    });
    assert_eq!(object, expected);
    let others = LineFields { message: "a\nb".into(), values: Vec::new() };
    assert_eq!(compose(Format::Text, "T", "WARN", "hyper", others), "T WARN  [hyper][log] a\\nb\n");
}

/// Writes when it is let.
struct Slow {
    gate: Receiver<()>,
    out: SyncSender<String>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.gate.recv();
        let _ = self.out.try_send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// OBS-1: who writes never waits for who reads; what is dropped is counted, and a line says so; a flush has an end.
#[test]
fn obs_1_a_reader_that_is_slow_holds_up_nobody() {
    let (open, gate) = sync_channel(10);
    let (out, written) = sync_channel(10);
    let queue = Arc::new(LineQueue::new(3));
    queue::start(queue.clone(), Format::Text, Clock::system(), Slow { gate, out }).unwrap();
    queue.put("first\n".into());
    // The first is being written, or will be together with the next; either way there is room for three more at most.
    queue.flush(Duration::from_millis(1));
    for number in 0..100 {
        queue.put(format!("{number}\n"));
    }
    queue.flush(Duration::from_millis(1));
    for _ in 0..3 {
        open.send(()).unwrap();
    }
    queue.flush(Duration::from_secs(20));
    let text: String = written.try_iter().collect();
    assert!(text.starts_with("first\n0\n1\n"), "{text}");
    let dropped = text.split("dropped=").nth(1).unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert_eq!(text.lines().count() - 1 + dropped, 101, "{text}");
}
