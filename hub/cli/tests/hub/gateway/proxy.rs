//! The proxy: a program changes its base URL, and nothing else.

use seawall_testkit::http::HttpMessage;
use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// HUB-2, ADP-1: method, path, query, headers and bodies reach the upstream as they were written; what is about the connection,
/// and the hub's own key, do not.
#[test]
fn hub_2_the_proxy_passes_requests_and_answers_on() {
    let upstream = Upstream::start(|_, got, stream| match got.head.split(' ').next().unwrap() {
        "HEAD" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n").is_ok(),
        "DELETE" => stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_ok(),
        _ => answer(
            stream,
            418,
            "x-mine: yes\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nconnection: x-secret\r\nx-secret: no\r\nkeep-alive: timeout=5\r\n",
            &got.body,
        ),
    });
    let scene = Scene::new(&format!("{}/v2/", upstream.address), &patient());
    let mut line = Line::open(&scene.hub);
    let headers = "authorization: Basic bWU6bWU=\r\nx-a: 1\r\nx-a: 2\r\nconnection: x-drop, keep-alive\r\nx-drop: 1\r\nte: trailers\r\n\
                   proxy-authorization: no\r\nx-forwarded-for: 10.9.8.7\r\n";
    let (head, body) = line.ask("PATCH", "/gateway/billing/a%2Fb//c?x=%20&y", headers, b"{\"a\": 1}");
    assert!(head.starts_with("HTTP/1.1 418"), "{head}");
    assert_eq!((body.as_slice(), header(&head, "x-mine")), (&b"{\"a\": 1}"[..], Some("yes")));
    assert_eq!(head.matches("set-cookie").count(), 2, "{head}");
    assert!(!head.contains("x-secret") && !head.contains("keep-alive"), "{head}");
    let HttpMessage { head, .. } = upstream.last();
    assert!(head.starts_with("PATCH /v2/a%2Fb//c?x=%20&y HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "authorization"), Some("Basic bWU6bWU="));
    assert_eq!(header(&head, "host"), upstream.address.strip_prefix("http://"));
    assert_eq!(header(&head, "x-forwarded-for"), Some("10.9.8.7, 127.0.0.1"));
    assert_eq!((header(&head, "x-forwarded-host"), header(&head, "via")), (Some("hub"), Some("1.1 seawall")));
    assert!(head.contains("x-a: 1\r\nx-a: 2\r\n"), "{head}");
    for gone in ["x-seawall-key", "x-drop", "\r\nte:", "proxy-authorization", "\r\nconnection"] {
        assert!(!head.to_lowercase().contains(gone), "{gone} is in {head}");
    }
    let (head, _) = line.ask_without_body("HEAD", "/gateway/billing/x");
    assert_eq!(header(&head, "content-length"), Some("1234"), "{head}");
    let (head, _) = line.ask("DELETE", "/gateway/billing/x", "", b"");
    assert!(head.starts_with("HTTP/1.1 204"), "{head}");

    // A service with credentials of its own shows those, and the caller's stay here.
    let auth = json!({"type": "header", "name": "x-api-key", "secret": "s3cr3t"});
    scene.service(&json!({"name": "own", "address": upstream.address, "auth": auth, "headers": {"x-default": "d", "x-set": "d"}}));
    line.ask("GET", "/gateway/own/x", "authorization: Basic bWU6bWU=\r\nx-set: mine\r\n", b"");
    let HttpMessage { head, .. } = upstream.last();
    assert_eq!((header(&head, "authorization"), header(&head, "x-api-key")), (None, Some("s3cr3t")));
    assert_eq!((header(&head, "x-default"), header(&head, "x-set")), (Some("d"), Some("mine")));
}

/// HUB-2: what the hub itself decides has its envelope and says who decided; nothing reaches the upstream.
#[test]
fn hub_2_the_proxy_says_what_it_does_not_pass_on() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let refused = |method: &str, path: &str, headers: &str| {
        let (head, body) = Line::open(&scene.hub).ask(method, path, headers, b"");
        let said: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{head}"));
        assert_eq!(
            (&said["status"], header(&head, "seawall-decided-by")),
            (&json!("error"), Some("hub")),
            "{head}"
        );
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, said["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused("GET", "/gateway/nobody/x", ""), (404, "notFound".into()));
    assert_eq!(refused("GET", "/gateway/billing/../x", ""), (400, "path".into()));
    assert_eq!(refused("GET", "/gateway/billing/%2e%2E/x", ""), (400, "path".into()));
    assert_eq!(
        refused("GET", "/gateway/billing/x", "connection: upgrade\r\nupgrade: websocket\r\n"),
        (501, "upgrade".into())
    );
    assert_eq!(refused("TRACE", "/gateway/billing/x", ""), (501, "method".into()));
    assert_eq!(
        refused("GET", "/gateway/billing/x", "x-seawall-key: another\r\n"),
        (401, "unauthorised".into())
    );
    let mut line = Line::open(&scene.hub);
    line.write(b"GET /gateway/billing/x HTTP/1.1\r\nhost: hub\r\n\r\n");
    assert!(line.read_answer().0.starts_with("HTTP/1.1 401"));
    scene.hub.post("/api/v1/registry/services/billing:pause", &json!({}));
    assert_eq!(refused("GET", "/gateway/billing/x", ""), (503, "paused".into()));
    assert_eq!(upstream.count(), 0);
}

/// HUB-2, ENG-3, ENG-5: the guard of the service is at work: retries with the very same bytes, then 503 while its circuit is open,
/// and the circuit is the one that its deliveries have, kept over a restart.
#[test]
fn hub_2_the_proxy_retries_and_breaks() {
    let upstream = Upstream::start(|n, got, stream| {
        if got.head.contains("/down") || n == 0 {
            return answer(stream, 503, "", b"busy");
        }
        answer(stream, 200, "", b"fine")
    });
    let policy = json!({
        "attempt_timeout": "2s", "retry": {"max_attempts": 3, "backoff": {"base": "5ms"}},
        "breaker": {"consecutive_failures": 4, "cooldown": "30s"},
    });
    let scene = Scene::new(&upstream.address, &policy);
    let mut line = Line::open(&scene.hub);
    let body: Vec<u8> = (0..60_000_u32).map(|n| (n % 251) as u8).collect();
    let (head, said) = line.ask("PUT", "/gateway/billing/flaky", "", &body);
    assert!(head.starts_with("HTTP/1.1 200") && said == b"fine", "{head}");
    assert_eq!(header(&head, "seawall-attempts"), Some("2"));
    let got = upstream.got.lock().unwrap().clone();
    assert_eq!(got.len(), 2);
    assert!(got.iter().all(|got| got.body == body), "the second attempt's bytes are the first's");
    // What failed for good is passed on as it is: an answer is an answer.
    let (head, said) = line.ask("GET", "/gateway/billing/down", "", b"");
    assert!(head.starts_with("HTTP/1.1 503") && said == b"busy", "{head}");
    let (head, _) = line.ask("POST", "/gateway/billing/down", "", b"x");
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(upstream.count(), 6, "a POST without a key is sent once");
    let (head, said) = line.ask("GET", "/gateway/billing/fine", "", b"");
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(header(&head, "seawall-decided-by"), Some("breaker"));
    assert!(
        header(&head, "retry-after").is_some() && String::from_utf8_lossy(&said).contains("circuitOpen"),
        "{head}"
    );
    assert_eq!((upstream.count(), scene.circuit()), (6, "open".to_owned()));
    let circuit = || scene.hub.ask("GET", "/api/v1/registry/services/billing/circuit", KEY, "").1;
    within(Duration::from_secs(5), "it is written down", || {
        circuit()["data"]["history"][0]["state"] == "open"
    });
}

/// HUB-2: an upload in chunks, larger than what is kept for a second try, arrives whole and once; so does one with a length.
#[test]
fn hub_2_an_upload_is_passed_on_while_it_comes() {
    let upstream =
        Upstream::start(|_, got, stream| answer(stream, 200, "", got.body.len().to_string().as_bytes()));
    let scene = Scene::new(&upstream.address, &json!({"attempt_timeout": "20s"}));
    let mut line = Line::open(&scene.hub);
    line.write(format!("POST /gateway/billing/up HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\ntransfer-encoding: chunked\r\n\r\n").as_bytes());
    let piece: Vec<u8> = (0..10_000_u32).map(|n| (n % 253) as u8).collect();
    for _ in 0..50 {
        line.write(format!("{:x}\r\n", piece.len()).as_bytes());
        line.write(&piece);
        line.write(b"\r\n");
    }
    line.write(b"0\r\n\r\n");
    let (head, body) = line.read_answer();
    assert!(head.starts_with("HTTP/1.1 200") && body == b"500000", "{head}");
    assert_eq!(upstream.last().body, piece.repeat(50));
    let (head, body) = line.ask("POST", "/gateway/billing/up", "", &piece.repeat(30));
    assert!(head.starts_with("HTTP/1.1 200") && body == b"300000", "{head}");
    assert_eq!(header(&upstream.last().head, "content-length"), Some("300000"));
    assert_eq!(upstream.count(), 2);
}

/// HUB-2, PRM-8: a large download costs no memory, and is the same bytes at the other end.
#[test]
fn hub_2_a_large_download_is_passed_on_in_bounded_memory() {
    const BYTES: usize = 50 << 20;
    let upstream = Upstream::start(|_, _, stream| {
        let piece: Vec<u8> = (0..1_u32 << 16).map(|n| (n % 241) as u8).collect();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\n\r\n");
        stream.write_all(head.as_bytes()).is_ok()
            && (0..BYTES >> 16).all(|_| stream.write_all(&piece).is_ok())
    });
    let scene =
        Scene::new(&upstream.address, &json!({"attempt_timeout": "60s", "bulkhead": {"max_calls": 2}}));
    let before = memory(&scene.hub, "VmRSS");
    let mut line = Line::open(&scene.hub);
    line.send("GET", "/gateway/billing/large", "", b"");
    let head = line.read_head();
    assert_eq!(header(&head, "content-length"), Some(&*BYTES.to_string()), "{head}");
    let (mut read, mut piece) = (0, vec![0; 1 << 20]);
    while read < BYTES {
        let got = line.stream.read(&mut piece).unwrap();
        assert!(got > 0, "it ended after {read}");
        assert!(piece[..got].iter().zip(read..).all(|(byte, at)| *byte == ((at % (1 << 16)) % 241) as u8));
        read += got;
    }
    let grown = memory(&scene.hub, "VmHWM").saturating_sub(before);
    assert!(grown < 16 << 10, "50 MB passed through, and memory grew by {grown} KiB");
}

/// HUB-2, ENG-6: the place in the bulkhead is held until the last byte of the answer, not only until its headers.
#[test]
fn hub_2_a_place_in_the_bulkhead_is_held_until_the_body_ends() {
    let (go_on, wait) = mpsc::sync_channel::<()>(1);
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(move |_, got, stream| {
        if !got.head.contains("/long") {
            return answer(stream, 200, "", b"ok");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf").unwrap();
        let _ = wait.lock().unwrap().recv();
        stream.write_all(b"half").is_ok()
    });
    let scene =
        Scene::new(&upstream.address, &json!({"attempt_timeout": "20s", "bulkhead": {"max_calls": 1}}));
    let (mut line, mut other) = (Line::open(&scene.hub), Line::open(&scene.hub));
    line.send("GET", "/gateway/billing/long", "", b"");
    assert!(line.read_head().starts_with("HTTP/1.1 200"));
    let (head, _) = other.ask("GET", "/gateway/billing/x", "", b"");
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(header(&head, "seawall-decided-by"), Some("bulkhead"));
    go_on.send(()).unwrap();
    assert_eq!(line.read_exactly(8), b"halfhalf");
    within(Duration::from_secs(5), "the place is free", || {
        other.ask("GET", "/gateway/billing/x", "", b"").0.starts_with("HTTP/1.1 200")
    });
}

/// HUB-2, PRM-4: a client that goes away, before the answer or in its middle, ends the call to the upstream, frees its place,
/// and is no failure of the upstream.
#[test]
fn hub_2_a_client_that_goes_away_is_no_failure_of_the_upstream() {
    let upstream = Upstream::start(|_, got, stream| {
        if got.head.contains("/ok") {
            // So that no connection is open but those that hang.
            answer(stream, 200, "connection: close\r\n", b"ok");
            return false;
        }
        if got.head.contains("/body") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbegin").unwrap();
        }
        // Until the hub hangs up.
        let _ = stream.read(&mut [0; 1]);
        false
    });
    let policy = json!({
        "attempt_timeout": "20s", "bulkhead": {"max_calls": 1}, "breaker": {"consecutive_failures": 1, "cooldown": "60s"},
    });
    let scene = Scene::new(&upstream.address, &policy);
    for (round, path) in ["/body", "/head", "/body"].into_iter().enumerate() {
        let mut line = Line::open(&scene.hub);
        line.send("GET", &format!("/gateway/billing{path}"), "", b"");
        within(Duration::from_secs(5), "it arrives", || upstream.count() == 2 * round + 1);
        if path == "/body" {
            assert!(line.read_head().starts_with("HTTP/1.1 200"));
            // For longer than a call may take that is given up because the upstream is slow.
            std::thread::sleep(Duration::from_millis(1_200));
        }
        drop(line);
        within(Duration::from_secs(5), "the upstream's connection ends", || {
            upstream.open.load(Ordering::SeqCst) == 0
        });
        let (head, _) =
            Line::open(&scene.hub).ask("GET", "/gateway/billing/ok", "connection: close\r\n", b"");
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        assert_eq!(scene.circuit(), "closed");
        within(Duration::from_secs(5), "that one ends too", || upstream.open.load(Ordering::SeqCst) == 0);
    }
}

/// HUB-2, ENG-5: an answer that breaks off never looks complete to the client, with a length, in chunks or up to the end of the
/// connection; and it counts against the circuit.
#[test]
fn hub_2_an_answer_that_breaks_off_is_never_a_clean_end() {
    let upstream = Upstream::start(|_, got, stream| {
        let head: &[u8] = if got.head.contains("/length") {
            b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbegin"
        } else {
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n"
        };
        stream.write_all(head).unwrap();
        // What is not read makes the end a reset.
        std::thread::sleep(Duration::from_millis(100));
        false
    });
    let policy = json!({"attempt_timeout": "20s", "retry": {"max_attempts": 3}, "breaker": {"consecutive_failures": 4, "cooldown": "60s"}});
    let scene = Scene::new(&upstream.address, &policy);
    for (path, version) in [("/length", "1.1"), ("/chunks", "1.1"), ("/length", "1.0"), ("/chunks", "1.0")] {
        let mut line = Line::open(&scene.hub);
        line.write(
            format!("GET /gateway/billing{path} HTTP/{version}\r\nhost: hub\r\nx-seawall-key: {KEY}\r\n\r\n")
                .as_bytes(),
        );
        let head = line.read_head();
        assert!(head.contains(" 200 "), "{head}");
        let mut rest = Vec::new();
        let end = line.stream.read_to_end(&mut rest);
        let clean = match (header(&head, "content-length"), header(&head, "transfer-encoding")) {
            (Some(length), _) => rest.len() == length.parse::<usize>().unwrap(),
            (None, Some(_)) => rest.ends_with(b"0\r\n\r\n"),
            (None, None) => end.is_ok(),
        };
        assert!(!clean, "{path} HTTP/{version}: {head} {rest:?} {end:?}");
    }
    assert_eq!(upstream.count(), 4, "nothing is tried again that somebody has seen the beginning of");
    within(Duration::from_secs(5), "the circuit opens", || scene.circuit() == "open");
}

/// HUB-2, PRM-6: the deadline covers the body, also when it is the client that does not read: 504 before the headers, a broken
/// connection after them.
#[test]
fn hub_2_the_proxys_deadline_covers_the_body() {
    let upstream = Upstream::start(|_, got, stream| {
        if got.head.contains("/hang") {
            let _ = stream.read(&mut [0; 1]);
            return false;
        }
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n").is_err() {
            return false;
        }
        let (piece, pause) = if got.head.contains("/trickle") { (1, 20) } else { (1 << 16, 0) };
        while stream.write_all(&vec![7; piece]).is_ok() {
            std::thread::sleep(Duration::from_millis(pause));
        }
        false
    });
    let policy = json!({"attempt_timeout": "600ms", "bulkhead": {"max_calls": 1}});
    let scene = Scene::new(&upstream.address, &policy);
    let began = Instant::now();
    let (head, body) = Line::open(&scene.hub).ask("GET", "/gateway/billing/hang", "", b"");
    assert!(head.starts_with("HTTP/1.1 504") && String::from_utf8_lossy(&body).contains("timeout"), "{head}");
    assert_eq!(header(&head, "seawall-decided-by"), Some("attempt-timeout"));
    let (head, _) =
        Line::open(&scene.hub).ask("GET", "/gateway/billing/hang", "seawall-deadline: 100\r\n", b"");
    assert!(head.starts_with("HTTP/1.1 504") && began.elapsed() < Duration::from_secs(5), "{head}");
    for path in ["/trickle", "/flood"] {
        let (mut line, began) = (Line::open(&scene.hub), Instant::now());
        line.send("GET", &format!("/gateway/billing{path}"), "", b"");
        assert!(line.read_head().starts_with("HTTP/1.1 200"));
        if path == "/trickle" {
            let _ = line.stream.read_to_end(&mut Vec::new());
        }
        // Nobody reads the flood; its place is free all the same.
        within(Duration::from_secs(5), "the place is free", || {
            let (head, _) =
                Line::open(&scene.hub).ask("GET", "/gateway/billing/hang", "seawall-deadline: 1\r\n", b"");
            head.starts_with("HTTP/1.1 504")
        });
        assert!(began.elapsed() < Duration::from_secs(8), "{path} took {:?}", began.elapsed());
    }
}
