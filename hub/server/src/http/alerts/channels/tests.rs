//! What is written to a channel, what stays, and what is shown of it. What a channel receives is tested against the binary.

use axum::http::Method;
use seawall_hub_core::domain::service::SealedSecret;
use serde_json::{Value, json};

use super::*;
use crate::http::tests::{ADMIN, Api};

const DUTY: &str = "/api/v1/ops/alertChannels/duty";
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

async fn ask(api: &mut Api, method: Method, body: Value) -> (u16, Value) {
    let (status, answer) = api.ask(method, DUTY, Some(ADMIN), &body).await;
    let problems = answer["errors"]
        .as_array()
        .map(|errors| errors.iter().map(|error| error["field"].clone()).collect::<Value>());
    (status, problems.unwrap_or_else(|| answer["data"].clone()))
}

fn stored(api: &Api) -> ChannelSettings<Exposed> {
    let channel = api.hub.alerts.channel(&Slug::new("duty").unwrap()).unwrap();
    opened(&api.hub.keyring, &channel).unwrap()
}

fn webhook(url: &str, secret: Option<&str>) -> ChannelSettings<Exposed> {
    ChannelSettings::Webhook { url: url.to_owned(), secret: secret.map(|text| Exposed(text.to_owned())) }
}

/// HUB-12: what is shown can be written back; a secret that is omitted stays, and null removes it.
#[tokio::test]
async fn hub_12_a_secret_of_a_channel_stays_until_null_removes_it() {
    let mut api = Api::new().await;
    let whole = "https://pager.example/a/token";
    let new = json!({"type": "webhook", "url": whole, "secret": SECRET});
    let (status, shown) = ask(&mut api, Method::PUT, new).await;
    assert_eq!(
        (status, &shown["url"], &shown["secret"]),
        (201, &json!("https://pager.example/…"), &json!("…"))
    );
    for (method, body) in [
        (Method::PUT, shown),
        (Method::PUT, json!({"type": "webhook", "url": whole})),
        (Method::PATCH, json!({})),
        (Method::PATCH, json!({"url": "https://pager.example/…", "name": "duty", "version": 70})),
    ] {
        assert_eq!(ask(&mut api, method, body).await.0, 200);
        assert_eq!(stored(&api), webhook(whole, Some(SECRET)));
    }
    let (status, shown) = ask(&mut api, Method::PATCH, json!({"secret": null})).await;
    assert_eq!((status, &shown["secret"], stored(&api)), (200, &Value::Null, webhook(whole, None)));
    ask(&mut api, Method::PATCH, json!({"secret": SECRET})).await;
    let removed = json!({"type": "webhook", "url": whole, "secret": null});
    assert_eq!(ask(&mut api, Method::PUT, removed).await.0, 200);
    assert_eq!(stored(&api), webhook(whole, None));
}

/// HUB-12: a change of the type names the fields of the new type, and nothing of the old one stays.
#[tokio::test]
async fn hub_12_a_change_to_another_type_keeps_nothing_of_the_old_one() {
    let mut api = Api::new().await;
    let url = "https://pager.example/a";
    assert_eq!(
        ask(&mut api, Method::PUT, json!({"type": "webhook", "url": url, "secret": SECRET})).await.0,
        201
    );
    assert_eq!(ask(&mut api, Method::PATCH, json!({"to": ["a@b"]})).await, (422, json!(["to"])));
    assert_eq!(
        ask(&mut api, Method::PATCH, json!({"type": "email"})).await,
        (422, json!(["host", "from", "to"]))
    );
    assert_eq!(stored(&api), webhook(url, Some(SECRET)));
    let mail = json!({"type": "email", "host": "mail.example", "from": "a@b", "to": ["c@d"], "username": "u", "password": "p"});
    let (status, shown) = ask(&mut api, Method::PATCH, mail).await;
    assert_eq!((status, &shown["port"], &shown["tls"]), (200, &json!(587), &json!("starttls")));
    assert_eq!((&shown["password"], shown.get("url"), shown.get("secret")), (&json!("…"), None, None));
    let (status, shown) = ask(&mut api, Method::PATCH, json!({"username": null})).await;
    assert_eq!((status, &shown["password"]), (200, &Value::Null), "a password without a user is of no use");
}

/// API-2, HUB-12: every problem of a channel is reported at once, and what stands for a secret is none.
#[tokio::test]
async fn api_2_every_problem_of_a_channel_is_reported_at_once() {
    let mut api = Api::new().await;
    let mail = json!({
        "type": "email", "host": "a b", "port": 0, "tls": "ssl", "username": "u", "password": "", "from": "a",
        "to": ["a@b", "c"], "ca": "none", "cc": [],
    });
    let fields = json!(["host", "port", "tls", "password", "from", "to", "ca", "cc"]);
    assert_eq!(ask(&mut api, Method::PUT, mail).await, (422, fields));
    let shown = json!({"type": "webhook", "url": "https://pager.example/…", "secret": "…", "version": "x"});
    assert_eq!(ask(&mut api, Method::PUT, shown).await, (422, json!(["url", "secret"])));
    for (body, field) in [
        (json!({"type": "log"}), "type"),
        (json!({"type": null}), "type"),
        (json!({"type": "webhook", "url": ""}), "url"),
        (json!({"type": "webhook", "url": "https://a.example", "name": "other"}), "name"),
    ] {
        assert_eq!(ask(&mut api, Method::PUT, body).await, (422, json!([field])));
    }
    assert_eq!(ask(&mut api, Method::PUT, json!([])).await, (422, json!([""])));
}

/// HUB-12, API-2: a channel whose settings can't be decrypted has the type null, and can be written anew.
#[tokio::test]
async fn hub_12_a_channel_that_can_not_be_decrypted_has_no_type() {
    let mut api = Api::new().await;
    let settings = SealedSecret(b"of another key".to_vec());
    let channel = Channel { name: Slug::new("duty").unwrap(), version: 0, settings, changed: Millis(0) };
    api.hub.alerts.put_channel(&api.hub.own_context(), channel, None).await.unwrap();
    let (status, shown) = ask(&mut api, Method::GET, Value::Null).await;
    assert_eq!((status, shown["type"].is_null(), shown.get("type").is_some()), (200, true, true), "{shown}");
    assert_eq!(shown.as_object().unwrap().len(), 4, "{shown}");
    let read: AlertChannel = serde_json::from_value(shown).unwrap();
    assert_eq!((read.settings, read.version), (None, 1));
    assert_eq!(ask(&mut api, Method::PATCH, json!({"secret": null})).await.0, 409);
    let new = json!({"type": "webhook", "url": "https://pager.example"});
    assert_eq!(ask(&mut api, Method::PUT, new).await.1["url"], "https://pager.example/");
}
