//! `:call`: now, later, or now and otherwise later.

use seawall_testkit::http::HttpMessage;
use std::time::Duration;

use super::*;

/// HUB-2: an upstream's answer is 200 with all of it, whatever its status; the request is on the wire as it was written.
#[test]
fn hub_2_a_healthy_service_is_called_now() {
    let upstream = Upstream::start(|n, got, stream| match n {
        0 => answer(
            stream,
            200,
            "content-type: application/json\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n",
            br#"{"id": 7, "total": 12345678901234567890}"#,
        ),
        1 => answer(stream, 404, "content-type: text/plain\r\n", b"no such invoice"),
        2 => answer(stream, 200, "content-type: image/png\r\n", &[0x89, 0xFF, 0x00]),
        _ => answer(stream, 200, "", &got.body),
    });
    let scene = Scene::new(&format!("{}/v2", upstream.address), &patient());

    let query = json!({"a b": "ä&=", "n": [1, true]});
    let (status, said) = scene
        .call(&json!({"method": "GET", "path": "/invoices/7", "query": query, "headers": {"X-Who": "me"}}));
    assert_eq!((status, &said["status"]), (200, &json!("ok")), "{said}");
    let data = &said["data"];
    assert_eq!(
        (&data["httpStatus"], &data["body"]["id"], &data["bodyEncoding"]),
        (&json!(200), &json!(7), &json!("json"))
    );
    assert_eq!(
        (&data["attempts"], &data["circuit"], &data["fallback"]),
        (&json!(1), &json!("closed"), &json!(false))
    );
    assert!(data["latencyMs"].is_u64() && data.to_string().contains("12345678901234567890"), "{data}");
    assert_eq!(data["headers"]["set-cookie"], json!(["a=1", "b=2"]));
    let got = upstream.last();
    assert!(
        got.head.starts_with("GET /v2/invoices/7?a%20b=%C3%A4%26%3D&n=1&n=true HTTP/1.1\r\n"),
        "{}",
        got.head
    );
    assert_eq!(
        (header(&got.head, "x-who"), header(&got.head, "host")),
        (Some("me"), upstream.address.strip_prefix("http://"))
    );
    assert!(
        header(&got.head, "authorization").is_none() && header(&got.head, "seawall-deadline").is_some(),
        "{}",
        got.head
    );

    let (status, said) = scene.call(&json!({"path": "/invoices/8"}));
    assert_eq!(
        (status, &said["data"]["httpStatus"], &said["data"]["body"]),
        (200, &json!(404), &json!("no such invoice"))
    );
    let (_, said) = scene.call(&json!({"path": "/logo"}));
    assert_eq!((&said["data"]["bodyEncoding"], &said["data"]["body"]), (&json!("base64"), &json!("if8A")));
    let (_, said) = scene.call(&json!({"method": "post", "path": "/x", "body": {"amount": 1.5}}));
    assert_eq!(said["data"]["body"], json!({"amount": 1.5}), "{said}");
    assert_eq!(header(&upstream.last().head, "content-type"), Some("application/json"));
    let (_, said) =
        scene.call(&json!({"method": "POST", "path": "/x", "body": "if8A", "bodyEncoding": "base64"}));
    assert_eq!((upstream.last().body, &said["data"]["body"]), (vec![0x89, 0xFF, 0x00], &json!("if8A")));
}

/// HUB-2, API-2, SEC-3: what can't be a request is refused, each field with its reason, and nothing is sent.
#[test]
fn hub_2_a_wrong_call_is_refused_before_it_is_sent() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    let wrong = json!({
        "method": "CONNECT", "path": "/a/../b", "headers": {"host": "evil", "x": "a\r\nb"}, "mode": "later", "pth": 1, "timeoutMs": 0,
    });
    let (status, said) = scene.call(&wrong);
    let text = said.to_string();
    assert_eq!(status, 422, "{said}");
    for field in ["mode", "pth", "timeoutMs"] {
        assert!(text.contains(&format!("\"field\":\"{field}\"")), "{field} is not in {text}");
    }
    let mut wrong = wrong;
    for field in ["mode", "pth", "timeoutMs"] {
        wrong.as_object_mut().unwrap().remove(field);
    }
    let (status, said) = scene.call(&wrong);
    let text = said.to_string();
    assert_eq!(status, 422, "{said}");
    for field in ["method", "path", "headers.host", "headers.x"] {
        assert!(text.contains(&format!("\"field\":\"{field}\"")), "{field} is not in {text}");
    }
    // What is kept would stand in the database as it is.
    let (status, said) = scene.call(&json!({"mode": "async", "headers": {"authorization": "Bearer s3cr3t"}}));
    assert_eq!((status, &said["errors"][0]["field"]), (422, &json!("headers.authorization")), "{said}");
    assert_eq!(scene.hub.post("/api/v1/gateway/services/nobody:call", &json!({})).0, 404);
    assert_eq!(scene.hub.post("/api/v1/gateway/services/billing:cal", &json!({})).0, 404);
    assert_eq!(scene.hub.ask("POST", "/api/v1/gateway/services/billing:call", "wrong", "{}").0, 401);
    let rule = json!({"name": "gateway-call", "eventType": "a.b", "service": "billing", "path": "/"});
    let (status, said) = scene.hub.post("/api/v1/registry/rules", &rule);
    assert_eq!((status, &said["errors"][0]["field"]), (422, &json!("name")), "{said}");
    assert_eq!(upstream.count(), 0);
}

/// HUB-2, ENG-3, PRM-6: what is idempotent or has a key is tried again within the budget, with the same bytes; anything else is
/// sent once.
#[test]
fn hub_2_a_flaky_service_is_tried_again_if_that_is_safe() {
    let upstream = Upstream::start(|n, _, stream| match n % 2 {
        0 => answer(stream, 503, "", b"busy"),
        _ => answer(stream, 200, "", b"fine"),
    });
    let scene = Scene::new(&upstream.address, &patient());
    let (status, said) = scene.call(&json!({"method": "PUT", "path": "/a", "body": {"a": 1}}));
    assert_eq!(
        (status, &said["data"]["httpStatus"], &said["data"]["attempts"]),
        (200, &json!(200), &json!(2)),
        "{said}"
    );
    let (status, said) = scene.call(&json!({"method": "POST", "path": "/b", "body": {"b": 1}}));
    assert_eq!(
        (status, &said["data"]["httpStatus"], &said["data"]["attempts"]),
        (200, &json!(503), &json!(1)),
        "{said}"
    );
    // The next is the nth odd one, so that the keyed call meets a failure first.
    scene.call(&json!({"path": "/fill"}));
    let keyed =
        json!({"method": "POST", "path": "/c", "body": {"c": 1}, "headers": {"Idempotency-Key": "k-1"}});
    let (_, said) = scene.call(&keyed);
    assert_eq!((&said["data"]["httpStatus"], &said["data"]["attempts"]), (&json!(200), &json!(2)), "{said}");
    let got = upstream.got.lock().unwrap().clone();
    for (path, key) in [("/a", None), ("/c", Some("k-1"))] {
        let sent: Vec<&HttpMessage> = got.iter().filter(|got| got.head.contains(path)).collect();
        assert_eq!((sent.len(), &sent[0].body), (2, &sent[1].body));
        assert!(sent.iter().all(|got| header(&got.head, "idempotency-key") == key), "{sent:?}");
        assert_eq!(header(&sent[1].head, "seawall-attempt"), Some("1"));
    }
    assert_eq!(got.iter().filter(|got| got.head.contains("/b")).count(), 1);
}

/// HUB-2, ENG-5: an open circuit answers at once, says who decided and when to come back; nothing reaches the upstream.
#[test]
fn hub_2_an_open_circuit_is_503_with_the_time_to_come_back() {
    let upstream = Upstream::says(500, "broken");
    let policy = json!({"breaker": {"consecutive_failures": 2, "cooldown": "30s"}, "attempt_timeout": "2s"});
    let scene = Scene::new(&upstream.address, &policy);
    for _ in 0..2 {
        let (status, said) = scene.call(&json!({}));
        assert_eq!((status, &said["data"]["httpStatus"]), (200, &json!(500)), "{said}");
    }
    let mut client = crate::harness::Client::connect(&scene.hub.address).unwrap();
    let HttpMessage { head, body } =
        client.exchange("POST", "/api/v1/gateway/services/billing:call", "{}").unwrap();
    let said: Value = serde_json::from_slice(&body).unwrap();
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    let wait: u64 = header(&head, "retry-after").unwrap().parse().unwrap();
    // Rounded up, and the clock has steps of some milliseconds.
    assert!((1..=31).contains(&wait), "{wait}");
    assert_eq!(header(&head, "seawall-decided-by"), Some("breaker"));
    assert_eq!(
        (&said["code"], &said["retryable"], &said["data"]["circuit"]),
        (&json!("circuitOpen"), &json!(true), &json!("open"))
    );
    assert_eq!((upstream.count(), scene.circuit()), (2, "open".to_owned()));
}

/// HUB-2, ENG-6, ENG-8: a full bulkhead is 503 and a rate limit 429, both with `Retry-After`.
#[test]
fn hub_2_a_full_bulkhead_is_503_and_a_rate_limit_429() {
    let upstream = Upstream::start(|_, got, stream| {
        if got.head.contains("/slow") {
            std::thread::sleep(Duration::from_millis(700));
        }
        answer(stream, 200, "", b"ok")
    });
    let policy = json!({"attempt_timeout": "5s", "bulkhead": {"max_calls": 1}});
    let scene = Scene::new(&upstream.address, &policy);
    let limited = json!({"rate_limit": {"calls": 1, "per": "60s"}, "attempt_timeout": "5s"});
    scene.service(&json!({"name": "metered", "address": upstream.address, "policy": limited}));
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(scene.call(&json!({"path": "/slow"})).0, 200));
        within(Duration::from_secs(5), "the slow call arrives", || upstream.count() == 1);
        let (status, said) = scene.call(&json!({}));
        assert_eq!((status, &said["code"]), (503, &json!("bulkheadFull")), "{said}");
    });
    assert_eq!(scene.hub.post("/api/v1/gateway/services/metered:call", &json!({})).0, 200);
    let mut client = crate::harness::Client::connect(&scene.hub.address).unwrap();
    let HttpMessage { head, body } =
        client.exchange("POST", "/api/v1/gateway/services/metered:call", "{}").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 429") && body.windows(11).any(|part| part == b"rateLimited"),
        "{head}"
    );
    assert!(header(&head, "retry-after").unwrap().parse::<u64>().unwrap() > 30, "{head}");
    assert_eq!(header(&head, "seawall-decided-by"), Some("rate-limit"));
}

/// HUB-2, PRM-6: the deadline covers everything up to the last byte of the body, and the nearest of all deadlines holds.
#[test]
fn hub_2_a_hanging_service_is_504_within_the_deadline_body_included() {
    let upstream = Upstream::start(|_, got, stream| {
        if got.head.contains("/trickle") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").unwrap();
            for _ in 0..200 {
                std::thread::sleep(Duration::from_millis(50));
                if stream.write_all(b"x").is_err() {
                    break;
                }
            }
            return false;
        }
        std::thread::sleep(Duration::from_secs(20));
        false
    });
    let policy = json!({"attempt_timeout": "400ms", "call_timeout": "600ms"});
    let scene = Scene::new(&upstream.address, &policy);
    for (path, timeout) in [("/hang", None), ("/trickle", None), ("/trickle", Some(150))] {
        let began = Instant::now();
        let mut call = json!({"method": "POST", "path": path});
        if let Some(timeout) = timeout {
            call["timeoutMs"] = json!(timeout);
        }
        let (status, said) = scene.call(&call);
        let took = began.elapsed();
        assert_eq!(
            (status, &said["code"], &said["data"]["attempts"]),
            (504, &json!("timeout"), &json!(1)),
            "{said}"
        );
        // The service would take ten seconds and more.
        assert!(took < Duration::from_secs(5), "{path} took {took:?}");
    }
}

/// HUB-2, PRM-10: no connection is 502, so is an answer that is too large or breaks off; an address that the rules forbid says no more.
#[test]
fn hub_2_no_connection_and_no_usable_answer_are_502() {
    let upstream = Upstream::start(|_, got, stream| {
        if got.head.contains("/large") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10485761\r\n\r\n");
        } else {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        }
        false
    });
    let scene = Scene::new(&upstream.address, &json!({"attempt_timeout": "2s"}));
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    scene.service(&json!({"name": "dead", "address": format!("http://{dead}")}));
    scene.service(&json!({"name": "inside", "address": "http://10.1.2.3"}));
    let code = |(status, said): (u16, Value)| (status, said["code"].as_str().unwrap_or_default().to_owned());
    assert_eq!(
        code(scene.hub.post("/api/v1/gateway/services/dead:call", &json!({}))),
        (502, "noConnection".into())
    );
    assert_eq!(code(scene.call(&json!({"path": "/large"}))), (502, "tooLarge".into()));
    assert_eq!(code(scene.call(&json!({"path": "/half"}))), (502, "broken".into()));
    let (status, said) = scene.hub.post("/api/v1/gateway/services/inside:call", &json!({}));
    assert_eq!((status, &said["code"]), (502, &json!("impossible")));
    assert!(!said.to_string().contains("10.1.2.3"), "{said}");
}

/// HUB-2, PRM-1, HUB-5: what can't be had now is kept and delivered when the service is back; the same key is the same call.
#[test]
fn hub_2_what_cannot_be_had_now_is_delivered_later() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scene = Scene::new(&format!("http://{port}"), &patient());
    let call = |key: &str, amount: u32| json!({"method": "POST", "path": "/pay", "mode": "sync_or_queue", "body": {"amount": amount}, "headers": {"idempotency-key": key}});
    let (status, said) = scene.call(&call("k-1", 1));
    assert_eq!(
        (status, &said["status"], &said["data"]["deduplicated"]),
        (202, &json!("accepted"), &json!(false)),
        "{said}"
    );
    assert!(said["data"]["why"].is_string() && said["data"]["attempts"].is_u64(), "{said}");
    let delivery = said["data"]["deliveries"][0].clone();
    let (status, again) = scene.call(&call("k-1", 1));
    assert_eq!(
        (status, &again["data"]["deduplicated"], &again["data"]["deliveries"][0]),
        (202, &json!(true), &delivery)
    );
    assert_eq!(scene.call(&call("k-1", 2)).0, 422);

    let upstream =
        Upstream::on(TcpListener::bind(port).unwrap(), |_, _, stream| answer(stream, 200, "", b"paid"));
    let delivered = scene.hub.wait_for(&delivery, "delivered");
    assert_eq!((&delivered["rule"], &delivered["ruleVersion"]), (&json!("gateway-call"), &json!(0)));
    let got = upstream.last();
    assert_eq!((got.body, header(&got.head, "idempotency-key")), (br#"{"amount":1}"#.to_vec(), Some("k-1")));
    assert!(header(&got.head, "seawall-delivery").is_some(), "{}", got.head);
    within(Duration::from_secs(5), "the circuit closes", || scene.circuit() == "closed");
    let (status, said) = scene.call(&call("k-2", 3));
    assert_eq!((status, &said["data"]["httpStatus"]), (200, &json!(200)), "{said}");
    assert_eq!(scene.call(&call("k-1", 1)).1["data"]["deduplicated"], json!(true));
    assert_eq!(upstream.count(), 2, "what was delivered is not called again");
}

/// HUB-2: `async` is a delivery at once; the event that stands for it shows; a paused service holds it, and is not called.
#[test]
fn hub_2_async_is_a_delivery() {
    let upstream = Upstream::says(200, "ok");
    let scene = Scene::new(&upstream.address, &patient());
    assert_eq!(scene.hub.post("/api/v1/registry/services/billing:pause", &json!({})).0, 200);
    let (status, said) = scene.call(&json!({}));
    assert_eq!((status, &said["code"]), (503, &json!("paused")), "{said}");
    let mut kept = Vec::new();
    for mode in ["async", "sync_or_queue"] {
        let (status, said) = scene.call(&json!({"method": "POST", "path": format!("/{mode}"), "mode": mode}));
        assert_eq!(status, 202, "{said}");
        kept.push(said["data"].clone());
    }
    assert_eq!((upstream.count(), &scene.hub.delivery(&kept[0]["delivery"])["state"]), (0, &json!("held")));
    let (_, event) =
        scene.hub.ask("GET", &format!("/api/v1/bridge/events/{}", kept[0]["id"].as_str().unwrap()), KEY, "");
    assert_eq!(event["data"]["event"]["type"], json!("seawall.call"), "{event}");
    assert_eq!(scene.hub.post("/api/v1/registry/services/billing:resume", &json!({})).0, 200);
    for kept in &kept {
        scene.hub.wait_for(&kept["delivery"], "delivered");
    }
    assert_eq!(upstream.count(), 2);
}
