//! The description is whole, fits itself, and is what is checked in; and the hub does what it says.

mod agreement;
mod answers;
mod compatible;
mod pages;
mod validate;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::components::Components;
use super::document::document;
use super::proxy;
use crate::http::routes;
use seawall_api::ERRORS;
use validate::{Unknown, problems};

/// API-1: the description that is checked in is the one that the code makes. `cargo xtask reference` writes it anew.
#[test]
fn api_1_the_description_that_is_checked_in_is_the_one_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let made = document();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{made:#}\n")).unwrap();
    }
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert!(
        kept == made,
        "docs/openapi.json is not what the code makes; `cargo xtask reference` writes it anew"
    );
}

/// API-1: every route is described, and nothing that is no route.
#[test]
fn api_1_every_route_is_described_and_nothing_else() {
    let guarded = routes::routes().into_iter().map(|route| format!("{} {}", route.method, route.path));
    let open = routes::open().into_iter().map(|route| format!("{} {}", route.method, route.path));
    let routes: BTreeSet<String> = guarded.chain(open).collect();
    for route in routes::routes().into_iter().chain(routes::open()) {
        assert!(!route.gives.is_empty(), "{} {} says what it returns", route.method, route.path);
        let takes = !route.takes.is_empty();
        assert!(
            takes || !matches!(route.method.as_str(), "PUT" | "PATCH"),
            "{} says what it takes",
            route.path
        );
    }
    let document = document();
    let mut described = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if path == proxy::PATH {
                // It is no route; the gateway takes what begins so before the router sees it.
                assert!(crate::gateway::Gateway::is_for(path), "{path}");
                assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
                continue;
            }
            described.insert(format!("{} {path}", method.to_ascii_uppercase()));
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
        }
    }
    assert_eq!(described, routes);
    assert_eq!(document["paths"][proxy::PATH].as_object().unwrap().len(), 7, "every method of the proxy");
}

fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| walk(value, visit)),
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

/// API-1: every reference leads somewhere, and every shape is used.
#[test]
fn api_1_every_reference_leads_to_a_shape_and_every_shape_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    walk(&document, &mut |value| {
        if let Some(name) = value["$ref"].as_str() {
            assert!(document.pointer(&name[1..]).is_some(), "{name} leads nowhere");
            used.insert(name.rsplit('/').next().unwrap().to_owned());
        }
    });
    let shapes: BTreeSet<String> =
        document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(used, shapes);
}

/// API-1: every example is one. What comes in has one each, so that a page can offer it.
#[test]
fn api_1_every_example_fits_its_schema() {
    let document = document();
    let mut wrong = Vec::new();
    let mut count = 0;
    walk(&document["components"]["schemas"], &mut |schema| {
        for example in schema["examples"].as_array().into_iter().flatten() {
            count += 1;
            wrong.extend(problems(&document, schema, example, Unknown::Refused));
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    for operation in routes::routes() {
        let mut components = Components::new();
        for (_, schema) in &operation.takes {
            let schema = schema.value(&mut components, &operation.method);
            let Some(name) = schema["$ref"].as_str() else { continue };
            assert!(document.pointer(&name[1..]).unwrap()["examples"].is_array(), "{name} has no example");
        }
    }
    assert!(count > 20, "{count}");
}

/// API-1: the validator of these tests finds what is wrong. A check that has never failed proves nothing.
#[test]
fn api_1_what_does_not_fit_is_found() {
    let document = document();
    let service = &document["components"]["schemas"]["ServiceSpec"];
    let wrong = |value: Value, unknown| problems(&document, service, &value, unknown).join("; ");
    let good =
        serde_json::json!({"name": "a", "address": "http://a", "auth": {"type": "bearer", "secret": "s"}});
    assert_eq!(wrong(good.clone(), Unknown::Refused), "");
    for (field, value) in [
        ("name", serde_json::json!(7)),
        ("name", Value::Null),
        ("nmae", serde_json::json!("a")),
        ("paused", serde_json::json!("yes")),
        ("auth", serde_json::json!({"type": "bearer"})),
        ("auth", serde_json::json!({"type": "magic", "secret": "s"})),
        ("headers", serde_json::json!({"a": 1})),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert_ne!(wrong(bad.clone(), Unknown::Allowed), "", "{bad}");
    }
    let key = &document["components"]["schemas"]["Deleted"];
    let more = serde_json::json!({"name": "a", "deleted": true, "more": 1});
    assert_eq!(problems(&document, key, &more, Unknown::Allowed), [""; 0]);
    assert_eq!(problems(&document, key, &more, Unknown::Refused), ["$.more: it is not described"]);
}

/// API-1: a code has one meaning, and every one says what to do. Every answer of the hub is checked against the list where it
/// is made.
#[test]
fn api_1_every_code_of_an_error_has_a_remedy() {
    for (at, entry) in ERRORS.iter().enumerate() {
        assert!(!entry.meaning.ends_with('.') && !entry.remedy.ends_with('.') && entry.remedy.len() > 10);
        let again = ERRORS[..at].iter().any(|other| (other.code, other.status) == (entry.code, entry.status));
        assert!(!again, "{} stands there twice", entry.code);
    }
    assert!(ERRORS.is_sorted_by_key(|entry| entry.status));
}
