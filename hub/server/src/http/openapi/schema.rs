//! Small words to say what a value looks like: JSON Schema, as OpenAPI 3.1 has it.

use serde_json::{Map, Value, json};

/// A JSON schema.
#[derive(Clone)]
pub(crate) struct Schema(Value);

/// A field of an object.
pub(crate) struct Field {
    name: &'static str,
    schema: Schema,
    needed: bool,
}

/// A required field.
pub(crate) fn need(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, needed: true }
}

/// An optional field.
pub(crate) fn may(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, needed: false }
}

pub(crate) fn text() -> Schema {
    Schema(json!({"type": "string"}))
}

/// A string that matches a pattern.
pub(crate) fn pattern(pattern: &str) -> Schema {
    Schema(json!({"type": "string", "pattern": pattern}))
}

/// A string in a named format.
pub(crate) fn format(format: &str) -> Schema {
    Schema(json!({"type": "string", "format": format}))
}

/// One of these words.
pub(crate) fn words(words: &[&str]) -> Schema {
    Schema(json!({"type": "string", "enum": words}))
}

/// Exactly this string.
pub(crate) fn word(word: &str) -> Schema {
    Schema(json!({"type": "string", "const": word}))
}

/// A time by RFC 3339.
pub(crate) fn time() -> Schema {
    Schema(json!({"type": "string", "format": "date-time"}))
}

/// An integer within these bounds.
pub(crate) fn between(least: u64, most: u64) -> Schema {
    Schema(json!({"type": "integer", "minimum": least, "maximum": most}))
}

pub(crate) fn switch() -> Schema {
    Schema(json!({"type": "boolean"}))
}

/// A schema that accepts any value.
pub(crate) fn any() -> Schema {
    Schema(json!({}))
}

pub(crate) fn list(of: Schema) -> Schema {
    let mut schema = Schema(json!({"type": "array"}));
    schema.set("items", of.0);
    schema
}

/// A reference to a named schema.
pub(crate) fn shape(name: &str) -> Schema {
    Schema(json!({"$ref": format!("#/components/schemas/{name}")}))
}

/// An object in a response. Later versions may add fields, which clients should ignore.
pub(crate) fn shown(fields: Vec<Field>) -> Schema {
    let needed: Vec<&str> = fields.iter().filter(|field| field.needed).map(|field| field.name).collect();
    let mut schema = json!({"type": "object"});
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    let all: Map<String, Value> =
        fields.into_iter().map(|field| (field.name.to_owned(), field.schema.0)).collect();
    schema["properties"] = Value::Object(all);
    Schema(schema)
}

impl Schema {
    /// Sets the description.
    pub(crate) fn says(mut self, meaning: &str) -> Self {
        self.set("description", json!(meaning));
        self
    }

    /// Sets an example.
    pub(crate) fn like(mut self, example: Value) -> Self {
        self.set("examples", Value::Array(vec![example]));
        self
    }

    /// Sets the maximum length.
    pub(crate) fn longest(mut self, most: usize) -> Self {
        self.set("maxLength", json!(most));
        self
    }

    /// Requires a string that is not empty.
    pub(crate) fn not_empty(mut self) -> Self {
        self.set("minLength", json!(1));
        self
    }

    /// Allows null too.
    pub(crate) fn or_null(mut self) -> Self {
        let Some(object) = self.0.as_object_mut().filter(|object| !object.is_empty()) else { return self };
        if let Some(kind) = object.get("type").filter(|kind| kind.is_string()).cloned() {
            object.insert("type".into(), json!([kind, "null"]));
            if let Some(words) = object.get_mut("enum").and_then(Value::as_array_mut) {
                words.push(Value::Null);
            }
            return self;
        }
        match object.contains_key("$ref") || object.contains_key("oneOf") {
            true => Schema(json!({"anyOf": [self.0, {"type": "null"}]})),
            false => self,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        self.0
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(object) = self.0.as_object_mut() {
            object.insert(name.to_owned(), value);
        }
    }
}
