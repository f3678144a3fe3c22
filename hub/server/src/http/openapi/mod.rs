//! The description of the API: OpenAPI 3.1, and a page to read it and to try it.
//!
//! The schemas are derived from the wire types, and the routes are rows of the table that the router is made of. Tests hold the hub
//! against the description: every route is in it, every answer fits it and has no field more, every code of an error is listed.

pub(super) mod components;
mod document;
mod page;
pub(super) mod parameters;
mod proxy;
pub(super) mod schema;
mod shapes;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};

pub(crate) use self::document::document;
pub(super) use self::page::docs;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

/// The handler of `GET /openapi.json`.
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}
