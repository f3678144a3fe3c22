//! The dashboard in a real browser: what it shows, what it does at a click, what it withstands, and who can use it.
//!
//! It needs Chromium with its driver, and `npm` for what judges whether everybody can use a page; `cargo xtask test` installs
//! them where it can. The same tests make the pictures of `cargo xtask screenshots`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod charts;
mod demo;
mod driver;
mod everyone;
mod filling;
mod forms;
mod keyboard;
mod live;
mod login;
mod pages;
mod pictures;
mod presets;
mod safe;
mod story;

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;

use self::driver::Browser;
use crate::harness::{Hub, KEY, Reply, SEAWALL};

const SERVICES: &str = "/api/v1/registry/services";
const RULES: &str = "/api/v1/registry/rules";
const SOURCES: &str = "/api/v1/registry/sources";
const KEYS: &str = "/api/v1/registry/keys";
const BATCH: &str = "/api/v1/bridge/events:batchCreate";
const LETTERS: &str = "/api/v1/bridge/deadLetters";
const GROUPS: &str = "/api/v1/bridge/deadLetterGroups";
const ALERTS: &str = "/api/v1/ops/alerts";
const OPERATIONS: &str = "/api/v1/ops/operations";

/// An empty hub, and its folder.
fn hub() -> (TempDir, Hub) {
    let folder = TempDir::new().unwrap();
    // Hundreds of refusals are in its log, which nobody reads.
    let process = Hub::command(Path::new(SEAWALL), folder.path()).stderr(Stdio::null()).spawn().unwrap();
    (folder, Hub::ready(process).unwrap())
}

impl Hub {
    fn page(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A new key with these scopes.
    fn key(&self, name: &str, scopes: &[&str]) -> String {
        let made = self.must("POST", KEYS, &json!({"name": name, "scopes": scopes}));
        made["key"].as_str().unwrap().to_owned()
    }

    /// A session without a browser: its cookie, and what its forms have to bring along.
    fn session(&self, key: &str) -> Session {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let begun = self.call("POST", "/login", &form, &format!("key={key}"));
        assert_eq!(begun.status, 303, "{}", begun.text);
        let cookie = crate::harness::header(&begun.head, "set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let page = self.call("GET", "/deadLetters", &[("cookie", &cookie)], "").text;
        let (_, rest) = page.split_once("data-csrf=\"").unwrap();
        Session { token: rest.split('"').next().unwrap().to_owned(), cookie }
    }

    fn act(&self, cookie: &str, headers: &[(&str, &str)], form: &str) -> Reply {
        let mut all = vec![("cookie", cookie), ("content-type", "application/x-www-form-urlencoded")];
        all.extend(headers);
        self.call("POST", "/act", &all, form)
    }
}

struct Session {
    cookie: String,
    token: String,
}

impl Browser {
    /// Logs in by a link, as `seawall open` and the demo do.
    fn log_in(&self, hub: &Hub, key: &str, to: &str) {
        // Another page first: the same one with another hash is not loaded again.
        self.open("about:blank");
        self.open(&hub.page(&format!("/login?to={}#{key}", to.replace('?', "%3F").replace('&', "%26"))));
        self.wait_for_page(to.split('?').next().unwrap());
    }

    fn as_admin(&self, hub: &Hub, to: &str) {
        self.log_in(hub, KEY, to);
    }
}
