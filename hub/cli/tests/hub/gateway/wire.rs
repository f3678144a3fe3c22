//! What clients write that should not: two requests in one, and one byte a second.

use seawall_testkit::http::HttpMessage;
use std::io::ErrorKind;
use std::time::Duration;

use super::*;

/// HUB-2, PRM-8, trap "HTTP in and out": however a request is framed, the upstream sees exactly one for each that the client was
/// answered for, and never a part of a body as a request.
#[test]
fn hub_2_no_request_is_smuggled() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let inner = "GET /gateway/billing/smuggled HTTP/1.1\r\nhost: hub\r\n\r\n";
    let head = |framing: &str| {
        format!("POST /gateway/billing/outer HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\n{framing}\r\n")
    };
    let length = inner.len();
    let shapes = [
        (
            "a length and chunks",
            head(&format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"))
                + "0\r\n\r\n"
                + inner,
        ),
        (
            "chunks and a length",
            head(&format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n"))
                + "0\r\n\r\n"
                + inner,
        ),
        ("two lengths", head(&format!("content-length: 0\r\ncontent-length: {length}\r\n")) + inner),
        ("a list of lengths", head(&format!("content-length: 0, {length}\r\n")) + inner),
        ("a length with a sign", head("content-length: +0\r\n") + inner),
        ("an encoding that is none", head("transfer-encoding: xchunked\r\n") + "0\r\n\r\n" + inner),
        ("chunks that are not last", head("transfer-encoding: chunked, identity\r\n") + "0\r\n\r\n" + inner),
        (
            "two encodings",
            head("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n") + "0\r\n\r\n" + inner,
        ),
        ("a space before the colon", head(&format!("content-length : {length}\r\n")) + inner),
        ("a folded header", head(&format!("x: y\r\n content-length: {length}\r\n")) + inner),
        ("a bare line feed", head("x: y\ntransfer-encoding: chunked\r\n") + "0\r\n\r\n" + inner),
        (
            "an old version with chunks",
            head("transfer-encoding: chunked\r\n").replacen("HTTP/1.1", "HTTP/1.0", 1) + "0\r\n\r\n" + inner,
        ),
        (
            "a chunk of a wrong size",
            head("transfer-encoding: chunked\r\n") + "5\r\nabcdefgh\r\n0\r\n\r\n" + inner,
        ),
        (
            "a chunk of a huge size",
            head("transfer-encoding: chunked\r\n") + "ffffffffffffffff1\r\nx\r\n0\r\n\r\n" + inner,
        ),
        ("an upgrade", head("connection: upgrade\r\nupgrade: websocket\r\n") + inner),
        (
            "a length that the connection hides",
            head(&format!("connection: content-length\r\ncontent-length: {length}\r\n")) + inner,
        ),
        ("a header that breaks the line", head("x: a\rcontent-length: 0\r\n") + inner),
        ("a header with a zero", head("x: a\0b\r\n") + inner),
    ];
    for (name, shape) in shapes {
        let before = upstream.count();
        let mut line = Line::open(&scene.hub);
        line.stream.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        line.write(shape.as_bytes());
        let mut said = Vec::new();
        let _ = line.stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let got: Vec<HttpMessage> = upstream.got.lock().unwrap()[before..].to_vec();
        assert!(got.len() <= 1, "{name}: the upstream saw {got:?}");
        for got in got {
            assert!(
                got.head.starts_with("POST /outer ") && !got.head.contains("smuggled"),
                "{name}: {got:?}"
            );
            let framings = ["content-length", "transfer-encoding"];
            let framed = framings.iter().filter(|framing| header(&got.head, framing).is_some()).count();
            assert!(framed <= 1, "{name}: {got:?}");
            assert!(said.starts_with("HTTP/1.1 200"), "{name}: {said}");
        }
    }
    assert!(Line::open(&scene.hub).ask("GET", "/gateway/billing/x", "", b"").0.starts_with("HTTP/1.1 200"));
}

/// PRM-8: a body that was refused unread is not taken for the next request.
#[test]
fn prm_8_a_refused_body_is_never_the_next_request() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let inner =
        format!("GET /gateway/billing/smuggled HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\n\r\n");
    for path in ["/gateway/nobody/x", "/gateway/billing/../x", "/api/v1/nothing", "/gateway/billing/x"] {
        let mut line = Line::open(&scene.hub);
        line.stream.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let key = if path.ends_with("billing/x") { "wrong" } else { KEY };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {key}\r\ncontent-length: {}\r\n\r\n",
            inner.len()
        );
        line.write(head.as_bytes());
        line.write(inner.as_bytes());
        let _ = line.stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(upstream.count(), 0);
}

/// PRM-8: headers that are too many or too large are 431, and the connection ends.
#[test]
fn prm_8_headers_have_a_limit() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    for headers in [format!("x: {}\r\n", "y".repeat(70_000)), "x: y\r\n".repeat(200)] {
        let mut line = Line::open(&scene.hub);
        let request = format!("GET /gateway/billing/x HTTP/1.1\r\nhost: hub\r\n{headers}\r\n");
        // It may be refused before all of it is written.
        let _ = line.stream.get_mut().write_all(request.as_bytes());
        let mut said = Vec::new();
        let _ = line.stream.read_to_end(&mut said);
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&said));
    }
    assert_eq!(upstream.count(), 0);
}

/// PRM-8, trap "the header timeout that is inert": clients that send a byte now and then are gone within the limit, cost a bounded
/// amount of memory each, and nobody else waits for them.
#[test]
fn prm_8_slow_clients_are_gone_within_the_limit_in_bounded_memory() {
    // So many that a constant is not seen, and no more than a process may have sockets: the hub has one for each too.
    const CLIENTS: usize = 10_000;
    const PER_CLIENT_KIB: u64 = 24;
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let clients = sockets_allowed().saturating_sub(500).min(CLIENTS);
    let before = memory(&scene.hub, "VmRSS");
    let began = Instant::now();
    let mut slow: Vec<TcpStream> = (0..clients)
        .map(|_| {
            let mut stream = TcpStream::connect(&scene.hub.address).unwrap();
            stream.write_all(b"GET /gateway/billing/x HTTP/1.1\r\nhost: h").unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let grown = memory(&scene.hub, "VmRSS").saturating_sub(before);
    assert!(grown < PER_CLIENT_KIB * clients as u64, "{clients} clients cost {grown} KiB");
    println!("{clients} slow clients cost {} KiB each", grown / clients as u64);
    let (head, _) = Line::open(&scene.hub).ask("GET", "/gateway/billing/x", "", b"");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // A byte each, every second, until they are all gone: half a minute after they came, and a busy machine later.
    let all_there = Instant::now();
    while !slow.is_empty() {
        assert!(all_there.elapsed() < Duration::from_secs(120), "{} are still there", slow.len());
        std::thread::sleep(Duration::from_secs(1));
        slow.retain_mut(|stream| {
            let alive = |error: &std::io::Error| error.kind() == ErrorKind::WouldBlock;
            let written = stream.write(b"x");
            let open = stream.read(&mut [0; 512]).map_or_else(|error| alive(&error), |read| read > 0);
            written.map_or_else(|error| alive(&error), |_| true) && open
        });
    }
    assert!(began.elapsed() >= Duration::from_secs(25), "an idle connection is kept for a while");
    assert_eq!(upstream.count(), 1);
}

fn sockets_allowed() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX)
}
