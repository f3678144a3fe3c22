//! One object, field by field.

use serde_json::{Map, Value};

use super::text::inline;

/// The fields of a JSON object, those named in `first` before the others, and without those named in `without`.
pub(super) fn lines(json: &str, first: &[&str], without: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    match serde_json::from_str(json).unwrap_or_default() {
        Value::Object(mut map) => {
            without.iter().for_each(|name| drop(map.remove(*name)));
            fields(&map, first, 0, &mut lines);
        }
        other => lines.push(inline(&other)),
    }
    lines
}

fn fields(map: &Map<String, Value>, first: &[&str], depth: usize, lines: &mut Vec<String>) {
    let width = map.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let named = first.iter().filter_map(|name| map.get_key_value(*name));
    let others = map.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    let indent = "  ".repeat(depth);
    for (name, value) in named.chain(others) {
        let name = inline(&Value::from(name.as_str()));
        match value {
            Value::Object(below) if !below.is_empty() => {
                lines.push(format!("{indent}{name}"));
                fields(below, &[], depth + 1, lines);
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                lines.push(format!("{indent}{name}"));
                lines.extend(items.iter().map(|item| format!("{indent}  - {}", inline(item))));
            }
            Value::Object(_) => lines.push(format!("{indent}{name:width$}  -")),
            value => lines.push(format!("{indent}{name:width$}  {}", inline(value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use seawall_client::api::ServiceSpec;
    use serde_json::json;

    use super::*;

    /// HUB-10: one thing is shown field by field, what matters first.
    #[test]
    fn hub_10_a_thing_is_shown_field_by_field() {
        let thing = json!({
            "version": 3, "name": "billing", "headers": {}, "auth": null, "policy": {"retry": {"max": 3}, "x": [1, 2]},
            "moves": [{"at": "now"}], "hidden": 1,
        });
        let expected = [
            "name     billing",
            "auth     -",
            "headers  -",
            "moves",
            "  - {\"at\":\"now\"}",
            "policy",
            "  retry",
            "    max  3",
            "  x      1, 2",
            "version  3",
        ];
        assert_eq!(lines(&thing.to_string(), &["name"], &["hidden"]), expected);
    }

    /// API-4: a field that is added to a type is shown without an edit of the command line.
    #[test]
    fn api_4_a_new_field_of_a_service_is_shown() {
        let spec = ServiceSpec::new("billing", "https://billing.example");
        let mut service = serde_json::to_value(spec).unwrap();
        service["homeRegion"] = json!("north");
        let lines = lines(&service.to_string(), &["name", "address"], &[]);
        assert!(lines.contains(&"homeRegion  north".to_owned()), "{lines:?}");
    }
}
