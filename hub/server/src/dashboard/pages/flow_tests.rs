//! Pages of a real hub: who sees what, and what stays a text.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower_service::Service;

use crate::dashboard::Dashboard;
use crate::http::{api, key_hash};
use crate::hub::Server;

pub(super) const ADMIN: &str = "the-admin-key-of-the-test";
pub(super) const EVIL: &str = "<script>alert('x')</script>\"{{ 7 * 7 }}";

pub(super) struct Site {
    _folder: TempDir,
    pub(super) hub: Arc<Server>,
    router: Router,
}

impl Site {
    pub(super) async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let hub = Arc::new(Server::open(folder.path(), &crate::StartOptions::default()).await.unwrap());
        hub.registry.set_admin_key(&hub.own_context(), key_hash(ADMIN)).await.unwrap();
        let router = Dashboard::beside(api(hub.clone()), hub.clone(), Arc::new(AtomicBool::new(false)));
        Site { _folder: folder, hub, router }
    }

    pub(super) async fn send(&mut self, request: Request<Body>) -> (u16, String, String) {
        let response = self.router.call(request).await.unwrap();
        let status = response.status().as_u16();
        let header = |name| {
            let all = response.headers().get_all(name).iter();
            all.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>().join("; ")
        };
        let said = format!("{}{}", header(header::LOCATION), header(header::SET_COOKIE));
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, said, String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub(super) async fn ask(&mut self, method: Method, path: &str, body: &Value) -> Value {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {ADMIN}"));
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let (status, _, text) = self.send(request.body(body).unwrap()).await;
        assert!(status < 300, "{path}: {status} {text}");
        serde_json::from_str::<Value>(&text).unwrap()["data"].take()
    }

    /// The cookie of somebody who has logged in with this key.
    pub(super) async fn login(&mut self, key: &str) -> String {
        let request = Request::post("/login").body(Body::from(format!("key={key}&to=/"))).unwrap();
        let (status, said, text) = self.send(request).await;
        assert_eq!(status, 303, "{text}");
        let from = said.find("seawall_session=").unwrap();
        said[from..].split(';').next().unwrap().to_owned()
    }

    pub(super) async fn page(&mut self, cookie: &str, path: &str) -> (u16, String) {
        let request = Request::get(path).header("cookie", cookie).header("host", "hub.example:8480");
        let (status, _, text) = self.send(request.body(Body::empty()).unwrap()).await;
        // As a browser reads it.
        (status, text.replace("&#x2f;", "/"))
    }

    /// A hub in which all kinds of things are, each with something evil in it; and an id of a delivery.
    async fn filled(&mut self) -> String {
        let services = "/api/v1/registry/services";
        let policy = json!({"breaker": {"consecutive_failures": 2}, "attempt_timeout": "1s"});
        let billing = json!({"name": "billing", "address": "http://127.0.0.1:1/a", "headers": {"x-a": EVIL}, "policy": policy});
        self.ask(Method::POST, services, &billing).await;
        self.ask(Method::POST, services, &json!({"name": "mail", "address": "http://127.0.0.1:1"})).await;
        self.ask(Method::POST, &format!("{services}/mail:pause"), &Value::Null).await;
        let why = json!({"reason": EVIL});
        self.ask(Method::POST, &format!("{services}/billing/circuit:forceOpen"), &why).await;
        let rule = |body: Value| {
            json!({
                "name": "invoices", "eventType": "order.*", "service": "billing", "path": "/{{ data.id }}",
                "filter": "data.note != \"<script>\"", "headers": {"x-note": EVIL.replace("{{ 7 * 7 }}", "{{ data.id }}")}, "body": body,
            })
        };
        self.ask(Method::POST, "/api/v1/registry/rules", &rule(json!({"a": 1}))).await;
        self.ask(Method::POST, "/api/v1/registry/rules", &rule(json!({"b": "<script>"}))).await;
        let source = json!({"name": "shop", "verify": {"type": "bearer", "secrets": ["a-token-of-the-test"]}, "eventType": "shop.x"});
        self.ask(Method::POST, "/api/v1/registry/sources", &source).await;
        let event = |id: &str, kind: &str| json!({"id": id, "type": kind, "source": EVIL, "subject": EVIL, "data": {"id": "A", "note": EVIL}});
        self.ask(Method::POST, "/api/v1/bridge/events", &event("<script>e1", "nobody.<script>")).await;
        let accepted = self.ask(Method::POST, "/api/v1/bridge/events", &event("e2", "order.created")).await;
        for at in 1..=3 {
            self.hub.history.look_now(&self.hub.metric_store, seawall_hub_core::domain::time::Millis(at));
        }
        accepted["deliveries"][0].as_str().unwrap().to_owned()
    }
}

fn pages(delivery: &str) -> Vec<String> {
    let mut all: Vec<String> = [
        "/",
        "/?minutes=60",
        "/services",
        "/services?search=bill&circuit=forcedOpen&sort=trouble",
        "/services?circuit=ajar",
        "/services/_new",
        "/services/billing",
        "/services/billing?minutes=60",
        "/services/mail",
        "/services/billing/edit",
        "/rules",
        "/rules?search=inv",
        "/rules/_new",
        "/rules/_new?type=order.created&event=e2",
        "/rules/invoices",
        "/rules/invoices/edit",
        "/rules/invoices/try",
        "/rules/invoices/try?event=e2",
        "/rules/invoices/try?event=nothing",
        "/rules/invoices/try?backtest=1",
        "/events",
        "/events?type=order.*&source=x&unmatched=true",
        "/events?type=a..b",
        "/events/e2",
        "/events/%3Cscript%3Ee1",
        "/deliveries",
        "/deliveries?state=open&service=billing&rule=invoices&event=e2",
        "/deliveries?service=N%20o",
        "/sources",
        "/sources/_new",
        "/sources/shop",
        "/sources/shop/edit",
    ]
    .map(ToOwned::to_owned)
    .into();
    all.push(format!("/deliveries/{delivery}"));
    all
}

/// UI-1: a path at which there is nothing is a page with the menu for a browser, and JSON for a program. So is what was deleted, or is
/// not to be seen.
#[tokio::test]
async fn ui_1_a_wrong_path_is_a_page_with_the_menu_for_a_browser() {
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let mut site = Site::new().await;
    let cookie = site.login(ADMIN).await;
    let get = |path: &str, accept: &str, cookie: &str| {
        let request = Request::get(path).header("accept", accept).header("cookie", cookie);
        request.body(Body::empty()).unwrap()
    };
    for path in ["/nosuchpage", "/services/nobody", "/nosuchpage/deep?x=<script>"] {
        let path = path.replace('<', "%3C").replace('>', "%3E");
        let (status, _, text) = site.send(get(&path, BROWSER, &cookie)).await;
        assert_eq!(status, 404, "{path}: {text}");
        for part in ["Page not found", "aria-label=\"Main\"", "Log out"] {
            assert!(text.contains(part), "{path} lacks `{part}`: {text}");
        }
        // Whoever has not logged in sees no menu.
        let (status, said, text) = site.send(get(&path, BROWSER, "")).await;
        let to_login = status == 303 && said.starts_with("/login");
        assert!(
            to_login || (status == 404 && !text.contains("aria-label=\"Main\"")),
            "{path}: {status} {text}"
        );
    }
    for (path, accept) in
        [("/nosuchpage", "application/json"), ("/nosuchpage", "*/*"), ("/api/v1/nothing", BROWSER)]
    {
        let (status, _, text) = site.send(get(path, accept, &cookie)).await;
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        assert_eq!((status, &answer["code"]), (404, &json!("notFound")), "{path}");
    }
}

/// UI-2: a filter or a page that there can't be is told above the list, with what there is; the list is not said to be empty.
#[tokio::test]
async fn ui_2_a_wrong_filter_is_told_at_the_list() {
    let mut site = Site::new().await;
    let cookie = site.login(ADMIN).await;
    for (path, told, not_told) in [
        ("/operations?page_token=zzzz", "of a previous page", "No operations yet"),
        ("/operations?state=lost", "unknown parameter. Known: page_size, page_token", "No operations yet"),
        ("/deadLetters?status=abc", "unknown parameter. Known: ", "No dead letters"),
        ("/deadLetters?state=lost", "lost", "No dead letters"),
        ("/deadLetters/list?status=abc", "status: ", "No dead letters"),
        ("/deadLetters/list?page_token=zzzz", "of a previous page", "No dead letters"),
        ("/alerts?state=lost", "must be one of open, resolved, not `lost`", "No open alerts"),
        ("/alerts?nosuch=1", "unknown parameter. Known: ", "No open alerts"),
        ("/alerts?open_token=zzzz", "of a previous page", "No open alerts"),
    ] {
        let (status, text) = site.page(&cookie, path).await;
        assert_eq!(status, 200, "{path}: {text}");
        let (_, alert) = text.split_once("role=\"alert\">").unwrap_or_else(|| panic!("{path}: {text}"));
        let (alert, _) = alert.split_once("</p>").unwrap();
        assert!(alert.contains(told), "{path}: {alert}");
        assert!(!text.contains(not_told), "{path} says `{not_told}`");
    }
    for (path, shown, hidden) in [
        ("/alerts?state=open", "id=\"open\"", "id=\"resolved\""),
        ("/alerts?state=resolved", "id=\"resolved\"", "id=\"open\""),
    ] {
        let (_, text) = site.page(&cookie, path).await;
        assert!(text.contains(shown) && !text.contains(hidden) && !text.contains("role=\"alert\""), "{path}");
    }
}

/// UI-2, SEC-1: every page is there, and whatever came in from outside is a text on it: no tag, and no template.
#[tokio::test]
async fn ui_2_every_page_is_shown_and_texts_stay_texts() {
    let mut site = Site::new().await;
    let delivery = site.filled().await;
    let cookie = site.login(ADMIN).await;
    let mut escaped = 0;
    for path in pages(&delivery) {
        let (status, text) = site.page(&cookie, &path).await;
        assert_eq!(status, 200, "{path}: {text}");
        let (_, main) = text.split_once("<main").unwrap();
        assert!(!main.contains("<script>") && !main.contains("alert('x')"), "{path}");
        assert!(!main.contains("&quot;49"), "{path} has run a template");
        // What the policy of the pages forbids would not work.
        for forbidden in [" style=\"", " onclick=", "javascript:"] {
            assert!(!text.contains(forbidden), "{path} has `{forbidden}`");
        }
        escaped += usize::from(main.contains("&lt;script&gt;"));
    }
    assert!(escaped >= 8, "what is evil was seen on {escaped} pages only");
    for path in [
        "/services/nobody",
        "/rules/nobody",
        "/rules/nobody/try",
        "/events/nothing",
        "/deliveries/dlv_1",
        "/sources/nobody",
    ] {
        assert_eq!(site.page(&cookie, path).await.0, 404, "{path}");
    }
}

/// UI-2: a hub without anything shows how to begin, with commands for this very hub; each list says what it is for.
#[tokio::test]
async fn ui_2_an_empty_hub_teaches() {
    let mut site = Site::new().await;
    let cookie = site.login(ADMIN).await;
    for (path, taught) in [
        ("/", "Getting started"),
        ("/", "curl http://hub.example:8480/api/v1/registry/services"),
        ("/services", "No services yet"),
        ("/rules", "No rules yet"),
        ("/rules/_new", "Create a service first"),
        ("/events", "No events yet"),
        ("/deliveries", "No deliveries yet"),
        ("/sources", "No sources yet"),
    ] {
        let (status, text) = site.page(&cookie, path).await;
        assert_eq!(status, 200);
        assert!(text.contains(taught), "{path} does not say `{taught}`");
    }
}

/// UI-3, SEC-1: whoever may only read sees no action; whoever may operate sees those; nobody at all is asked to log in.
#[tokio::test]
async fn ui_3_nobody_sees_what_they_may_not_do() {
    let mut site = Site::new().await;
    let delivery = site.filled().await;
    for (scope, sees, sees_not) in [
        (
            "read",
            &[][..],
            &["data-act", ">Edit<", ">Pause<", "href=\"/services/_new", "href=\"/rules/_new"][..],
        ),
        (
            "operate",
            &["circuit:forceOpen", ":pause\"", ":resume\"", ":test\""],
            &[">Edit<", "href=\"/services/_new", "\"DELETE\""],
        ),
    ] {
        let key = json!({"name": format!("only-{scope}"), "scopes": [scope]});
        let key =
            site.ask(Method::POST, "/api/v1/registry/keys", &key).await["key"].as_str().unwrap().to_owned();
        let cookie = site.login(&key).await;
        let mut all = String::new();
        for path in pages(&delivery) {
            let (status, text) = site.page(&cookie, &path).await;
            assert_eq!(status, 200, "{path}");
            all.push_str(&text);
        }
        for word in sees {
            assert!(all.contains(word), "`{word}` is not there for {scope}");
        }
        for word in sees_not {
            assert!(!all.contains(word), "`{word}` is there for {scope}");
        }
    }
    for path in pages(&delivery) {
        let request =
            Request::get(&path).header("cookie", "seawall_session=AAAA").body(Body::empty()).unwrap();
        let (status, said, _) = site.send(request).await;
        assert!(status == 303 && said.starts_with("/login?to="), "{path}: {status} {said}");
    }
}

/// UI-2, SEC-1: a key for some services sees these, what they wait for, and nothing of others.
#[tokio::test]
async fn sec_1_a_limited_key_sees_its_services_only() {
    let mut site = Site::new().await;
    let delivery = site.filled().await;
    let key = json!({"name": "limited", "scopes": ["read"], "services": ["mail"]});
    let key = site.ask(Method::POST, "/api/v1/registry/keys", &key).await["key"].as_str().unwrap().to_owned();
    let cookie = site.login(&key).await;
    let (status, text) = site.page(&cookie, "/").await;
    assert!(status == 200 && text.contains("/services/mail") && !text.contains("billing"), "{text}");
    let (_, text) = site.page(&cookie, "/services").await;
    assert!(text.contains("/services/mail") && !text.contains("billing"));
    for path in ["/services/billing".to_owned(), format!("/deliveries/{delivery}"), "/rules/invoices".into()]
    {
        assert_eq!(site.page(&cookie, &path).await.0, 404, "{path}");
    }
    assert_eq!(site.page(&cookie, "/events").await.0, 403);
}
