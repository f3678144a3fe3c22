//! What somebody meets who has never seen a hub before: each of these once cost a person minutes.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Scene, command, ran};
use crate::harness::{Hub, KEY, SEAWALL, until};
use crate::peer::PeerBehavior;

fn unescaped(html: &str) -> String {
    html.replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&#x2f;", "/")
        .replace("&amp;", "&")
}

/// HUB-10: what the guard is made of is shown line by line.
#[test]
fn hub_10_a_circuit_is_shown_line_by_line() {
    let scene = Scene::new();
    let shown = scene.run(&["circuits", "show", "billing"]).well().out;
    assert!(!shown.contains("\\n"), "{shown}");
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(lines.iter().any(|line| line.starts_with("attempt timeout 2s")), "{shown}");
    // What a peer has written is still one line.
    scene.peer.behave(PeerBehavior::Respond(422));
    scene.peer.set_body("no\nway");
    let id = scene.delivery("1");
    until("it is given up", || scene.hub.delivery(&json!(id))["state"] == "deadLettered");
    scene.run(&["deliveries", "show", &id]).well().says(&["no\\nway"]);
}

/// API-1, HUB-10: a duration is shown in the largest unit that it is a whole number of, as people write it.
#[test]
fn api_1_durations_are_shown_as_people_write_them() {
    let scene = Scene::new();
    scene.put("rules", &json!({"name": "usual", "eventType": "other", "service": "billing"}));
    let delivery = scene.json(&["rules", "show", "usual"])["delivery"].clone();
    let said = |name: &str| delivery[name].as_str().unwrap_or_default().to_owned();
    assert_eq!((&*said("maxAge"), &*said("base"), &*said("cap")), ("3d", "1s", "1h"), "{delivery}");
    assert_eq!(scene.json(&["rules", "show", "all"])["delivery"]["base"], "20ms");
    scene.run(&["rules", "show", "usual"]).well().says(&["3d"]);
    assert!(scene.page("/rules/usual").contains("3d"));
}

/// SEC-1: a key that is wrong is told so, and one that is missing is told that it is missing.
#[test]
fn sec_1_a_wrong_key_is_told_that_it_is_wrong() {
    let scene = Scene::new();
    let (status, answer) = scene.hub.ask("GET", "/api/v1/registry/services", "swk_of-another-hub", "");
    let message = answer["message"].as_str().unwrap();
    assert_eq!((status, &answer["code"]), (401, &json!("unauthorised")));
    assert!(message.contains("unknown key") && !message.contains("swk_of"), "{message}");
    let none = scene.hub.call("GET", "/api/v1/registry/services", &[], "").body;
    assert!(none["message"].as_str().unwrap().contains("a key is needed"), "{none}");
    for (headers, told) in
        [(&[("x-seawall-key", "swk_of-another-hub")][..], "unknown key"), (&[], "a key is needed")]
    {
        let proxied = scene.hub.call("GET", "/gateway/billing/x", headers, "");
        assert_eq!(proxied.status, 401);
        assert!(proxied.text.contains(told), "{}", proxied.text);
    }
    let mut wrong = command(&scene.url(), &["services", "list"]);
    ran(wrong.env("SEAWALL_KEY", "swk_of-another-hub"), "").wrong(4, &["unknown key"]);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let login = scene.hub.call("POST", "/login", &form, "key=swk_of-another-hub");
    assert!(login.text.contains("Unknown key"), "{}", login.text);
}

/// SEC-1, HUB-3: a key for some sources that sends an event without one is told what to say.
#[test]
fn hub_3_an_event_without_a_source_is_told_which_ones_the_key_may_send_from() {
    let scene = Scene::new();
    let made = scene.hub.must(
        "POST",
        "/api/v1/registry/keys",
        &json!({"name": "shop", "scopes": ["ingest"], "sources": ["shop"]}),
    );
    let send = |event: Value| {
        scene.hub.ask("POST", "/api/v1/bridge/events", made["key"].as_str().unwrap(), &event.to_string())
    };
    let (status, answer) = send(json!({"id": "1", "type": "a"}));
    let message = answer["message"].as_str().unwrap();
    assert_eq!(status, 403, "{answer}");
    assert!(message.contains("says no `source`") && message.contains("`shop`"), "{message}");
    let (status, answer) = send(json!({"id": "1", "type": "a", "source": "crm"}));
    let message = answer["message"].as_str().unwrap();
    assert_eq!(status, 403, "{answer}");
    assert!(message.contains("`crm`") && !message.contains("says no"), "{message}");
    assert_eq!(send(json!({"id": "1", "type": "a", "source": "shop"})).0, 202);
}

/// API-1: a token that no page has given is refused, in every list.
#[test]
fn api_1_a_token_that_no_page_has_given_is_refused() {
    let scene = Scene::new();
    for list in ["bridge/events", "bridge/deliveries", "bridge/deadLetters", "ops/audit", "ops/services"] {
        for token in ["zzzz", "1", "10", "0000000"] {
            let path = format!("/api/v1/{list}?page_token={token}");
            let reply = scene.hub.with("GET", &path, &[], &Value::Null);
            assert_eq!(
                (reply.status, &reply.body["errors"][0]["field"]),
                (422, &json!("page_token")),
                "{path}"
            );
        }
    }
}

/// HUB-1, UI-3, HUB-10: whoever registers a service that the egress rules forbid is told so at once, wherever they do it, and the
/// service is kept: the rules may change, and its name may lead elsewhere tomorrow.
#[test]
fn hub_1_a_service_that_egress_forbids_is_told_so_when_it_is_registered() {
    let folder = TempDir::new().unwrap();
    let mut process = Command::new(SEAWALL);
    process.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
    process.env("SEAWALL_ADMIN_KEY", KEY).env("SEAWALL_LOG_LEVEL", "error").stdout(Stdio::piped());
    let hub = Hub::ready(process.spawn().unwrap()).unwrap();
    let warnings = |address: &str| {
        let service = json!({"name": "inside", "address": address});
        hub.must("POST", "/api/v1/registry/services", &service)["warnings"].clone()
    };
    for address in ["http://127.0.0.1:9000", "http://localhost:9000", "http://10.1.2.3", "http://2130706433/"]
    {
        let said = warnings(address);
        let text = said[0].as_str().unwrap_or_default();
        assert!(text.contains("--allow-egress"), "{address}: {said}");
    }
    let kept = hub.get("/api/v1/registry/services/inside");
    assert!(kept["warnings"][0].as_str().unwrap().contains("--allow-egress"), "{kept}");
    let url = format!("http://{}", hub.address);
    let put =
        ran(&mut command(&url, &["services", "put", "-"]), r#"{"name":"cli","address":"http://10.0.0.1"}"#)
            .well();
    assert!(put.err.contains("--allow-egress"), "{}", put.err);
    // It is told after a restart as well: an outage of the hub is when somebody changes its settings.
    drop(hub);
    let hub = Hub::ready(process.spawn().unwrap()).unwrap();
    let warnings = |address: &str| {
        let service = json!({"name": "inside", "address": address});
        hub.must("POST", "/api/v1/registry/services", &service)["warnings"].clone()
    };
    for name in ["inside", "cli"] {
        until("the warning is there again", || {
            let kept = hub.get(&format!("/api/v1/registry/services/{name}"));
            kept["warnings"][0].as_str().is_some_and(|text| text.contains("--allow-egress"))
        });
    }
    assert_eq!(warnings("http://93.184.216.34"), json!([]), "a public address is fine");
    assert_eq!(hub.get("/api/v1/registry/services/inside")["warnings"], json!([]));
}

/// UI-2: the command that the empty page of sources shows is one that the hub takes.
#[test]
fn ui_2_the_command_for_a_first_source_is_taken_as_it_stands() {
    let scene = Scene::new();
    let page = unescaped(&scene.page("/sources"));
    let (_, rest) = page.split_once("-d '").unwrap();
    let body = rest.split_once("'</pre>").map_or(rest, |(body, _)| body);
    let parsed = serde_json::from_str::<Value>(body);
    assert!(parsed.is_ok(), "no JSON: {body}");
    scene.hub.must("POST", "/api/v1/registry/sources", &parsed.unwrap());
}

/// UI-1: the menu shows where one is, whatever stands after the question mark.
#[test]
fn ui_1_the_menu_shows_where_one_is() {
    let scene = Scene::new();
    for path in ["/", "/?minutes=60", "/services?sort=trouble", "/services/billing?minutes=60"] {
        assert!(scene.page(path).contains("aria-current=\"page\""), "{path}");
    }
}

/// HUB-6: a canary that stopped says which delivery failed, and what it was answered.
#[test]
fn hub_6_a_canary_that_stopped_names_the_delivery_that_failed() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(422));
    scene.peer.set_body("the country is unknown");
    let ids: Vec<String> = (0..3).map(|n| scene.delivery(&format!("c-{n}"))).collect();
    until("all are given up", || {
        ids.iter().all(|id| scene.hub.delivery(&json!(id))["state"] == "deadLettered")
    });
    let work = scene.hub.must(
        "POST",
        "/api/v1/bridge/deadLetters:replay",
        &json!({"filter": {"service": "billing"}, "canary": [1], "ratePerSecond": 100}),
    );
    let path = format!("/api/v1/ops/operations/{}", work["id"].as_str().unwrap());
    until("the canary stops it", || scene.hub.get(&path)["state"] == "stopped");
    let stopped = scene.hub.get(&path);
    let failed = stopped["failedDelivery"].as_str().unwrap_or_default().to_owned();
    assert!(failed.starts_with("dlv_") && !ids.contains(&failed), "{stopped}");
    assert_eq!(
        scene.hub.delivery(&json!(failed))["state"],
        "deadLettered",
        "the replay, not what it replays"
    );
    let why = stopped["why"].as_str().unwrap();
    assert!(why.contains(&failed) && why.contains("422"), "{why}");
    let page = scene.page(&format!("/operations/{}", work["id"].as_str().unwrap()));
    assert!(
        page.contains(&format!("/deliveries/{failed}")) && page.contains("the country is unknown"),
        "{page}"
    );
    scene.run(&["operations", "show", work["id"].as_str().unwrap()]).well().says(&[&failed, "422"]);
}

/// HUB-10: completion offers what there is, and not the key that a command line must not have.
#[test]
fn hub_10_completion_offers_values_and_no_key() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = ran(&mut command("http://127.0.0.1:1", &["completions", shell]), "").well().out;
        let words: Vec<&str> = script.split([' ', '\'', '"', '\n', '=', '[', '(']).collect();
        assert!(words.contains(&"--key-file") || script.contains("key-file"), "{shell}");
        assert!(!words.contains(&"--key") && !script.contains("-l key -"), "{shell} offers `--key`");
        // The other two know no values of options.
        if !["bash", "zsh", "fish"].contains(&shell) {
            continue;
        }
        assert!(script.contains("deadLettered"), "{shell} offers the states of a delivery");
        assert!(script.contains("impossible"), "{shell} offers the reasons of a dead letter");
    }
}

/// HUB-10: a value that is none is told at once which ones there are.
#[test]
fn hub_10_a_state_that_is_none_is_told_which_ones_there_are() {
    let scene = Scene::new();
    scene.run(&["deliveries", "list", "--state", "lost"]).wrong(2, &["waiting", "deadLettered"]);
    scene.run(&["deliveries", "list", "--reason", "bad"]).wrong(2, &["refused", "poison"]);
    scene.run(&["dlq", "list", "--standing", "lost"]).wrong(2, &["parked"]);
}

/// HUB-10: who names something of the alerts that is not there is told what lists it.
#[test]
fn hub_10_what_is_not_there_names_what_lists_it() {
    let scene = Scene::new();
    for (args, list) in [
        (["alerts", "rules", "show", "nobody"].as_slice(), "`seawall alerts rules list`"),
        (&["alerts", "channels", "show", "nobody"], "`seawall alerts channels list`"),
        (&["alerts", "show", "nobody"], "`seawall alerts list`"),
    ] {
        scene.run(args).wrong(3, &[list]);
    }
}
