//! Lists: filters, and pages that show everything once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{RULES, SERVICES, Scene, event};
use crate::harness::until;
use crate::peer::PeerBehavior;

const BRIDGE: &str = "/api/v1/bridge";

fn ids(items: &[Value], field: &str) -> Vec<String> {
    items.iter().map(|item| item.pointer(field).unwrap().as_str().unwrap().to_owned()).collect()
}

/// API-1: a walk over the pages shows everything once, the newest first, however large a page is, also while more comes.
#[test]
fn api_1_a_walk_over_the_pages_shows_everything_once() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    for n in 0..23 {
        hub.send(&event(&format!("e-{n:02}")));
    }
    let expected: Vec<String> = (0..23).rev().map(|n| format!("e-{n:02}")).collect();
    for size in [1, 5, 22, 23, 24, 500] {
        assert_eq!(
            ids(&hub.all(&format!("{BRIDGE}/events"), "events", size), "/event/id"),
            expected,
            "{size}"
        );
        let deliveries = hub.all(&format!("{BRIDGE}/deliveries"), "deliveries", size);
        assert_eq!(ids(&deliveries, "/event"), expected, "{size}");
    }
    let first = hub.get(&format!("{BRIDGE}/events?page_size=5"));
    hub.send(&event("late"));
    let token = first["nextPageToken"].as_str().unwrap();
    let second = hub.get(&format!("{BRIDGE}/events?page_size=5&page_token={token}"));
    assert_eq!(second["events"][0]["event"]["id"], "e-17", "what comes later does not move the pages");
    assert_eq!(
        hub.get(&format!("{BRIDGE}/events"))["events"].as_array().unwrap().len(),
        24,
        "fifty, unless said"
    );
}

/// API-1, HUB-5: filters find what they say, and nothing else; what nobody knows is a mistake, and not everything.
#[test]
fn api_1_filters_find_what_they_say() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    hub.must("POST", SERVICES, &json!({"name": "mail", "address": peer.address}));
    hub.must("POST", RULES, &json!({"name": "mails", "eventType": "user.*", "service": "mail"}));
    hub.send(&json!({"id": "u", "type": "user.created", "source": "crm"}));
    hub.send(&event("o-1"));
    until("all have arrived", || peer.arrived().len() == 3);
    peer.behave(PeerBehavior::Respond(422));
    let dead = hub.send(&event("o-2")).remove(0);
    hub.wait_for(&dead, "deadLettered");

    let found = |query: &str| -> BTreeSet<String> {
        let items = hub.all(&format!("{BRIDGE}/deliveries?{query}"), "deliveries", 2);
        items
            .iter()
            .map(|one| format!("{}>{}", one["event"].as_str().unwrap(), one["rule"].as_str().unwrap()))
            .collect()
    };
    let set = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(found("service=mail"), set(&["u>mails"]));
    assert_eq!(found("rule=all"), set(&["u>all", "o-1>all", "o-2>all"]));
    assert_eq!(found("event=u"), set(&["u>all", "u>mails"]));
    assert_eq!(found("event=nothing"), set(&[]));
    until("all are written down", || found("state=delivered").len() == 3);
    assert_eq!(found("state=deadLettered"), set(&["o-2>all"]));
    assert_eq!(found("reason=refused&service=billing"), set(&["o-2>all"]));
    assert_eq!(found("reason=age"), set(&[]));
    assert_eq!(found("state=pending"), set(&[]));
    let letters = |query: &str| hub.all(&format!("{BRIDGE}/deadLetters?{query}"), "deadLetters", 10).len();
    assert_eq!((letters(""), letters("reason=refused"), letters("service=mail")), (1, 1, 0));
    let events = |query: &str| ids(&hub.all(&format!("{BRIDGE}/events?{query}"), "events", 2), "/event/id");
    assert_eq!(events("type=user.*"), ["u"]);
    assert_eq!(events("type=order.created"), ["o-2", "o-1"]);
    assert_eq!(events("source=crm"), ["u"]);
    assert_eq!(events("unmatched=true"), [] as [&str; 0]);

    for wrong in [
        "events?tpye=a",
        "events?page_size=0",
        "events?page_size=501",
        "events?page_token=!",
        "events?unmatched=maybe",
        "events?type=a..b",
        "deliveries?state=lost",
        "deliveries?reason=bad",
        "deliveries?service=A!",
        "deadLetters?limit=3",
    ] {
        let reply = hub.with("GET", &format!("{BRIDGE}/{wrong}"), &[], &Value::Null);
        assert_eq!((reply.status, &reply.body["code"]), (422, &json!("invalid")), "{wrong}: {}", reply.body);
        let field = wrong.split(['?', '=']).nth(1).unwrap();
        assert_eq!(reply.body["errors"][0]["field"], field, "{wrong}");
    }
}
