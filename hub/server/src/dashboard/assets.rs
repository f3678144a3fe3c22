//! The style, the script and the mark of the pages. They are in the binary, and their names change when they do, so that a browser
//! can keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use minijinja::Value;
use seawall_hub_core::encode::hex;
use sha2::{Digest, Sha256};

/// What there is: its name, what kind it is, and itself.
const ALL: [(&str, &str, &str); 3] = [
    ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("script.js", "text/javascript; charset=utf-8", include_str!("assets/script.js")),
    ("mark.svg", "image/svg+xml", include_str!("assets/mark.svg")),
];

static NAMES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let named = |(name, _, text): &(&str, &str, &str)| {
        let hash = Sha256::digest(text);
        let (stem, end) = name.split_once('.').unwrap_or((name, ""));
        (stem.to_owned(), format!("{stem}-{}.{end}", hex(&hash[..6])))
    };
    ALL.iter().map(named).collect()
});

/// The addresses of all, by their stems.
pub(super) fn names() -> Value {
    Value::from_pairs(NAMES.iter().map(|(stem, name)| (stem.clone(), format!("/assets/{name}"))))
}

pub(super) async fn asset(Path(asked): Path<String>) -> Response {
    let found = NAMES.iter().position(|(_, name)| *name == asked);
    let Some((_, kind, text)) = found.map(|place| ALL[place]) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let headers =
        [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, text).into_response()
}
