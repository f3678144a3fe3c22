//! Every route of a real hub, asked for what goes well and for what does not; every answer fits the description.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::response::Parts;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower_service::Service;

use super::super::document::document;
use super::validate::{Unknown, problems};
use crate::http::{api, key_hash};
use crate::hub::Server;

const ADMIN: &str = "the-admin-key-of-the-test";

/// Asks, and holds every answer against the description.
struct Caller {
    router: Router,
    document: Value,
    /// The statuses that each operation has answered.
    seen: BTreeMap<String, Vec<u16>>,
    /// What was not as it is described: all of it is told at once.
    wrong: Vec<String>,
}

/// A request: `METHOD /path/{name}` of the description, what stands in its braces, query and all.
struct Ask<'a> {
    operation: &'a str,
    names: &'a [&'a str],
    query: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Option<String>,
}

fn ask<'a>(operation: &'a str, names: &'a [&'a str]) -> Ask<'a> {
    Ask { operation, names, query: "", headers: &[], body: None }
}

impl<'a> Ask<'a> {
    fn body(self, body: &Value) -> Self {
        Ask { body: Some(body.to_string()), ..self }
    }

    fn text(self, body: &str) -> Self {
        Ask { body: Some(body.to_owned()), ..self }
    }

    fn query(self, query: &'a str) -> Self {
        Ask { query, ..self }
    }

    fn headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Ask { headers, ..self }
    }
}

impl Caller {
    /// The answer, which has this status.
    async fn gets(&mut self, status: u16, ask: Ask<'_>) -> Value {
        let (method, template) = ask.operation.split_once(' ').unwrap();
        let mut path = template.to_owned();
        for name in ask.names {
            let (begin, end) = (path.find('{').unwrap(), path.find('}').unwrap());
            path.replace_range(begin..=end, name);
        }
        let uri = format!("{path}{}", ask.query);
        let mut request = Request::builder().method(method).uri(&uri).header("x-seawall-reason", "a test");
        if !ask.headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", format!("Bearer {ADMIN}"));
        }
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let body = ask.body.clone().map_or_else(Body::empty, Body::from);
        let response = self.router.call(request.body(body).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap();
        let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
        let wrong = self.mistakes(status, &ask, &head, &value);
        if !wrong.is_empty() {
            self.wrong.push(format!(
                "{method} {uri} {:?}\n{} {text}\n{}",
                ask.body,
                head.status,
                wrong.join("\n")
            ));
        }
        self.seen.entry(ask.operation.to_owned()).or_default().push(head.status.as_u16());
        value["data"].clone()
    }

    /// What of an answer is not as it is described.
    fn mistakes(&self, status: u16, ask: &Ask<'_>, head: &Parts, value: &Value) -> Vec<String> {
        let (method, template) = ask.operation.split_once(' ').unwrap();
        let mut wrong = Vec::new();
        if head.status.as_u16() != status {
            wrong.push(format!("{status} is expected"));
        }
        let operation = &self.document["paths"][template][method.to_ascii_lowercase()];
        let described = &operation["responses"][head.status.as_str()];
        let kind = head.headers["content-type"].to_str().unwrap();
        let content = &described["content"][kind];
        if !content.is_object() {
            wrong.push(format!("{} with `{kind}` is not described", head.status));
            return wrong;
        }
        for (header, described) in described["headers"].as_object().into_iter().flatten() {
            if described["required"] == true && !head.headers.contains_key(header) {
                wrong.push(format!("there is no `{header}`"));
            }
        }
        wrong.extend(problems(&self.document, &content["schema"], value, Unknown::Refused));
        if let Some(code) = value["code"].as_str()
            && !described["description"].as_str().unwrap().contains(&format!("`{code}`"))
        {
            wrong.push(format!("`{code}` is not described"));
        }
        wrong
    }

    /// Asks again until it says this.
    async fn waits(&mut self, operation: &str, names: &[&str], state: &str) -> Value {
        for _ in 0..500 {
            let data = self.gets(200, ask(operation, names)).await;
            if data["state"] == state {
                return data;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{operation} {names:?} is not {state}");
    }
}

/// Answers `200` to what has `/good` in its path, and `400` to everything else.
async fn peer(listener: TcpListener) -> ! {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        while !read.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            let length = stream.read(&mut buffer).await.unwrap();
            if length == 0 {
                break;
            }
            read.extend_from_slice(&buffer[..length]);
        }
        let status =
            if String::from_utf8_lossy(&read).contains("/good") { "200 OK" } else { "400 Bad Request" };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// API-1, API-2: every route does what its description says, when it goes well and when it does not: no status, no code and no
/// field that is not described.
#[tokio::test]
async fn api_1_every_route_answers_as_it_is_described() {
    let folder = TempDir::new().unwrap();
    let options = crate::StartOptions { allow_egress: vec!["127.0.0.0/8".into()], ..Default::default() };
    let hub = Arc::new(Server::open(folder.path(), &options).await.unwrap());
    hub.registry.set_admin_key(&hub.own_context(), key_hash(ADMIN)).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut caller =
        Caller { router: api(hub.clone()), document: document(), seen: BTreeMap::new(), wrong: Vec::new() };
    let asks = async {
        services(&mut caller, &address).await;
        rules(&mut caller).await;
        sources_and_keys(&mut caller).await;
        events(&mut caller).await;
        deliveries(&mut caller).await;
        dead_letters(&mut caller).await;
        many_dead_letters(&mut caller).await;
        groups_of_dead_letters(&mut caller).await;
        calls(&mut caller).await;
        webhooks(&mut caller).await;
        operations(&mut caller).await;
        alerts(&mut caller, &address).await;
        everybody_is_asked(&mut caller).await;
        ends(&mut caller).await;
    };
    tokio::select! {
        () = asks => {}
        error = hub.runtime.run() => panic!("{error}"),
        () = hub.alert() => {}
        _ = peer(listener) => {}
    }
    assert!(caller.wrong.is_empty(), "{}", caller.wrong.join("\n\n"));
    // What the proxy answers is the service's.
    let own = |path: &str| path != super::super::proxy::PATH;
    for (path, methods) in caller.document["paths"].as_object().unwrap().iter().filter(|(path, _)| own(path))
    {
        for method in methods.as_object().unwrap().keys() {
            let operation = format!("{} {path}", method.to_ascii_uppercase());
            let seen = caller.seen.get(&operation).map(Vec::as_slice).unwrap_or_default();
            assert!(seen.iter().any(|status| *status < 300), "{operation} has never gone well: {seen:?}");
        }
    }
}

const SERVICES: &str = "/api/v1/registry/services";

async fn services(caller: &mut Caller, address: &str) {
    let post = format!("POST {SERVICES}");
    let service = json!({"name": "billing", "address": address});
    caller.gets(201, ask(&post, &[]).body(&service)).await;
    caller.gets(200, ask(&post, &[]).body(&service)).await;
    caller.gets(412, ask(&post, &[]).body(&service).headers(&[("if-none-match", "*")])).await;
    caller.gets(400, ask(&post, &[]).body(&service).headers(&[("if-none-match", "\"3\"")])).await;
    caller.gets(400, ask(&post, &[]).body(&service).headers(&[("if-match", "three")])).await;
    caller.gets(422, ask(&post, &[]).body(&json!({"name": "B", "adress": 1}))).await;
    caller.gets(400, ask(&post, &[]).text("{")).await;
    caller.gets(413, ask(&post, &[]).text(&" ".repeat(1_100_000))).await;
    for (name, auth) in [
        ("bearer", json!({"type": "bearer", "secret": "s"})),
        ("basic", json!({"type": "basic", "username": "u", "secret": "s"})),
        ("header", json!({"type": "header", "name": "x-key", "secret": "s"})),
        ("hmac", json!({"type": "hmac", "header": "x-signature", "encoding": "base64", "secret": "s"})),
        ("webhook", json!({"type": "webhook", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})),
        (
            "oauth2",
            json!({"type": "oauth2", "tokenUrl": "https://t.example/t", "clientId": "c", "secret": "s"}),
        ),
    ] {
        let service = json!({"name": name, "address": address, "auth": auth, "headers": {"x-a": "b"}});
        caller.gets(201, ask(&post, &[]).body(&service)).await;
    }
    caller.gets(200, ask("GET /api/v1/registry/services", &[])).await;
    let (get, put) = ("GET /api/v1/registry/services/{name}", "PUT /api/v1/registry/services/{name}");
    caller.gets(200, ask(get, &["oauth2"])).await;
    caller.gets(404, ask(get, &["nobody"])).await;
    caller.gets(400, ask(get, &["%ff"])).await;
    let bare = json!({"address": address, "policy": {"attempt_timeout": "5s"}});
    caller.gets(201, ask(put, &["bare"]).body(&bare)).await;
    caller
        .gets(422, ask(put, &["bare"]).body(&json!({"address": address, "policy": {"tiemout": "5s"}})))
        .await;
    let patch = "PATCH /api/v1/registry/services/{name}";
    caller.gets(200, ask(patch, &["basic"]).body(&json!({"auth": null}))).await;
    caller.gets(404, ask(patch, &["nobody"]).body(&json!({}))).await;
    for verb in ["pause", "resume"] {
        let act = format!("POST {SERVICES}/{{name}}:{verb}");
        caller.gets(200, ask(&act, &["billing"])).await;
        caller.gets(404, ask(&act, &["nobody"])).await;
    }
    let test = "POST /api/v1/registry/services/{name}:test";
    caller.gets(200, ask(test, &["billing"]).body(&json!({"path": "/good"}))).await;
    caller.gets(200, ask(test, &["billing"])).await;
    caller.gets(201, ask(put, &["nowhere"]).body(&json!({"address": "http://127.0.0.1:1"}))).await;
    caller.gets(200, ask(test, &["nowhere"])).await;
    caller.gets(422, ask(test, &["billing"]).body(&json!({"path": "good"}))).await;
    let circuit = "GET /api/v1/registry/services/{name}/circuit";
    for verb in ["forceOpen", "forceClosed", "reset"] {
        let act = format!("POST {SERVICES}/{{name}}/circuit:{verb}");
        caller.gets(200, ask(&act, &["nowhere"]).body(&json!({"reason": "a test"}))).await;
        caller.gets(404, ask(&act, &["nobody"]).body(&json!({"reason": "a test"}))).await;
        caller.gets(422, ask(&act, &["nowhere"]).body(&json!({"why": "a test"}))).await;
    }
    caller.gets(200, ask(circuit, &["nowhere"])).await;
    caller.gets(200, ask(circuit, &["bare"])).await;
    let delete = "DELETE /api/v1/registry/services/{name}";
    caller.gets(412, ask(delete, &["bare"]).headers(&[("if-match", "\"9\"")])).await;
    caller.gets(422, ask(delete, &["bare"]).query("?pending=maybe")).await;
    caller.gets(200, ask(delete, &["bare"]).query("?pending=deadLetter")).await;
}

async fn rules(caller: &mut Caller) {
    let post = "POST /api/v1/registry/rules";
    let rule = json!({
        "name": "invoices", "eventType": "order.*", "filter": "data.total > 100", "service": "billing",
        "path": "/good/{{ data.id }}", "headers": {"x-order": "{{ data.id }}"}, "body": {"amount": "{{ data.total }}"},
        "delivery": {"maxAttempts": 3}, "ordering": {"key": "{{ data.id }}"},
    });
    caller.gets(201, ask(post, &[]).body(&rule)).await;
    caller.gets(200, ask(post, &[]).body(&rule)).await;
    caller.gets(422, ask(post, &[]).body(&json!({"name": "a", "eventType": "a", "service": "nobody"}))).await;
    caller.gets(200, ask("GET /api/v1/registry/rules", &[])).await;
    caller.gets(200, ask("GET /api/v1/registry/rules/{name}", &["invoices"])).await;
    caller.gets(404, ask("GET /api/v1/registry/rules/{name}", &["nobody"])).await;
    let put = "PUT /api/v1/registry/rules/{name}";
    caller.gets(201, ask(put, &["fails"]).body(&json!({"eventType": "fails", "service": "billing"}))).await;
    caller
        .gets(
            422,
            ask(put, &["fails"]).body(&json!({"eventType": "fails", "service": "billing", "name": "x"})),
        )
        .await;
    let patch = "PATCH /api/v1/registry/rules/{name}";
    caller.gets(200, ask(patch, &["invoices"]).body(&json!({"delivery": {"cap": "1h"}}))).await;
    caller.gets(422, ask(patch, &["invoices"]).body(&json!([]))).await;
    caller.gets(200, ask("GET /api/v1/registry/rules/{name}/versions", &["invoices"])).await;
    caller.gets(404, ask("GET /api/v1/registry/rules/{name}/versions", &["nobody"])).await;
    caller
        .gets(
            200,
            ask("POST /api/v1/registry/rules/{name}:disable", &["invoices"]).body(&json!({"reason": "r"})),
        )
        .await;
    caller.gets(200, ask("POST /api/v1/registry/rules/{name}:enable", &["invoices"])).await;
    caller
        .gets(422, ask("POST /api/v1/registry/rules/{name}:enable", &["invoices"]).body(&json!({"a": 1})))
        .await;
    let back = "POST /api/v1/registry/rules/{name}:rollback";
    caller.gets(200, ask(back, &["invoices"]).body(&json!({"version": 1}))).await;
    caller.gets(422, ask(back, &["invoices"])).await;
    caller.gets(409, ask(back, &["invoices"]).body(&json!({"version": 99}))).await;
    let evaluate = "POST /api/v1/registry/rules:evaluate";
    let sample = |kind: &str, data: Value| json!({"ruleName": "invoices", "event": {"id": "1", "type": kind, "data": data}});
    for event in [
        sample("other", json!({})),
        sample("order.a", json!({"total": 1})),
        sample("order.a", json!({})),
        sample("order.a", json!({"total": 101})),
        sample("order.a", json!({"total": 101, "id": "A"})),
    ] {
        caller.gets(200, ask(evaluate, &[]).body(&event)).await;
    }
    caller.gets(422, ask(evaluate, &[]).body(&json!({}))).await;
    caller.gets(404, ask(evaluate, &[]).body(&json!({"ruleName": "invoices", "eventId": "nothing"}))).await;
}

async fn sources_and_keys(caller: &mut Caller) {
    let post = "POST /api/v1/registry/sources";
    let shop = json!({"name": "shop", "verify": {"type": "bearer", "secrets": ["a-token-of-the-test"]}, "eventType": "shop.event"});
    caller.gets(201, ask(post, &[]).body(&shop)).await;
    caller.gets(422, ask(post, &[]).body(&json!({"name": "a", "eventType": "a"}))).await;
    let put = "PUT /api/v1/registry/sources/{name}";
    let verify = json!({"type": "hmac", "header": "x-signature", "prefix": "v1=", "secrets": ["a", "b"]});
    let signed = json!({"verify": verify, "eventType": "a.b", "eventId": "{{ data.id }}"});
    caller.gets(201, ask(put, &["signed"]).body(&signed)).await;
    caller.gets(200, ask(put, &["signed"]).body(&json!({"eventType": "a.b"}))).await;
    caller.gets(422, ask(put, &["signed"]).body(&json!({"eventType": "a.b", "name": "other"}))).await;
    caller.gets(200, ask("GET /api/v1/registry/sources", &[])).await;
    caller.gets(200, ask("GET /api/v1/registry/sources/{name}", &["signed"])).await;
    caller.gets(404, ask("GET /api/v1/registry/sources/{name}", &["nobody"])).await;
    let delete = "DELETE /api/v1/registry/sources/{name}";
    caller.gets(200, ask(delete, &["signed"])).await;
    caller.gets(404, ask(delete, &["signed"])).await;

    let make = "POST /api/v1/registry/keys";
    let key = json!({"name": "limited", "scopes": ["read"], "services": ["billing"], "expiresIn": "1d"});
    let made = caller.gets(201, ask(make, &[]).body(&key)).await;
    caller.gets(409, ask(make, &[]).body(&key)).await;
    caller.gets(422, ask(make, &[]).body(&json!({"name": "a"}))).await;
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    let limited = [("authorization", &*bearer)];
    caller.gets(403, ask("GET /api/v1/bridge/events", &[]).headers(&limited)).await;
    caller.gets(403, ask("GET /api/v1/registry/keys", &[]).headers(&limited)).await;
    caller.gets(200, ask("POST /api/v1/registry/keys/{name}:rotate", &["limited"])).await;
    caller.gets(404, ask("POST /api/v1/registry/keys/{name}:rotate", &["nobody"])).await;
    caller.gets(200, ask("GET /api/v1/registry/keys", &[])).await;
    caller.gets(200, ask("DELETE /api/v1/registry/keys/{name}", &["limited"])).await;
    caller.gets(409, ask("DELETE /api/v1/registry/keys/{name}", &["admin"])).await;
}

async fn events(caller: &mut Caller) {
    let post = "POST /api/v1/bridge/events";
    let event = json!({"id": "evt-1", "type": "order.created", "data": {"id": "A-7", "total": 120.5}});
    caller.gets(202, ask(post, &[]).body(&event)).await;
    caller.gets(202, ask(post, &[]).body(&event)).await;
    let other = json!({"id": "evt-1", "type": "order.created", "data": 1});
    caller.gets(422, ask(post, &[]).body(&other)).await;
    caller.gets(202, ask(post, &[]).body(&json!({"type": "a"})).headers(&[("idempotency-key", "k")])).await;
    caller.gets(400, ask(post, &[]).body(&event).headers(&[("idempotency-key", "")])).await;
    caller.gets(401, ask(post, &[]).body(&event).headers(&[("authorization", "Bearer nobody")])).await;
    let cloud =
        json!({"specversion": "1.0", "id": "c-1", "type": "a", "source": "/s", "subject": "x", "more": 1});
    let one = [("content-type", "application/cloudevents+json")];
    let many = [("content-type", "application/cloudevents-batch+json")];
    caller.gets(202, ask(post, &[]).body(&cloud).headers(&one)).await;
    caller.gets(202, ask(post, &[]).body(&json!([cloud, cloud])).headers(&many)).await;
    caller.gets(422, ask(post, &[]).body(&json!({})).headers(&one)).await;
    let batch = "POST /api/v1/bridge/events:batchCreate";
    caller
        .gets(202, ask(batch, &[]).body(&json!({"events": [event, other, {"id": "ä", "type": "a"}]})))
        .await;
    caller.gets(422, ask(batch, &[]).body(&json!({"events": [{"id": 1}]}))).await;
    let empty = json!({"events": [event, {"id": "a", "type": ""}]});
    caller.gets(422, ask(batch, &[]).body(&empty)).await;
    caller.gets(202, ask(batch, &[]).body(&json!([cloud])).headers(&many)).await;
    caller.gets(200, ask("GET /api/v1/bridge/events", &[]).query("?page_size=1&type=*")).await;
    caller.gets(422, ask("GET /api/v1/bridge/events", &[]).query("?page_size=0&tpye=a")).await;
    caller.gets(200, ask("GET /api/v1/bridge/events/{id}", &["c-1"])).await;
    caller.gets(404, ask("GET /api/v1/bridge/events/{id}", &["nothing"])).await;
    let test = "POST /api/v1/registry/rules/{name}:backtest";
    caller.gets(200, ask(test, &["invoices"])).await;
    let draft = json!({"rule": {"eventType": "*", "service": "billing", "path": "/{{ data.id }}"}});
    caller.gets(200, ask(test, &["invoices"]).body(&draft)).await;
    caller.gets(422, ask(test, &["invoices"]).body(&json!({"max": 0}))).await;
}

async fn deliveries(caller: &mut Caller) {
    let delivery = "GET /api/v1/bridge/deliveries/{id}";
    let good = json!({"id": "evt-2", "type": "order.created", "data": {"id": "A-8", "total": 101}});
    let good = caller.gets(202, ask("POST /api/v1/bridge/events", &[]).body(&good)).await;
    caller.waits(delivery, &[good["deliveries"][0].as_str().unwrap()], "delivered").await;
    let bad = json!({"id": "evt-3", "type": "fails"});
    let bad = caller.gets(202, ask("POST /api/v1/bridge/events", &[]).body(&bad)).await;
    let dead = bad["deliveries"][0].as_str().unwrap();
    caller.waits(delivery, &[dead], "deadLettered").await;
    caller.gets(404, ask(delivery, &["dlv_00000000000000000000000000000000"])).await;
    caller
        .gets(200, ask("GET /api/v1/bridge/deliveries", &[]).query("?state=delivered&service=billing"))
        .await;
    caller.gets(422, ask("GET /api/v1/bridge/deliveries", &[]).query("?state=done")).await;
    caller.gets(200, ask("GET /api/v1/bridge/deadLetters", &[]).query("?reason=refused")).await;
    caller.gets(422, ask("GET /api/v1/bridge/deadLetters", &[]).query("?page_token=!")).await;
    let get = "GET /api/v1/bridge/deadLetters/{id}";
    caller.gets(200, ask(get, &[dead])).await;
    let replay = "POST /api/v1/bridge/deadLetters/{id}:replay";
    // Paused, so that the first replay is still under way when the second is asked for.
    caller.gets(200, ask("POST /api/v1/registry/services/{name}:pause", &["billing"])).await;
    let again = caller.gets(202, ask(replay, &[dead]).body(&json!({"mode": "same"}))).await;
    caller.gets(409, ask(replay, &[dead])).await;
    caller.gets(200, ask("POST /api/v1/registry/services/{name}:resume", &["billing"])).await;
    caller.gets(422, ask(replay, &[dead]).body(&json!({"mode": "other"}))).await;
    caller.gets(404, ask(replay, &["dlv_00000000000000000000000000000000"])).await;
    caller.waits(delivery, &[again["delivery"].as_str().unwrap()], "deadLettered").await;
    caller.gets(200, ask(get, &[dead])).await;
    caller.gets(200, ask("DELETE /api/v1/bridge/deadLetters/{id}", &[dead])).await;
    caller.gets(404, ask("DELETE /api/v1/bridge/deadLetters/{id}", &["nobody"])).await;
}

const NOBODY: &str = "dlv_00000000000000000000000000000000";

/// Dead letters of the rule `fails`.
async fn fails(caller: &mut Caller, ids: &[&str]) -> Vec<String> {
    let mut dead = Vec::new();
    for id in ids {
        let event = json!({"id": id, "type": "fails", "data": {"n": 1}});
        let sent = caller.gets(202, ask("POST /api/v1/bridge/events", &[]).body(&event)).await;
        let delivery = sent["deliveries"][0].as_str().unwrap().to_owned();
        caller.waits("GET /api/v1/bridge/deliveries/{id}", &[&delivery], "deadLettered").await;
        dead.push(delivery);
    }
    dead
}

async fn dead_letters(caller: &mut Caller) {
    let dead = fails(caller, &["d-1", "d-2"]).await;
    let (one, other) = (&*dead[0], &*dead[1]);
    let list = "GET /api/v1/bridge/deadLetters";
    let many = "?service=billing&rule=fails&event=d-1&reason=refused&status=400&standing=open,parked&since=2020-01-01T00:00:00Z";
    let found = caller.gets(200, ask(list, &[]).query(many)).await;
    assert_eq!(found["deadLetters"][0]["id"], one);
    caller.gets(200, ask(list, &[]).query("?q=d-1&replayed=false")).await;
    caller
        .gets(422, ask(list, &[]).query("?standing=opne&since=now&status=7&group=g&q=%22&state=open"))
        .await;
    let get = "GET /api/v1/bridge/deadLetters/{id}";
    caller.gets(404, ask(get, &[NOBODY])).await;
    let note = "PATCH /api/v1/bridge/deadLetters/{id}";
    caller.gets(200, ask(note, &[one]).body(&json!({"note": "a note", "reason": "why"}))).await;
    caller.gets(200, ask(note, &[one]).body(&json!({"note": null}))).await;
    caller.gets(422, ask(note, &[one]).body(&json!({}))).await;
    caller.gets(404, ask(note, &[NOBODY]).body(&json!({"note": null}))).await;
    let act = |verb: &str| format!("POST /api/v1/bridge/deadLetters/{{id}}:{verb}");
    caller.gets(200, ask(&act("park"), &[one])).await;
    caller.gets(409, ask(&act("park"), &[one])).await;
    caller.gets(200, ask(&act("unpark"), &[one]).body(&json!({"reason": "why"}))).await;
    caller.gets(422, ask(&act("unpark"), &[one]).body(&json!({"why": "why"}))).await;
    caller.gets(200, ask("DELETE /api/v1/bridge/deadLetters/{id}", &[one])).await;
    caller.gets(409, ask("DELETE /api/v1/bridge/deadLetters/{id}", &[one])).await;
    caller.gets(200, ask(get, &[one])).await;
    caller.gets(200, ask(&act("restore"), &[one])).await;
    let path = json!({"request": {"path": "/bad/2", "body": {"a": 1}}, "dryRun": true});
    caller.gets(200, ask(&act("edit"), &[one]).body(&path)).await;
    caller.gets(422, ask(&act("edit"), &[one]).body(&json!({"dryRun": 1}))).await;
    caller.gets(409, ask(&act("edit"), &[one]).body(&json!({"request": {"method": "post"}}))).await;
    let path = json!({"request": {"path": "/bad/2"}});
    let keyed = [("idempotency-key", "edit")];
    let edited = caller.gets(202, ask(&act("edit"), &[one]).body(&path).headers(&keyed)).await;
    let again = edited["delivery"].as_str().unwrap();
    caller.waits("GET /api/v1/bridge/deliveries/{id}", &[again], "deadLettered").await;
    let again = caller.gets(200, ask(get, &[again])).await;
    assert_eq!(again["diff"][0]["place"], "path");
    caller.gets(200, ask(&act("purge"), &[other])).await;
    caller.gets(404, ask(&act("purge"), &[other])).await;
}

async fn many_dead_letters(caller: &mut Caller) {
    fails(caller, &["m-1", "m-2"]).await;
    let many = |verb: &str| format!("POST /api/v1/bridge/deadLetters:{verb}");
    let chosen = json!({"filter": {"rule": "fails", "status": 400, "until": "2100-01-01T00:00:00Z"}});
    caller
        .gets(
            422,
            ask(&many("replay"), &[]).body(&json!({"canary": 7, "ratePerSecond": 0, "max": 0, "mode": 1})),
        )
        .await;
    caller
        .gets(422, ask(&many("replay"), &[]).body(&json!({"filter": {"ids": ["x"], "standing": ["none"]}})))
        .await;
    caller.gets(422, ask(&many("replay"), &[]).body(&json!({"filter": {"standing": "delivered"}}))).await;
    let operation = "GET /api/v1/ops/operations/{id}";
    for (verb, more) in [
        ("replay", json!({"canary": [1], "mode": "same", "ratePerSecond": 100, "reason": "a test"})),
        ("park", json!({"max": 10})),
        ("unpark", json!({})),
        ("delete", json!({})),
        ("restore", json!({})),
    ] {
        let mut body = more;
        body["filter"] = chosen["filter"].clone();
        let mut dry = body.clone();
        dry["dryRun"] = json!(true);
        caller.gets(200, ask(&many(verb), &[]).body(&dry)).await;
        let begun = caller.gets(202, ask(&many(verb), &[]).body(&body)).await;
        let id = begun["id"].as_str().unwrap();
        caller.waits(operation, &[id], if verb == "replay" { "stopped" } else { "done" }).await;
        if verb == "replay" {
            let steer = |verb: &str| format!("POST /api/v1/ops/operations/{{id}}:{verb}");
            caller.gets(409, ask(&steer("pause"), &[id])).await;
            caller.gets(422, ask(&steer("pause"), &[id]).body(&json!({"a": 1}))).await;
            caller.gets(200, ask(&steer("resume"), &[id]).body(&json!({"reason": "a test"}))).await;
            caller.waits(operation, &[id], "done").await;
        }
    }
    caller.gets(404, ask(operation, &["op_00000000000000000000000000000000"])).await;
    caller.gets(200, ask("GET /api/v1/ops/operations", &[]).query("?page_size=2")).await;
    caller.gets(422, ask("GET /api/v1/ops/operations", &[]).query("?task=replay")).await;
    let lines =
        caller.gets(200, ask("GET /api/v1/bridge/deadLetters:export", &[]).query("?rule=fails&max=2")).await;
    assert!(lines.is_null(), "it has no envelope");
    caller.gets(422, ask("GET /api/v1/bridge/deadLetters:export", &[]).query("?max=0")).await;
    caller.gets(200, ask(&many("purge"), &[]).body(&chosen)).await;
    let mut forced = chosen;
    forced["force"] = json!(true);
    let begun = caller.gets(202, ask(&many("purge"), &[]).body(&forced)).await;
    caller.waits(operation, &[begun["id"].as_str().unwrap()], "done").await;
}

async fn groups_of_dead_letters(caller: &mut Caller) {
    fails(caller, &["g-1", "g-2"]).await;
    let list = "GET /api/v1/bridge/deadLetterGroups";
    let found =
        caller.gets(200, ask(list, &[]).query("?service=billing&rule=fails&state=open,acknowledged")).await;
    let group = found["deadLetterGroups"][0]["fingerprint"].as_str().unwrap().to_owned();
    caller.gets(422, ask(list, &[]).query("?state=closed")).await;
    let get = "GET /api/v1/bridge/deadLetterGroups/{fingerprint}";
    caller.gets(200, ask(get, &[&group])).await;
    caller.gets(404, ask(get, &["grp_0000000000000000"])).await;
    caller.gets(404, ask(get, &["nothing"])).await;
    let note = "PATCH /api/v1/bridge/deadLetterGroups/{fingerprint}";
    caller.gets(200, ask(note, &[&group]).body(&json!({"note": "a note"}))).await;
    caller.gets(422, ask(note, &[&group]).body(&json!({"note": "a".repeat(5_000)}))).await;
    let act = |verb: &str| format!("POST /api/v1/bridge/deadLetterGroups/{{fingerprint}}:{verb}");
    for (verb, state) in [("acknowledge", "acknowledged"), ("resolve", "resolved"), ("reopen", "open")] {
        let body = json!({"note": "a note", "reason": "a test"});
        assert_eq!(caller.gets(200, ask(&act(verb), &[&group]).body(&body)).await["state"], state);
        caller.gets(404, ask(&act(verb), &["grp_0000000000000000"])).await;
    }
    caller.gets(200, ask(&act("replay"), &[&group]).body(&json!({"dryRun": true}))).await;
    caller.gets(422, ask(&act("replay"), &[&group]).body(&json!({"filter": {}}))).await;
    // Paused, so that it has not ended when it is halted.
    caller.gets(200, ask("POST /api/v1/registry/services/{name}:pause", &["billing"])).await;
    let begun = caller.gets(202, ask(&act("replay"), &[&group])).await;
    let id = begun["id"].as_str().unwrap();
    for (verb, state) in [("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")] {
        let steer = format!("POST /api/v1/ops/operations/{{id}}:{verb}");
        assert_eq!(caller.gets(200, ask(&steer, &[id])).await["state"], state);
    }
    caller.gets(200, ask("POST /api/v1/registry/services/{name}:resume", &["billing"])).await;
}

async fn calls(caller: &mut Caller) {
    let call = "POST /api/v1/gateway/services/{name}:call";
    caller.gets(200, ask(call, &["billing"]).body(&json!({"path": "/good", "query": {"a": [1, "b"]}}))).await;
    caller
        .gets(200, ask(call, &["billing"]).body(&json!({"path": "/bad", "method": "post", "body": 1})))
        .await;
    caller.gets(202, ask(call, &["billing"]).body(&json!({"path": "/good", "mode": "async"}))).await;
    caller.gets(202, ask(call, &["nowhere"]).body(&json!({"mode": "sync_or_queue"}))).await;
    caller.gets(422, ask(call, &["billing"]).body(&json!({"path": "good", "mode": "now"}))).await;
    caller.gets(404, ask(call, &["nobody"]).body(&json!({}))).await;
    let key = [("idempotency-key", "one")];
    caller.gets(202, ask(call, &["billing"]).body(&json!({"mode": "async"})).headers(&key)).await;
    caller
        .gets(422, ask(call, &["billing"]).body(&json!({"mode": "async", "path": "/b"})).headers(&key))
        .await;
    let open = "POST /api/v1/registry/services/{name}/circuit:forceOpen";
    caller.gets(200, ask(open, &["nowhere"]).body(&json!({"reason": "a test"}))).await;
    caller.gets(503, ask(call, &["nowhere"]).body(&json!({}))).await;
    let service =
        json!({"address": "http://127.0.0.1:1", "policy": {"rate_limit": {"calls": 1, "per": "1h"}}});
    caller.gets(201, ask("PUT /api/v1/registry/services/{name}", &["limited"]).body(&service)).await;
    caller.gets(502, ask(call, &["limited"]).body(&json!({}))).await;
    caller.gets(429, ask(call, &["limited"]).body(&json!({}))).await;
    caller.gets(200, ask("POST /api/v1/registry/services/{name}:pause", &["limited"])).await;
    caller.gets(503, ask(call, &["limited"]).body(&json!({}))).await;
}

async fn webhooks(caller: &mut Caller) {
    let post = "POST /in/{source}";
    let token = [("authorization", "Bearer a-token-of-the-test")];
    caller.gets(202, ask(post, &["shop"]).text("{\"a\":1}").headers(&token)).await;
    caller.gets(401, ask(post, &["shop"]).text("{}").headers(&[("authorization", "Bearer x")])).await;
    caller.gets(401, ask(post, &["nobody"]).text("{}").headers(&token)).await;
}

async fn alerts(caller: &mut Caller, address: &str) {
    const ONE: &str = "/api/v1/ops/alerts/{id}";
    const RULE: &str = "/api/v1/ops/alertRules/{name}";
    const CHANNEL: &str = "/api/v1/ops/alertChannels/{name}";
    let (put, patch, get, delete) = (
        format!("PUT {CHANNEL}"),
        format!("PATCH {CHANNEL}"),
        format!("GET {CHANNEL}"),
        format!("DELETE {CHANNEL}"),
    );
    let hook = json!({"type": "webhook", "url": format!("{address}/good")});
    let mail = json!({"type": "email", "host": "mail.example", "from": "hub@example.com", "to": ["duty@example.com"]});
    caller.gets(201, ask(&put, &["duty"]).body(&hook)).await;
    caller.gets(200, ask(&put, &["duty"]).body(&hook)).await;
    caller.gets(201, ask(&put, &["mail"]).body(&mail)).await;
    caller.gets(422, ask(&put, &["log"]).body(&hook)).await;
    caller.gets(422, ask(&put, &["duty"]).body(&json!({"type": "pigeon"}))).await;
    caller.gets(400, ask(&put, &["duty"]).text("{")).await;
    caller.gets(412, ask(&put, &["duty"]).body(&hook).headers(&[("if-match", "7")])).await;
    caller.gets(200, ask(&patch, &["mail"]).body(&json!({"port": 2525}))).await;
    caller.gets(404, ask(&patch, &["nobody"]).body(&json!({}))).await;
    caller.gets(200, ask(&get, &["mail"])).await;
    caller.gets(404, ask(&get, &["nobody"])).await;
    caller.gets(200, ask("GET /api/v1/ops/alertChannels", &[])).await;
    let test = format!("POST {CHANNEL}:test");
    assert_eq!(caller.gets(200, ask(&test, &["duty"])).await["sent"], true);
    caller.gets(404, ask(&test, &["nobody"])).await;
    caller.gets(200, ask(&delete, &["mail"])).await;

    let (put, patch, get, delete) =
        (format!("PUT {RULE}"), format!("PATCH {RULE}"), format!("GET {RULE}"), format!("DELETE {RULE}"));
    let own = json!({"kind": "circuitOpen", "for": "0s", "channels": ["duty"]});
    caller.gets(201, ask(&put, &["own"]).body(&own)).await;
    caller.gets(200, ask(&put, &["own"]).body(&own)).await;
    caller.gets(422, ask(&put, &["own"]).body(&json!({"kind": "none"}))).await;
    caller.gets(200, ask(&patch, &["own"]).body(&json!({"severity": "warning"}))).await;
    caller.gets(412, ask(&patch, &["own"]).body(&json!({})).headers(&[("if-match", "70")])).await;
    caller.gets(200, ask(&get, &["own"])).await;
    caller.gets(404, ask(&get, &["none"])).await;
    caller.gets(200, ask("GET /api/v1/ops/alertRules", &[])).await;
    let mute = json!({"for": "1h", "reason": "a test"});
    caller.gets(200, ask(&format!("POST {RULE}:mute"), &["own"]).body(&mute)).await;
    caller.gets(422, ask(&format!("POST {RULE}:mute"), &["own"]).body(&json!({"for": "1h"}))).await;
    caller.gets(200, ask(&format!("POST {RULE}:unmute"), &["own"])).await;
    caller.gets(409, ask(&format!("DELETE {CHANNEL}"), &["duty"])).await;

    caller
        .gets(
            200,
            ask("POST /api/v1/registry/services/{name}/circuit:forceOpen", &["billing"])
                .body(&json!({"reason": "a test"})),
        )
        .await;
    let list = "GET /api/v1/ops/alerts";
    let mut found = Value::Null;
    for _ in 0..500 {
        found = caller
            .gets(200, ask(list, &[]).query("?state=open&rule=own&service=billing&severity=warning"))
            .await;
        if found["alerts"][0].is_object() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let id = found["alerts"][0]["id"].as_str().unwrap().to_owned();
    caller.gets(422, ask(list, &[]).query("?state=closed")).await;
    caller.gets(200, ask(&format!("GET {ONE}"), &[&id])).await;
    caller.gets(404, ask(&format!("GET {ONE}"), &["inc_0"])).await;
    caller.gets(200, ask(&format!("POST {ONE}:acknowledge"), &[&id]).body(&json!({"reason": "seen"}))).await;
    caller.gets(200, ask(&format!("POST {ONE}:mute"), &[&id]).body(&mute)).await;
    caller.gets(422, ask(&format!("POST {ONE}:mute"), &[&id]).body(&json!({}))).await;
    caller.gets(200, ask(&format!("POST {ONE}:unmute"), &[&id])).await;
    caller.gets(200, ask(&delete, &["own"])).await;
    caller.gets(409, ask(&format!("POST {ONE}:unmute"), &[&id])).await;
    caller.gets(200, ask(&format!("GET {ONE}"), &[&id])).await;
    caller.gets(200, ask("POST /api/v1/registry/services/{name}/circuit:reset", &["billing"])).await;
}

async fn operations(caller: &mut Caller) {
    for path in ["health", "health/liveness", "health/readiness", "metrics"] {
        caller.gets(200, ask(&format!("GET /actuator/{path}"), &[])).await;
    }
    let metric = "GET /actuator/metrics/{name}";
    caller.gets(200, ask(metric, &["seawall.deliveries"])).await;
    caller.gets(200, ask(metric, &["resilience4j.circuitbreaker.calls"])).await;
    caller.gets(404, ask(metric, &["nothing"])).await;
    caller.gets(422, ask(metric, &["seawall.deliveries"]).query("?tag=a")).await;
    for path in ["/metrics", "/openapi.json", "/docs"] {
        caller.gets(200, ask(&format!("GET {path}"), &[])).await;
    }
    caller.gets(200, ask("GET /api/v1/ops/overview", &[])).await;
    let standings = "GET /api/v1/ops/services";
    caller.gets(200, ask(standings, &[])).await;
    caller.gets(200, ask(standings, &[]).query("?search=bill&circuit=closed&sort=trouble&page_size=2")).await;
    caller.gets(422, ask(standings, &[]).query("?circuit=ajar")).await;
    let history = "GET /api/v1/ops/history";
    caller.gets(200, ask(history, &[])).await;
    caller.gets(200, ask(history, &[]).query("?service=billing&minutes=60")).await;
    caller.gets(404, ask(history, &[]).query("?service=nobody")).await;
    caller.gets(422, ask(history, &[]).query("?minutes=7")).await;
    caller.gets(200, ask("GET /api/v1/ops/audit", &[]).query("?page_size=3")).await;
    caller.gets(422, ask("GET /api/v1/ops/audit", &[]).query("?who=me")).await;
    caller.gets(200, ask("POST /api/v1/ops/secrets:rotate", &[])).await;
}

/// Every route that needs a key, without one.
async fn everybody_is_asked(caller: &mut Caller) {
    for route in crate::http::routes::routes() {
        let operation = format!("{} {}", route.method, route.path);
        let name = if route.path.contains("{id}") { "dlv_00000000000000000000000000000000" } else { "a" };
        let name = if route.path.contains("{fingerprint}") { "grp_0000000000000000" } else { name };
        let names: &[&str] = if route.path.contains('{') { &[name] } else { &[] };
        caller.gets(401, ask(&operation, names).headers(&[("authorization", "")])).await;
    }
}

async fn ends(caller: &mut Caller) {
    caller.gets(409, ask("DELETE /api/v1/registry/services/{name}", &["billing"])).await;
    caller
        .gets(200, ask("DELETE /api/v1/registry/rules/{name}", &["invoices"]).query("?pending=deadLetter"))
        .await;
    caller.gets(404, ask("DELETE /api/v1/registry/rules/{name}", &["invoices"])).await;
    let answer = caller.router.call(Request::delete("/metrics").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status().as_u16(), 405);
}
