//! The example `shutdown`, looked at from outside: a real process, real connections, real signals.

#![cfg(unix)]

use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

struct Service {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Service {
    fn start(delay_ms: u64) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_shutdown"))
            .env("DELAY_MS", delay_ms.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example was built");
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let first = lines.next().expect("it says where it listens").expect("in text");
        let address = first.strip_prefix("listening on ").expect("first of all").parse().expect("an address");
        Service { process, lines, address }
    }

    /// Waits until it says this.
    fn says(&mut self, line: &str) {
        let found = self.lines.by_ref().map(|line| line.expect("text")).any(|said| said == line);
        assert!(found, "it never said {line:?}");
    }

    fn terminate(&self) {
        self.signal("-TERM");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("there is a `kill`").success());
    }

    fn send(&self, text: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).expect("it listens");
        socket.write_all(text.as_bytes()).expect("it reads");
        socket
    }

    fn get(&self, path: &str) -> String {
        status(self.send(&format!("GET {path} HTTP/1.1\r\n\r\n")))
    }

    /// Waits for its end. What it said since the last look, and its exit code. That it is not ready it may say before or
    /// after it stops accepting: without a delay both happen at once.
    fn ends(mut self) -> (Vec<String>, Option<i32>) {
        let rest =
            self.lines.by_ref().map(|line| line.expect("text")).filter(|line| line != "not ready").collect();
        (rest, self.process.wait().expect("it ends").code())
    }
}

/// Nothing that a failed test has started goes on.
impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

fn status(mut socket: TcpStream) -> String {
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer.split("\r\n").next().unwrap_or_default().to_owned()
}

/// The report without how long everything took.
fn without_times(lines: &[String]) -> Vec<String> {
    let short = |line: &String| {
        let line = line.split(" finished in ").next().unwrap_or_default();
        line.split(" after ").next().unwrap_or_default().trim_end().to_owned()
    };
    lines.iter().map(short).collect()
}

const UPLOAD: &str = "POST /upload HTTP/1.1\r\n\r\n";

/// TSK-6: phases in order, a request in flight is still answered, a new one is refused, what is out of time is named.
#[test]
fn tsk_6_a_service_that_gets_sigterm_ends_in_order() {
    let mut service = Service::start(0);
    assert_eq!(service.get("/ready"), "HTTP/1.1 200 OK");
    let mut upload = service.send(UPLOAD);
    service.says("upload began");
    service.terminate();
    service.says("http stopped accepting");
    let refused = TcpStream::connect(service.address).expect_err("nobody listens any more");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    upload.write_all(b"the rest.").expect("it still reads");
    assert_eq!(status(upload), "HTTP/1.1 200 OK");
    let (lines, code) = service.ends();
    assert_eq!(
        without_times(&lines),
        [
            "upload ended",
            "outbox poller stopped",
            "saga monitor stopped",
            "rabbitmq closed",
            "orders closed",
            "shutdown: 6 of 7 parts",
            "  accepting  http           finished",
            "  in flight  requests       finished",
            "  pollers    outbox poller  finished",
            "  pollers    export         out of time",
            "  monitors   saga monitor   finished",
            "  brokers    rabbitmq       finished",
            "  databases  orders         finished",
        ],
        "{lines:?}"
    );
    let export = lines.iter().find_map(|line| line.split("out of time after ").nth(1)).expect("a line");
    let took = match export.strip_suffix("ms") {
        Some(millis) => millis.parse(),
        None => export.trim_end_matches('s').parse().map(|seconds: f64| seconds * 1000.0),
    };
    let took = took.expect("a duration");
    assert!(
        (200.0..5000.0).contains(&took),
        "given up after its limit of 200 ms, and not much later: {export}"
    );
    assert_eq!(code, Some(1));
}

/// TSK-6: a second signal ends it at once, while a request is still under way; Ctrl-C is as good as SIGTERM.
#[test]
fn tsk_6_a_second_signal_ends_the_service_at_once() {
    for (first, second) in [("-TERM", "-TERM"), ("-INT", "-TERM"), ("-TERM", "-INT")] {
        ends_at_once(first, second);
    }
}

fn ends_at_once(first: &str, second: &str) {
    let mut service = Service::start(0);
    let _upload = service.send(UPLOAD);
    service.says("upload began");
    service.signal(first);
    service.says("http stopped accepting");
    service.signal(second);
    let (lines, code) = service.ends();
    let first = lines.iter().position(|line| line.starts_with("shutdown: ")).expect("a report");
    assert!(lines[first].starts_with("shutdown: 1 of 7 parts finished in "), "{lines:?}");
    assert!(lines[first].ends_with(", cut short by a second signal"), "{lines:?}");
    assert_eq!(
        without_times(&lines[first + 1..]),
        [
            "  accepting  http           finished",
            "  in flight  requests       cut short",
            "  pollers    outbox poller  not started",
            "  pollers    export         not started",
            "  monitors   saga monitor   not started",
            "  brokers    rabbitmq       not started",
            "  databases  orders         not started",
        ]
    );
    assert_eq!(code, Some(2));
}

/// TSK-6: during the delay it says that it is not ready, and still answers; a second SIGTERM ends that too.
#[test]
fn tsk_6_readiness_is_gone_first_and_everything_else_goes_on() {
    let mut service = Service::start(3_600_000);
    assert_eq!(service.get("/ready"), "HTTP/1.1 200 OK");
    service.terminate();
    service.says("not ready");
    assert_eq!(service.get("/ready"), "HTTP/1.1 503 Service Unavailable");
    let mut upload = service.send(UPLOAD);
    upload.write_all(b".").expect("it reads");
    assert_eq!(status(upload), "HTTP/1.1 200 OK");
    service.terminate();
    let (lines, code) = service.ends();
    assert!(lines.iter().any(|line| line.starts_with("shutdown: 0 of 7 parts finished in ")), "{lines:?}");
    assert_eq!(code, Some(2));
}
