//! Every method and every part of a template, as it is on the wire.

use serde_json::{Value, json};

use super::{RULES, SERVICES, Scene};

/// HUB-4: trap "PATCH becomes GET, placeholders in the path are not replaced": every method, every templated part.
#[test]
fn hub_4_every_method_and_every_templated_part_is_on_the_wire() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    hub.must("DELETE", &format!("{RULES}/all"), &Value::Null);
    hub.must(
        "PATCH",
        &format!("{SERVICES}/billing"),
        &json!({"headers": {"x-team": "shop", "x-over": "service"}}),
    );
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] {
        let with_body = ["POST", "PUT", "PATCH"].contains(&method);
        let mut rule = json!({
            "name": "part", "eventType": "order.*", "service": "billing", "method": method,
            "path": "/a/{{ data.id }}/b?name={{ data.name }}&kind={{ type }}&from={{ source }}",
            "headers": {"x-id": "{{ data.id }}", "x-over": "rule {{ data.n }}"},
        });
        if with_body {
            rule["body"] = json!({
                "number": "{{ data.n }}", "flag": "{{ data.flag }}", "none": "{{ data.none }}", "list": "{{ data.list }}",
                "object": "{{ data.object }}", "text": "{{ data.n }} of {{ data.id }}",
                "injected": "{{ data.evil }}", "default": "{{ data.missing | default('d') }}", "plain": [1, true, null],
            });
        }
        hub.must("POST", RULES, &rule);
        peer.forget();
        let data = json!({
            "id": "A/7 é", "name": "x&y=z?#", "n": 12.50, "flag": false, "none": null, "list": [1, "two"],
            "object": {"k": "v"}, "evil": "\",\"admin\":true,\"x\":\"",
        });
        let event =
            json!({"id": format!("e-{method}"), "type": "order.created", "source": "my shop", "data": data});
        let id = hub.send(&event).remove(0);
        hub.wait_for(&id, "delivered");
        let got = peer.only();
        let path = "/a/A%2F7%20%C3%A9/b?name=x%26y%3Dz%3F%23&kind=order.created&from=my%20shop";
        assert_eq!(got.request_line(), format!("{method} {path}"));
        // A text that is not ASCII is sent as the bytes that it has.
        assert!(got.header("x-id").unwrap().starts_with("A/7"), "{got:?}");
        assert_eq!((got.header("x-team"), got.header("x-over")), (Some("shop"), Some("rule 12.5")));
        assert_eq!(
            (got.header("seawall-try"), got.header("seawall-event")),
            (Some("1"), event["id"].as_str())
        );
        if with_body {
            assert_eq!(got.header("content-type"), Some("application/json"));
            let body = json!({
                "number": 12.5, "flag": false, "none": null, "list": [1, "two"], "object": {"k": "v"},
                "text": "12.5 of A/7 é", "injected": "\",\"admin\":true,\"x\":\"", "default": "d",
                "plain": [1, true, null],
            });
            assert_eq!(got.json(), body, "nothing is injected, and types stay");
        } else {
            assert_eq!((got.text(), got.header("content-type")), (String::new(), None));
        }
    }
}

/// HUB-4: a rule without a body of its own sends the event as it came.
#[test]
fn hub_4_an_event_is_sent_as_it_came() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let data =
        json!({"big": 12_345_678_901_234_567_890_u64, "deep": {"a": [[], {}]}, "text": "ä\u{1F600}\n"});
    let event = json!({"id": "E", "type": "order.created", "source": "s", "time": "2026-01-01T00:00:00Z", "subject": "x", "data": data});
    hub.send(&event);
    assert_eq!(peer.only().json(), event);
}

/// HUB-4, PRM-8: what a template would break out of its place with is refused, and becomes a dead letter with its reason.
#[test]
fn hub_4_a_header_that_an_event_would_break_is_a_dead_letter() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    hub.must("PATCH", &format!("{RULES}/all"), &json!({"headers": {"x-id": "{{ data.id }}"}}));
    let evil = json!({"id": "E", "type": "order.created", "data": {"id": "a\r\nx-admin: true"}});
    let id = hub.send(&evil).remove(0);
    let dead = hub.get(&format!("/api/v1/bridge/deadLetters/{}", id.as_str().unwrap()));
    assert_eq!((&dead["reason"], peer.count()), (&json!("impossible"), 0));
    assert!(dead["error"].as_str().unwrap().contains("headers.x-id"), "{dead}");
    let climbing =
        hub.with("PATCH", &format!("{RULES}/all"), &[], &json!({"headers": {"content-length": "3"}}));
    assert_eq!(climbing.status, 422, "{}", climbing.body);
}
