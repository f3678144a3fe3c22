//! Every page opens, says nothing to the console, and asks nobody else for anything.

use serde_json::{Value, json};

use super::driver::Browser;
use super::filling::{self, Filled};
use super::hub;
use crate::harness::Hub;

/// Every page: its route, and where it is on a hub that was filled. A page that is new is one line more.
const PAGES: [(&str, &str); 33] = [
    ("/", "/"),
    ("/services", "/services"),
    ("/services/_new", "/services/_new"),
    ("/services/{name}", "/services/{service}"),
    ("/services/{name}/edit", "/services/{service}/edit"),
    ("/rules", "/rules"),
    ("/rules/_new", "/rules/_new"),
    ("/rules/{name}", "/rules/{rule}"),
    ("/rules/{name}/edit", "/rules/{rule}/edit?event={event}"),
    ("/rules/{name}/try", "/rules/{rule}/try?event={event}"),
    ("/events", "/events"),
    ("/events/{id}", "/events/{event}"),
    ("/deliveries", "/deliveries"),
    ("/deliveries/{id}", "/deliveries/{delivery}"),
    ("/sources", "/sources"),
    ("/sources/_new", "/sources/_new"),
    ("/sources/{name}", "/sources/{source}"),
    ("/sources/{name}/edit", "/sources/{source}/edit"),
    ("/deadLetters", "/deadLetters"),
    ("/deadLetters/groups/{group}", "/deadLetters/groups/{group}"),
    ("/deadLetters/list", "/deadLetters/list"),
    ("/deadLetters/{id}", "/deadLetters/{letter}"),
    ("/operations", "/operations"),
    ("/operations/{id}", "/operations/{operation}"),
    ("/alerts", "/alerts"),
    ("/alerts/{id}", "/alerts/{alert}"),
    ("/alerts/rules/_new", "/alerts/rules/_new"),
    ("/alerts/rules/{name}", "/alerts/rules/{alertRule}"),
    ("/alerts/channels/_new", "/alerts/channels/_new"),
    ("/alerts/channels/{name}", "/alerts/channels/{channel}"),
    ("/settings", "/settings"),
    ("/keys", "/keys"),
    ("/audit", "/audit"),
];

/// What is no page of a hub like others: a place that leads elsewhere, files, and the page of a demo, which has a test of its own.
const OTHERS: [&str; 4] = ["/deadLetters/groups", "/deadLetters/export", "/demo", "/settings/metrics"];

/// The routes of the dashboard, as it has them.
fn routes() -> Vec<&'static str> {
    let source = include_str!("../../../../server/src/dashboard/pages/mod.rs");
    source.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Every page of a hub that was filled, with its route.
pub(super) fn all(filled: &Filled) -> Vec<(&'static str, String)> {
    PAGES.into_iter().map(|(route, pattern)| (route, filled.path(pattern))).collect()
}

/// UI-2: a page that nobody looks at with a browser does not go in.
#[test]
fn ui_2_every_page_of_the_dashboard_is_in_the_table() {
    let routes = routes();
    assert!(routes.len() > 5, "{routes:?}");
    for route in routes {
        let known = PAGES.iter().any(|(known, _)| *known == route) || OTHERS.contains(&route);
        assert!(known, "{route} has no line in the table of pages");
    }
}

/// What is wrong with the page that is open: its requests to others, and what the console says.
pub(super) fn faults(browser: &Browser, hub: &Hub) -> Vec<String> {
    let asked = browser.eval("return performance.getEntries().map(entry => entry.name)");
    let here = format!("http://{}", hub.address);
    let others = asked
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| name.contains("://") && !name.starts_with(&here))
        .map(|name| format!("asks {name}"));
    others.chain(browser.console()).collect()
}

/// UI-1, UI-2: each page opens in a browser without a word on the console, without a violation of what the page may do, and
/// without a request to anybody else; and it is live, if it says so.
#[test]
fn ui_2_every_page_opens_cleanly() {
    let (_folder, hub) = hub();
    let filled = filling::a_day(&hub);
    let browser = Browser::start();
    browser.as_admin(&hub, "/");
    for (route, path) in all(&filled) {
        browser.open(&hub.page(&path));
        let heading = browser.text("main h1").unwrap_or_default();
        assert!(!heading.is_empty() && browser.count("main.sorry") == 0, "{route}: `{heading}`");
        assert_eq!(browser.count("h1"), 1, "{route}");
        if browser.count("main [data-live]") > 0 {
            browser.wait("it is live", "document.querySelector('.live').dataset.state === 'on'");
        }
        let faults = faults(&browser, &hub);
        assert!(faults.is_empty(), "{route}: {faults:?}");
    }
}

/// SEC-1, UI-3: whoever may only read sees nothing that acts, on no page; and a request made by hand is refused all the same.
#[test]
fn sec_1_a_key_that_may_only_read_finds_nothing_that_acts() {
    let (_folder, hub) = hub();
    let filled = filling::a_day(&hub);
    let key = hub.key("reader", &["read"]);
    let browser = Browser::start();
    browser.log_in(&hub, &key, "/deadLetters");
    let acting = "return [...document.querySelectorAll('form, button, input[type=submit], input[type=checkbox]')].filter(one => \
         !one.closest('dialog') && !one.closest('form[method=get]') && !one.closest('form[action=\"/logout\"]') && \
         !one.matches('[data-theme], [data-menu], [data-copy]')).map(one => one.outerHTML)";
    for (route, path) in all(&filled) {
        browser.open(&hub.page(&path));
        assert_eq!(browser.eval(acting), json!([]), "{route}");
    }
    let session = hub.session(&key);
    let group = filled.get("group");
    for path in [format!("deadLetterGroups/{group}:replay"), format!("deadLetterGroups/{group}:resolve")] {
        let form = format!("_csrf={}&_path=/api/v1/bridge/{path}", session.token);
        let refused = hub.act(&session.cookie, &[], &form);
        assert_eq!(refused.status, 403, "{}", refused.text);
    }
    assert_eq!(filling::only_group(&hub)["state"], "open");
}
