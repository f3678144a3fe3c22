//! The fields of a form, made of the schema of a type.

use serde::Serialize;
use serde_json::Value;

use super::schema::{
    cases_of, condition, has_one_value, hint, kind_of, label_of, tag_of, text_of, widget_of, without_null,
};
use super::{FormMode, OfferedNames};
use crate::http::shape::ordered;

/// Fields that stand beside each other, or one that has a row of its own.
#[derive(Debug, Serialize)]
pub(super) struct FormRow {
    is_grid: bool,
    fields: Vec<FormField>,
}

/// A field, for its template.
#[derive(Debug, Default, Serialize)]
pub(super) struct FormField {
    /// The place of the value in the body of the call.
    path: String,
    /// The name of the input: the path, and the kind of value that its text becomes.
    input: String,
    widget: String,
    label: String,
    hint: String,
    placeholder: String,
    /// The current value as the text of an input.
    value: String,
    is_required: bool,
    /// True if it has a row of its own.
    #[serde(skip)]
    is_wide: bool,
    /// True if null is sent for an empty input.
    is_cleared: bool,
    /// True if other fields depend on the value.
    is_choice: bool,
    when: Option<FieldCondition>,
    options: Vec<FieldOption>,
    /// The cases of an object with a tag, the path of the tag, and the word of the current case.
    cases: Vec<FieldCase>,
    tag: String,
    current: String,
    /// The fields of a group.
    rows: Vec<FormRow>,
}

/// A field is there while another one has one of these words.
#[derive(Debug, Serialize)]
struct FieldCondition {
    of: String,
    words: String,
    holds: bool,
}

/// One of the values that can be chosen.
#[derive(Debug, Serialize)]
struct FieldOption {
    value: String,
    label: String,
    is_chosen: bool,
}

/// One of the cases of an object with a tag.
#[derive(Debug, Serialize)]
struct FieldCase {
    word: String,
    label: String,
    rows: Vec<FormRow>,
}

impl FieldCase {
    /// The case without its fields.
    fn of(case: &Value) -> Option<Self> {
        let (_, word) = tag_of(case)?;
        let label = case["x-form"]["label"].as_str().unwrap_or(word).to_owned();
        Some(Self { word: word.to_owned(), label, rows: Vec::new() })
    }
}

/// Where fields are in a form, and what it is for.
#[derive(Clone, Copy)]
pub(super) struct FieldScope<'a> {
    pub(super) mode: FormMode,
    pub(super) names: OfferedNames<'a>,
    /// The path of the object that they are fields of.
    pub(super) below: &'a str,
    /// True if that object may be omitted, so that none of them is required.
    pub(super) is_optional: bool,
}

impl FieldScope<'_> {
    /// The rows of an object, by the schemas of what is read and of what is written.
    pub(super) fn rows(&self, read: &Value, written: &Value, values: &Value) -> Vec<FormRow> {
        in_rows(self.fields(read, written, values))
    }

    fn fields(&self, read: &Value, written: &Value, values: &Value) -> Vec<FormField> {
        if read["oneOf"].is_array() {
            return self.tagged(read, written, values);
        }
        let required = read["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut fields: Vec<FormField> = Vec::new();
        for (name, schema) in ordered(read, written) {
            let is_required = required.iter().any(|needed| needed == name);
            let written = &written["properties"][name];
            let Some(mut field) = self.field(name, (schema, written), is_required, &values[name]) else {
                continue;
            };
            let Some((of, words)) = condition(schema) else {
                fields.push(field);
                continue;
            };
            // A field that depends on another one stands behind it, or first if that one can't be changed.
            let other = &read["properties"][of];
            let current = values[of].as_str().or(without_null(other)["enum"][0].as_str()).unwrap_or_default();
            let holds = words.contains(&current);
            if holds || !self.is_left_out(of, other) {
                field.when = Some(FieldCondition { of: of.to_owned(), words: words.join("|"), holds });
                let depends = |one: &FormField| one.when.as_ref().is_some_and(|when| when.of == of);
                let at = fields.iter().rposition(|one| one.path == of || depends(one));
                fields.insert(at.map_or(0, |at| at + 1), field);
            }
        }
        let chosen: Vec<String> =
            fields.iter().filter_map(|field| Some(field.when.as_ref()?.of.clone())).collect();
        fields.iter_mut().for_each(|field| field.is_choice = chosen.contains(&field.path));
        fields
    }

    /// The fields of an object whose tag decides which others it has.
    fn tagged(&self, read: &Value, written: &Value, values: &Value) -> Vec<FormField> {
        let cases = cases_of(read, written);
        let Some((tag, _)) = cases.first().and_then(|(case, _)| tag_of(case)) else { return Vec::new() };
        let current =
            cases.iter().find(|(case, _)| tag_of(case).is_some_and(|(_, word)| values[tag] == word));
        if let Some((case, written)) = current.filter(|_| self.mode == FormMode::Change) {
            return self.fields(case, written, values);
        }
        let is_common =
            |field: &FormField| cases.iter().all(|(case, _)| !case["properties"][&field.path].is_null());
        let (first, first_written) = cases[0];
        let mut fields = self.fields(first, first_written, values);
        fields.retain(is_common);
        let case = |(case, written): &(&Value, &Value)| {
            let mut own = self.fields(case, written, &Value::Null);
            own.retain(|field| !is_common(field));
            Some(FieldCase { rows: in_rows(own), ..FieldCase::of(case)? })
        };
        fields.push(FormField {
            path: tag.to_owned(),
            tag: tag.to_owned(),
            widget: "cases".to_owned(),
            label: read["x-form"]["label"].as_str().unwrap_or("Type").to_owned(),
            is_required: true,
            is_wide: true,
            cases: cases.iter().filter_map(case).collect(),
            ..FormField::default()
        });
        fields
    }

    /// True if an existing object is shown without the field, because it can't be changed.
    fn is_left_out(&self, name: &str, schema: &Value) -> bool {
        let is_fixed = schema["x-form"]["fixed"] == true || (name == "name" && self.below.is_empty());
        is_fixed && self.mode != FormMode::Create
    }

    fn field(
        &self,
        name: &str,
        (schema, written): (&Value, &Value),
        is_required: bool,
        value: &Value,
    ) -> Option<FormField> {
        let (form, inner) = (&schema["x-form"], without_null(schema));
        let path = if self.below.is_empty() { name.to_owned() } else { format!("{}.{name}", self.below) };
        if form["hidden"].is_string() {
            let hidden = FormField {
                widget: "hidden".to_owned(),
                path,
                value: value.to_string(),
                ..FormField::default()
            };
            return (self.mode == FormMode::Replace).then_some(hidden);
        }
        if has_one_value(inner) || self.is_left_out(name, schema) {
            return None;
        }
        let value = if value.is_null() { &schema["default"] } else { value };
        let widget = form["widget"].as_str().unwrap_or_else(|| widget_of(inner, form));
        let is_secret = inner["writeOnly"] == true || inner["items"]["writeOnly"] == true;
        let is_kept = (is_secret || form["keep"] == true) && self.mode != FormMode::Create;
        let is_required = is_required || form["required"] == true;
        let text = text_of(widget, value);
        let mut field = FormField {
            input: format!("{path}{}", kind_of(widget)),
            label: form["label"].as_str().map_or_else(|| label_of(name), ToOwned::to_owned),
            hint: hint(schema, widget, is_kept),
            placeholder: form["placeholder"].as_str().unwrap_or_default().to_owned(),
            is_required: is_required && !self.is_optional && !is_kept && !is_secret,
            is_wide: form["wide"] == true || !SHORT.contains(&widget),
            is_cleared: self.mode == FormMode::Change && !is_required && !is_kept && widget != "switch",
            options: self.options(widget, inner, schema, is_required, value),
            widget: widget.to_owned(),
            path,
            ..FormField::default()
        };
        match (is_secret, is_kept) {
            (true, _) => {}
            (false, true) => field.placeholder = text,
            (false, false) => field.value = text,
        }
        match widget {
            "cases" => self.add_cases(&mut field, inner, without_null(written), value),
            "group" => {
                let inside = FieldScope { below: &field.path, is_optional: !field.is_required, ..*self };
                field.rows = inside.rows(inner, without_null(written), value);
            }
            "some" => {
                let words = [(value.is_null(), "all"), (value.as_array().is_some_and(Vec::is_empty), "none")];
                let word = words.iter().find(|(is, _)| *is).map_or("some", |(_, word)| word);
                field.current = word.to_owned();
            }
            _ => {}
        }
        Some(field)
    }

    fn add_cases(&self, field: &mut FormField, read: &Value, written: &Value, value: &Value) {
        // A case that is chosen anew is filled in whole.
        let inside = FieldScope { mode: FormMode::Create, below: &field.path, is_optional: false, ..*self };
        let case = |(case, written): (&Value, &Value)| {
            Some(FieldCase { rows: inside.rows(case, written, &Value::Null), ..FieldCase::of(case)? })
        };
        let cases = cases_of(read, written);
        let tag = cases.first().and_then(|(case, _)| tag_of(case)).map_or("type", |(tag, _)| tag);
        field.current = value[tag].as_str().unwrap_or_default().to_owned();
        field.tag = format!("{}.{tag}", field.path);
        field.cases = cases.into_iter().filter_map(case).collect();
    }

    fn options(
        &self,
        widget: &str,
        inner: &Value,
        schema: &Value,
        is_required: bool,
        value: &Value,
    ) -> Vec<FieldOption> {
        let (form, default) = (&schema["x-form"], &schema["default"]);
        let option = |value: &str, word: &str, is_chosen: bool| {
            let label =
                form["labels"][word].as_str().unwrap_or(if word.is_empty() { "default" } else { word });
            FieldOption { value: value.to_owned(), label: label.to_owned(), is_chosen }
        };
        let words = |list: &Value| -> Vec<String> {
            let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            words.map(ToOwned::to_owned).collect()
        };
        let offered = || -> Vec<String> {
            let names = self.names.iter().find(|(from, _)| form["from"] == *from);
            names.map(|(_, names)| names.clone()).unwrap_or_default()
        };
        let is_one_of = |word: &String| value.as_array().is_some_and(|all| all.iter().any(|one| one == word));
        match widget {
            "words" => {
                // The default is what an empty input means.
                let unset = (!is_required && default.is_null()).then(|| option("", "", value.is_null()));
                let known = if form["words"].is_array() { &form["words"] } else { &inner["enum"] };
                let known = words(known).into_iter().map(|word| {
                    let is_default = !is_required && *default == word;
                    option(if is_default { "" } else { &word }, &word, *value == word)
                });
                unset.into_iter().chain(known).collect()
            }
            "switch" => {
                ["true", "false"].map(|word| option(word, word, (word == "true") == (*value == true))).into()
            }
            "names" => offered().iter().map(|name| option(name, name, *value == **name)).collect(),
            "some" => offered().iter().map(|name| option(name, name, is_one_of(name))).collect(),
            "checks" => words(&inner["items"]["enum"])
                .iter()
                .map(|word| option(word, word, is_one_of(word)))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Widgets that can stand beside each other.
const SHORT: [&str; 7] = ["text", "url", "secret", "number", "words", "switch", "names"];

fn in_rows(fields: Vec<FormField>) -> Vec<FormRow> {
    let mut rows: Vec<FormRow> = Vec::new();
    for field in fields {
        let is_grid = !field.is_wide;
        match rows.last_mut() {
            Some(row) if row.is_grid && is_grid => row.fields.push(field),
            _ => rows.push(FormRow { is_grid, fields: vec![field] }),
        }
    }
    rows
}
