//! As much of JSON Schema as the description uses. Patterns and formats are left to those who read it from outside.

use serde_json::Value;

/// Whether a field that is in no list is a mistake, also where the schema leaves room for what later versions add.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    Allowed,
    Refused,
}

const KNOWN: [&str; 22] = [
    "readOnly",
    "writeOnly",
    "$ref",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "oneOf",
    "anyOf",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "description",
    "examples",
];

/// Everything that is wrong with a value.
pub(super) fn problems(document: &Value, schema: &Value, value: &Value, unknown: Unknown) -> Vec<String> {
    let mut found = Vec::new();
    Check { document, unknown }.check(schema, value, "$", &mut found);
    found
}

struct Check<'a> {
    document: &'a Value,
    unknown: Unknown,
}

impl Check<'_> {
    fn check(&self, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
        let Some(words) = schema.as_object() else { return out.push(format!("{place}: no schema")) };
        for word in words.keys().filter(|word| !KNOWN.contains(&word.as_str()) && *word != "default") {
            out.push(format!("{place}: nobody here knows `{word}`"));
        }
        if let Some(name) = schema["$ref"].as_str() {
            let target = name.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
            match target {
                Some(target) => self.check(target, value, place, out),
                None => out.push(format!("{place}: `{name}` leads nowhere")),
            }
        }
        self.check_kind(schema, value, place, out);
        self.check_choices(schema, value, place, out);
        self.check_bounds(schema, value, place, out);
        self.check_fields(schema, value, place, out);
        if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
            for (at, value) in values.iter().enumerate() {
                self.check(items, value, &format!("{place}[{at}]"), out);
            }
        }
    }

    fn check_kind(&self, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        let fits = |kind: &&str| match *kind {
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        };
        if !kinds.iter().any(fits) {
            out.push(format!("{place}: {value} is not {}", kinds.join(" or ")));
        }
    }

    fn check_choices(&self, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            out.push(format!("{place}: {value} is none of {}", schema["enum"]));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            out.push(format!("{place}: {value} is not {}", schema["const"]));
        }
        for (word, exactly_one) in [("oneOf", true), ("anyOf", false)] {
            let Some(choices) = schema[word].as_array() else { continue };
            let tried: Vec<Vec<String>> =
                choices.iter().map(|one| problems(self.document, one, value, self.unknown)).collect();
            let fitting = tried.iter().filter(|problems| problems.is_empty()).count();
            if fitting == 0 || (exactly_one && fitting > 1) {
                out.push(format!("{place}: {fitting} of {} choices fit: {tried:?}", choices.len()));
            }
        }
    }

    fn check_bounds(&self, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
        let length = value.as_str().map(|text| text.chars().count() as f64);
        let items = value.as_array().map(|items| items.len() as f64);
        for (least, most, size) in [
            ("minimum", "maximum", value.as_f64()),
            ("minLength", "maxLength", length),
            ("minItems", "maxItems", items),
        ] {
            let Some(size) = size else { continue };
            if schema[least].as_f64().is_some_and(|least| size < least)
                || schema[most].as_f64().is_some_and(|most| size > most)
            {
                out.push(format!("{place}: {value} is out of bounds"));
            }
        }
    }

    fn check_fields(&self, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
        let Some(fields) = value.as_object() else { return };
        for needed in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(needed) {
                out.push(format!("{place}.{needed}: it is missing"));
            }
        }
        for (name, value) in fields {
            let place = format!("{place}.{name}");
            let closed = || self.unknown == Unknown::Refused && schema["properties"].is_object();
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                (Some(field), _) => self.check(field, value, &place, out),
                (None, Some(Value::Bool(false))) => out.push(format!("{place}: no such field")),
                (None, Some(more)) => self.check(more, value, &place, out),
                (None, None) if closed() => out.push(format!("{place}: it is not described")),
                (None, None) => {}
            }
        }
    }
}
