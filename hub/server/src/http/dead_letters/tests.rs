//! The desk as keys with and without limits see it. What is delivered and what is not is tested against the binary.

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use serde_json::{Value, json};
use tower_service::Service;

use crate::http::routes::{Route, routes};
use crate::http::tests::{ADMIN, Api};

const LETTERS: &str = "/api/v1/bridge/deadLetters";
const GROUPS: &str = "/api/v1/bridge/deadLetterGroups";
const OPERATIONS: &str = "/api/v1/ops/operations";
const NOBODY: &str = "dlv_0000000000000000000000000000000f";

/// For each event a dead letter of each service: what its rules ask for is not in it.
async fn fail(api: &mut Api, events: &[(&str, &str)]) {
    for name in ["billing", "mail"] {
        let rule = json!({"name": format!("{name}-bad"), "eventType": "user.*", "service": name, "body": {"n": "{{ data.n }}"}});
        let made = api.ask(Method::POST, "/api/v1/registry/rules", Some(ADMIN), &rule).await.0;
        assert!(made < 300);
    }
    for (id, source) in events {
        let event = json!({"id": id, "source": source, "type": "user.created", "data": {"word": format!("word-{id}")}});
        let (status, answer) = api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await;
        assert_eq!((status, answer["data"]["deliveries"].as_array().unwrap().len()), (202, 2), "{answer}");
    }
}

async fn letters(api: &mut Api, key: &str, query: &str) -> Vec<Value> {
    let (status, answer) = api.ask(Method::GET, &format!("{LETTERS}{query}"), Some(key), &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"]["deadLetters"].as_array().unwrap().clone()
}

async fn lines(api: &mut Api, key: &str, query: &str) -> Vec<Value> {
    let uri = format!("{LETTERS}:export{query}");
    let request = Request::get(uri).header("authorization", format!("Bearer {key}"));
    let response = api.router.call(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.into()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'v>(all: &'v [Value], service: &str, source: &str) -> &'v str {
    let fits = |one: &&Value| one["service"] == service && one["source"] == source;
    all.iter().find(fits).unwrap()["id"].as_str().unwrap()
}

/// An answer but for its trace.
fn plain((status, mut answer): (u16, Value)) -> (u16, Value) {
    answer["traceId"].take();
    (status, answer)
}

/// HUB-6, SEC-1. Trap "an id that is not yours answers exactly like an unknown id": a key that is limited to a service, or to a
/// source, sees, counts, exports and works on what is within its limits, and learns of nothing else.
#[tokio::test]
async fn sec_1_a_limited_key_sees_its_own_dead_letters() {
    let mut api = Api::new().await;
    fail(&mut api, &[("1", "shop"), ("2", "bank")]).await;
    let all = letters(&mut api, ADMIN, "").await;
    assert_eq!(all.len(), 4);
    let billing = api.key("billing", json!({"scopes": ["operate"], "services": ["billing"]})).await;
    let shop = api.key("shop", json!({"scopes": ["operate"], "sources": ["shop"]})).await;
    for (key, own, foreign) in [
        (&billing, of(&all, "billing", "bank"), of(&all, "mail", "shop")),
        (&shop, of(&all, "mail", "shop"), of(&all, "mail", "bank")),
    ] {
        assert_eq!(letters(&mut api, key, "").await.len(), 2);
        assert_eq!(letters(&mut api, key, "?service=mail&event=2").await.len(), 0);
        assert_eq!(lines(&mut api, key, "").await.len(), 2);
        let elsewhere = format!("dlv_{:016}{}", 0, &own[20..]);
        for (ids, count) in [
            (json!({"ids": [elsewhere]}), 0),
            (json!({}), 2),
            (json!({"ids": [own, foreign]}), 1),
            (json!({"ids": [foreign]}), 0),
        ] {
            let body = json!({"filter": ids, "dryRun": true});
            let (_, found) = api.ask(Method::POST, &format!("{LETTERS}:replay"), Some(key), &body).await;
            assert_eq!(found["data"]["count"], count, "{found}");
        }
        for Route { method, path, .. } in routes() {
            let Some(rest) = path.strip_prefix("/api/v1/bridge/deadLetters/{id}") else { continue };
            let body = match rest {
                ":edit" => json!({"data": {"n": 1}}),
                "" if method == Method::PATCH => json!({"note": null}),
                _ => json!({}),
            };
            let mut ask = async |id: &str| {
                plain(api.ask(method.clone(), &format!("{LETTERS}/{id}{rest}"), Some(key), &body).await)
            };
            assert_eq!(ask(foreign).await, ask(NOBODY).await, "{method} {path}");
        }
        let (status, seen) = api.ask(Method::GET, &format!("{LETTERS}/{own}"), Some(key), &Value::Null).await;
        assert_eq!(status, 200, "{seen}");
    }
    let (_, whole) = api
        .ask(Method::GET, &format!("{LETTERS}/{}", of(&all, "billing", "shop")), Some(&billing), &Value::Null)
        .await;
    assert_eq!(whole["data"]["related"], json!([]), "the other one is for another service");
    assert_eq!(letters(&mut api, ADMIN, "?standing=open").await.len(), 4, "nothing was changed");
}

/// HUB-6, SEC-1: groups and work on many are seen within the limits of a key; what is not looks as if it were not there. Groups
/// count what came from all sources, so a key that is limited to some may not look at them.
#[tokio::test]
async fn sec_1_a_limited_key_sees_its_own_groups_and_work() {
    let mut api = Api::new().await;
    fail(&mut api, &[("1", "shop"), ("2", "bank")]).await;
    let billing = api.key("billing", json!({"scopes": ["operate"], "services": ["billing"]})).await;
    let shop = api.key("shop", json!({"scopes": ["operate"], "sources": ["shop"]})).await;
    let (_, all) = api.ask(Method::GET, GROUPS, Some(ADMIN), &Value::Null).await;
    let all = all["data"]["deadLetterGroups"].as_array().unwrap().clone();
    assert_eq!(all.len(), 2, "{all:?}");
    let foreign =
        all.iter().find(|group| group["service"] == "mail").unwrap()["fingerprint"].as_str().unwrap();
    let (_, own) = api.ask(Method::GET, GROUPS, Some(&billing), &Value::Null).await;
    let own = own["data"]["deadLetterGroups"].as_array().unwrap();
    assert_eq!((own.len(), &own[0]["service"], &own[0]["counts"]["open"]), (1, &json!("billing"), &json!(2)));
    for Route { method, path, .. } in routes() {
        let Some(rest) = path.strip_prefix("/api/v1/bridge/deadLetterGroups/{fingerprint}") else { continue };
        let body = if method == Method::PATCH { json!({"note": "x"}) } else { json!({}) };
        let mut ask = async |key: &str, group: &str| {
            plain(api.ask(method.clone(), &format!("{GROUPS}/{group}{rest}"), Some(key), &body).await)
        };
        let unknown = ask(&billing, "grp_000000000000000f").await;
        assert_eq!((unknown.0, ask(&billing, foreign).await), (404, unknown), "{method} {path}");
        assert_eq!(ask(&shop, foreign).await.0, 403, "{method} {path}");
    }
    let park = format!("{LETTERS}:park");
    let mut begin = async |key: &str, filter: Value| {
        let (status, begun) = api.ask(Method::POST, &park, Some(key), &json!({"filter": filter})).await;
        assert_eq!(status, 202, "{begun}");
        (begun["data"]["id"].as_str().unwrap().to_owned(), begun["data"]["progress"]["total"].clone())
    };
    let (theirs, four) = begin(ADMIN, json!({})).await;
    let (mine, two) = begin(&billing, json!({})).await;
    let (shops, _) = begin(&shop, json!({"service": "billing"})).await;
    assert_eq!((four, two), (json!(4), json!(2)));
    for (key, own, foreign) in [(&billing, &mine, [&theirs, &shops]), (&shop, &shops, [&theirs, &mine])] {
        let (_, seen) = api.ask(Method::GET, OPERATIONS, Some(key), &Value::Null).await;
        let seen = seen["data"]["operations"].as_array().unwrap();
        assert_eq!((seen.len(), seen[0]["id"].as_str()), (1, Some(&**own)));
        for foreign in foreign {
            for (method, verb) in [(Method::GET, ""), (Method::POST, ":cancel")] {
                let mut ask = async |id: &str| {
                    plain(
                        api.ask(method.clone(), &format!("{OPERATIONS}/{id}{verb}"), Some(key), &Value::Null)
                            .await,
                    )
                };
                assert_eq!(ask(foreign).await, ask("op_0000000000000000000000000000000f").await);
            }
        }
    }
    let (_, all) = api.ask(Method::GET, OPERATIONS, Some(ADMIN), &Value::Null).await;
    assert_eq!(all["data"]["operations"].as_array().unwrap().len(), 3);
}

/// HUB-6, SEC-1: work on many that a limited key has begun sends nothing to a service that is not for it, even if the rule sends
/// there today.
#[tokio::test]
async fn sec_1_work_of_a_limited_key_reaches_no_other_service_by_a_rule() {
    let mut api = Api::new().await;
    fail(&mut api, &[("1", "shop")]).await;
    let moved = json!({"name": "billing-bad", "eventType": "user.*", "service": "mail"});
    assert_eq!(api.ask(Method::POST, "/api/v1/registry/rules", Some(ADMIN), &moved).await.0, 200);
    let key = api.key("billing", json!({"scopes": ["operate"], "services": ["billing"]})).await;
    let hub = api.hub.clone();
    let asks = async {
        let (status, begun) =
            api.ask(Method::POST, &format!("{LETTERS}:replay"), Some(&key), &json!({"filter": {}})).await;
        assert_eq!(status, 202, "{begun}");
        let path = format!("{OPERATIONS}/{}", begun["data"]["id"].as_str().unwrap());
        loop {
            let (_, operation) = api.ask(Method::GET, &path, Some(&key), &Value::Null).await;
            if operation["data"]["state"] == "done" {
                return operation["data"].clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let operation = tokio::select! {
        operation = asks => operation,
        error = hub.runtime.run() => panic!("{error}"),
    };
    assert_eq!((&operation["progress"]["begun"], &operation["progress"]["skipped"]), (&json!(0), &json!(1)));
    assert!(
        operation["why"].as_str().unwrap().contains("the key of this operation may not use"),
        "{operation}"
    );
}

/// HUB-6, API-2: everything that is wrong is said at once, and what would be everything has to be said.
#[tokio::test]
async fn hub_6_what_is_wrong_is_said_all_at_once() {
    let mut api = Api::new().await;
    fail(&mut api, &[("1", "shop")]).await;
    let fields = |answer: &(u16, Value)| -> Vec<String> {
        assert_eq!(answer.0, 422, "{}", answer.1);
        let errors = answer.1["errors"].as_array().unwrap();
        errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    };
    let many =
        "?standing=opne,open&since=yesterday&until=7&status=99&group=x&q=%22&replayed=maybe&state=open";
    let answer = api.ask(Method::GET, &format!("{LETTERS}{many}"), Some(ADMIN), &Value::Null).await;
    let expected = ["group", "q", "replayed", "since", "standing", "status", "until", "state"];
    assert_eq!(fields(&answer), expected);
    for verb in ["replay", "park", "unpark", "delete", "restore", "purge"] {
        let path = format!("{LETTERS}:{verb}");
        let answer = api.ask(Method::POST, &path, Some(ADMIN), &json!({})).await;
        assert_eq!(fields(&answer), ["filter"]);
        assert!(answer.1["errors"][0]["reason"].as_str().unwrap().contains("`{}` for all"), "{}", answer.1);
        let answer =
            api.ask(Method::POST, &path, Some(ADMIN), &json!({"filter": {"ids": []}, "max": 0})).await;
        assert_eq!(fields(&answer), ["filter.ids", "max"], "none is not all");
    }
    let wrong = json!({"filter": {"ids": ["x", NOBODY], "service": "", "sevice": "a"}, "canary": [0], "ratePerSecond": 1.5, "force": true});
    let answer = api.ask(Method::POST, &format!("{LETTERS}:replay"), Some(ADMIN), &wrong).await;
    let expected = ["filter.ids", "filter.service", "filter.sevice", "canary[0]", "ratePerSecond", "force"];
    assert_eq!(fields(&answer), expected);
    let apart = format!("{LETTERS}?standing=open&replayed=true");
    let apart = api.ask(Method::GET, &apart, Some(ADMIN), &Value::Null).await;
    assert_eq!(fields(&apart), ["replayed"]);

    for (path, known) in [
        (format!("{LETTERS}/{NOBODY}:relpay"), "replay, edit, park, unpark, restore, purge"),
        (format!("{LETTERS}:relpay"), "delete, export, park, purge, replay, restore, unpark"),
        (format!("{GROUPS}/grp_000000000000000f:close"), "replay, acknowledge, resolve, reopen"),
        (format!("{OPERATIONS}/op_0000000000000000000000000000000f:stop"), "pause, resume, cancel"),
    ] {
        let (status, answer) = api.ask(Method::POST, &path, Some(ADMIN), &json!({})).await;
        assert_eq!((status, &answer["code"]), (404, &json!("noSuchAction")), "{answer}");
        assert!(answer["message"].as_str().unwrap().ends_with(known), "{answer}");
    }
    let purged =
        api.ask(Method::POST, &format!("{LETTERS}:purge"), Some(ADMIN), &json!({"filter": {}})).await;
    assert_eq!((purged.0, &purged.1["data"]["count"]), (200, &json!(2)), "without force it is a dry run");
}

/// HUB-6, HUB-9: what somebody says in the body is why it was done, before what stands in the header; notes come and go.
#[tokio::test]
async fn hub_6_the_reason_of_the_body_is_in_the_audit_log() {
    let mut api = Api::new().await;
    fail(&mut api, &[("1", "shop")]).await;
    let id = letters(&mut api, ADMIN, "").await[0]["id"].as_str().unwrap().to_owned();
    let one = format!("{LETTERS}/{id}");
    let body = json!({"reason": "of the body\n"});
    let (status, parked) = api.ask(Method::POST, &format!("{one}:park"), Some(ADMIN), &body).await;
    assert_eq!((status, &parked["data"]["standing"]), (200, &json!("parked")), "{parked}");
    assert_eq!(parked["data"]["state"], "deadLettered", "the delivery's own");
    let (_, noted) = api.ask(Method::PATCH, &one, Some(ADMIN), &json!({"note": "see #7"})).await;
    assert_eq!(noted["data"]["note"], "see #7");
    let (_, noted) = api.ask(Method::PATCH, &one, Some(ADMIN), &json!({"note": null})).await;
    assert_eq!(noted["data"]["note"], Value::Null);
    let (_, deleted) = api.ask(Method::DELETE, &one, Some(ADMIN), &Value::Null).await;
    assert!(deleted["data"]["purgeAt"].is_string(), "{deleted}");
    let (_, whole) = api.ask(Method::GET, &one, Some(ADMIN), &Value::Null).await;
    assert_eq!(
        (&whole["data"]["standing"], &whole["data"]["purgeAt"]),
        (&json!("deleted"), &deleted["data"]["purgeAt"])
    );
    let (_, audit) = api.ask(Method::GET, "/api/v1/ops/audit", Some(ADMIN), &Value::Null).await;
    let entry = |entry: &Value| format!("{} {}", entry["action"], entry["reason"]).replace('"', "");
    let entries: Vec<String> =
        audit["data"]["entries"].as_array().unwrap().iter().take(4).map(entry).collect();
    assert_eq!(
        entries,
        [
            "deadLetter.delete a test",
            "deadLetter.note a test",
            "deadLetter.note a test",
            "deadLetter.park of the body"
        ]
    );
    let retention = seawall_hub_core::domain::retention::Retention { discarded: None, ..Default::default() };
    api.hub.ops.keep_for(retention);
    let (_, whole) = api.ask(Method::GET, &one, Some(ADMIN), &Value::Null).await;
    assert_eq!(whole["data"]["purgeAt"], Value::Null, "it is kept for ever");
}

/// HUB-6: an export has every dead letter once, however many pages that are, and ends where somebody wants it to end.
#[tokio::test]
async fn hub_6_an_export_has_every_dead_letter_once() {
    let mut api = Api::new().await;
    let events: Vec<(String, &str)> = (0..61).map(|n| (format!("e-{n}"), "shop")).collect();
    let events: Vec<(&str, &str)> = events.iter().map(|(id, source)| (&**id, *source)).collect();
    fail(&mut api, &events).await;
    let all = lines(&mut api, ADMIN, "").await;
    let ids: std::collections::BTreeSet<&str> = all.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!((all.len(), ids.len()), (122, 122));
    assert!(
        all.iter().all(|line| line["rawEvent"]["data"]["word"].is_string() && line["attempts"].is_array())
    );
    assert_eq!(lines(&mut api, ADMIN, "?max=101").await.len(), 101);
    assert_eq!(lines(&mut api, ADMIN, "?service=mail&event=e-7").await.len(), 1);
    assert_eq!(lines(&mut api, ADMIN, "?standing=deleted").await.len(), 0);
}

/// PRM-2, HUB-6: the same key twice begins the work once, also if what it took has changed since; for other work it is no good.
#[tokio::test]
async fn prm_2_work_begins_once_under_its_key() {
    let mut api = Api::new().await;
    fail(&mut api, &[("1", "shop")]).await;
    let mut begin = async |verb: &str, filter: Value| {
        let request = Request::post(format!("{LETTERS}:{verb}")).header("idempotency-key", "click");
        let request = request.header("authorization", format!("Bearer {ADMIN}"));
        let body = Body::from(json!({"filter": filter}).to_string());
        let response = api.router.call(request.body(body).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        (status, answer["data"]["id"].clone())
    };
    let first = begin("replay", json!({"service": "mail"})).await;
    assert_eq!((first.0, first.1.is_string()), (202, true));
    assert_eq!(begin("replay", json!({"service": "mail"})).await, first);
    assert_eq!(begin("replay", json!({"service": "billing"})).await.0, 422);
    assert_eq!(begin("park", json!({"service": "mail"})).await.0, 422);
    let id = letters(&mut api, ADMIN, "?service=mail").await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(api.ask(Method::DELETE, &format!("{LETTERS}/{id}"), Some(ADMIN), &Value::Null).await.0, 200);
    let mended = json!({"name": "mail-bad", "eventType": "user.*", "service": "mail"});
    assert_eq!(api.ask(Method::POST, "/api/v1/registry/rules", Some(ADMIN), &mended).await.0, 200);
    let again = json!({"again": true});
    let (status, answer) =
        api.ask(Method::POST, &format!("{LETTERS}/{id}:replay"), Some(ADMIN), &again).await;
    assert_eq!((status, &answer["code"]), (409, &json!("conflict")), "what was deleted is restored first");
}
