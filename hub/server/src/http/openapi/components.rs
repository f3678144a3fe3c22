//! The named schemas of requests and responses, derived from the wire types.

use std::collections::BTreeSet;

use axum::http::Method;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::shape::{response_schema, spread};

const PATH: &str = "/components/schemas";

/// Formats that the outside knows. The others name parsers of the hub.
const STANDARD_FORMATS: [&str; 3] = ["date-time", "uri", "uri-reference"];
/// What the hub's reader and its forms take from a schema.
const PRIVATE: [&str; 6] = ["x-always", "x-empty", "x-form", "x-ignored", "x-merge", "x-required"];

/// Collects the schemas of the types that it is asked for.
pub(crate) struct Components {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
    /// What is made of the definition of a request for each method, with its read-only fields.
    variants: Map<String, Value>,
    /// The definitions that variants were made of.
    bases: BTreeSet<String>,
}

impl Components {
    pub(crate) fn new() -> Self {
        let settings =
            || SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = PATH.into());
        Components {
            requests: settings().for_deserialize().into_generator(),
            responses: settings().for_serialize().into_generator(),
            variants: Map::new(),
            bases: BTreeSet::new(),
        }
    }

    /// The schema of a response, or a reference to it.
    pub(crate) fn response<T: JsonSchema>(&mut self) -> Value {
        let mut schema = self.responses.subschema_for::<T>().into();
        respond(&mut schema);
        schema
    }

    /// The schema of a request that writes an `S` and may contain what is returned as a `V`.
    pub(crate) fn request<S: JsonSchema, V: JsonSchema>(&mut self, method: &Method) -> Value {
        let mut schema: Value = self.requests.subschema_for::<S>().into();
        let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(ToOwned::to_owned);
        let Some(name) = name else {
            request(&mut schema);
            return schema;
        };
        let suffix = match *method {
            Method::PUT => "Replacement",
            Method::PATCH => "Change",
            _ => "",
        };
        let named = format!("{}{suffix}", input_name(&name));
        self.bases.insert(input_name(&name));
        let mut schema = self.requests.definitions().get(&name).cloned().unwrap_or_default();
        for name in schema["x-ignored"].as_array().cloned().into_iter().flatten() {
            read_only(&mut schema, name.as_str().unwrap_or_default(), &Value::Null);
        }
        let (view, own) = (response_schema::<V>(), schema.clone());
        for (name, field) in fields_of(&view) {
            if !fields_of(&own).any(|(own, _)| own == name) {
                read_only(&mut schema, name, field);
            }
        }
        match *method {
            Method::PUT => {
                if let Some(required) = schema["required"].as_array_mut() {
                    required.retain(|field| field != "name");
                }
            }
            Method::PATCH => {
                schema.as_object_mut().map(|schema| schema.remove("required"));
                unite(&mut schema);
            }
            _ => {}
        }
        request(&mut schema);
        self.variants.insert(named.clone(), schema);
        reference(&named)
    }

    /// All schemas by name.
    pub(crate) fn finish(mut self) -> Map<String, Value> {
        let mut all = self.responses.take_definitions(true);
        all.values_mut().for_each(respond);
        for (name, mut schema) in self.requests.take_definitions(true) {
            request(&mut schema);
            all.insert(input_name(&name), schema);
        }
        // Nobody sends a type itself of which there are only variants, unless another type contains it.
        let text = Value::Object(all.clone()).to_string();
        all.retain(|name, _| {
            !self.bases.contains(name)
                || self.variants.contains_key(name)
                || text.contains(&format!("\"#{PATH}/{name}\""))
        });
        all.extend(self.variants);
        all
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#{PATH}/{name}")})
}

/// The name of a type in a request. In a response the same type may have more fields.
fn input_name(name: &str) -> String {
    let is_input =
        ["Spec", "Input", "Request", "Query", "Reason", "Replacement"].iter().any(|end| name.ends_with(end));
    if is_input { name.to_owned() } else { format!("{name}Input") }
}

/// The fields of an object and of its cases.
fn fields_of(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let cases = schema["oneOf"].as_array().into_iter().flatten();
    std::iter::once(schema).chain(cases).flat_map(|case| case["properties"].as_object().into_iter().flatten())
}

/// Makes one object of its cases: a change names some fields of the case that is there.
fn unite(schema: &mut Value) {
    let Some(Value::Array(cases)) = schema.as_object_mut().and_then(|words| words.remove("oneOf")) else {
        return;
    };
    for case in cases.iter().filter(|case| case["readOnly"] != true) {
        for (name, field) in fields_of(case) {
            let united = &mut schema["properties"][name];
            match (field.get("const"), united["enum"].as_array_mut()) {
                (Some(word), Some(words)) => words.push(word.clone()),
                (Some(word), None) => *united = json!({"type": "string", "enum": [word]}),
                (None, _) => *united = field.clone(),
            }
        }
    }
}

/// Adds a field that is ignored if a client writes back what it has read.
fn read_only(schema: &mut Value, name: &str, field: &Value) {
    let Some(fields) = schema["properties"].as_object_mut().filter(|fields| !fields.contains_key(name))
    else {
        return;
    };
    let field = match name {
        "version" if !field.is_null() => json!({
            "type": field["type"], "minimum": 0, "description": "Expected version; `If-Match` takes precedence",
        }),
        _ => json!({"description": "Read-only; ignored"}),
    };
    fields.insert(name.to_owned(), field);
}

/// Makes a schema say what a request may contain: no unknown field, and null in place of an omitted one.
fn request(schema: &mut Value) {
    spread(schema);
    let Some(words) = schema.as_object_mut() else { return };
    if let Some(Value::Array(cases)) = words.get_mut("oneOf") {
        cases.retain(|case| case["readOnly"] != true);
        *cases = joined(std::mem::take(cases));
    }
    if let Some(name) = words.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next()) {
        words.insert("$ref".into(), reference(&input_name(name))["$ref"].clone());
    }
    if words.remove("x-shape").is_some_and(|shape| shape == "replacement")
        && let Some(Value::String(name)) = words.get_mut("anyOf").and_then(|cases| cases[0].get_mut("$ref"))
    {
        name.push_str("Replacement");
    }
    plain(words);
    let required = words.get("required").cloned().unwrap_or_default();
    if let Some(Value::Object(fields)) = words.get_mut("properties") {
        for (name, field) in fields.iter_mut() {
            let is_required = required.as_array().is_some_and(|all| all.contains(&json!(name)));
            match field["x-null"].as_bool().unwrap_or(!is_required) {
                true => nullable(field),
                false => never_null(field),
            }
            field.as_object_mut().map(|field| field.remove("x-null"));
        }
        words.entry("additionalProperties").or_insert(json!(false));
    }
    inner(words, request);
}

/// Joins neighbouring cases that differ in nothing but the word of their tag.
fn joined(cases: Vec<Value>) -> Vec<Value> {
    fn split(case: &Value) -> Option<(String, Value, Value)> {
        let fields = case["properties"].as_object()?;
        let (tag, word) =
            fields.iter().find_map(|(name, field)| Some((name.clone(), field.get("const")?.clone())))?;
        let mut rest = case.clone();
        rest["properties"][&tag] = Value::Null;
        // Neither descriptions nor labels make a difference.
        let described = |field: &mut Value| {
            for name in ["description", "x-form"] {
                field.as_object_mut().map(|field| field.remove(name));
            }
        };
        described(&mut rest);
        rest["properties"].as_object_mut()?.values_mut().for_each(described);
        Some((tag, word, rest))
    }
    let mut all: Vec<Value> = Vec::new();
    let mut before: Option<Value> = None;
    for case in cases {
        let Some((tag, word, rest)) = split(&case) else {
            all.push(case);
            continue;
        };
        match all.last_mut().filter(|_| before.as_ref() == Some(&rest)) {
            Some(last) => {
                last.as_object_mut().map(|last| last.remove("description"));
                let field = &mut last["properties"][&tag];
                let first = field.as_object_mut().and_then(|field| field.remove("const"));
                let mut words = field["enum"].as_array().cloned().unwrap_or_default();
                words.extend(first.into_iter().chain([word]));
                field["enum"] = words.into();
            }
            None => all.push(case),
        }
        before = Some(rest);
    }
    all
}

/// Makes a schema say what a response contains. Later versions may add fields.
fn respond(schema: &mut Value) {
    // A response always has it, though a request may omit it.
    if schema["x-always"] == true {
        never_null(schema);
    }
    spread(schema);
    let Some(words) = schema.as_object_mut() else { return };
    plain(words);
    words.remove("x-null");
    words.remove("readOnly");
    words.remove("writeOnly");
    let required = words.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|all| all.iter().any(|field| field == name));
    for (name, field) in words.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        // What may be absent is absent, and not null.
        if !is_required(name) && field["x-null"] != true {
            never_null(field);
        }
    }
    // A view has the examples of the specification in it, which lack what only the hub knows.
    let is_whole = |example: &Value| {
        required
            .as_array()
            .into_iter()
            .flatten()
            .all(|name| name.as_str().is_some_and(|name| !example[name].is_null()))
    };
    if words.get("examples").is_some_and(|all| !all.as_array().into_iter().flatten().all(is_whole)) {
        words.remove("examples");
    }
    // The tag, and what else every case has, is there whatever the case.
    let cases = words.get("oneOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let Some(first) =
        cases.first().filter(|case| fields_of(case).any(|(_, field)| field.get("const").is_some()))
    {
        let mut common = first["required"].as_array().cloned().unwrap_or_default();
        common.retain(|name| {
            cases.iter().all(|case| case["required"].as_array().is_some_and(|all| all.contains(name)))
        });
        words.insert("type".into(), json!("object"));
        words.insert("required".into(), common.into());
    }
    inner(words, respond);
}

/// Makes the schema of a field say what a query may contain.
pub(super) fn parameter(schema: &mut Value) {
    never_null(schema);
    if let Some(words) = schema.as_object_mut() {
        plain(words);
        inner(words, parameter);
    }
}

/// Removes what only the hub understands, and what says nothing.
fn plain(words: &mut Map<String, Value>) {
    for name in PRIVATE {
        words.remove(name);
    }
    let format = words.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !STANDARD_FORMATS.contains(&format)) {
        words.remove("format");
    }
    if words.get("default").is_some_and(|value| value.is_null() || value.is_object() || value.is_array()) {
        words.remove("default");
    }
    if let Some([word]) = words.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        let word = word.clone();
        words.remove("enum");
        words.insert("const".into(), word);
    }
}

fn inner(words: &mut Map<String, Value>, change: fn(&mut Value)) {
    for name in ["items", "additionalProperties"] {
        words.get_mut(name).into_iter().for_each(|inner| any_or(inner, change));
    }
    for name in ["oneOf", "anyOf", "allOf"] {
        words.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
    }
    for (_, field) in words.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        any_or(field, change);
    }
}

/// Changes a schema. One that accepts any value is written as an empty one.
fn any_or(schema: &mut Value, change: fn(&mut Value)) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        schema => change(schema),
    }
}

/// Allows no null any more.
fn never_null(schema: &mut Value) {
    if let [inner, null] = schema["anyOf"].as_array().map_or(&[][..], Vec::as_slice)
        && null["type"] == "null"
    {
        *schema = inner.clone();
    }
    let Some(words) = schema.as_object_mut() else { return };
    if let Some([kind, _]) = words.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let kind = kind.clone();
        words.insert("type".into(), kind);
    }
    if let Some(Value::Array(words)) = words.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
}

/// Allows null too.
fn nullable(schema: &mut Value) {
    let Some(words) = schema.as_object_mut().filter(|words| !words.is_empty()) else { return };
    // One word becomes a constant, which null is not.
    let has_one_word = words.get("enum").and_then(Value::as_array).is_some_and(|words| words.len() == 1);
    match words.get("type").cloned() {
        Some(Value::String(kind)) if !has_one_word => {
            words.insert("type".into(), json!([kind, "null"]));
            if let Some(Value::Array(words)) = words.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        kind if has_one_word
            || (kind.is_none() && (words.contains_key("$ref") || words.contains_key("oneOf"))) =>
        {
            let described = words.remove("description");
            let inner = std::mem::take(schema);
            *schema = json!({"anyOf": [inner, {"type": "null"}]});
            if let Some(described) = described {
                schema["description"] = described;
            }
        }
        _ => {}
    }
}
