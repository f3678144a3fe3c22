//! API-2: within version 1 things are only added.
//!
//! `docs/openapi-v1.json` is the description that clients were built on. Whatever worked then works now: no route, parameter,
//! field, word or answer is gone, nothing is newly required, and nothing that was accepted is refused. Descriptions and the
//! names of components may change.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::super::document::document;

/// What was taken away or narrowed on purpose, each with its reason in CHANGELOG.md.
const CORRECTIONS: &[&str] =
    &["get /api/v1/registry/sources 200.data.items.verify.secrets: it is not always there now"];

/// Which way a value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// A client writes it: what was accepted still is.
    Request,
    /// A client reads it: what was there still is.
    Response,
}

/// Two descriptions, and what the later one takes away.
struct Comparison<'a> {
    before: &'a Value,
    after: &'a Value,
    /// Pairs of components that were compared, so that a type may contain itself.
    seen: BTreeSet<(String, String, bool)>,
    problems: Vec<String>,
}

impl<'a> Comparison<'a> {
    fn run(before: &'a Value, after: &'a Value) -> Vec<String> {
        let mut comparison = Comparison { before, after, seen: BTreeSet::new(), problems: Vec::new() };
        for (path, methods) in members(&before["paths"]) {
            for (method, operation) in members(methods) {
                let (at, now) = (format!("{method} {path}"), &after["paths"][path][method]);
                if now.is_null() {
                    comparison.problems.push(format!("{at}: it is gone"));
                } else {
                    comparison.operation(&at, operation, now);
                }
            }
        }
        comparison.errors();
        comparison.problems
    }

    /// Clients act on codes, and on whether another attempt can help.
    fn errors(&mut self) {
        let list = |all: &'a Value| all["x-errors"].as_array().into_iter().flatten();
        for error in list(self.before) {
            let code = &error["code"];
            let is_same =
                |now: &&Value| ["code", "status", "retryable"].iter().all(|part| now[part] == error[part]);
            if !list(self.after).any(|now| is_same(&now)) {
                self.problems.push(format!("the error {code} is gone or means something else"));
            }
        }
    }

    fn operation(&mut self, at: &str, before: &'a Value, after: &'a Value) {
        self.parameters(at, before, after);
        let body = "requestBody";
        for (kind, content) in members(&resolve(self.before, &before[body])["content"]) {
            let now = &resolve(self.after, &after[body])["content"][kind]["schema"];
            self.schema(&format!("{at} {kind}"), &content["schema"], now, Direction::Request);
        }
        if !is_true(&before[body]["required"]) && is_true(&after[body]["required"]) {
            self.problems.push(format!("{at}: a body is required now"));
        }
        for (status, response) in members(&before["responses"]) {
            let now = resolve(self.after, &after["responses"][status]);
            if now.is_null() {
                self.problems.push(format!("{at}: no answer {status} any more"));
                continue;
            }
            for (kind, content) in members(&resolve(self.before, response)["content"]) {
                let schema = &now["content"][kind]["schema"];
                self.schema(&format!("{at} {status}"), &content["schema"], schema, Direction::Response);
            }
        }
    }

    fn parameters(&mut self, at: &str, before: &'a Value, after: &'a Value) {
        let list = |all, operation: &'a Value| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters.map(move |parameter| resolve(all, parameter)).collect::<Vec<_>>()
        };
        let name = |parameter: &Value| format!("{} {}", parameter["in"], parameter["name"]);
        let (old, new) = (list(self.before, before), list(self.after, after));
        for parameter in &old {
            match new.iter().find(|now| name(now) == name(parameter)) {
                Some(now) => {
                    let at = format!("{at} parameter {}", name(parameter));
                    self.schema(&at, &parameter["schema"], &now["schema"], Direction::Request);
                }
                None => self.problems.push(format!("{at}: the parameter {} is gone", name(parameter))),
            }
        }
        let was_required = |now: &Value| {
            old.iter().any(|parameter| name(parameter) == name(now) && is_true(&parameter["required"]))
        };
        for now in new.iter().filter(|now| is_true(&now["required"]) && !was_required(now)) {
            self.problems.push(format!("{at}: the parameter {} is required now", name(now)));
        }
    }

    fn schema(&mut self, at: &str, before: &Value, after: &Value, direction: Direction) {
        let names = (before["$ref"].as_str(), after["$ref"].as_str());
        if let (Some(before), Some(after)) = names
            && !self.seen.insert((before.to_owned(), after.to_owned(), direction == Direction::Request))
        {
            return;
        }
        let (before, after) = (&*flat(self.before, before), &*flat(self.after, after));
        if after.is_null() && !before.is_null() {
            self.problems.push(format!("{at}: it is gone"));
            return;
        }
        // What was null at times and never is any more takes nothing away.
        if let ([inner, null], true) =
            (before["anyOf"].as_array().map_or(&[][..], Vec::as_slice), after["anyOf"].is_null())
            && direction == Direction::Response
            && null["type"] == "null"
        {
            return self.schema(at, inner, after, direction);
        }
        self.words(at, before, after, direction);
        for (name, property) in members(&before["properties"]) {
            let now = &after["properties"][name];
            // A name of a map that has no list of names is still a name.
            if !now.is_null() || !after["properties"].is_null() {
                self.schema(&format!("{at}.{name}"), property, now, direction);
            }
        }
        let (had, has) = (texts(&before["required"]), texts(&after["required"]));
        let (less, more) = match direction {
            Direction::Request => (&has, &had),
            Direction::Response => (&had, &has),
        };
        for name in less.difference(more) {
            let what = if direction == Direction::Request { "required now" } else { "not always there now" };
            self.problems.push(format!("{at}.{name}: it is {what}"));
        }
        for part in ["items", "additionalProperties"] {
            if before[part].is_object() {
                self.schema(&format!("{at}.{part}"), &before[part], &after[part], direction);
            }
        }
        for part in ["oneOf", "anyOf", "allOf"] {
            let (old, new) = (before[part].as_array(), after[part].as_array());
            let (old, new) = (old.map_or(&[][..], Vec::as_slice), new.map_or(&[][..], Vec::as_slice));
            if old.len() > new.len() {
                self.problems.push(format!("{at}: {part} has {} cases, and had {}", new.len(), old.len()));
            }
            for (number, (old, new)) in old.iter().zip(new).enumerate() {
                self.schema(&format!("{at} {part}[{number}]"), old, new, direction);
            }
        }
    }

    /// Types, words and bounds.
    fn words(&mut self, at: &str, before: &Value, after: &Value, direction: Direction) {
        let types = |schema: &Value| match &schema["type"] {
            Value::String(one) => BTreeSet::from([one.clone()]),
            many => texts(many),
        };
        for (what, had, has) in
            [("type", types(before), types(after)), ("word", texts(&before["enum"]), texts(&after["enum"]))]
        {
            // Nothing said is everything allowed.
            let is_open = |set: &BTreeSet<String>| set.is_empty();
            let gone: Vec<_> = match direction {
                Direction::Request if is_open(&has) => Vec::new(),
                Direction::Request if is_open(&had) => vec!["any".to_owned()],
                Direction::Request => had.difference(&has).cloned().collect(),
                // A client of answers has to expect words that it does not know; a type it can't.
                Direction::Response if what == "word" || is_open(&had) => Vec::new(),
                Direction::Response if is_open(&has) => vec!["a bound".to_owned()],
                Direction::Response => {
                    has.difference(&had).map(|new| format!("only what it was: {new}")).collect()
                }
            };
            for gone in gone {
                self.problems.push(format!("{at}: the {what} {gone} is gone"));
            }
        }
        for (bound, is_upper) in [
            ("maxLength", true),
            ("maximum", true),
            ("maxItems", true),
            ("minLength", false),
            ("minimum", false),
            ("minItems", false),
        ] {
            let (had, has) = (before[bound].as_f64(), after[bound].as_f64());
            let is_narrower = match (had, has) {
                (Some(had), Some(has)) => (is_upper && has < had) || (!is_upper && has > had),
                (None, Some(_)) => true,
                _ => false,
            };
            if direction == Direction::Request && is_narrower {
                self.problems.push(format!("{at}: {bound} is narrower"));
            }
        }
        for rule in ["pattern", "format", "const"] {
            if direction == Direction::Request && before[rule] != after[rule] && !after[rule].is_null() {
                self.problems.push(format!("{at}: its {rule} is another"));
            }
        }
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn texts(value: &Value) -> BTreeSet<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| text.as_str().map_or_else(|| text.to_string(), str::to_owned))
        .collect()
}

fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}

/// What a reference points to, or the value itself.
fn resolve<'a>(all: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(name) => all.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null),
        None => value,
    }
}

/// The same, and an object or null in one schema: there are two ways to write that.
fn flat<'a>(all: &'a Value, value: &'a Value) -> Cow<'a, Value> {
    let value = resolve(all, value);
    match value["anyOf"].as_array().map_or(&[][..], Vec::as_slice) {
        [inner, null] if null["type"] == "null" && resolve(all, inner)["type"] == "object" => {
            let mut inner = resolve(all, inner).clone();
            inner["type"] = json!(["object", "null"]);
            Cow::Owned(inner)
        }
        _ => Cow::Borrowed(value),
    }
}

/// API-2: whatever a client of version 1 does still works.
#[test]
fn api_2_nothing_of_version_1_is_gone_or_narrower() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi-v1.json");
    let version_1: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut problems = Comparison::run(&version_1, &document());
    problems.retain(|problem| !CORRECTIONS.contains(&problem.as_str()));
    assert!(problems.is_empty(), "clients of version 1 would break:\n{}", problems.join("\n"));
}

/// API-2: the comparison finds what it is for, and lets additions and other names pass.
#[test]
fn api_2_what_is_gone_or_narrower_is_found() {
    let with = |schema: Value, response: Value| {
        json!({
            "components": {"schemas": {"Service": schema, "View": response}},
            "x-errors": [{"code": "notJson", "status": 400, "retryable": false}],
            "paths": {"/services": {"post": {
                "parameters": [{"in": "query", "name": "dry", "schema": {"type": "boolean"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Service"}}}},
                "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/View"}}}}},
            }}},
        })
    };
    let input = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 60}, "mode": {"type": "string", "enum": ["sync", "async"]}}});
    let view = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "state": {"type": "string", "enum": ["open"]}}});
    let before = with(input.clone(), view.clone());
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut after = before.clone();
        change(&mut after);
        Comparison::run(&before, &after)
    };
    let schema = |after: &mut Value, name: &str, path: &str, value: Value| {
        *after["components"]["schemas"][name].pointer_mut(path).unwrap() = value;
    };
    assert_eq!(changed(&|_| {}), Vec::<String>::new());
    assert_eq!(
        changed(&|after| {
            schema(after, "Service", "/properties/mode/enum", json!(["sync", "async", "later"]));
            schema(after, "View", "/properties/state/enum", json!(["open", "closed"]));
            after["components"]["schemas"]["View"]["properties"]["more"] = json!({"type": "string"});
            after["components"]["schemas"]["Service"]["properties"]["more"] = json!({"type": "string"});
        }),
        Vec::<String>::new(),
        "additions pass"
    );
    type Break<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let breaks: [Break<'_>; 10] = [
        (&|after| after["x-errors"][0]["status"] = json!(422), "notJson"),
        (&|after| after["paths"]["/services"] = json!({}), "post /services: it is gone"),
        (&|after| after["paths"]["/services"]["post"]["parameters"] = json!([]), "the parameter"),
        (
            &|after| schema(after, "Service", "/required", json!(["name", "mode"])),
            ".mode: it is required now",
        ),
        (
            &|after| schema(after, "Service", "/properties/mode/enum", json!(["sync"])),
            "the word async is gone",
        ),
        (&|after| schema(after, "Service", "/properties/name/maxLength", json!(30)), "maxLength is narrower"),
        (
            &|after| schema(after, "Service", "/properties/name/type", json!("integer")),
            "the type string is gone",
        ),
        (&|after| schema(after, "View", "/required", json!([])), ".name: it is not always there now"),
        (
            &|after| schema(after, "View", "/properties", json!({"name": {"type": "string"}})),
            ".state: it is gone",
        ),
        (
            &|after| schema(after, "View", "/properties/name/type", json!(["string", "null"])),
            "only what it was: null",
        ),
    ];
    for (change, expected) in breaks {
        let problems = changed(change);
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
    }
}
