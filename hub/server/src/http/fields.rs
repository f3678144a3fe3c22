//! JSON that comes in, field by field: what is wrong with all of them at once, and nothing that nobody knows.

use seawall_hub_core::domain::slug::Slug;
use serde_json::{Map, Value};

/// The fields of an object, taken one by one. What is left at the end is unknown.
pub(crate) struct Fields {
    map: Map<String, Value>,
    problems: Vec<FieldProblem>,
}

/// What is wrong with a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldProblem {
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl Fields {
    pub(crate) fn new(value: Value) -> Self {
        match value {
            Value::Object(map) => Fields { map, problems: Vec::new() },
            _ => {
                let mut fields = Fields { map: Map::new(), problems: Vec::new() };
                fields.wrong("", "an object is expected");
                fields
            }
        }
    }

    pub(crate) fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldProblem { field: field.into(), reason: reason.into() });
    }

    /// Whether something is wrong already.
    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Whether something is wrong with this field already.
    pub(crate) fn has_problem_with(&self, field: &str) -> bool {
        self.problems.iter().any(|problem| problem.field == field)
    }

    /// Any value, if there is one that is not null.
    pub(crate) fn any(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Whether it is named at all, be it with null.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        match self.any(field)? {
            Value::String(text) => Some(text),
            _ => {
                self.wrong(field, "a text is expected");
                None
            }
        }
    }

    /// A text that must be there, and not be empty. What is wrong with it is said, so an empty one that comes back is in order
    /// for nobody.
    pub(crate) fn needed(&mut self, field: &str) -> String {
        let before = self.problems.len();
        let text = self.given(field);
        if text.is_empty() && self.problems.len() == before {
            self.wrong(field, "it is empty");
        }
        text
    }

    /// A text that must be there, and may be empty.
    pub(crate) fn given(&mut self, field: &str) -> String {
        let there = self.map.get(field).is_some_and(|value| !value.is_null());
        self.text(field).unwrap_or_else(|| {
            if !there {
                self.wrong(field, "it is missing");
            }
            String::new()
        })
    }

    /// The name of what is written. The path may say it; if the body does too, it says the same.
    pub(crate) fn name(&mut self, in_path: Option<&str>) -> Option<Slug> {
        let name = match in_path {
            Some(in_path) => {
                if self.text("name").is_some_and(|name| name != in_path) {
                    self.wrong("name", "it is another one than in the path, and a name can't be changed");
                }
                in_path.to_owned()
            }
            None => self.needed("name"),
        };
        self.parsed("name", &name, Slug::new)
    }

    pub(crate) fn switch(&mut self, field: &str, default: bool) -> bool {
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
    pub(crate) fn pairs(&mut self, field: &str) -> Vec<(String, String)> {
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

    /// A whole number within these bounds.
    pub(crate) fn number(&mut self, field: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.any(field)?;
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(field, format!("a whole number from {least} to {most} is expected"));
        }
        number
    }

    /// A duration, like `30s`.
    pub(crate) fn duration(&mut self, field: &str) -> Option<std::time::Duration> {
        let text = self.text(field)?;
        seawall::config::duration(&text).map_err(|reason| self.wrong(field, reason)).ok()
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, field: &str) -> Vec<String> {
        let Some(value) = self.any(field) else { return Vec::new() };
        let texts = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.unwrap_or_else(|| {
            self.wrong(field, "a list of texts is expected");
            Vec::new()
        })
    }

    /// The fields within a field; what is wrong with them is told when it [ends](Fields::within).
    pub(crate) fn group(&mut self, field: &str) -> Option<Fields> {
        self.any(field).map(Fields::new)
    }

    /// The end of a group.
    pub(crate) fn within(&mut self, field: &str, group: Fields, known: &str) {
        for problem in group.end(known) {
            let dot = if problem.field.is_empty() { "" } else { "." };
            self.wrong(&format!("{field}{dot}{}", problem.field), problem.reason);
        }
    }

    /// Whatever else there is, nobody says anything about it.
    pub(crate) fn forget(&mut self) {
        self.map.clear();
    }

    /// Turns a text into what it stands for, or says why it does not.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
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

    pub(crate) fn end(mut self, known: &str) -> Vec<FieldProblem> {
        let unknown: Vec<String> = self.map.keys().cloned().collect();
        for field in unknown {
            self.wrong(&field, format!("no such field; there are {known}"));
        }
        self.problems
    }
}
