//! Small words to say what a value looks like: JSON Schema, as OpenAPI 3.1 has it.

use serde_json::{Map, Value, json};

/// What a value looks like.
#[derive(Clone)]
pub(super) struct Schema(Value);

/// A field of an object.
pub(super) struct Field {
    name: &'static str,
    schema: Schema,
    needed: bool,
    /// Whether null is the same as leaving it out, in what comes in.
    nullable: bool,
}

/// A field that is always there.
pub(super) fn need(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, needed: true, nullable: false }
}

/// A field that may be left out.
pub(super) fn may(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, needed: false, nullable: true }
}

/// A field that may be left out, and is not null.
pub(super) fn may_say(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, needed: false, nullable: false }
}

pub(super) fn text() -> Schema {
    Schema(json!({"type": "string"}))
}

/// A text that looks like this.
pub(super) fn pattern(pattern: &str) -> Schema {
    Schema(json!({"type": "string", "pattern": pattern}))
}

/// A text that is written as the standard of this name says.
pub(super) fn format(format: &str) -> Schema {
    Schema(json!({"type": "string", "format": format}))
}

/// One of these words.
pub(super) fn words(words: &[&str]) -> Schema {
    Schema(json!({"type": "string", "enum": words}))
}

/// This text and no other.
pub(super) fn word(word: &str) -> Schema {
    Schema(json!({"type": "string", "const": word}))
}

/// A time as RFC 3339 writes it.
pub(super) fn time() -> Schema {
    Schema(json!({"type": "string", "format": "date-time"}))
}

/// A whole number, at least this.
pub(super) fn count(least: u64) -> Schema {
    Schema(json!({"type": "integer", "minimum": least}))
}

/// A whole number within these bounds.
pub(super) fn between(least: u64, most: u64) -> Schema {
    Schema(json!({"type": "integer", "minimum": least, "maximum": most}))
}

pub(super) fn number() -> Schema {
    Schema(json!({"type": "number"}))
}

pub(super) fn switch() -> Schema {
    Schema(json!({"type": "boolean"}))
}

pub(super) fn nothing() -> Schema {
    Schema(json!({"type": "null"}))
}

/// Any value.
pub(super) fn any() -> Schema {
    Schema(json!({}))
}

pub(super) fn list(of: Schema) -> Schema {
    let mut schema = Schema(json!({"type": "array"}));
    schema.set("items", of.0);
    schema
}

/// Names that nobody knows before, and values of this kind.
pub(super) fn map(of: Schema) -> Schema {
    let mut schema = Schema(json!({"type": "object"}));
    schema.set("additionalProperties", of.0);
    schema
}

/// One of the shapes that have a name.
pub(super) fn shape(name: &str) -> Schema {
    Schema(json!({"$ref": format!("#/components/schemas/{name}")}))
}

/// Exactly one of these.
pub(super) fn one_of(all: Vec<Schema>) -> Schema {
    Schema(json!({"oneOf": all.into_iter().map(|schema| schema.0).collect::<Vec<_>>()}))
}

/// An object that comes in: a field that nobody knows is a mistake, and null is the same as leaving it out.
pub(super) fn written(fields: Vec<Field>) -> Schema {
    let or_null = |field: Field| match field.nullable {
        true => Field { schema: field.schema.or_null(), ..field },
        false => field,
    };
    let mut schema = shown(fields.into_iter().map(or_null).collect());
    schema.set("additionalProperties", json!(false));
    schema
}

/// An object that goes out. Later versions may add fields, so whoever reads it passes over what they don't know.
pub(super) fn shown(fields: Vec<Field>) -> Schema {
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
    /// What it means.
    pub(super) fn says(mut self, meaning: &str) -> Self {
        self.set("description", json!(meaning));
        self
    }

    /// One that fits.
    pub(super) fn like(mut self, example: Value) -> Self {
        self.set("examples", Value::Array(vec![example]));
        self
    }

    /// What it is if nobody says otherwise.
    pub(super) fn usually(mut self, default: Value) -> Self {
        self.set("default", default);
        self
    }

    /// At least one.
    pub(super) fn some(mut self) -> Self {
        self.set("minItems", json!(1));
        self
    }

    /// So many at most.
    pub(super) fn at_most(mut self, most: usize) -> Self {
        self.set("maxItems", json!(most));
        self
    }

    /// No longer than this.
    pub(super) fn longest(mut self, most: usize) -> Self {
        self.set("maxLength", json!(most));
        self
    }

    /// Not empty.
    pub(super) fn not_empty(mut self) -> Self {
        self.set("minLength", json!(1));
        self
    }

    /// This, or null.
    pub(super) fn or_null(mut self) -> Self {
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

    pub(super) fn into_value(self) -> Value {
        self.0
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(object) = self.0.as_object_mut() {
            object.insert(name.to_owned(), value);
        }
    }
}
