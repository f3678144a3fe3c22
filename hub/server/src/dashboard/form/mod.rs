//! Forms of specifications: what to fill in follows from the schema of the type.
//!
//! A field of the type is a field of the form, with its description as the hint. What else a form needs stands beside the field
//! as `x-form`; docs/dev/schema-keywords.md lists what can be said there.

mod field;
mod schema;
#[cfg(test)]
mod tests;

use minijinja::Value as View;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::field::{FieldScope, FormRow};
use super::show::encoded;
use crate::http::shape::schemas_of;

/// A kind of object that people create and change with a form.
pub(super) struct FormSubject {
    pub(super) noun: &'static str,
    /// The path of the objects in the API.
    pub(super) api: &'static str,
    /// The path of their pages.
    pub(super) pages: &'static str,
    /// The page from which a new one is created.
    pub(super) list: &'static str,
    /// The name of a new object is in the path of the call, and a change names only what it changes.
    pub(super) is_patched: bool,
}

pub(super) const SERVICE: FormSubject = FormSubject {
    noun: "service",
    api: "/api/v1/registry/services",
    pages: "/services",
    list: "/services",
    is_patched: false,
};
pub(super) const SOURCE: FormSubject = FormSubject {
    noun: "source",
    api: "/api/v1/registry/sources",
    pages: "/sources",
    list: "/sources",
    is_patched: false,
};
pub(super) const RULE: FormSubject = FormSubject {
    noun: "rule",
    api: "/api/v1/registry/rules",
    pages: "/rules",
    list: "/rules",
    is_patched: false,
};
pub(super) const KEY: FormSubject = FormSubject {
    noun: "key",
    api: "/api/v1/registry/keys",
    pages: "/keys",
    list: "/keys",
    is_patched: false,
};
pub(super) const ALERT_RULE: FormSubject = FormSubject {
    noun: "alert rule",
    api: "/api/v1/ops/alertRules",
    pages: "/alerts/rules",
    list: "/alerts",
    is_patched: true,
};
pub(super) const ALERT_CHANNEL: FormSubject = FormSubject {
    noun: "channel",
    api: "/api/v1/ops/alertChannels",
    pages: "/alerts/channels",
    list: "/alerts",
    is_patched: true,
};

/// What the call of a form does with what is not filled in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FormMode {
    /// The object is new, so the default applies.
    Create,
    /// The object is written whole, so the default applies.
    Replace,
    /// The object is changed, so the form says null where a value was removed.
    Change,
}

/// The names that a field with `x-form: {"from": …}` offers, by that word.
pub(super) type OfferedNames<'a> = &'a [(&'static str, Vec<String>)];

/// A form, for its template.
#[derive(Debug, Serialize)]
pub(super) struct Form {
    pub(super) noun: &'static str,
    pub(super) heading: String,
    /// The title of the object's own page, and where it is; empty for a new object.
    pub(super) name: String,
    pub(super) is_new: bool,
    method: &'static str,
    path: String,
    /// The page that is shown afterwards, and what it says.
    pub(super) to: String,
    pub(super) done: String,
    pub(super) button: String,
    pub(super) cancel: String,
    /// The version that the fields show, if the call is refused for another one.
    version: Option<u64>,
    rows: Vec<FormRow>,
}

impl FormSubject {
    /// The form for a new object.
    pub(super) fn create<S: JsonSchema + 'static>(&self, values: &Value, names: OfferedNames<'_>) -> Form {
        let FormSubject { noun, api, pages, .. } = self;
        let (method, path) =
            if self.is_patched { ("PUT", format!("{api}/{{name}}")) } else { ("POST", (*api).to_owned()) };
        Form {
            noun,
            heading: format!("New {noun}"),
            name: String::new(),
            is_new: true,
            method,
            path,
            to: format!("{pages}/{{name}}"),
            done: format!("{} created.", capitalized(noun)),
            button: format!("Create {noun}"),
            cancel: self.list.to_owned(),
            version: None,
            rows: rows::<S>(FormMode::Create, values, names),
        }
    }

    /// The form that changes an object.
    pub(super) fn change<S: JsonSchema + 'static>(&self, values: &Value, names: OfferedNames<'_>) -> Form {
        let mode = if self.is_patched { FormMode::Change } else { FormMode::Replace };
        self.write::<S>(mode, values, names)
    }

    /// The form that writes an object whole.
    pub(super) fn replace<S: JsonSchema + 'static>(&self, values: &Value, names: OfferedNames<'_>) -> Form {
        self.write::<S>(FormMode::Replace, values, names)
    }

    fn write<S: JsonSchema + 'static>(
        &self,
        mode: FormMode,
        values: &Value,
        names: OfferedNames<'_>,
    ) -> Form {
        let name = values["name"].as_str().unwrap_or_default();
        let page = format!("{}/{}", self.pages, encoded(name));
        Form {
            noun: self.noun,
            heading: format!("Edit {name}"),
            name: name.to_owned(),
            is_new: false,
            method: if mode == FormMode::Change { "PATCH" } else { "PUT" },
            path: format!("{}/{}", self.api, encoded(name)),
            to: page.clone(),
            done: "Saved.".to_owned(),
            button: "Save".to_owned(),
            cancel: page,
            version: values["version"].as_u64().filter(|_| !self.is_patched),
            rows: rows::<S>(mode, values, names),
        }
    }
}

impl Form {
    /// The form, for a template.
    pub(super) fn view(&self) -> View {
        View::from(minijinja::value::Serde(self))
    }
}

/// The names of objects as the API lists them, for a field that offers them.
pub(super) fn names_of(list: &Value) -> Vec<String> {
    let names = list.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    names.map(ToOwned::to_owned).collect()
}

/// The rows of the form of a type.
fn rows<S: JsonSchema + 'static>(mode: FormMode, values: &Value, names: OfferedNames<'_>) -> Vec<FormRow> {
    let (read, written) = schemas_of::<S>();
    FieldScope { mode, names, below: "", is_optional: false }.rows(read, written, values)
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
