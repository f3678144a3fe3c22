//! Forms of specifications: what to fill in follows from the schema of the type.
//!
//! A field of the type is a field of the form, with its description as the hint. What else a form needs stands beside the field
//! as `x-form`: a label, a placeholder, a widget, or that it is not displayed.

use minijinja::{Value as View, context};
use schemars::JsonSchema;
use serde_json::Value;

use super::ask::view;
use crate::http::shape::{ordered, schemas_of};

/// The fields of a form for an `S`. `values` is the current state, or null for a new one.
pub(super) fn fields<S: JsonSchema + 'static>(values: &Value) -> Vec<View> {
    let (read, written) = schemas_of::<S>();
    fields_of(read, written, "", values)
}

fn fields_of(read: &Value, written: &Value, below: &str, values: &Value) -> Vec<View> {
    let is_required =
        |name: &str| read["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let shown = ordered(read, written).into_iter().filter_map(|(name, field)| {
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}.{name}") };
        let written = &written["properties"][name];
        field_of(name, (field, written), &path, is_required(name), &values[name]).filter(|_| !is_fixed(field))
    });
    shown.collect()
}

/// A field with one possible value needs no input.
fn is_fixed(field: &Value) -> bool {
    field["const"].is_string() || field["enum"].as_array().is_some_and(|words| words.len() == 1)
}

fn field_of(
    name: &str,
    (field, written): (&Value, &Value),
    path: &str,
    required: bool,
    value: &Value,
) -> Option<View> {
    let form = &field["x-form"];
    let inner = without_null(field);
    let widget = form["widget"].as_str().unwrap_or_else(|| widget_of(inner));
    let cases: Vec<View> = inner["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(without_null(written)["oneOf"].as_array().into_iter().flatten())
        .filter(|(case, _)| case["readOnly"] != true)
        .filter_map(|(case, written)| {
            let (_, word) = tag_of(case)?;
            let label = case["x-form"]["label"].as_str().unwrap_or(word);
            context! { word, label, fields => fields_of(case, written, path, &Value::Null) }.into()
        })
        .collect();
    let tag = inner["oneOf"][0].as_object().and(tag_of(&inner["oneOf"][0])).map(|(tag, _)| tag.to_owned());
    let current = tag.as_ref().and_then(|tag| value[tag].as_str()).unwrap_or_default();
    let required = required || form["required"] == true;
    Some(context! {
        name, path, widget, required, cases, tag, current,
        label => form["label"].as_str().map_or_else(|| label_of(name), ToOwned::to_owned),
        hint => hint(field["description"].as_str().unwrap_or_default()),
        placeholder => form["placeholder"].as_str().unwrap_or_default(),
        words => view(&inner["enum"]), value => view(value), lines => lines(value),
    })
}

fn widget_of(field: &Value) -> &'static str {
    match (field["type"].as_str().or_else(|| field["type"][0].as_str()), field["format"].as_str()) {
        _ if field["oneOf"].is_array() => "cases",
        _ if field["enum"].is_array() => "words",
        (Some("boolean"), _) => "switch",
        (Some("integer"), _) => "number",
        (Some("array"), _) => "list",
        (Some("object"), _) => "json",
        (_, Some("base-url")) => "url",
        _ if field["writeOnly"] == true => "secret",
        _ => "text",
    }
}

fn without_null(field: &Value) -> &Value {
    match field["anyOf"].as_array().map(Vec::as_slice) {
        Some([inner, null]) if null["type"] == "null" => inner,
        _ => field,
    }
}

fn tag_of(case: &Value) -> Option<(&str, &str)> {
    let fields = case["properties"].as_object()?;
    fields.iter().find_map(|(name, field)| Some((&**name, field["const"].as_str()?)))
}

/// The description of a field as it stands beside its label: without marks for code, and without a full stop.
fn hint(description: &str) -> String {
    description.trim_end_matches('.').replace('`', "")
}

/// `clientId` is `Client id`.
fn label_of(name: &str) -> String {
    let mut label = String::with_capacity(name.len() + 2);
    for (at, letter) in name.char_indices() {
        match letter {
            _ if at == 0 => label.extend(letter.to_uppercase()),
            'A'..='Z' => label.extend([' ', letter.to_ascii_lowercase()]),
            _ => label.push(letter),
        }
    }
    label
}

/// An object as lines of `name: value`.
pub(super) fn lines(object: &Value) -> String {
    let pairs = object.as_object().into_iter().flatten();
    let line = |(name, value): (&String, &Value)| format!("{name}: {}", value.as_str().unwrap_or_default());
    pairs.map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use seawall_api::{BaseUrl, Name, ServiceSpec, SourceSpec};
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;
    use crate::dashboard::show::templates;

    /// What a service would be with one more field.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct ServiceWithRegion {
        name: Name,
        address: BaseUrl,
        /// Where it runs.
        #[serde(default)]
        home_region: Option<String>,
    }

    fn rendered(fields: Vec<View>, is_new: bool) -> String {
        let page = r#"{% import "form.html" as form %}{{ form.fields(fields, is_new, policy) }}"#;
        let policy = context! { presets => Vec::<View>::new(), groups => Vec::<View>::new() };
        templates().render_str(page, context! { fields, is_new, policy }).unwrap()
    }

    /// API-4: a field of a specification is in its form without a further edit.
    #[test]
    fn api_4_a_new_field_of_a_specification_is_in_its_form() {
        let values = json!({"name": "billing", "address": "http://a", "homeRegion": "north"});
        let page = rendered(fields::<ServiceWithRegion>(&values), false);
        assert!(page.contains("Home region <small>Where it runs</small>"), "{page}");
        assert!(page.contains(r#"name="homeRegion""#) && page.contains(r#"value="north""#), "{page}");
    }

    /// UI-3: the form of a service has every field that can be written, and no value of a secret.
    #[test]
    fn ui_3_the_form_of_a_service_has_every_field() {
        let service = json!({
            "name": "billing", "address": "https://billing.example", "headers": {"x-team": "orders"}, "paused": true,
            "auth": {"type": "bearer", "secret": "…"}, "policy": {},
        });
        let (new, old) = (
            rendered(fields::<ServiceSpec>(&Value::Null), true),
            rendered(fields::<ServiceSpec>(&service), false),
        );
        let source = rendered(fields::<SourceSpec>(&Value::Null), true);
        for (page, names) in [
            (
                &source,
                &["name", "verify.type", "verify.secrets:list", "verify.header", "eventType", "enabled:flag"]
                    [..],
            ),
            (&new, &["name", "address", "auth.secret", "auth.tokenUrl", "headers:pairs", "policy:json"][..]),
            (&old, &["address", "auth:json", "auth.type", "headers:pairs", "paused:flag"]),
        ] {
            for name in names {
                assert!(page.contains(&format!(r#"name="{name}""#)), "{name} is not in {page}");
            }
        }
        assert!(old.contains("Keep current (bearer)") && old.contains("x-team: orders"), "{old}");
        assert!(!old.contains(r#"name="name""#) && !old.contains("value=\"…\""), "{old}");
    }
}
