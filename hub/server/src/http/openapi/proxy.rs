//! The proxy, which is no route: it stands in front of the API, takes any method and any path below a service, and its answers are
//! the service's. It is described all the same, so that whoever reads the description knows that it is there.
//!
//! A parameter in a path stands for one part of it, by the rules of OpenAPI; this one stands for all the rest, slashes included.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::parameters;
use super::schema::{shape, text};
use seawall_api::{ERRORS, ErrorEntry};

/// Where it is.
pub(super) const PATH: &str = "/gateway/{name}/{path}";
/// How its key is shown: `Authorization` is for the service.
pub(super) const KEY: &str = "proxyKey";

/// Every method that can be described. Others go through as well, but for CONNECT.
const METHODS: [Method; 7] =
    [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::OPTIONS, Method::HEAD, Method::PATCH];

const MORE: &str = "Path, query, headers and body are forwarded unchanged, and so are the status, headers and body of the response; both \
                    bodies are streamed. `path` is everything after the name, including slashes. A response that the hub itself makes \
                    has the header `seawall-decided-by`. See docs/gateway.md.\n\nRequires a key with the scope `call`, in \
                    `X-Seawall-Key`.";

/// What the hub itself may say.
const CODES: [&str; 16] = [
    "badRequest",
    "path",
    "unauthorised",
    "forbidden",
    "notFound",
    "slowBody",
    "rateLimited",
    "method",
    "upgrade",
    "noConnection",
    "broken",
    "impossible",
    "circuitOpen",
    "bulkheadFull",
    "paused",
    "timeout",
];

/// How its key is shown.
pub(super) fn key() -> Value {
    json!({"type": "apiKey", "in": "header", "name": "X-Seawall-Key", "description": "API key of the hub; it is not forwarded"})
}

/// All its operations.
pub(super) fn operations() -> Map<String, Value> {
    METHODS.iter().map(|method| (method.as_str().to_ascii_lowercase(), operation(method))).collect()
}

fn operation(method: &Method) -> Value {
    let word = method.as_str().to_ascii_lowercase();
    let rest = json!({
        "name": "path", "in": "path", "required": true, "description": "Path below the address of the service, including slashes",
        "schema": text().into_value(),
    });
    let mut value = json!({
        "operationId": format!("gatewayProxy{}{}", &method.as_str()[..1], &word[1..]), "tags": ["gateway"],
        "summary": "Forward a request to a service and return its response", "description": MORE,
        "parameters": [parameters::in_path(PATH, "name"), rest],
        "responses": responses(), "security": [{KEY: []}], "x-scope": "call",
    });
    if [Method::PUT, Method::POST, Method::PATCH].contains(method) {
        value["requestBody"] = json!({"required": false, "content": {"*/*": {"schema": {}}}});
    }
    value
}

fn responses() -> Value {
    let mut all = Map::new();
    for code in CODES {
        for ErrorEntry { status, meaning, .. } in ERRORS.iter().filter(|entry| entry.code == code) {
            let said = format!("`{code}`: {meaning}");
            let one = all.entry(status.to_string()).or_insert_with(|| {
                let decided = json!({"description": "The policy that decided; absent if the response is the service's", "schema": {"type": "string"}});
                json!({
                    "description": "", "content": {"application/json": {"schema": shape("Error").into_value()}},
                    "headers": {"seawall-decided-by": decided},
                })
            });
            let before = one["description"].as_str().unwrap_or_default();
            one["description"] =
                if before.is_empty() { said.into() } else { format!("{before}; {said}").into() };
        }
    }
    all.insert(
        "default".into(),
        json!({"description": "Response of the service", "content": {"*/*": {"schema": {}}}}),
    );
    Value::Object(all)
}
