//! Rules and events that cost much: the hub refuses or keeps them, and goes on serving everybody.

use serde_json::{Value, json};

use super::{RULES, Scene};
use crate::harness::{header, until};

const ALL: &str = "/api/v1/registry/rules/all";
const EVALUATE: &str = "/api/v1/registry/rules:evaluate";
const EVENTS: &str = "/api/v1/bridge/events";
const LETTERS: &str = "/api/v1/bridge/deadLetters";

fn event(id: u32, data: &Value) -> Value {
    json!({"id": format!("evt-{id}"), "type": "order.created", "data": data})
}

fn tried(body: &str, data: &Value) -> Value {
    let rule = json!({"name": "x", "eventType": "order.*", "service": "billing", "path": "/", "body": body});
    json!({"rule": rule, "event": event(1, data)})
}

/// PRM-8: trying a costly rule ends with what ran out, two at once as well, and others are served in between.
#[test]
fn prm_8_trying_a_costly_rule_ends_and_holds_up_nobody() {
    let Scene { hub, .. } = Scene::new();
    let numbers: Vec<u32> = (0..100_000).collect();
    let select = tried("{{ data.l|select('in',data.l)|length }}", &json!({"l": numbers}));
    let replace = tried("{{ data.s|replace('a',data.s)|length }}", &json!({"s": "a".repeat(400_000)}));
    std::thread::scope(|scope| {
        let two =
            [&select, &select, &replace].map(|body| scope.spawn(|| hub.with("POST", EVALUATE, &[], body)));
        assert_eq!(hub.with("GET", "/actuator/health", &[], &Value::Null).status, 200);
        for answer in two.map(|one| one.join().unwrap()) {
            let data = &answer.body["data"];
            assert_eq!((answer.status, &data["outcome"]), (200, &json!("unrenderable")), "{}", answer.body);
            assert!(data["reason"].as_str().unwrap().contains("needs more than"), "{data}");
        }
    });
}

/// PRM-8: trying rules and backtesting them share one thread. Who finds too many waiting for it is told so with 503 and when to come
/// back, nobody waits for ever, and the next one is served when the others are done.
#[test]
fn prm_8_trying_more_rules_than_their_share_allows_is_told_to_come_back() {
    const CALLERS: usize = 60;
    let Scene { folder: _folder, hub, .. } = Scene::new();
    hub.must("POST", EVENTS, &event(1, &json!({"id": 1})));
    // Little to send and much to do, so that all callers are there long before the first is done.
    let costly = tried("{{ ([1.5] * 100000)|map('round', 2)|sort|length }}", &json!({}));
    let evaluate = (EVALUATE.to_owned(), costly.clone());
    let mut draft = costly["rule"].clone();
    draft["name"] = json!("all");
    let backtest = (format!("{ALL}:backtest"), json!({"rule": draft, "max": 1}));
    for (path, body) in [evaluate, backtest] {
        let answers: Vec<_> = std::thread::scope(|scope| {
            let callers: Vec<_> =
                (0..CALLERS).map(|_| scope.spawn(|| hub.with("POST", &path, &[], &body))).collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        let (served, refused): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.status == 200);
        assert!(!served.is_empty() && !refused.is_empty(), "{path}: {} served", served.len());
        for answer in &refused {
            assert_eq!((answer.status, &answer.body["code"]), (503, &json!("busy")), "{}", answer.body);
            assert_eq!(answer.body["retryable"], json!(true));
            let seconds = header(&answer.head, "retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
            assert!(seconds.is_some_and(|seconds| seconds >= 1), "{}", answer.head);
            assert!(answer.body["message"].as_str().unwrap().contains("too many rules"), "{}", answer.body);
        }
        until("the next one is served", || hub.with("POST", &path, &[], &body).status == 200);
    }
}

/// PRM-8, HUB-5: an event that many costly rules look at costs no more than twenty of them may: it is acknowledged, further rules are
/// dead letters that say why, and a replay of one of these has a budget of its own.
#[test]
fn prm_8_all_rules_together_have_a_bound_on_one_event() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    for number in 0..30 {
        let rule = json!({
            "name": format!("costly-{number:02}"), "eventType": "order.*", "service": "billing", "path": "/",
            "body": "{{ ([1.5] * 20000)|map('round', 2)|sort|length if data.cheap else ([1.5] * 100000)|sort|length }}",
        });
        hub.must("POST", RULES, &rule);
    }
    hub.must("POST", EVENTS, &event(1, &json!({"id": 1, "cheap": false})));
    let letters = hub.all(LETTERS, "deadLetters", 50);
    assert_eq!(letters.len(), 30, "the rule `all` is cheap, and comes first");
    let because = |word: &str| {
        let says = |letter: &&Value| letter["error"].as_str().is_some_and(|error| error.contains(word));
        letters.iter().filter(says).count()
    };
    let (own, shared) = (because("what one rule may spend"), because("all rules together"));
    assert!((19..=20).contains(&own) && own + shared == 30, "{own} and {shared}: {letters:?}");
    // Twenty of them would not have been too many for an event that is cheap.
    let accepted = hub.send(&event(2, &json!({"id": 2, "cheap": true})));
    assert_eq!(accepted.len(), 31);
}

/// PRM-8, HUB-5: an event that can't be rendered within its bounds is acknowledged, and its delivery is a dead letter with that
/// reason. Sending it again is the same event, and crashes nothing.
#[test]
fn prm_8_an_event_that_costs_too_much_is_a_dead_letter() {
    let Scene { hub, peer, .. } = Scene::new();
    hub.must(
        "PATCH",
        ALL,
        &json!({"body": {"n": "{{ data.items|selectattr('sku','in',data.allowed)|length }}"}}),
    );
    let filter = json!({
        "name": "filtered", "eventType": "order.*", "service": "billing", "path": "/",
        "filter": "data.items|selectattr('sku','in',data.allowed)|length > 0",
    });
    hub.must("POST", RULES, &filter);
    let items: Vec<Value> = (0..28_000).map(|at| json!({"sku": format!("sku-{at:08}")})).collect();
    let allowed: Vec<String> = (0..22_000).map(|at| format!("none-{at:08}")).collect();
    let large = event(1, &json!({"id": 1, "items": items, "allowed": allowed}));
    assert!(large.to_string().len() > 900_000);
    for again in [false, true] {
        let answer = hub.with("POST", EVENTS, &[], &large);
        assert_eq!(
            (answer.status, &answer.body["data"]["deduplicated"]),
            (202, &json!(again)),
            "{}",
            answer.body
        );
        assert_eq!(answer.body["data"]["deliveries"].as_array().unwrap().len(), 2);
    }
    let letters = hub.all(LETTERS, "deadLetters", 10);
    assert_eq!(letters.len(), 2);
    for letter in &letters {
        let whole = hub.get(&format!("{LETTERS}/{}", letter["id"].as_str().unwrap())).to_string();
        assert!(whole.contains("impossible") && whole.contains("steps of work"), "{whole}");
    }
    // Others are delivered as before.
    hub.must("PATCH", ALL, &json!({"body": null}));
    hub.must("POST", EVENTS, &event(2, &json!({"id": 2, "items": [], "allowed": []})));
    until("the other event is delivered", || peer.count() == 1);
}
