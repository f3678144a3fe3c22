//! The pages about alerts and about the hub as a whole: who sees what, and what is done there.

use axum::body::Body;
use axum::http::{Method, Request};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde_json::{Value, json};

use super::flow_tests::{ADMIN, EVIL, Site};

const PAGES: [&str; 16] = [
    "/alerts",
    "/alerts?open_token=zz&page_token=zz",
    "/alerts?page_token=no!",
    "/alerts/inc_1",
    "/alerts/rules/_new",
    "/alerts/rules/warnings",
    "/alerts/rules/oldest-due",
    "/alerts/rules/data-loss-risk",
    "/alerts/rules/own",
    "/alerts/channels/_new",
    "/alerts/channels/duty",
    "/alerts/channels/mail",
    "/settings",
    "/keys",
    "/audit",
    "/audit?page_token=no!",
];

/// A hub with an incident, rules and channels, and texts in them that nobody should run.
async fn filled() -> Site {
    let mut site = Site::new().await;
    let duty = json!({"type": "webhook", "url": "https://pager.example/a-secret-path", "secret": "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0IGhlcmU="});
    let mail = json!({
        "type": "email", "host": "smtp.example", "username": EVIL, "password": "a-password-of-the-test",
        "from": "hub@example.com", "to": ["duty@example.com", "boss@example.com"],
    });
    for (name, channel) in [("duty", duty), ("mail", mail)] {
        site.ask(Method::PUT, &format!("/api/v1/ops/alertChannels/{name}"), &channel).await;
    }
    let billing = json!({"name": "billing", "address": "http://127.0.0.1:1"});
    site.ask(Method::POST, "/api/v1/registry/services", &billing).await;
    let own = json!({"kind": "deadLetters", "services": ["billing"], "channels": ["duty"]});
    site.ask(Method::PUT, "/api/v1/ops/alertRules/own", &own).await;
    let mute = json!({"for": "2h", "reason": EVIL});
    site.ask(Method::POST, "/api/v1/ops/alertRules/warnings:mute", &mute).await;
    let told = [Slug::new("duty").unwrap()];
    site.hub.alerts.take_over("inc_1".into(), Millis(1_000), format!("the disk is {EVIL}"), &told).await;
    let key = json!({"name": "old", "scopes": ["ingest"], "sources": [EVIL], "expiresIn": "1ms"});
    site.ask(Method::POST, "/api/v1/registry/keys", &key).await;
    site
}

impl Site {
    /// What a form of the pages does, without the script: where it leads to, and the page that it shows.
    async fn act(&mut self, cookie: &str, fields: &str) -> (u16, String, String) {
        let (_, page) = self.page(cookie, "/settings").await;
        let (_, rest) = page.split_once("data-csrf=\"").unwrap();
        let csrf = rest.split('"').next().unwrap().to_owned();
        let request = Request::post("/act").header("cookie", cookie).header("sec-fetch-site", "same-origin");
        let body = Body::from(format!("_csrf={csrf}&{fields}"));
        self.send(request.body(body).unwrap()).await
    }
}

/// UI-2, SEC-1: every page is there, and whatever came in from outside is a text on it; no secret is on any.
#[tokio::test]
async fn ui_2_alerts_and_settings_are_shown_and_texts_stay_texts() {
    let mut site = filled().await;
    let cookie = site.login(ADMIN).await;
    let why = Request::post("/api/v1/ops/alerts/inc_1:acknowledge")
        .header("authorization", format!("Bearer {ADMIN}"))
        .header("x-seawall-reason", EVIL);
    assert_eq!(site.send(why.body(Body::empty()).unwrap()).await.0, 200);
    let mut escaped = 0;
    for path in PAGES {
        let (status, text) = site.page(&cookie, path).await;
        assert_eq!(status, 200, "{path}: {text}");
        let (_, main) = text.split_once("<main").unwrap();
        assert!(!main.contains("<script>") && !main.contains("alert('x')"), "{path}");
        assert!(!main.contains("&quot;49"), "{path} has run a template");
        for secret in ["a-secret-path", "whsec_c2V", "a-password-of-the-test"] {
            assert!(!text.contains(secret), "{path} shows `{secret}`");
        }
        for forbidden in [" style=\"", " onclick=", "javascript:"] {
            assert!(!text.contains(forbidden), "{path} has `{forbidden}`");
        }
        escaped += usize::from(main.contains("&lt;script&gt;"));
    }
    assert!(escaped >= 6, "what is evil was seen on {escaped} pages only");
    for path in ["/alerts/inc_2", "/alerts/rules/nobody", "/alerts/channels/nobody"] {
        assert_eq!(site.page(&cookie, path).await.0, 404, "{path}");
    }
    let (_, keys) = site.page(&cookie, "/keys").await;
    assert!(keys.contains(">expired<") && keys.contains(">active<"), "{keys}");
    let (_, audit) = site.page(&cookie, "/audit").await;
    let counted = r#"Alerts <span class="badge bad" title="1 open">1</span></a>"#;
    assert!(audit.contains(counted), "the menu counts what is open: {audit}");
    assert!(
        audit.contains("href=\"/alerts/rules/own\"") && audit.contains("href=\"/alerts/inc_1\""),
        "{audit}"
    );
}

/// UI-1: the counts of the menu are shared for a moment, but a change on the pages is counted at once.
#[tokio::test]
async fn ui_1_the_menu_counts_a_change_on_the_pages_at_once() {
    let mut site = filled().await;
    let cookie = site.login(ADMIN).await;
    let (_, before) = site.page(&cookie, "/rules").await;
    assert!(before.contains("title=\"1 open\""), "{before}");
    let told = [Slug::new("duty").unwrap()];
    site.hub.alerts.take_over("inc_2".into(), Millis(2_000), "another".into(), &told).await;
    let fields = "_path=/api/v1/ops/alerts/inc_1:acknowledge&_to=/alerts&_done=Acknowledged.";
    assert_eq!(site.act(&cookie, fields).await.0, 303);
    let (_, after) = site.page(&cookie, "/rules").await;
    assert!(after.contains("title=\"2 open\""), "{after}");
}

/// UI-3, SEC-1: whoever may only read sees no action, no key and no entry of the audit log; whoever may operate acknowledges
/// and tests, and changes nothing.
#[tokio::test]
async fn ui_3_alerts_and_settings_show_no_action_that_is_not_allowed() {
    let mut site = filled().await;
    for (scope, sees, sees_not) in [
        ("read", &[][..], &["data-act", "href=\"/alerts/rules/_new", "key.put", ":rotate"][..]),
        (
            "operate",
            &[":acknowledge\"", ":mute\"", "duty:test\""],
            &["\"DELETE\"", "\"PATCH\"", "\"PUT\"", ":rotate", "key.put"],
        ),
    ] {
        let key = json!({"name": format!("only-{scope}"), "scopes": [scope]});
        let key = site.ask(Method::POST, "/api/v1/registry/keys", &key).await;
        let cookie = site.login(key["key"].as_str().unwrap()).await;
        let mut all = String::new();
        for path in PAGES {
            let (status, text) = site.page(&cookie, path).await;
            assert_eq!(status, 200, "{path}");
            all.push_str(&text);
        }
        assert!(all.contains("Only a key with the scope <code>admin</code> sees other keys"));
        for word in sees {
            assert!(all.contains(word), "`{word}` is not there for {scope}");
        }
        for word in sees_not {
            assert!(!all.contains(word), "`{word}` is there for {scope}");
        }
    }
    let key = json!({"name": "limited", "scopes": ["read"], "services": ["billing"]});
    let key = site.ask(Method::POST, "/api/v1/registry/keys", &key).await;
    let cookie = site.login(key["key"].as_str().unwrap()).await;
    let (status, text) = site.page(&cookie, "/alerts").await;
    assert!(
        status == 200 && !text.contains("inc_1") && !text.contains("Only the log is notified"),
        "{status} {text}"
    );
    assert_eq!(site.page(&cookie, "/settings").await.0, 200);
    assert_eq!(site.page(&cookie, "/alerts/inc_1").await.0, 404);
    for path in PAGES {
        let request =
            Request::get(path).header("cookie", "seawall_session=AAAA").body(Body::empty()).unwrap();
        let (status, said, _) = site.send(request).await;
        assert!(status == 303 && said.starts_with("/login?to="), "{path}: {status} {said}");
    }
}

/// UI-2: a new hub says what alerts are for, and what to try; links of alerts lead somewhere.
#[tokio::test]
async fn ui_2_alerts_teach_and_their_links_lead_somewhere() {
    let mut site = Site::new().await;
    let cookie = site.login(ADMIN).await;
    for (path, taught) in [
        ("/alerts", "No open alerts"),
        ("/alerts", "curl -X PUT http://hub.example:8480/api/v1/ops/alertChannels/duty"),
        ("/alerts", "href=\"/alerts/rules/circuit-open\""),
        ("/settings", "seawall backup --data-dir"),
        ("/settings", "<dd>7d</dd>"),
        ("/settings", env!("CARGO_PKG_VERSION")),
    ] {
        let (status, text) = site.page(&cookie, path).await;
        assert_eq!(status, 200);
        assert!(text.contains(taught), "{path} does not say `{taught}`: {text}");
    }
    let request = Request::get("/deadLetters/groups?service=billing").header("cookie", &cookie);
    let (status, to, _) = site.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!((status, &*to), (303, "/deadLetters?service=billing"));
}

/// UI-3: the forms of the pages do what they say, also without the script: a channel under the name that was typed, a rule for
/// some channels and for all again, a key that is shown this once.
#[tokio::test]
async fn ui_3_forms_of_alerts_and_keys_do_what_they_say() {
    let mut site = filled().await;
    let cookie = site.login(ADMIN).await;
    let form = "_method=PUT&_path=/api/v1/ops/alertChannels/{name}&_to=/alerts/channels/{name}&_done=ok&name=chat&type=webhook&url=https://chat.example/x";
    let (status, to, text) = site.act(&cookie, form).await;
    assert!(status == 303 && to.starts_with("/alerts/channels/chat"), "{status} {to} {text}");
    let rule = "/api/v1/ops/alertRules/dead-letters";
    for (fields, channels) in [
        ("channels:json=[]&channels:list=chat&channels:list=duty", json!(["chat", "duty"])),
        ("channels:json=[]", json!([])),
        ("channels:json=null", Value::Null),
    ] {
        let form = format!("_method=PATCH&_path={rule}&_to=/alerts&moreThan:number=5&{fields}");
        assert_eq!(site.act(&cookie, &form).await.0, 303, "{fields}");
        let kept = site.ask(Method::GET, rule, &Value::Null).await;
        assert_eq!((&kept["channels"], &kept["moreThan"]), (&channels, &json!(5)));
    }
    assert_eq!(site.act(&cookie, &format!("_method=DELETE&_path={rule}&_to=/alerts")).await.0, 303);
    assert_eq!(site.ask(Method::GET, rule, &Value::Null).await["moreThan"], 10);
    let form = "_method=POST&_path=/api/v1/registry/keys&_to=/keys&name=fresh&scopes:list=read&scopes:list=operate&expiresIn=90d";
    let (status, _, text) = site.act(&cookie, form).await;
    assert!(status == 201 && text.contains("swk_"), "{status} {text}");
    let (_, keys) = site.page(&cookie, "/keys").await;
    assert!(keys.contains(">fresh<") && !keys.contains("swk_"), "{keys}");
}
