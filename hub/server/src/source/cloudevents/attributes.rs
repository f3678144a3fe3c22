//! The attributes of an event, the same in every mode, with every mistake in them.

use seawall_hub_core::domain::time::Millis;
use serde_json::{Map, Value};

use super::CloudEvent;
use super::text::{self, MediaType};
use seawall_api::FieldProblem;

/// More than anybody reads at once.
const PROBLEMS_MAX: usize = 100;

/// Mistakes, as they are found.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<FieldProblem>,
    /// Whether there are others.
    more: bool,
    /// What stands before the names of fields.
    within: String,
}

impl Problems {
    pub(super) fn within(&mut self, within: impl Into<String>) {
        self.within = within.into();
    }

    /// The first mistake of a field: what is missing is not also wrong in another way.
    pub(super) fn add(&mut self, field: &str, reason: impl Into<String>) {
        // Of an event in a batch that is no object, the place is all there is to name.
        let field = format!("{}{field}", self.within);
        let field = field.trim_end_matches('.');
        if self.more || self.found.iter().any(|problem| problem.field == field) {
            return;
        }
        self.more = self.found.len() == PROBLEMS_MAX;
        if !self.more {
            self.found.push(FieldProblem { field: field.to_owned(), reason: reason.into() });
        }
    }

    pub(super) fn end(mut self) -> Result<(), Vec<FieldProblem>> {
        if self.more {
            let reason = format!("these are the first {PROBLEMS_MAX} mistakes; there are more");
            self.found.push(FieldProblem { field: String::new(), reason });
        }
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}

/// Attributes, taken one by one. What is left at the end is extensions.
pub(super) struct Attributes<'a> {
    map: Map<String, Value>,
    problems: &'a mut Problems,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(map: Map<String, Value>, problems: &'a mut Problems) -> Self {
        Attributes { map, problems }
    }

    /// An event without its data.
    pub(super) fn event(mut self) -> CloudEvent {
        if let Some(version) = self.needed("specversion")
            && version != "1.0"
        {
            self.problems.add("specversion", "only `1.0` is read here");
        }
        let id = self.needed("id").unwrap_or_default();
        let source = self.needed("source").unwrap_or_default();
        self.hold("source", text::is_uri_reference(&source), "must be a URI reference");
        let kind = self.needed("type").unwrap_or_default();
        let time = self.text("time");
        if let Some(moment) = &time {
            self.hold(
                "time",
                Millis::from_rfc3339(moment).is_some(),
                "must be a time by RFC 3339, such as `2026-01-31T12:00:00Z`",
            );
        }
        let dataschema = self.text("dataschema");
        if let Some(schema) = &dataschema {
            self.hold("dataschema", text::is_uri(schema), "must be a URI");
        }
        let datacontenttype = self.text("datacontenttype");
        if let Some(kind) = &datacontenttype {
            self.hold("datacontenttype", MediaType::parse(kind).is_some(), "must be a media type");
        }
        let subject = self.text("subject");
        let extensions = self.extensions();
        CloudEvent {
            id,
            kind,
            source,
            time,
            subject,
            dataschema,
            datacontenttype,
            extensions,
            ..CloudEvent::none()
        }
    }

    /// A text that must be there. Null is not there.
    fn needed(&mut self, name: &str) -> Option<String> {
        if self.map.get(name).is_none_or(Value::is_null) {
            self.map.remove(name);
            self.problems.add(name, "required");
        }
        self.text(name)
    }

    /// A text that has something in it, if it is there.
    fn text(&mut self, name: &str) -> Option<String> {
        match self.map.remove(name)? {
            Value::Null => None,
            Value::String(text) => {
                if text.is_empty() {
                    self.problems.add(name, "must not be empty");
                } else if !text.chars().all(text::is_allowed) {
                    self.problems.add(
                        name,
                        "must not contain characters that attributes may not have, such as control characters",
                    );
                }
                Some(text)
            }
            _ => {
                self.problems.add(name, "must be a string");
                None
            }
        }
    }

    fn hold(&mut self, name: &str, holds: bool, reason: &str) {
        if !holds {
            self.problems.add(name, reason);
        }
    }

    fn extensions(self) -> Vec<(String, Value)> {
        let mut extensions = Vec::new();
        for (name, value) in self.map {
            let field = text::shown(&name);
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            {
                self.problems
                    .add(&field, "the name of an attribute must consist of lower-case letters and digits");
            } else if name == "data" {
                self.problems.add(&field, "`data` is no attribute; in this mode it is the body");
            }
            match &value {
                // Not there.
                Value::Null => continue,
                Value::Bool(_) => {}
                Value::Number(number) => {
                    if number.as_i64().is_none_or(|whole| i32::try_from(whole).is_err()) {
                        let reason = "must be a 32-bit integer; send other numbers as strings";
                        self.problems.add(&field, reason);
                    }
                }
                Value::String(text) => {
                    if !text.chars().all(text::is_allowed) {
                        let reason = "must not contain characters that attributes may not have, such as control characters";
                        self.problems.add(&field, reason);
                    }
                }
                Value::Array(_) | Value::Object(_) => {
                    self.problems.add(&field, "must be a string, an integer, true or false");
                }
            }
            extensions.push((name, value));
        }
        extensions
    }
}

impl CloudEvent {
    /// In the place of one that has problems.
    pub(super) fn none() -> Self {
        CloudEvent {
            id: String::new(),
            kind: String::new(),
            source: String::new(),
            time: None,
            subject: None,
            dataschema: None,
            datacontenttype: None,
            extensions: Vec::new(),
            data: Value::Null,
            data_base64: None,
        }
    }
}
