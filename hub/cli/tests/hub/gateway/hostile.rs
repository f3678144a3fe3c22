//! Clients and upstreams that are rude, broken or hostile; what they do stays between them and the hub.

use seawall_testkit::http::HttpMessage;
use std::time::Duration;

use super::*;

/// SEC-3, trap "hop-by-hop": what the hub says of the client can't be taken away by a client that names it in `Connection`, and
/// what nearer proxies have said stays, on however many lines it came.
#[test]
fn sec_3_a_client_cannot_take_away_what_the_hub_says_of_it() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let mut line = Line::open(&scene.hub);
    let named = "connection: x-forwarded-for, x-forwarded-host, via\r\nconnection: x-forwarded-proto\r\n";
    line.ask("GET", "/gateway/billing/x", named, b"");
    let HttpMessage { head, .. } = upstream.last();
    assert_eq!(header(&head, "x-forwarded-for"), Some("127.0.0.1"), "{head}");
    assert_eq!((header(&head, "x-forwarded-host"), header(&head, "via")), (Some("hub"), Some("1.1 seawall")));
    assert_eq!(header(&head, "x-forwarded-proto"), Some("http"), "{head}");
    let chain = "x-forwarded-for: 10.0.0.1\r\nx-forwarded-for: 10.0.0.2, 10.0.0.3\r\n";
    line.ask("GET", "/gateway/billing/x", chain, b"");
    let HttpMessage { head, .. } = upstream.last();
    assert_eq!(header(&head, "x-forwarded-for"), Some("10.0.0.1, 10.0.0.2, 10.0.0.3, 127.0.0.1"), "{head}");
}

/// SEC-3: no spelling of `..` leaves the address of the service, neither through the proxy nor by `:call`; what only looks like
/// it goes through.
#[test]
fn sec_3_no_spelling_of_dots_leaves_the_service() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&format!("{}/v2/public", upstream.address), &patient());
    let climbing = [
        "/../admin",
        "/%2e%2e/admin",
        "/.%2E/admin",
        "/a/..%2fadmin",
        "/..%2Fadmin",
        "/..%5cadmin",
        "/..\\admin",
        "/a\\..\\..\\admin",
        "/a%2f..%2f..%2fadmin",
        "/..;/admin",
        "/..;x=1/admin",
        "/%2e%2e%3b/admin",
        "/a/..",
    ];
    for path in climbing {
        let (head, _) = Line::open(&scene.hub).ask("GET", &format!("/gateway/billing{path}"), "", b"");
        assert!(head.starts_with("HTTP/1.1 400"), "{path}: {head}");
        let (status, said) = scene.call(&json!({"path": path}));
        assert_eq!((status, &said["errors"][0]["field"]), (422, &json!("path")), "{path}: {said}");
    }
    assert_eq!(upstream.count(), 0);
    for path in ["/a%2Fb", "/a..b", "/...", "/.well-known/x", "/a;b/c", "/x?back=/../y", "/%2e%2e%2e"] {
        let (head, _) = Line::open(&scene.hub).ask("GET", &format!("/gateway/billing{path}"), "", b"");
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        assert_eq!(scene.call(&json!({"path": path})).0, 200, "{path}");
    }
}

/// HUB-2: a client that offers to speak HTTP/2, as some do on every first request, is served in HTTP/1.1; one that wants another
/// protocol altogether is told.
#[test]
fn hub_2_an_offer_of_http_2_is_not_taken_and_does_no_harm() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let offer = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n";
    let (head, body) = Line::open(&scene.hub).ask("POST", "/gateway/billing/x", offer, b"hello");
    assert!(head.starts_with("HTTP/1.1 200") && body == b"ok", "{head}");
    let HttpMessage { head, body } = upstream.last();
    assert_eq!(body, b"hello");
    assert!(header(&head, "upgrade").is_none() && header(&head, "http2-settings").is_none(), "{head}");
    let both = "connection: upgrade\r\nupgrade: h2c, websocket\r\n";
    assert!(Line::open(&scene.hub).ask("GET", "/gateway/billing/x", both, b"").0.starts_with("HTTP/1.1 501"));
}

/// HUB-2: what the hub says of itself is said by the hub: an upstream that has the same headers, another hub for one, does not
/// look like it.
#[test]
fn hub_2_an_upstream_cannot_speak_for_the_hub() {
    let upstream = Upstream::start(|_, _, stream| {
        answer(stream, 200, "seawall-decided-by: breaker\r\nseawall-attempts: 7\r\nx-mine: 1\r\n", b"ok")
    });
    let scene = Scene::new(&upstream.address, &patient());
    let (head, _) = Line::open(&scene.hub).ask("GET", "/gateway/billing/x", "", b"");
    assert_eq!(header(&head, "x-mine"), Some("1"));
    assert_eq!(
        (header(&head, "seawall-decided-by"), header(&head, "seawall-attempts")),
        (None, None),
        "{head}"
    );
}

/// HUB-2, trap "HTTP in and out": answers without a body, with a length that is none, with two framings, and after hints: each is
/// what it means, and the next one on the same connections is not a part of it.
#[test]
fn hub_2_the_framing_of_answers_is_made_anew() {
    let upstream = Upstream::start(|_, got, stream| {
        let said: &[u8] = match got.head.split(' ').nth(1).unwrap() {
            "/304" => b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 1234\r\n\r\n",
            "/204" => b"HTTP/1.1 204 No Content\r\netag: x\r\n\r\n",
            "/head" => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "/both" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n",
            "/hints" => b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "/trailers" => b"HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n",
            "/twice" => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok",
            _ => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        };
        stream.write_all(said).is_ok()
    });
    let scene = Scene::new(&upstream.address, &patient());
    let mut line = Line::open(&scene.hub);
    let shapes: [(&str, &str, &str, &[u8]); 7] = [
        ("GET", "/304", "304", b""),
        ("DELETE", "/204", "204", b""),
        ("HEAD", "/head", "200", b""),
        ("GET", "/both", "200", b"hello world"),
        ("GET", "/hints", "200", b"ok"),
        ("GET", "/trailers", "200", b"ok"),
        ("GET", "/twice", "200", b"ok"),
    ];
    for (method, path, status, body) in shapes {
        line.send(method, &format!("/gateway/billing{path}"), "te: trailers\r\n", b"");
        let head = line.read_head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {head}");
        let read = if header(&head, "transfer-encoding").is_some() && method != "HEAD" {
            read_chunks(&mut line)
        } else if method == "HEAD" || status == "304" {
            Vec::new()
        } else {
            line.read_exactly(header(&head, "content-length").map_or(0, |length| length.parse().unwrap()))
        };
        assert_eq!(read, body, "{path}: {head}");
        let (head, body) = line.ask("GET", "/gateway/billing/next", "", b"");
        assert!(head.starts_with("HTTP/1.1 200") && body == b"ok", "after {path}: {head}");
    }
    let connections = upstream.connections.load(Ordering::SeqCst);
    assert!(connections <= 3, "{connections} connections for one client");
}

fn read_chunks(line: &mut Line) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut size = String::new();
        line.stream.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            while line.stream.read_line(&mut String::new()).unwrap() > 2 {}
            return all;
        }
        all.extend(line.read_exactly(size));
        line.read_exactly(2);
    }
}

/// HUB-2, PRM-8: a client whose upload drips, or stops, or goes away, has itself to blame: the circuit of the service stays
/// closed, and its place is free again.
#[test]
fn prm_8_a_client_that_uploads_slowly_is_no_failure_of_the_upstream() {
    let upstream = Upstream::says(200, "ok");
    let policy = json!({
        "attempt_timeout": "500ms", "bulkhead": {"max_calls": 1}, "breaker": {"consecutive_failures": 1, "cooldown": "60s"},
    });
    let scene = Scene::new(&upstream.address, &policy);
    let head = format!(
        "POST /gateway/billing/up HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\ncontent-length: 1000000\r\n\r\n"
    );
    let mut line = Line::open(&scene.hub);
    line.write(head.as_bytes());
    line.write(&[7; 100_000]);
    let (answer, said) = line.read_answer();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer} {}", String::from_utf8_lossy(&said));
    assert_eq!((scene.circuit(), header(&answer, "seawall-decided-by")), ("closed".to_owned(), Some("hub")));
    let mut line = Line::open(&scene.hub);
    line.write(head.as_bytes());
    line.write(&[7; 100_000]);
    drop(line);
    within(Duration::from_secs(5), "its place is free", || {
        Line::open(&scene.hub).ask("GET", "/gateway/billing/x", "", b"").0.starts_with("HTTP/1.1 200")
    });
    assert_eq!(scene.circuit(), "closed");
}

/// HUB-2: an upstream that hangs in the middle of an upload that the client would go on with is to blame.
#[test]
fn hub_2_an_upstream_that_takes_no_upload_is_to_blame() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let all: Vec<_> = listener.incoming().flatten().collect();
        drop(all);
    });
    let policy =
        json!({"attempt_timeout": "500ms", "breaker": {"consecutive_failures": 1, "cooldown": "60s"}});
    let scene = Scene::new(&address, &policy);
    let mut line = Line::open(&scene.hub);
    let mut writing = line.stream.get_ref().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let head = format!(
            "POST /gateway/billing/up HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\ncontent-length: 100000000\r\n\r\n"
        );
        let _ = writing.write_all(head.as_bytes());
        while writing.write_all(&[7; 100_000]).is_ok() {}
    });
    let (answer, said) = line.read_answer();
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer} {}", String::from_utf8_lossy(&said));
    assert_eq!(scene.circuit(), "open");
    drop(line);
    writer.join().unwrap();
}

/// HUB-2: an upstream that answers before the upload has ended is heard, whatever becomes of the rest of the upload.
#[test]
fn hub_2_an_early_answer_is_passed_on_while_the_upload_goes_on() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", upstream.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in upstream.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(
                    b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nlarge",
                );
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while stream.read(&mut [0; 65_536]).is_ok_and(|read| read > 0) {}
            });
        }
    });
    let policy = json!({
        "attempt_timeout": "10s", "bulkhead": {"max_calls": 1}, "breaker": {"consecutive_failures": 1, "cooldown": "60s"},
    });
    let scene = Scene::new(&address, &policy);
    for _ in 0..5 {
        let mut line = Line::open(&scene.hub);
        let mut writing = line.stream.get_ref().try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            let head = format!(
                "POST /gateway/billing/up HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\ncontent-length: 20000000\r\n\r\n"
            );
            let _ = writing.write_all(head.as_bytes());
            (0..200).all(|_| writing.write_all(&[7; 100_000]).is_ok())
        });
        // Only when all is written or nothing more can be, as simple clients do.
        writer.join().unwrap();
        let (head, body) = line.read_answer();
        assert!(head.starts_with("HTTP/1.1 413") && body == b"large", "{head}");
    }
    assert_eq!(scene.circuit(), "closed");
}

/// HUB-2: `Expect: 100-continue` is answered here: with 100 when the body is wanted, and at once where it is not.
#[test]
fn hub_2_a_client_that_waits_for_100_gets_it_or_the_refusal() {
    let upstream = Upstream::start(|_, got, stream| answer(stream, 200, "", &got.body));
    let scene = Scene::new(&upstream.address, &patient());
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: hub\r\nx-seawall-key: {KEY}\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"
        )
    };
    let mut line = Line::open(&scene.hub);
    line.write(head("/gateway/billing/x").as_bytes());
    assert!(line.read_head().starts_with("HTTP/1.1 100"));
    line.write(b"hello");
    let (answer, body) = line.read_answer();
    assert!(answer.starts_with("HTTP/1.1 200") && body == b"hello", "{answer}");
    assert!(header(&upstream.last().head, "expect").is_none());
    let mut line = Line::open(&scene.hub);
    line.write(head("/gateway/nobody/x").as_bytes());
    assert!(line.read_head().starts_with("HTTP/1.1 404"));
}

/// HUB-2: requests that come all at once on one connection are answered in their order; a fault with a long body is passed on
/// whole; and nonsense about time is not believed.
#[test]
fn hub_2_pipelines_long_faults_and_nonsense_go_through() {
    let upstream = Upstream::start(|_, got, stream| {
        if got.head.contains("/fault") {
            return answer(stream, 404, "", &[b'f'; 300_000]);
        }
        let path = got.head.split(' ').nth(1).unwrap().to_owned();
        answer(stream, 200, "", path.as_bytes())
    });
    let scene = Scene::new(&upstream.address, &patient());
    let mut line = Line::open(&scene.hub);
    for number in 0..10 {
        line.send("GET", &format!("/gateway/billing/{number}"), "", b"");
    }
    for number in 0..10 {
        assert_eq!(line.read_answer().1, format!("/{number}").into_bytes());
    }
    let (head, body) = line.ask("GET", "/gateway/billing/fault", "", b"");
    assert!(head.starts_with("HTTP/1.1 404") && body == [b'f'; 300_000], "{head}");
    let nonsense =
        "seawall-deadline: 9999999999999999999\r\nseawall-attempt: 99999999999\r\ntraceparent: 00-zz\r\n";
    let (head, _) = line.ask("GET", "/gateway/billing/x", nonsense, b"");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // An idle connection that the upstream has closed is nobody's failure, also for what is sent once.
    let closing = Upstream::start(|_, _, stream| {
        answer(stream, 200, "", b"ok");
        false
    });
    scene.service(
        &json!({"name": "closing", "address": closing.address, "policy": {"attempt_timeout": "2s"}}),
    );
    for number in 0..10 {
        within(Duration::from_secs(5), "it has hung up", || closing.open.load(Ordering::SeqCst) == 0);
        let (head, _) = line.ask("POST", "/gateway/closing/x", "", b"x");
        assert!(head.starts_with("HTTP/1.1 200"), "{number}: {head}");
    }
}

/// HUB-2, API-2: what can't be sent is the caller's mistake and told as that, and nothing is sent or kept of it.
#[test]
fn hub_2_what_cannot_be_sent_is_refused_and_not_kept() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let long = format!("/{}", "y".repeat(70_000));
    for mode in ["sync", "async", "sync_or_queue"] {
        for path in ["/a<b", "/a>b", "/a`b", "/a?x=\"b", "/items/#1", &long] {
            let (status, said) = scene.call(&json!({"path": path, "mode": mode}));
            assert_eq!((status, &said["errors"][0]["field"]), (422, &json!("path")), "{mode} {path}: {said}");
        }
        for name in ["expect", "http2-settings"] {
            let (status, said) = scene.call(&json!({"headers": {name: "x"}, "mode": mode}));
            let field = format!("headers.{name}");
            assert_eq!((status, &said["errors"][0]["field"]), (422, &json!(field)), "{mode}: {said}");
        }
    }
    assert_eq!(upstream.count(), 0);
}
