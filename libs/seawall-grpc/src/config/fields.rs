//! An object of the JSON with the names of its fields, so that every mistake has its path and no field is overlooked.

use serde_json::{Map, Value};

use super::IgnoredField;

/// Mistakes and ignored fields so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) problems: Vec<(String, String)>,
    pub(super) ignored: Vec<IgnoredField>,
}

impl Notes {
    pub(super) fn wrong(&mut self, path: &str, reason: impl Into<String>) {
        self.problems.push((path.to_owned(), reason.into()));
    }

    pub(super) fn ignore(&mut self, path: String, reason: &'static str) {
        self.ignored.push(IgnoredField { path, reason });
    }
}

/// The fields of one object. What nobody asked for is unknown.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    path: String,
    object: &'a Map<String, Value>,
    read: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The fields of `value`, if it is an object.
    pub(super) fn of(path: &str, value: &'a Value, notes: &mut Notes) -> Option<Self> {
        let Value::Object(object) = value else {
            notes.wrong(path, format!("{} is not an object; write `{{…}}`", kind(value)));
            return None;
        };
        Some(Fields { path: path.to_owned(), object, read: Vec::new() })
    }

    /// The path of a field.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The field, if it is there and not `null`, which is the same as its absence in JSON of protocol buffers.
    pub(super) fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.read.push(name);
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// A field that must be there, read by `read`.
    pub(super) fn required<T>(&mut self, name: &'static str, notes: &mut Notes, read: Read<T>) -> Option<T> {
        if self.get(name).is_none() {
            notes.wrong(&self.path(name), "is missing, and must be there");
            return None;
        }
        self.optional(name, notes, read)
    }

    /// A field that may be there, read by `read`.
    pub(super) fn optional<T>(&mut self, name: &'static str, notes: &mut Notes, read: Read<T>) -> Option<T> {
        match read(self.get(name)?) {
            Ok(value) => Some(value),
            Err(reason) => {
                notes.wrong(&self.path(name), reason);
                None
            }
        }
    }

    /// The items of a field that is a list, each with its path.
    pub(super) fn list(&mut self, name: &'static str, notes: &mut Notes) -> Vec<(String, &'a Value)> {
        let path = self.path(name);
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(index, item)| (format!("{path}[{index}]"), item)).collect()
            }
            Some(other) => {
                notes.wrong(&path, format!("{} is not a list; write `[…]`", kind(other)));
                Vec::new()
            }
        }
    }

    /// Notes every field that nobody asked for.
    pub(super) fn end(self, notes: &mut Notes) {
        for name in self.object.keys().filter(|name| !self.read.contains(&name.as_str())) {
            let known = ["loadBalancingConfig", "loadBalancingPolicy", "healthCheckConfig"];
            let reason = if self.path.is_empty() && known.contains(&name.as_str()) {
                "is a matter of the channel that the config is put around"
            } else {
                "is not a field of this adapter, and ignored as gRPC ignores unknown fields"
            };
            notes.ignore(self.path(name), reason);
        }
    }
}

/// Reads a value, or says what to write instead.
pub(super) type Read<T> = fn(&Value) -> Result<T, String>;

/// What a value is, for a sentence about it.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "`null`".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => {
            let shown: String = text.chars().take(40).collect();
            format!("{shown:?}")
        }
        other => format!("`{other}`"),
    }
}
