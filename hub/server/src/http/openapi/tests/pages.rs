//! The pages that are made of the same data as the description.

use std::fmt::Write;
use std::path::Path;

use crate::http::routes::{self, Route};
use seawall_api::{ERRORS, ErrorEntry};

/// API-1: the page for people names every code of an error with its remedy, and every route with its scope. `cargo xtask
/// reference` writes the lists anew.
#[test]
fn api_1_the_page_of_the_api_has_every_code_and_every_route() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let made = with(&with(&page, "errors", &errors()), "routes", &all_routes());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    } else {
        assert!(
            page == made,
            "docs/api.md is not what the code makes; `cargo xtask reference` writes it anew"
        );
    }
}

/// The page with this list in its place.
fn with(page: &str, name: &str, list: &str) -> String {
    let (before, rest) = page.split_once(&format!("<!-- made: {name} -->\n")).expect("the list has a place");
    let (_, after) = rest.split_once("<!-- end -->").expect("the list has an end");
    format!("{before}<!-- made: {name} -->\n{list}<!-- end -->{after}")
}

fn errors() -> String {
    let mut out = String::from(
        "| status | `code` | `retryable` | what has happened | what to do |\n|---|---|---|---|---|\n",
    );
    for ErrorEntry { code, status, retryable, meaning, remedy } in ERRORS {
        let again = if *retryable { "yes" } else { "" };
        let _ = writeln!(out, "| {status} | `{code}` | {again} | {meaning} | {remedy} |");
    }
    out
}

fn all_routes() -> String {
    let mut out = String::from("| route | scope | what it does |\n|---|---|---|\n");
    for Route { method, path, scope, about, .. } in routes::routes().into_iter().chain(routes::open()) {
        let scope = scope.map(|scope| format!("`{}`", scope.word())).unwrap_or_default();
        let _ = writeln!(out, "| `{method} {path}` | {scope} | {about} |");
    }
    out
}

/// SEC-1: the page to try the API loads nothing from elsewhere, runs nothing but its own script, and is small.
#[tokio::test]
async fn sec_1_the_page_to_try_the_api_runs_and_loads_nothing_else() {
    let response = super::super::docs().await;
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(policy.contains("connect-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{policy}");
    let page = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let page = String::from_utf8(page.into()).unwrap();
    assert!(!page.contains("{style}") && !page.contains("{script}"));
    for elsewhere in
        ["http://", "https://", "//cdn", "@import", "url(", "innerHTML", "eval(", " style=", "onclick"]
    {
        assert!(!page.contains(elsewhere), "the page has `{elsewhere}` in it");
    }
    for kept in ["localStorage", "sessionStorage", "document.cookie", "indexedDB"] {
        assert!(!page.contains(kept), "the key is kept in memory only, not in `{kept}`");
    }
    assert!(include_str!("../page.js").len() < 15_000);
}
