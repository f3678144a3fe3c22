//! The description of the API, made of the table of routes and of what each takes and gives.

use std::collections::BTreeMap;

use axum::http::Method;
use seawall_hub_core::domain::key::Scope;
use serde_json::{Map, Value, json};

use super::errors::{PageError, TROUBLES};
use super::operations::{Gives, Operation, operations};
use super::schema::{need, nothing, shape, shown, text, word};
use super::{parameters, proxy, shapes};
use crate::http::routes;

const ABOUT: &str = "Everything that a hub can do. Every answer is in one envelope: `status`, `data`, `message` and `traceId`; \
                     errors have a `code` that never changes its meaning, and say whether it is worth another try. Within \
                     this version of the API changes only add, so pass over fields that you don't know.";

/// What belongs together, by how its path begins.
const TAGS: [(&str, &str, &str); 11] = [
    ("/api/v1/registry/services", "services", "Where requests go, each behind a guard of its own"),
    ("/api/v1/registry/rules", "rules", "Which events lead to which requests"),
    ("/api/v1/registry/sources", "sources", "Where webhooks come from"),
    ("/api/v1/registry/keys", "keys", "Who may do what"),
    ("/api/v1/gateway", "gateway", "Calls through the guard of a service"),
    ("/api/v1/bridge/events", "events", "What has happened"),
    ("/api/v1/bridge/deadLetter", "deadLetters", "What could not be delivered, and what is done about it"),
    ("/api/v1/bridge", "deliveries", "What was made of it"),
    ("/api/v1/ops/alert", "alerts", "What is wrong, and who is told"),
    ("/in/", "webhooks", "What others send"),
    ("/", "operations", "How the hub is, and who has changed what"),
];

/// The whole description: OpenAPI 3.1.
pub(crate) fn document() -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut known: BTreeMap<(String, &str), Operation> = operations()
        .into_iter()
        .map(|operation| ((operation.method.to_string(), operation.path), operation))
        .collect();
    let guarded =
        routes::routes().into_iter().map(|route| (route.method, route.path, Some(route.scope), route.about));
    let open = routes::open().into_iter().map(|route| (route.method, route.path, None, route.about));
    for (method, path, scope, about) in guarded.chain(open) {
        // A test says which route has no description; until then it is left out.
        let Some(operation) = known.remove(&(method.to_string(), path)) else { continue };
        let described = described(&operation, scope, about);
        paths.entry(path).or_default().insert(method.as_str().to_ascii_lowercase(), described);
    }
    paths.insert(proxy::PATH, proxy::operations());
    let errors: Vec<Value> = TROUBLES
        .iter()
        .map(|PageError { code, status, retryable, meaning, remedy }| {
            json!({"code": code, "status": status, "retryable": retryable, "meaning": meaning, "remedy": remedy})
        })
        .collect();
    let tags: Vec<Value> =
        TAGS.iter().map(|(_, name, meaning)| json!({"name": name, "description": meaning})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Seawall", "version": "1", "description": ABOUT, "license": {"name": "MIT OR Apache-2.0"}},
        "tags": tags,
        "security": [{"key": []}],
        "paths": paths,
        "x-errors": errors,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key of the hub"},
                proxy::KEY: proxy::key(),
            },
            "schemas": shapes::all(),
        },
    })
}

fn described(operation: &Operation, scope: Option<Scope>, about: &str) -> Value {
    let Operation { method, path, takes, more, .. } = operation;
    let tag =
        TAGS.iter().find(|(begin, _, _)| path.starts_with(begin)).map_or("operations", |(_, name, _)| name);
    let mut value = json!({
        "operationId": id_of(method, path), "tags": [tag], "summary": about, "responses": responses(operation, scope),
    });
    let needs = scope.map(|scope| format!("Needs a key with the scope `{}`.", scope.word()));
    let more = (!more.is_empty()).then(|| format!("{more}."));
    let said: Vec<String> = more.into_iter().chain(needs).collect();
    if !said.is_empty() {
        value["description"] = json!(said.join("\n\n"));
    }
    let in_path = names_in(path).map(|name| parameters::in_path(path, name));
    let mut all: Vec<Value> =
        in_path.chain(operation.parameters.iter().map(|name| parameters::parameter(name))).collect();
    if scope.is_some() && *method != Method::GET {
        all.push(parameters::parameter("X-Seawall-Reason"));
    }
    if !all.is_empty() {
        value["parameters"] = json!(all);
    }
    if !takes.is_empty() {
        let content: Map<String, Value> = takes
            .iter()
            .map(|(kind, schema)| ((*kind).to_owned(), json!({"schema": schema.clone().into_value()})))
            .collect();
        value["requestBody"] = json!({"required": operation.needs_body, "content": content});
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

/// `registryServicesPause`.
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
    let is_twin =
        |route: &routes::Route| match route.path.strip_prefix(&*one).map(|rest| rest.split_once("}:")) {
            Some(Some((_, known))) => known == verb,
            Some(None) => verb == "delete" && route.method == Method::DELETE,
            None => false,
        };
    !verb.is_empty() && routes::routes().iter().any(is_twin)
}

fn responses(operation: &Operation, scope: Option<Scope>) -> Value {
    let mut all = Map::new();
    for gives in &operation.gives {
        all.insert(gives.status.to_string(), good(gives));
    }
    let codes = codes_of(operation, scope.is_some());
    let mut bad: BTreeMap<u16, Vec<&PageError>> = BTreeMap::new();
    for trouble in TROUBLES.iter().filter(|trouble| codes.contains(&trouble.code)) {
        bad.entry(trouble.status).or_default().push(trouble);
    }
    for (status, troubles) in bad {
        let said: Vec<String> =
            troubles.iter().map(|one| format!("`{}`: {}", one.code, one.meaning)).collect();
        let mut answer = json!({
            "description": said.join("; "), "content": {"application/json": {"schema": shape("Error").into_value()}},
        });
        if troubles.iter().any(|one| one.retryable) {
            let after = json!({"description": "Seconds until it is worth another try", "schema": {"type": "integer"}});
            answer["headers"] = json!({"Retry-After": after});
        }
        all.insert(status.to_string(), answer);
    }
    Value::Object(all)
}

/// Its own, and those that it has because of what it is.
fn codes_of(operation: &Operation, guarded: bool) -> Vec<&'static str> {
    let mut codes = operation.codes.clone();
    if guarded {
        codes.extend(["unauthorised", "forbidden"]);
    }
    // Whatever shows much may find no memory for it.
    if guarded && operation.stored && operation.method == Method::GET {
        codes.push("memoryFull");
    }
    if operation.path.contains('{') && !operation.path.starts_with("/in/") {
        codes.extend(["badRequest", "notFound"]);
    }
    if operation.path.starts_with("/in/") {
        codes.push("badRequest");
    }
    if operation.takes.iter().any(|(kind, _)| *kind == "application/json") {
        codes.extend(["badRequest", "notJson", "tooLarge"]);
    }
    if operation.stored {
        codes.extend(STORE);
    }
    codes
}

/// What the store may say.
const STORE: [&str; 4] = ["store", "busy", "full", "damaged"];

fn good(gives: &Gives) -> Value {
    let Gives { status, kind, schema, enveloped, versioned } = gives;
    let schema = if *enveloped {
        let word = word(if *status == 202 { "accepted" } else { "ok" });
        shown(vec![
            need("status", word),
            need("data", schema.clone()),
            need("message", nothing()),
            need("traceId", text().says("By which the hub's log knows the request")),
        ])
    } else {
        schema.clone()
    };
    let said = match status {
        201 => "It is new",
        202 => "Accepted: it is on the disk",
        _ => "Done",
    };
    let mut answer = json!({"description": said, "content": {*kind: {"schema": schema.into_value()}}});
    if *versioned {
        let tag = json!({"description": "Its version, in quotes: for `If-Match`", "required": true, "schema": {"type": "string"}});
        answer["headers"] = json!({"ETag": tag});
    }
    answer
}
