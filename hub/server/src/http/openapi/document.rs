//! The description of the API, made of the table of routes and of what each takes and gives.

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::components::Components;
use super::{parameters, proxy, shapes};
use crate::http::routes::{self, Route, SuccessResponse};
use seawall_api::{ERRORS, ErrorBody, ErrorEntry};

const ABOUT: &str = "The API of a Seawall hub. Every response has the same envelope: `status`, `data`, `message` and `traceId`; \
                     errors have a stable `code` and state whether a retry may succeed (`retryable`). Within this version \
                     the API only grows, so clients should ignore unknown fields.";

/// The tags of the routes, by the start of the path.
const TAGS: [(&str, &str, &str); 11] = [
    (
        "/api/v1/registry/services",
        "services",
        "Services that the hub calls, each with its own resilience policies",
    ),
    ("/api/v1/registry/rules", "rules", "Rules that turn events into requests"),
    ("/api/v1/registry/sources", "sources", "Webhook sources"),
    ("/api/v1/registry/keys", "keys", "API keys"),
    ("/api/v1/gateway", "gateway", "Calls through the policies of a service"),
    ("/api/v1/bridge/events", "events", "Events"),
    ("/api/v1/bridge/deadLetter", "deadLetters", "Dead letters: inspect, replay, edit and delete"),
    ("/api/v1/bridge", "deliveries", "Deliveries"),
    ("/api/v1/ops/alert", "alerts", "Alerts: incidents, rules and channels"),
    ("/in/", "webhooks", "Incoming webhooks"),
    ("/", "operations", "Health, metrics, overview and audit log"),
];

/// The whole description: OpenAPI 3.1.
pub(crate) fn document() -> Value {
    let mut components = Components::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in routes::routes().into_iter().chain(routes::open()) {
        let method = route.method.as_str().to_ascii_lowercase();
        paths.entry(route.path).or_default().insert(method, described(&route, &mut components));
    }
    paths.insert(proxy::PATH, proxy::operations());
    let errors: Vec<Value> = ERRORS
        .iter()
        .map(|ErrorEntry { code, status, retryable, meaning, remedy }| {
            json!({"code": code, "status": status, "retryable": retryable, "meaning": meaning, "remedy": remedy})
        })
        .collect();
    let tags: Vec<Value> =
        TAGS.iter().map(|(_, name, meaning)| json!({"name": name, "description": meaning})).collect();
    let mut schemas = shapes::all();
    schemas.extend(components.finish());
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Seawall", "version": "1", "description": ABOUT, "license": {"name": "MIT OR Apache-2.0"}},
        "tags": tags,
        "security": [{"key": []}],
        "paths": paths,
        "x-errors": errors,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "API key"},
                proxy::KEY: proxy::key(),
            },
            "schemas": schemas,
        },
    })
}

fn described(route: &Route, components: &mut Components) -> Value {
    let Route { method, path, scope, about, takes, more, .. } = route;
    let tag =
        TAGS.iter().find(|(begin, _, _)| path.starts_with(begin)).map_or("operations", |(_, name, _)| name);
    let mut value = json!({
        "operationId": id_of(method, path), "tags": [tag], "summary": about,
        "responses": responses(route, components),
    });
    let needs = scope.map(|scope| format!("Requires a key with the scope `{}`.", scope.word()));
    let more = (!more.is_empty()).then(|| format!("{more}."));
    let said: Vec<String> = more.into_iter().chain(needs).collect();
    if !said.is_empty() {
        value["description"] = json!(said.join("\n\n"));
    }
    let in_path = names_in(path).map(|name| parameters::in_path(path, name));
    let named = route.headers.iter().map(|name| parameters::header(name));
    let queried = route.query.iter().flat_map(|query| query());
    let mut all: Vec<Value> = in_path.chain(queried).chain(named).collect();
    if scope.is_some() && *method != Method::GET {
        all.push(parameters::header("X-Seawall-Reason"));
    }
    if !all.is_empty() {
        value["parameters"] = json!(all);
    }
    if !takes.is_empty() {
        let content: Map<String, Value> = takes
            .iter()
            .map(|(kind, schema)| ((*kind).to_owned(), json!({"schema": schema.value(components, method)})))
            .collect();
        value["requestBody"] = json!({"required": route.needs_body, "content": content});
    }
    match scope {
        Some(scope) => value["x-scope"] = json!(scope.word()),
        None => value["security"] = json!([]),
    }
    value
}

/// `/in/{source}` has `source`.
fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// Returns an operation id like `registryServicesPause`.
fn id_of(method: &Method, path: &str) -> String {
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    let (path, verb) = path.rsplit_once(':').unwrap_or((path, ""));
    let one = path.ends_with('}') || !path.ends_with('s');
    let verb = match (verb, method) {
        ("", &Method::GET) if one => "get",
        ("", &Method::GET) => "list",
        ("", &Method::PUT) => "replace",
        ("", &Method::PATCH) => "change",
        ("", &Method::DELETE) => "delete",
        ("", _) => "create",
        (verb, _) => verb,
    };
    // What can be done to one and to many has two names.
    let many = if is_for_many(path, verb) { "Many" } else { "" };
    let parts = path.split(['/', '.']).filter(|part| !part.is_empty() && !part.starts_with('{'));
    let mut id = String::new();
    for part in parts.chain([verb, many]).filter(|part| !part.is_empty()) {
        let (first, rest) = part.split_at(1);
        id.push_str(&if id.is_empty() { first.to_owned() } else { first.to_ascii_uppercase() });
        id.push_str(rest);
    }
    id
}

/// Whether a verb is on a list of something, and on one of it too, where deleting is a method.
fn is_for_many(list: &str, verb: &str) -> bool {
    let one = format!("/api/v1{list}/{{");
    let is_twin = |route: &Route| match route.path.strip_prefix(&*one).map(|rest| rest.split_once("}:")) {
        Some(Some((_, known))) => known == verb,
        Some(None) => verb == "delete" && route.method == Method::DELETE,
        None => false,
    };
    !verb.is_empty() && routes::routes().iter().any(is_twin)
}

fn responses(route: &Route, components: &mut Components) -> Value {
    let mut all = Map::new();
    for gives in &route.gives {
        all.insert(gives.status.to_string(), good(gives, components));
    }
    let codes = codes_of(route);
    let mut bad: BTreeMap<u16, Vec<&ErrorEntry>> = BTreeMap::new();
    for entry in ERRORS.iter().filter(|entry| codes.contains(&entry.code)) {
        bad.entry(entry.status).or_default().push(entry);
    }
    for (status, entries) in bad {
        let said: Vec<String> =
            entries.iter().map(|one| format!("`{}`: {}", one.code, one.meaning)).collect();
        let mut answer = json!({
            "description": said.join("; "), "content": {"application/json": {"schema": components.response::<ErrorBody>()}},
        });
        if entries.iter().any(|one| one.retryable) {
            let after =
                json!({"description": "Seconds until a retry may succeed", "schema": {"type": "integer"}});
            answer["headers"] = json!({"Retry-After": after});
        }
        all.insert(status.to_string(), answer);
    }
    Value::Object(all)
}

/// Its own, and those that it has because of what it is.
fn codes_of(route: &Route) -> Vec<&'static str> {
    let guarded = route.scope.is_some();
    let mut codes = route.codes.clone();
    if guarded {
        codes.extend(["unauthorised", "forbidden"]);
    }
    // Whatever shows much may find no memory for it.
    if guarded && route.stored && route.method == Method::GET {
        codes.push("memoryFull");
    }
    if route.path.contains('{') && !route.path.starts_with("/in/") {
        codes.extend(["badRequest", "notFound"]);
    }
    if route.path.starts_with("/in/") {
        codes.push("badRequest");
    }
    if route.takes.iter().any(|(kind, _)| *kind == "application/json") {
        codes.extend(["badRequest", "notJson", "tooLarge"]);
    }
    if route.stored {
        codes.extend(STORE);
    }
    codes
}

/// What the store may say.
const STORE: [&str; 4] = ["store", "busy", "full", "damaged"];

fn good(gives: &SuccessResponse, components: &mut Components) -> Value {
    let SuccessResponse { status, kind, schema, enveloped, versioned } = gives;
    let schema = schema.value(components, &Method::GET);
    let schema = match enveloped {
        true => json!({
            "type": "object",
            "required": ["status", "data", "message", "traceId"],
            "properties": {
                "status": {"type": "string", "const": if *status == 202 { "accepted" } else { "ok" }},
                "data": schema,
                "message": {"type": "null"},
                "traceId": {"type": "string", "description": "Id of the request in the hub's log"},
            },
        }),
        false => schema,
    };
    let said = match status {
        201 => "Created",
        202 => "Accepted and stored",
        _ => "Success",
    };
    let mut answer = json!({"description": said, "content": {*kind: {"schema": schema}}});
    if *versioned {
        let tag = json!({"description": "Version in quotes, for `If-Match`", "required": true, "schema": {"type": "string"}});
        answer["headers"] = json!({"ETag": tag});
    }
    answer
}
