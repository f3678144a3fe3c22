//! JSON that comes in, field by field: what is wrong with all of them at once, and nothing that nobody knows.

use serde_json::{Map, Value};

/// The fields of an object, taken one by one. What is left at the end is unknown.
pub(super) struct Fields {
    map: Map<String, Value>,
    problems: Vec<FieldProblem>,
}

/// What is wrong with a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FieldProblem {
    pub(super) field: String,
    pub(super) reason: String,
}

impl Fields {
    pub(super) fn new(value: Value) -> Self {
        match value {
            Value::Object(map) => Fields { map, problems: Vec::new() },
            _ => {
                let mut fields = Fields { map: Map::new(), problems: Vec::new() };
                fields.wrong("", "an object is expected");
                fields
            }
        }
    }

    pub(super) fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldProblem { field: field.into(), reason: reason.into() });
    }

    /// Any value, if there is one that is not null.
    pub(super) fn any(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Whether it is named at all, be it with null.
    pub(super) fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    pub(super) fn text(&mut self, field: &str) -> Option<String> {
        match self.any(field)? {
            Value::String(text) => Some(text),
            _ => {
                self.wrong(field, "a text is expected");
                None
            }
        }
    }

    /// A text that must be there.
    pub(super) fn needed(&mut self, field: &str) -> String {
        let there = self.map.contains_key(field);
        self.text(field).unwrap_or_else(|| {
            if !there {
                self.wrong(field, "it is missing");
            }
            String::new()
        })
    }

    pub(super) fn switch(&mut self, field: &str, default: bool) -> bool {
        match self.any(field) {
            None => default,
            Some(Value::Bool(on)) => on,
            Some(_) => {
                self.wrong(field, "true or false is expected");
                default
            }
        }
    }

    /// Names and texts.
    pub(super) fn pairs(&mut self, field: &str) -> Vec<(String, String)> {
        let Some(value) = self.any(field) else { return Vec::new() };
        let Value::Object(map) = value else {
            self.wrong(field, "an object of texts is expected");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, value) in map {
            match value {
                Value::String(text) => pairs.push((name, text)),
                _ => self.wrong(&format!("{field}.{name}"), "a text is expected"),
            }
        }
        pairs
    }

    /// Turns a text into what it stands for, or says why it does not.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        field: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        // What is missing was said already.
        if text.is_empty() {
            return None;
        }
        parse(text).map_err(|error| self.wrong(field, error.to_string())).ok()
    }

    pub(super) fn end(mut self, known: &str) -> Vec<FieldProblem> {
        let unknown: Vec<String> = self.map.keys().cloned().collect();
        for field in unknown {
            self.wrong(&field, format!("no such field; there are {known}"));
        }
        self.problems
    }
}
