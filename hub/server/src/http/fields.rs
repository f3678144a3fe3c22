//! Reads a JSON object field by field, and reports every problem and every unknown field at once.

use seawall_hub_core::domain::slug::Slug;
use serde_json::{Map, Value};

/// The fields of an object. The reader takes them one by one; those left at the end are unknown.
pub(crate) struct Fields {
    map: Map<String, Value>,
    problems: Vec<FieldError>,
}

/// A problem with a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl Fields {
    pub(crate) fn new(value: Value) -> Self {
        match value {
            Value::Object(map) => Fields { map, problems: Vec::new() },
            _ => {
                let mut fields = Fields { map: Map::new(), problems: Vec::new() };
                fields.wrong("", "must be an object");
                fields
            }
        }
    }

    pub(crate) fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldError { field: field.into(), reason: reason.into() });
    }

    /// True if a problem was found.
    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Takes any value that is not null.
    pub(crate) fn any(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// True if the field is present, even as null.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        match self.any(field)? {
            Value::String(text) => Some(text),
            _ => {
                self.wrong(field, "must be a string");
                None
            }
        }
    }

    /// Takes a required string that is not empty. After a problem the result is empty.
    pub(crate) fn needed(&mut self, field: &str) -> String {
        let before = self.problems.len();
        let text = self.given(field);
        if text.is_empty() && self.problems.len() == before {
            self.wrong(field, "must not be empty");
        }
        text
    }

    /// Takes a required string that may be empty.
    pub(crate) fn given(&mut self, field: &str) -> String {
        let there = self.map.get(field).is_some_and(|value| !value.is_null());
        self.text(field).unwrap_or_else(|| {
            if !there {
                self.wrong(field, "required");
            }
            String::new()
        })
    }

    /// Takes the name of the object. If both the path and the body have it, they must agree.
    pub(crate) fn name(&mut self, in_path: Option<&str>) -> Option<Slug> {
        let name = match in_path {
            Some(in_path) => {
                if self.text("name").is_some_and(|name| name != in_path) {
                    self.wrong("name", "must be the name in the path; a name can't be changed");
                }
                in_path.to_owned()
            }
            None => self.needed("name"),
        };
        self.parsed("name", &name, Slug::new)
    }

    /// Takes an integer within these bounds.
    pub(crate) fn number(&mut self, field: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.any(field)?;
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(field, format!("must be an integer from {least} to {most}"));
        }
        number
    }

    /// Takes a list of strings.
    pub(crate) fn texts(&mut self, field: &str) -> Vec<String> {
        let Some(value) = self.any(field) else { return Vec::new() };
        let texts = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.unwrap_or_else(|| {
            self.wrong(field, "must be a list of strings");
            Vec::new()
        })
    }

    /// Ignores all remaining fields.
    pub(crate) fn forget(&mut self) {
        self.map.clear();
    }

    /// Parses a string, and reports its error as a problem.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        field: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        // A missing value was reported before.
        if text.is_empty() {
            return None;
        }
        parse(text).map_err(|error| self.wrong(field, error.to_string())).ok()
    }

    pub(crate) fn end(mut self, known: &str) -> Vec<FieldError> {
        let left: Vec<String> = self.map.keys().cloned().collect();
        for field in left {
            self.wrong(&field, unknown("field", &field, known));
        }
        self.problems
    }
}

/// The reason for an unknown name, with the known one that differs in one slip.
pub(super) fn unknown(kind: &str, name: &str, known: &str) -> String {
    match known.split(", ").find(|other| is_one_slip(name, other)) {
        Some(near) => format!("unknown {kind}, did you mean `{near}`? Known: {known}"),
        None => format!("unknown {kind}. Known: {known}"),
    }
}

/// True if one letter is added, dropped or changed, or two neighbours are swapped. Case does not count.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase().into_bytes(), other.to_ascii_lowercase().into_bytes());
    let shorter = one.len().min(other.len());
    let before = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let after = one.iter().rev().zip(other.iter().rev()).take(shorter - before).take_while(|(a, b)| a == b);
    let after = after.count();
    match (&one[before..one.len() - after], &other[before..other.len() - after]) {
        ([a, b], [c, d]) => a == d && b == c,
        (a, b) => a.len() <= 1 && b.len() <= 1 && shorter >= 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API-2: a field that is misspelt gets a suggestion; the known fields are listed in any case.
    #[test]
    fn api_2_a_misspelt_field_gets_a_suggestion() {
        for (name, near) in
            [("polcy", "policy"), ("Adress", "address"), ("nmae", "name"), ("policyy", "policy")]
        {
            let reason = unknown("field", name, "name, address, policy");
            let expected = format!("unknown field, did you mean `{near}`? Known: name, address, policy");
            assert_eq!(reason, expected);
        }
        for name in ["", "x", "retries", "names2"] {
            assert_eq!(unknown("field", name, "name, address"), "unknown field. Known: name, address");
        }
    }
}
