//! Walks a value along the shape of its type, and collects every problem.

use seawall_api::HIDDEN;
use serde_json::{Map, Value};

use super::fields::unknown;
use super::formats::check;
use super::shape::{FieldShape, ShapeField};
use seawall_api::FieldProblem;

/// Walks a value along a shape.
pub(super) struct ShapeReader<'a> {
    pub(super) problems: &'a mut Vec<FieldProblem>,
}

impl ShapeReader<'_> {
    fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldProblem { field: field.into(), reason: reason.into() });
    }

    /// The value as serde takes it; `None` if it has a problem, which is reported. Of an object what has none remains.
    pub(super) fn read(&mut self, node: &FieldShape, value: Value, place: &str) -> Option<Value> {
        let reason = match (node, value) {
            (FieldShape::Any, value) => return Some(value),
            (FieldShape::Either(cases), value) => match cases.iter().find(|case| case.has_type_of(&value)) {
                Some(case) => return self.read(case, value, place),
                None => format!("must be {}", node.type_name()),
            },
            (FieldShape::Text { format, is_filled, longest, hint }, Value::String(text)) => {
                let problem = match *is_filled && text.is_empty() {
                    true => Some(empty(hint.as_deref())),
                    false => problem_of(&text, format.as_deref(), *longest),
                };
                match problem {
                    None => return Some(Value::String(text)),
                    Some(reason) => reason,
                }
            }
            (FieldShape::Words(words), Value::String(word)) => match words.contains(&word) {
                true => return Some(word.into()),
                false => format!("must be {}", listed(words)),
            },
            (FieldShape::Integer { least, most }, value) => {
                match whole(&value).filter(|number| (least..=most).contains(&number)) {
                    Some(number) => return Some(number.into()),
                    None => integer(*least, *most),
                }
            }
            (FieldShape::Number, value) if value.is_number() => return Some(value),
            (FieldShape::Switch, Value::Bool(on)) => return Some(on.into()),
            (FieldShape::List { is_filled: true, hint, .. }, Value::Array(items)) if items.is_empty() => {
                empty(hint.as_deref())
            }
            (FieldShape::List { of, longest, .. }, Value::Array(items)) => match longest {
                Some(longest) if items.len() as u64 > *longest => {
                    format!("must not have more than {longest} items")
                }
                _ => return self.list(of, items, place),
            },
            // What is shown in place of secrets can be written back.
            (FieldShape::List { is_secret: true, .. }, value) if value == HIDDEN => return Some(value),
            (FieldShape::Map(of), Value::Object(values)) => return self.map(of, values, place),
            (FieldShape::Object(fields), Value::Object(values)) => {
                return Some(self.object(fields, values, place));
            }
            (FieldShape::Tagged { tag, read_only, .. }, Value::Object(values))
                if read_only.iter().any(|word| values.get(tag).is_some_and(|tag| tag == word)) =>
            {
                return Some(Value::Object(values));
            }
            (FieldShape::Tagged { tag, cases, .. }, Value::Object(values)) => {
                return self.tagged(tag, cases, values, place);
            }
            _ => format!("must be {}", node.type_name()),
        };
        self.wrong(place, reason);
        None
    }

    fn list(&mut self, of: &FieldShape, items: Vec<Value>, place: &str) -> Option<Value> {
        // A list of texts is one thing for people, so it has at most one problem of its kind, and that is its own.
        if let FieldShape::Text { .. } | FieldShape::Words(_) = of {
            if !items.iter().all(Value::is_string) {
                self.wrong(place, "must be a list of strings");
                return None;
            }
            let before = self.problems.len();
            for item in &items {
                match of {
                    FieldShape::Words(words) if !words.iter().any(|word| item == word) => {
                        let reason = format!("must be one of {}, not `{}`", words.join(", "), text_of(item));
                        self.wrong(place, reason);
                    }
                    FieldShape::Words(_) => {}
                    of => drop(self.read(of, item.clone(), place)),
                }
            }
            return (self.problems.len() == before).then_some(Value::Array(items));
        }
        let before = self.problems.len();
        let read = |(at, item)| self.read(of, item, &format!("{place}[{at}]"));
        let items: Vec<Value> = items.into_iter().enumerate().filter_map(read).collect();
        (self.problems.len() == before).then_some(Value::Array(items))
    }

    fn map(&mut self, of: &FieldShape, values: Map<String, Value>, place: &str) -> Option<Value> {
        let read = |(name, value): (String, Value)| {
            let value = self.read(of, value, &below(place, &name))?;
            Some((name, value))
        };
        Some(Value::Object(values.into_iter().filter_map(read).collect()))
    }

    fn object(&mut self, fields: &[ShapeField], mut values: Map<String, Value>, place: &str) -> Value {
        let mut read = Map::new();
        for ShapeField { name, node, is_required, refuses_null, keeps_null, hint, .. } in fields {
            let at = below(place, name);
            match values.remove(name).filter(|value| *refuses_null || *keeps_null || !value.is_null()) {
                Some(Value::Null) if *keeps_null => drop(read.insert(name.clone(), Value::Null)),
                // Null would look like no limit, and an empty list is one to nothing.
                Some(Value::Null) => drop(self.read(node, Value::Array(Vec::new()), &at)),
                Some(Value::String(text)) if text.is_empty() && *is_required && has_format(node) => {
                    self.wrong(&at, "must not be empty");
                }
                Some(value) => {
                    if let Some(value) = self.read(node, value, &at) {
                        read.insert(name.clone(), value);
                    }
                }
                None if *is_required => {
                    let reason = hint.as_ref().map_or("required".into(), |hint| format!("required: {hint}"));
                    self.wrong(&at, reason);
                }
                None => {}
            }
        }
        for name in values.keys() {
            let known: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            self.wrong(&below(place, name), unknown("field", name, &known));
        }
        Value::Object(read)
    }

    fn tagged(
        &mut self,
        tag: &str,
        cases: &[(String, Vec<ShapeField>)],
        values: Map<String, Value>,
        place: &str,
    ) -> Option<Value> {
        let reason = match values.get(tag) {
            None | Some(Value::Null) => "required".into(),
            Some(Value::String(word)) => match cases.iter().find(|(known, _)| known == word) {
                Some((_, fields)) => return Some(self.object(fields, values, place)),
                None if word.is_empty() => "must not be empty".into(),
                None => {
                    let known: Vec<&str> = cases.iter().map(|(word, _)| &**word).collect();
                    format!("`{tag}` is one of {}", known.join(", "))
                }
            },
            Some(_) => "must be a string".into(),
        };
        self.wrong(&below(place, tag), reason);
        // What else is wrong can't be known, but for a field that no case has.
        let fields = cases.iter().flat_map(|(_, fields)| fields);
        let mut known: Vec<&str> = fields.map(|field| &*field.name).collect();
        known.sort_unstable();
        known.dedup();
        for name in values.keys().filter(|name| !known.contains(&name.as_str())) {
            self.wrong(&below(place, name), unknown("field", name, &known.join(", ")));
        }
        None
    }
}

fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn has_format(node: &FieldShape) -> bool {
    matches!(node, FieldShape::Text { format: Some(_), .. })
}

fn empty(hint: Option<&str>) -> String {
    hint.map_or("must not be empty".into(), |hint| format!("must not be empty; {hint}"))
}

pub(super) fn problem_of(text: &str, format: Option<&str>, longest: Option<u64>) -> Option<String> {
    // The message of a parser says more than a length.
    let wrong = format.and_then(|format| check(format, text).err());
    let is_long = longest.is_some_and(|longest| text.chars().count() as u64 > longest);
    let reason = || format!("must not be longer than {} characters", longest.unwrap_or_default());
    wrong.or_else(|| is_long.then(reason))
}

/// An integer. It may be written as `422.0`, which is one for a schema too.
fn whole(value: &Value) -> Option<u64> {
    let written = || value.as_f64().filter(|number| number.fract() == 0.0);
    value.as_u64().or_else(|| format!("{:.0}", written()?).parse().ok())
}

pub(super) fn integer(least: u64, most: u64) -> String {
    format!("must be an integer from {least} to {most}")
}

/// Words for people: `a`, `b` or `c`.
fn listed(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
