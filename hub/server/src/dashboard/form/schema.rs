//! What a form reads from the schema of a field.

use serde_json::Value;

/// The widget of a field that does not name one.
pub(super) fn widget_of(field: &Value, form: &Value) -> &'static str {
    let is_offered = form["from"].is_string();
    match (field["type"].as_str().or_else(|| field["type"][0].as_str()), field["format"].as_str()) {
        _ if field["oneOf"].is_array() => "cases",
        _ if field["enum"].is_array() || form["words"].is_array() => "words",
        (Some("boolean"), _) => "switch",
        (Some("integer"), _) => "number",
        (Some("array"), _) if is_offered => "some",
        (Some("array"), _) if field["items"]["enum"].is_array() => "checks",
        (Some("array"), _) => "list",
        (Some("object"), _) if field["properties"].is_object() => "group",
        (Some("object"), _) => "json",
        _ if is_offered => "names",
        (_, Some("base-url")) => "url",
        _ if field["writeOnly"] == true => "secret",
        _ => "text",
    }
}

/// The kind of value that the text of an input becomes, as a form writes it behind the path.
pub(super) fn kind_of(widget: &str) -> &'static str {
    match widget {
        "number" => ":number",
        "switch" => ":flag",
        "list" | "checks" | "some" => ":list",
        "pairs" => ":pairs",
        "json" => ":json",
        _ => "",
    }
}

/// A value as the text of an input.
pub(super) fn text_of(widget: &str, value: &Value) -> String {
    match (widget, value) {
        (_, Value::Null) => String::new(),
        ("pairs", value) => {
            let pairs = value.as_object().into_iter().flatten();
            let line =
                |(name, value): (&String, &Value)| format!("{name}: {}", value.as_str().unwrap_or_default());
            pairs.map(line).collect::<Vec<_>>().join("\n")
        }
        ("list", Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
        }
        ("json", value) => format!("{value:#}"),
        (_, Value::String(text)) => text.clone(),
        (_, value) => value.to_string(),
    }
}

/// The description of a field as it stands beside its label: without marks for code, and without a full stop.
pub(super) fn hint(field: &Value, widget: &str, is_kept: bool) -> String {
    let own = field["x-form"]["hint"].as_str().or(field["description"].as_str()).unwrap_or_default();
    let own = own.trim_end_matches('.').replace('`', "");
    let format = match widget {
        "pairs" => "one `name: value` per line",
        "list" => "one per line",
        _ => "",
    };
    let parts = [&*own, &format.replace('`', ""), if is_kept { "leave empty to keep" } else { "" }];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The field that this one depends on, and the words with which it is there.
pub(super) fn condition(field: &Value) -> Option<(&str, Vec<&str>)> {
    let (of, words) = field["x-form"]["when"].as_object()?.iter().next()?;
    Some((of, words.as_array()?.iter().filter_map(Value::as_str).collect()))
}

/// A schema without the case that it may be null.
pub(super) fn without_null(field: &Value) -> &Value {
    match field["anyOf"].as_array().map(Vec::as_slice) {
        Some([inner, null]) if null["type"] == "null" => inner,
        _ => field,
    }
}

/// The cases that can be written, each as it is read and as it is written.
pub(super) fn cases_of<'a>(read: &'a Value, written: &'a Value) -> Vec<(&'a Value, &'a Value)> {
    let all = |schema: &'a Value| schema["oneOf"].as_array().into_iter().flatten();
    all(read)
        .zip(all(written))
        .filter(|(case, _)| case["readOnly"] != true && tag_of(case).is_some())
        .collect()
}

/// The name of the tag of a case, and its word.
pub(super) fn tag_of(case: &Value) -> Option<(&str, &str)> {
    let fields = case["properties"].as_object()?;
    fields.iter().find_map(|(name, field)| Some((&**name, field["const"].as_str()?)))
}

/// A field with one possible value needs no input.
pub(super) fn has_one_value(field: &Value) -> bool {
    field["const"].is_string() || field["enum"].as_array().is_some_and(|words| words.len() == 1)
}

/// `clientId` is `Client id`.
pub(super) fn label_of(name: &str) -> String {
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
